"""What a notebook needs: run, versus, suggest, sweep, reproduce, load_runs, load_model, evaluate."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedgm.errors import FedGMError, RefusedError
from fedgm.results.find import below
from fedgm.results.run import Run

if TYPE_CHECKING:
    import pandas as pd

    from fedgm.lightning import pl
    from fedgm.running.one_run import RunResult
    from fedgm.screen import Screen
    from fedgm.study.suggest import Advice


def run(overrides: Sequence[str] = (), callbacks: Sequence["pl.Callback"] = ()) -> "RunResult":
    """Do what ``python run.py OVERRIDES`` does, but raise :class:`fedgm.errors.FedGMError`, never exit.

    ``callbacks`` (Lightning's, or :class:`fedgm.FederatedCallback`) come after those of the configuration.

    >>> result = run(["profile=tiny", "rounds=2"])  # doctest: +SKIP
    >>> result.status, result.summary["final"]["test/acc"]  # doctest: +SKIP
    ('finished', 0.1)
    """
    from fedgm.config import compose
    from fedgm.running.start import execute
    from fedgm.screen import Screen

    return execute(compose(overrides), list(overrides), Screen(), callbacks=callbacks)


def versus(
    *algorithms: str,
    overrides: Sequence[str] = (),
    seeds: int | Sequence[int] = 3,
    eta: float | None = None,
    workers: int | None = None,
    output_dir: str | Path = "outputs",
    known: Sequence[str | Path] = (),
    console: "Screen | None" = None,
) -> dict[str, Any]:
    """Do what ``fedgm versus`` does: run what is missing, print the table, draw, and say who leads.

    Returns ``table`` (a line each), ``sentence`` and the paths ``figure`` and ``page``.
    """
    from fedgm.dashboard import payload, render
    from fedgm.dashboard.collect import Collection
    from fedgm.figures.style import save
    from fedgm.files import write_atomically
    from fedgm.screen import Screen
    from fedgm.study import compare
    from fedgm.study import versus as work
    from fedgm.study.sweep import Sweep, default_workers

    screen = console or Screen()
    compared = work.load(algorithms, overrides, seeds, eta, output_dir, known)
    for note in work.origins(compared.planned, eta, overrides):
        screen.say(note)
    failed = Sweep(compared.results, screen).run(workers or default_workers())
    reasons = "; ".join(sorted(set(failed.values())))
    if not compared.lines:
        raise FedGMError(f"no run is done ({reasons})")
    table = compare.rows(compared.lines)
    screen.print(compare.as_table(table))
    home = Path(output_dir) / "versus"
    home.mkdir(parents=True, exist_ok=True)
    figure = save(compare.picture(compared.lines), home / f"{compared.name}.png")
    page, runs = figure.with_suffix(".html"), [run for line in compared.runs.values() for run in line]
    values = payload.build(Collection(runs, {}), compared.planned.figure.title, lambda _: None)
    write_atomically(page, render.render(values))
    sentence = compared.sentence()
    screen.say(sentence, style="bold")
    for path in (figure, page):
        screen.say(f"  {path}")
    if failed:
        raise FedGMError(f"{len(failed)} runs failed ({reasons}); the same command tries them again")
    return {"table": table, "sentence": sentence, "figure": figure, "page": page}


def suggest(
    overrides: Sequence[str] = (), test_rounds: int = 48, console: "Screen | None" = None
) -> "Advice":
    """Do what ``fedgm suggest`` does: test FedAvg, choose (eta, beta, nu), and say why.

    >>> advice = suggest(["profile=tiny"])  # doctest: +SKIP
    >>> advice.suggestion.momentum.eta  # doctest: +SKIP
    """
    from fedgm.screen import Screen
    from fedgm.study.suggest import advise

    screen = console or Screen()
    advice = advise(overrides, test_rounds, screen)
    first, *reasons = advice.lines()
    screen.say(first, style="bold")
    for line in reasons:
        screen.say(line)
    for typed in filter(None, (advice.command, advice.staged)):
        screen.say(f"  {typed}")
    return advice


def sweep(
    file: str | Path,
    overrides: Sequence[str] = (),
    *,
    seeds: Sequence[int] = (0,),
    workers: int | None = None,
    output_dir: str | Path = "outputs",
    stored: Sequence[str | Path] = (),
) -> "pd.DataFrame":
    """Do what ``fedgm sweep FILE OVERRIDES`` does; a line per run, with its swept values and its result.

    >>> frame = sweep("sweeps/fedavg_grid.yaml", ["profile=tiny"], seeds=[0, 1])  # doctest: +SKIP
    """
    import pandas as pd

    from fedgm.study import sweep as work
    from fedgm.study.display import as_rows

    planned = work.load(file, overrides, seeds, output_dir, stored)
    planned.conclude(planned.run(workers or work.default_workers()))
    return pd.DataFrame(as_rows(planned.results))


def reproduce(
    figure: str = "all",
    overrides: Sequence[str] = (),
    *,
    seeds: int | Sequence[int] | None = None,
    workers: int | None = None,
    output_dir: str | Path = "outputs",
    stored: str | Path | None = None,
    out: str | Path | None = None,
    known: Sequence[str | Path] = (),
) -> list[dict[str, Any]]:
    """Do what ``fedgm reproduce FIGURE`` does; returns what each verdict.json holds.

    >>> [verdict] = reproduce("fig2", ["profile=tiny"], seeds=2)  # doctest: +SKIP
    """
    from fedgm.study.reproduce import reproduce as work

    return work(
        figure, overrides, seeds=seeds, workers=workers, output_dir=output_dir, stored=stored, out=out,
        known=known,
    )  # fmt: skip


def load_model(run: str | Path, trust: Sequence[str] = ()) -> "pl.LightningModule":
    """The trained module of a run folder, in evaluation mode; ``trust``: packages to build from.

    >>> module = load_model("outputs/run/fedgm-1f0a3c5e/seed=0")  # doctest: +SKIP
    """
    from fedgm.running.model import load_model as load

    return load(run, trust)


def evaluate(
    run: str | Path,
    overrides: Sequence[str] = (),
    *,
    weights: str | Path | None = None,
    trust: Sequence[str] = (),
) -> dict[str, float]:
    """Do what ``fedgm eval RUN OVERRIDES`` does: a stored model on its test data, or on new data.

    >>> evaluate("outputs/run/fedgm-1f0a3c5e/seed=0", ["data=npz", "data.path=new.npz"])  # doctest: +SKIP
    {'test/loss': 1.61, 'test/acc': 0.44}
    """
    from fedgm.running.evaluation import evaluate as measure

    return measure(run, overrides, trust, weights)


def load_runs(output_dir: str | Path = "outputs", config: bool = True) -> "pd.DataFrame":
    """All rows of all runs below ``output_dir``: one line per round, with what tells the runs apart.

    Files of stored results (``fedgm sweep FILE --export``) count too, with a line per evaluation. With
    ``config`` every key of the configuration is a column, such as ``algorithm.eta``.

    >>> frame = load_runs("docs/results/small/fedavg_grid.jsonl")
    >>> len(frame), frame["algorithm"].unique().tolist()
    (250, ['fedavg'])
    >>> frame.groupby("algorithm.eta")["test/acc"].max().round(2).loc[[0.5, 1.0]].tolist()
    [0.34, 0.37]
    """
    import pandas as pd

    if not Path(output_dir).exists():
        raise RefusedError(f"{output_dir}: no such folder or file. Try fedgm.load_runs('outputs')")
    frames = [_frame(run, Path(output_dir), config) for run in below(output_dir, all_rows=True)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _frame(run: Run, home: Path, config: bool) -> "pd.DataFrame":
    """A run's rows, with what tells it apart before them and its configuration behind."""
    import pandas as pd

    frame = pd.DataFrame(run.rows if run.folder is not None else run.evaluations)
    folder = None if run.folder is None else str(run.folder.relative_to(home))
    for key in ("name", "algorithm", "schedule", "participation", "profile", "seed", "status"):
        frame.insert(0, key, run.facts.get(key))
    frame.insert(0, "folder", folder)
    values = {key: [value] * len(frame) for key, value in run.config.items() if config and key not in frame}
    return pd.concat([frame, pd.DataFrame(values, index=frame.index)], axis=1)
