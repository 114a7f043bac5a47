"""A leaderboard for people: a table on the screen, a section of a page, and what the ranking cannot tell."""

from pathlib import Path
from statistics import mean

from rich.table import Table

from fedgm.figures.standings import Bar, draw
from fedgm.figures.style import save
from fedgm.files import make_folder
from fedgm.plain import plain
from fedgm.results.interval import Interval
from fedgm.study.report import replace_between
from fedgm.study.standings import Standing, Standings

HEAD = ("", "rule", "kind", "chosen on one seed", "score there", "score", "behind the first", "rounds to",
        "MB until then", "clients: std, p10", "tuning: rounds, diverged")  # fmt: skip
ALONE = "One seed says nothing of the noise of seeds, so there are no intervals."
NARROW = (0, 1, 3, 4, 5, 6, 7)  # what 80 columns have room for


def table(found: Standings) -> Table:
    """For the screen: best first."""
    board = found.board
    shown = Table(title=f"{plain(board.title)}: tuned on seed {board.tune}, judged on {_seeds(found)}")
    for place in NARROW:
        shown.add_column(HEAD[place], justify="left" if place in (1, 3) else "right", overflow="fold")
    for cells in _rows(found):
        shown.add_row(*(plain(cells[place]) for place in NARROW))
    return shown


def sentences(found: Standings) -> list[str]:
    """What the ranking says and does not say."""
    judged, seeds = found.judged, len(found.board.judge)
    last = [f"{line.rule.name}: {line.out}, so it is last." for line in found.lines if line.out]
    if not judged:
        more = ["No rule is judged yet: the same command without --show runs what is left."]
        return [*last, *(more if found.open else [])]
    lines = [f"First is {judged[0].rule.name}.", *(_noise(found) if seeds > 1 else [ALONE]), *last]
    if open_ := [line.rule.name for line in found.open]:
        lines.append(f"Not judged yet, so the order may change: {_listed(open_)}.")
    lines += [
        f"{line.rule.name} diverged on seed {_listed([*map(str, line.diverged)])}, which counts with chance."
        for line in judged
        if line.diverged
    ]
    edge = [line.rule.name for line in judged if _is_at_an_edge(line)]
    if edge:
        lines.append(f"Chosen at the edge of its points, so perhaps not at its best: {_listed(edge)}.")
    return lines


def _noise(found: Standings) -> list[str]:
    """What the intervals tell apart, and how they were made."""
    judged, seeds, lines = found.judged, len(found.board.judge), list[str]()
    if same := [line.rule.name for line in found.not_told_apart]:
        lines.append(
            f"Seeds do not tell it apart from {_listed(same)}: the interval of the difference has 0 in it."
        )
    base = found.base
    if base is not None and base is not judged[0]:
        ahead = [line.rule.name for line in judged if line is not base and found.gap(base, line).low > 0]
        lines.append(f"Ahead of {base.rule.name} beyond the noise of seeds: {_listed(ahead) or 'none'}.")
    how = f"{seeds} seeds, paired, each difference by its own variance ({seeds - 1} degrees of freedom)"
    return [*lines, f"Intervals: 95 %, {how}."]


def write(found: Standings, page: Path) -> list[Path]:
    """The section of this board on the page, and its picture beside the page."""
    board = found.board
    picture = page.parent / f"leaderboard_{board.name}.png"
    body = "\n".join([*markdown(found), "", f"![{board.title}]({picture.name})", ""])
    make_folder(page.parent)
    replace_between(page, f"fedgm leaderboard {board.name}", body, "Leaderboard")
    bars = [
        Bar(
            f"{line.rule.name}  {_chosen(line)}",
            line.rule.key,
            line.rule.kind,
            line.interval,
            list(line.scores.values()),
            line.diverged,
        )
        for line in found.judged
        if line.interval is not None
    ]
    caption = " ".join([_caption(found), *_open_first(found)])
    figure = draw(bars, board.title, board.metric, found.metric, caption)
    return [page, save(figure, picture)]


def markdown(found: Standings) -> list[str]:
    """Heading, table and sentences."""
    board = found.board
    lines = [f"## {board.title}", "", f"`fedgm leaderboard {board.name}`. " + _caption(found), ""]
    head = [HEAD[0], *HEAD[1:7], f"rounds to {found.metric.show(board.level)}", *HEAD[8:]]
    lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cells)} |" for cells in _rows(found)]
    return [*lines, "", *(f"- {line}" for line in sentences(found))]


