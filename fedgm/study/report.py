"""Pages of verdicts: every figure with its command, numbers, claims and verdicts, and what was not run."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedgm.errors import RefusedError
from fedgm.files import write_atomically
from fedgm.results.interval import LEVEL
from fedgm.results.summary import Status
from fedgm.study.verdict import together
from fedgm.tasks.metric import SPLITS, Metric

HEAD = """\
# The paper's figures and claims, reproduced

Written by `fedgm reproduce all --stored --out docs/figures --report docs/reproduction.md`; do not edit.
The rules are in [claims.md](claims.md), version 2; verdicts by version 1 are
[kept](reproduction_version_1.md). A verdict is about the profile and the seeds that it names.
"""


def markdown(verdicts: Sequence[dict[str, Any]], pictures: Path, home: Path) -> str:
    """The page, from what the verdict.json of each figure holds; links are relative to ``home``."""
    profiles = list(dict.fromkeys(verdict["profile"] for verdict in verdicts))
    sections = [HEAD, _overview(verdicts, profiles), *(_pooled(verdicts, profile) for profile in profiles)]
    sections += [_figure(verdict, pictures, home, _where(verdict, profiles)) for verdict in verdicts]
    sections.append(_not_run(verdicts, profiles))
    return "\n".join(sections)


def _overview(verdicts: Sequence[dict[str, Any]], profiles: Sequence[str]) -> str:
    """What the paper says, with the verdict at each profile: a line a claim."""
    lines = [
        f"| figure | what the paper says | {' | '.join(f'at `{name}`' for name in profiles)} | command |",
        f"|---|---|{'---|' * len(profiles)}---|",
    ]
    figures: dict[str, dict[str, dict[str, Any]]] = {}
    for verdict in verdicts:
        figures.setdefault(verdict["name"], {})[verdict["profile"]] = verdict
    for at in figures.values():
        first = next(iter(at.values()))
        for number, claim in enumerate(first["claims"] or [None]):
            words = f"{claim['claim']}: {claim['text']}" if claim else "none"
            cells = [_cell(at[name], number) if name in at else "not run" for name in profiles]
            cells = [str(first["figure"]), words, *cells, f"`{first['command']}`"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(verdict: dict[str, Any], number: int) -> str:
    """A verdict, and what it rests on: rounds and seeds."""
    if not verdict["claims"] or not _was_run(verdict):
        return "not run" if verdict["claims"] else "-"
    claim = verdict["claims"][number]
    scale = f"{verdict['rounds']} rounds, seeds {_listed(verdict['judged on'])}"
    return f"{_verdict(claim)}{_beside(verdict, claim)}; {scale}"


def table(verdicts: Sequence[dict[str, Any]]) -> str:
    """Figure, command, numbers, claim and verdict: a line per figure, for the README."""
    numbers = "test: mean of the last 10 evaluations, mean ± deviation over seeds"
    lines = [f"| figure | command | {numbers} | claim | verdict |", "|---|---|---|---|---|"]
    for verdict in verdicts:
        metric, claims = Metric(**verdict["metric"]), verdict["claims"]
        scale = f"{verdict['profile']}, {verdict['rounds']} rounds, seeds {_listed(verdict['judged on'])}: "
        numbers = scale + "; ".join(_short(line, metric) for line in verdict["lines"])
        said = "<br>".join(f"{claim['claim']}: {claim['text']}" for claim in claims) or "-"
        judged = "<br>".join(map(_verdict, claims)) or "-"
        cells = [str(verdict["figure"]), f"`{verdict['command']}`"]
        cells += [numbers, said, judged] if _was_run(verdict) else ["-", said, "not run"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _was_run(verdict: dict[str, Any]) -> bool:
    return any(line["last10"] for line in verdict["lines"])


def _verdict(claim: dict[str, Any]) -> str:
    """In bold where all runs are there: `undecided` because runs are missing says nothing about the claim."""
    lacking = any(part["missing"] for part in claim["parts"])
    return "runs are missing" if lacking and claim["verdict"] == "undecided" else f"**{claim['verdict']}**"


def _beside(verdict: dict[str, Any], claim: dict[str, Any]) -> str:
    """What stands beside a verdict: by the pooled interval, on added seeds alone, which runs are missing."""
    words: list[str] = []
    pooled = [part["pooled"]["verdict"] for part in claim["parts"] if part.get("pooled")]
    if pooled and len(pooled) == len(claim["parts"]):
        words.append(f"pooled: {together(pooled)}")
    if added := claim.get("added seeds"):
        words.append(f"added seeds {_listed(added['seeds'])} alone: {added['verdict']}")
    if verdict["missing seeds"]:
        words.append(f"runs are missing: seeds {_listed(verdict['missing seeds'])}")
    return f" ({'; '.join(words)})" if words else ""


def _pooled(verdicts: Sequence[dict[str, Any]], profile: str) -> str:
    """What the pooled intervals of a profile rest on, or why there are none."""
    of_profile = (verdict["pooled"] for verdict in verdicts if verdict["profile"] == profile)
    said = next(filter(None, of_profile), dict[str, Any]())
    lines = [
        f"Pooled deviation of a difference in {'training' if split == SPLITS[0] else split}, `{profile}`: "
        f"{entry['deviation']:.2f} points, from {entry['comparisons']} comparisons that share no run "
        f"({entry['df']} degrees of freedom; Bartlett's test of equal variances: p = {entry['p']:.2g}"
        f"{'' if entry['p'] >= LEVEL else ', so no pooled interval is shown'})."
        for split, entry in said.items()
    ]
    return "\n".join(lines) + "\n" if lines else ""


def _short(line: dict[str, Any], metric: Metric) -> str:
    """A line's name with its number, and what is not as planned."""
    entry, states = line["last10"].get(f"test/{metric.name}"), list(line["seeds"].values())
    if entry is None:
        return f"{line['name']} not run"
    counts = {state: states.count(state) for state in ("near chance", Status.DIVERGED)}
    words = [f"{count} of {len(states)} {state}" for state, count in counts.items() if count]
    words += [f"{entry['seeds']} of {len(states)} seeds"] if entry["seeds"] < len(states) else []
    beside = f" ({', '.join(words)})" if words else ""
    return f"{line['name']} {_mean(entry, metric)}{beside}"


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _where(verdict: dict[str, Any], profiles: Sequence[str]) -> str:
    """What a second profile is marked by."""
    return "" if verdict["profile"] == profiles[0] else f" (profile {verdict['profile']})"


