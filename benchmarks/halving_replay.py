"""Successive halving replayed on the stored curves of a full grid: its cost, and what it would have lost.

    python -m benchmarks.halving_replay docs/results/small/fedgm_grid.jsonl ... [--picture PATH]

Regret is the winner's mean of the last ten evaluations minus that of the point that halving would have
chosen, on the same seed, in points; the share is that of the rounds that it would have run. The picture has
every point of the last file: its score at the first rung, which decides, and the one that it ends with.
"""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from fedgm.figures.style import INK, MUTED, colours, plain, save, sheet, write_text
from fedgm.results import archive, labels
from fedgm.results.run import Run, Status
from fedgm.study.rungs import Halving
from fedgm.study.sweep_progress import score_at
from fedgm.tasks.metric import column

KEYS = ("eta", "beta", "nu")


@dataclass(frozen=True)
class Replay:
    runs: int
    regret: float
    share: float
    chosen: str
    winner: str


def replay(runs: Mapping[int, Run], halving: Halving, metric: str) -> Replay:
    """Take the decisions that ``fedgm sweep`` would have taken, from curves that ran to their end."""
    rounds = max(int(run.facts["rounds"]) for run in runs.values())
    every = int(next(iter(runs.values())).config["eval.every"])
    alive, before, spent = sorted(runs), 0, 0
    for rung in halving.rungs(-(-rounds // every)):
        until = rung * every
        spent += sum(min(until, _done(runs[point])) - min(before, _done(runs[point])) for point in alive)
        scores = {point: score_at(runs[point], metric, until) for point in alive}
        alive, before = halving.survivors(scores, higher=True), until
    spent += sum(_done(runs[point]) - min(before, _done(runs[point])) for point in alive)
    finals = {p: run.score(metric) for p, run in runs.items() if run.status == Status.FINISHED}
    scores = {point: score for point, score in finals.items() if score is not None}
    winner = max(scores, key=lambda point: (scores[point], -point))
    chosen = max((p for p in alive if p in scores), key=lambda point: (scores[point], -point))
    total = sum(map(_done, runs.values()))
    regret = 100 * (scores[winner] - scores[chosen])
    return Replay(len(runs), regret, spent / total, _name(runs[chosen]), _name(runs[winner]))


def numbered(runs: Iterable[Run]) -> dict[int, Run]:
    """Points by number, as the sweep file has them: its lists ascend, eta first, then beta, then nu."""
    return dict(enumerate(sorted(runs, key=lambda run: [run.config[f"algorithm.{key}"] for key in KEYS])))


def _done(run: Run) -> int:
    return int(run.facts["rounds_done"] or 0)


def _name(run: Run) -> str:
    return ", ".join(f"{key} {run.config[f'algorithm.{key}']:g}" for key in KEYS)


def draw(runs: Mapping[int, Run], halving: Halving, metric: str, grid: str) -> Figure:
    """Score at the first rung against score at the end; points that go on are filled, the winner is named."""
    one = next(iter(runs.values()))
    every = int(one.config["eval.every"])
    until = halving.rungs(1000)[0] * every
    early = {point: score_at(run, metric, until) for point, run in runs.items()}
    kept = set(halving.survivors(early, higher=True))
    both = {point: (early[point], run.score(metric)) for point, run in runs.items()}
    axis = column(metric, [one.board])
    scale = axis.scale
    places = {
        point: (scale * a, scale * b) for point, (a, b) in both.items() if a is not None and b is not None
    }
    best = max(places, key=lambda point: places[point][1])
    figure = sheet(5.6, 3.9)
    axes = figure.add_subplot()
    [own] = colours([one.facts["algorithm"]]).values()
    for inside, fill, edge in ((True, own, own), (False, "white", MUTED)):
        xy = [places[point] for point in places if (point in kept) == inside]
        axes.plot([x for x, _ in xy], [y for _, y in xy], "o", ms=4, mfc=fill, mec=edge)
    axes.annotate(
        f"winner: {_name(runs[best])}",
        places[best],
        (0, 22),
        textcoords="offset points",
        fontsize=8,
        ha="center",
        color=INK,
        arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.8, "shrinkB": 4},
    )
    axes.set_xlabel(f"{axis.axis}: mean up to round {until}", fontsize=9, color=INK)
    axes.set_ylabel(f"{axis.axis}: mean of the last 10 evaluations", fontsize=9, color=INK)
    axes.margins(y=0.12)
    plain(axes)
    facts = one.facts
    caption = [
        f"{grid}: {len(places)} points of {labels.algorithm(one)}, {facts['participation']} clients,",
        f"profile {facts['profile']}, {one.rounds} rounds, seed 0.",
        f"Filled: go on after round {until}, the best third. Rings: would be stopped.",
    ]
    write_text(figure, "What the first rung says of the end", caption)
    return figure


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args(words)
    halving, metric, runs = Halving(3, min_iter=3), "test/acc", dict[int, Run]()
    for path in given.paths:
        runs = numbered(run for run in archive.read(Path(path)) if run.facts["seed"] == 0)
        outcome = replay(runs, halving, metric)
        print(
            f"{Path(path).stem}: {outcome.runs} runs, regret {outcome.regret:.2f} points, "
            f"{100 * outcome.share:.0f} % of the rounds; chose {outcome.chosen}; best {outcome.winner}"
        )
    if given.picture:
        save(draw(runs, halving, metric, Path(given.paths[-1]).stem), given.picture)


if __name__ == "__main__":
    main()