def _rows(found: Standings) -> list[list[str]]:
    rows, judged = list[list[str]](), found.judged
    for place, line in enumerate(found.lines, 1):
        known = (
            str(min(place, len(judged) + 1)) if line in judged or line.out else "-"
        )  # the last place is shared
        start = [known, line.rule.name, line.rule.kind, _chosen(line)]
        there = "-" if line.winner is None else found.metric.show(line.winner.score)
        cells = _judged(found, line) if line in judged else [line.out or "-", *["-"] * 4]
        rows.append([*start, there, *cells, _cost(line)])
    return rows


def _judged(found: Standings, line: Standing) -> list[str]:
    """Score, gap to the first place, rounds and bytes to the level, spread over clients."""
    board, metric = found.board, found.metric
    reached = line.until(board.level, board.goal)
    known = [t for t in reached if t is not None]
    rounds = f"{mean(known):.1f}" if known else "-"
    rounds += f" ({len(known)} of {len(reached)} seeds)" if len(known) < len(reached) else ""
    size = line.megabytes
    bytes_ = f"{size * mean(known):.1f}" if known and size is not None else "-"
    std, low = line.spread("std"), line.spread("p10")
    spread = "-" if std is None else f"{metric.show(std)}, {metric.show(low)}"
    first = found.judged[0]
    gap = "-" if line is first else _interval(found, found.gap(line, first))
    assert line.interval is not None
    return [_interval(found, line.interval), gap, rounds, bytes_, spread]


def _interval(found: Standings, interval: Interval) -> str:
    """``83.1 (80.2 to 86.0)``, in the unit in which the metric is shown; one seed has no interval."""
    metric = found.metric
    digits = 1 if metric.unit == "%" else 3
    mean_, low, high = (
        f"{metric.scale * v:.{digits}f}" for v in (interval.mean, interval.low, interval.high)
    )
    return f"{mean_} ({low} to {high})" if interval.n > 1 else mean_


def _chosen(line: Standing) -> str:
    """``eta 2, beta 0.9``."""
    if line.winner is None:
        return "not tuned yet" if len(line.tuned) < len(line.rule.points) else "no point finished"
    values = line.winner.job.values
    chosen = line.rule.swept or list(values)
    return ", ".join(f"{key.rpartition('.')[2]} {values[key]}".removesuffix(".0") for key in chosen)


def _cost(line: Standing) -> str:
    return f"{line.cost:,}, {line.lost} of {len(line.rule.points)}"


def _is_at_an_edge(line: Standing) -> bool:
    """Whether a swept number is the smallest or the largest of its points."""
    if line.winner is None:
        return False
    for key in line.rule.swept:
        given = [point[key] for point in line.rule.points]
        values = [value for value in given if isinstance(value, int | float) and not isinstance(value, bool)]
        numbers = len(values) == len(given) and len({*values}) > 2
        if numbers and line.winner.job.values[key] in (min(values), max(values)):
            return True
    return False


def _open_first(found: Standings) -> list[str]:
    """In the picture: how many may as well be first."""
    same, judged = len(found.not_told_apart) if len(found.board.judge) > 1 else 0, found.judged
    return [f"Seeds do not tell {judged[0].rule.name} apart from {same} of {len(judged) - 1} others."] * bool(
        same
    )


def _caption(found: Standings) -> str:
    """What was trained, and how the numbers came about."""
    board = found.board
    facts = next((run.facts for line in found.judged for run in line.judged.values()), None)
    work = "Profile {profile}, model {model}, {rounds} rounds. ".format(**facts) if facts else ""
    work += "Each rule is tuned on at most eight points"
    metric = "mean of the last 10 evaluations of " + board.metric
    metric += "; 95 % intervals over seeds" if len(board.judge) > 1 else ""
    return f"{work} on seed {board.tune} and judged on {_seeds(found)} ({metric})."


def _seeds(found: Standings) -> str:
    judge = found.board.judge
    return f"seed{'s' if len(judge) > 1 else ''} {_listed([str(seed) for seed in judge])}"


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