def _figure(verdict: dict[str, Any], pictures: Path, home: Path, where: str) -> str:
    """A section: picture, numbers of each line, parts of each claim."""
    words = [f"## {verdict['heading']}{where}", ""]
    name = str(verdict["name"])
    for picture in (pictures / verdict["profile"] / name / f"{name}.png", pictures / name / f"{name}.png"):
        if _was_run(verdict) and picture.exists():  # beside the first profile others have a folder
            words += [f"![{_title(verdict)}]({os.path.relpath(picture, home)})", ""]
            break
    if not _was_run(verdict):
        return "\n".join([*words, f"Not run. `{verdict['command']}` runs, draws and judges it.", ""])
    words += [_lines(verdict), ""]
    for claim in verdict["claims"]:
        words += [
            f"**{claim['claim']}**: {claim['text']}. Verdict: {_verdict(claim)}{_beside(verdict, claim)}.",
            "",
            _parts(claim["parts"]),
            "",
        ]
        words += [f"- {note}" for note in claim["notes"]] + ([""] if claim["notes"] else [])
    return "\n".join(words)


def _lines(verdict: dict[str, Any]) -> str:
    """Mean and deviation over seeds of the last ten evaluations."""
    metric = Metric(**verdict["metric"])
    train, test = f"train/{metric.name}", f"test/{metric.name}"
    metrics = [key for key in (train, test) if any(key in line["last10"] for line in verdict["lines"])]
    chosen = any(line.get("seed 0") is not None for line in verdict["lines"])
    speed = verdict.get("speed")
    head = ["line", *metrics, f"{test}, last round"]
    head += [f"rounds to {metric.scale * speed['target']:g} {metric.unit}".strip()] if speed else []
    head += [f"{test} on seed 0, which chose it"] if chosen else []
    head += ["runs", "server rates"]
    table = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for line in verdict["lines"]:
        cells = [line["name"], *(_mean(line["last10"].get(key), metric) for key in metrics)]
        cells += [_mean(line["final"], metric)]
        cells += [_rounds(speed["rounds"][line["key"]])] if speed else []
        cells += [metric.show(line.get("seed 0"))] if chosen else []
        cells += [_states(line["seeds"]), line["values"] or "the paper's, or fixed before the runs"]
        table.append(f"| {' | '.join(cells)} |")
    steps = verdict["local steps"]
    K = f" K = {steps[0]:.1f} to {steps[1]:.1f} local steps a client." if steps else ""
    note = (
        "Mean and deviation over seeds of the mean of the last 10 evaluations; a run that ended as diverged "
    )
    note += "counts with chance"
    note += "; rounds to a score are means over the seeds that reached it" if speed else ""
    begun = "".join(f" {words}." for words in _beginnings(verdict))
    return "\n".join([*table, "", f"{note}.{K}{begun} Commits: {', '.join(verdict['commits'])}."])


def _beginnings(verdict: dict[str, Any]) -> list[str]:
    """Which runs were read from longer ones."""
    names = {line["key"]: line["name"] for line in verdict["lines"]}
    lines: dict[str, list[str]] = {}
    for key, seeds in verdict["beginnings"].items():
        words = f"the first {verdict['rounds']} rounds of runs of {_listed(sorted(set(seeds.values())))} "
        lines.setdefault(f"{words}(seeds {_listed(sorted(map(int, seeds)))})", []).append(names[key])
    return [f"{' | '.join(of_words)}: {words}" for words, of_words in lines.items()]


def _parts(parts: Sequence[dict[str, Any]]) -> str:
    """Every part with its interval and verdict, and beside them what is not judged."""
    head = ["part", "difference or ratio, 95 % interval", "effect", "verdict", "by the pooled variance"]
    head += ["last round alone, 95 % interval", "notes"]
    table = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for part in parts:
        effect = (
            "-" if part["effect"] is None or part["effect"] != part["effect"] else f"{part['effect']:.1f}"
        )
        pooled, last, unit = part.get("pooled"), part["last round"], part["unit"]
        cells = [part["part"], interval(part, unit, part["seeds"]), effect, part["verdict"]]
        cells += [f"{interval(pooled, unit)}: {pooled['verdict']}" if pooled else "-"]
        cells += [
            interval(last, unit, part["seeds"]) if last else "-",
            "; ".join([*part["missing"], *part["notes"]]) or "-",
        ]
        table.append(f"| {' | '.join(cells)} |")
    return "\n".join(table)


def interval(ends: dict[str, Any], unit: str, seeds: int | None = None) -> str:
    """``+1.2 [-0.3, +2.7] points``, or a ratio; one seed has no ends."""
    if ends["mean"] is None:
        return "-"
    sign, word = ("+", "points") if unit == "points" else ("", "times")
    mean = f"{ends['mean']:{sign}.2f}"
    if ends["low"] is None or ends["high"] is None:  # JSON has no infinity
        return f"{mean} {word}, one seed" if seeds == 1 else f"{mean} {word}, no interval"
    return f"{mean} [{ends['low']:{sign}.2f}, {ends['high']:{sign}.2f}] {word}"


def _not_run(verdicts: Sequence[dict[str, Any]], profiles: Sequence[str]) -> str:
    """What is missing, by figure."""
    words = ["## What was not run", ""]
    lines = [
        f"- {_title(verdict)}{_where(verdict, profiles)}: {'; '.join(verdict['missing'])}"
        for verdict in verdicts
        if verdict["missing"]
    ]
    return "\n".join([*words, *(lines or ["Nothing is missing."]), ""])


def _title(verdict: dict[str, Any]) -> str:
    """``Figure 2``, or the name of an experiment outside the paper."""
    outside = verdict["name"] == verdict["experiment"]
    return str(verdict["name"]) if outside else f"Figure {verdict['figure']}"


def _mean(entry: dict[str, Any] | None, metric: Metric) -> str:
    """A mean with its deviation, as the task shows its metric."""
    if entry is None:
        return "-"
    spread = f" ± {metric.scale * entry['deviation']:.2f}" if entry["deviation"] is not None else ""
    return f"{metric.scale * entry['mean']:.2f}{spread}{f' {metric.unit}' if metric.unit else ''}"


def _rounds(entry: dict[str, Any]) -> str:
    """``48``, or in how many seeds the target was reached."""
    if entry["mean"] is None:
        return "never" if entry["seeds"] else "-"
    short = f" ({entry['reached']} of {entry['seeds']} seeds)" if entry["reached"] < entry["seeds"] else ""
    return f"{entry['mean']:.0f}{short}"


def _states(seeds: dict[str, str]) -> str:
    """``3 finished`` or ``2 finished, 1 divergent``."""
    counts: dict[str, int] = {}
    for state in seeds.values():
        counts[state] = counts.get(state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def replace_between(page: Path, name: str, body: str, title: str = "") -> None:
    """Put ``body`` between the marks of ``name``, and leave the rest as it is; a new page has a title."""
    require_marks(page, name)
    start, end = marks(name)
    text = page.read_text() if page.exists() else f"# {title}\n\n{start}\n{end}\n"
    before, _, rest = text.partition(start)
    after = rest.partition(end)[2]
    write_atomically(page, f"{before}{start}\n{body}{end}{after}")


def require_marks(page: Path, name: str) -> None:
    """Refuse a page without a place for the tables, before hours of computing."""
    start, end = marks(name)
    if page.exists() and end not in page.read_text().partition(start)[2]:
        raise RefusedError(f"{page}: put the lines '{start}' and '{end}' where the table is to go")


def marks(name: str) -> tuple[str, str]:
    """The lines around what a command writes."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
