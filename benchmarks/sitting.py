"""All variants of all works in one sitting, interleaved; writes docs/benchmarks.md and its chart.

    python -m benchmarks.sitting [--repeats 5] [--works W1 W2 small W3 W4] [--page]
    python -m benchmarks.sitting --draw    # the chart again, from what was kept

Every variant has a process of its own; they take turns, a round each, and all train the same cohorts. Shown
are samples per CPU second, which a neighbour on the machine disturbs least, and per second of wall clock.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.page import keep, kept, put, rows, spread, taken, when
from benchmarks.processes import descendants, pss
from benchmarks.workload import work
from fedgm.figures.style import BLUE, FAINT, INK, MUTED, plain, save, sheet, write_text

CHART = Path("docs/benchmarks.png")
# What stands below the bars of each work.
WORKS = {
    "W1": "ResNet-8, 32x32\nbatch 32",
    "W2": "CNN, 32x32\nbatch 32",
    "small": "ResNet-8, 16x16\nbatch 10",
    "W3": "ResNet-18, 32x32\nbatch 20, one client",
    "W4": "language model\nbatch 10, one client",
}
COLOURS = ("#d3d7de", "#a9b0bc", "#7b8492", BLUE, "#8cc0e0")  # greys, and one accent for ours
# variant -> what its process is told (benchmarks.contestants)
VARIANTS = {"bare": "bare", "loader": "loader", "tricks": "tricks", "ours": "ours", "ours, 2 workers": "two"}
ONE_CLIENT = ("W3", "W4")  # nothing to share out, and no pictures in W4
LONG = {"W3": 2}  # a round takes minutes: so many rounds of each variant, and none to warm up


class Process:
    """A contestant, and the most memory that it and its workers were seen with."""

    def __init__(self, name: str, variant: str) -> None:
        self.variant, self.pss = variant, 0.0
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.contestants", name, VARIANTS[variant]]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def round(self) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("round\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"{self.variant} has died"
        self.pss = max(self.pss, sum(map(pss, descendants(self.process.pid))))
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


def sit(name: str, repeats: int) -> dict[str, Any]:
    """Rounds of every variant in turn; the first of each warms up, but for long works."""
    stamp, what = taken(), work(name).words
    variants = [v for v in VARIANTS if name not in ONE_CLIENT or v in ("bare", "tricks", "ours")]
    repeats, warm = (min(repeats, LONG[name]), 0) if name in LONG else (repeats, 1)
    processes = {variant: Process(name, variant) for variant in variants}
    turns: dict[str, list[dict[str, float]]] = {variant: [] for variant in variants}
    try:
        for repeat in range(repeats + warm):
            for variant, process in processes.items():
                told = process.round()
                if repeat >= warm:
                    turns[variant].append(told)
    finally:
        for process in processes.values():
            process.close()
    results = {
        variant: {
            "per_cpu": [r["samples"] / r["cpu"] for r in told],
            "per_second": [r["samples"] / r["wall"] for r in told],
            "faults": statistics.median(r["faults"] / r["samples"] for r in told),
            "pss": processes[variant].pss,
        }
        for variant, told in turns.items()
    }
    return {"taken": stamp, "work": f"{what}, {repeats} rounds of each", "variants": results}


def table(results: dict[str, Any]) -> str:
    """Medians and ranges, and the ratio to the bare loop."""
    head = (
        "work", "variant", "samples per CPU second", "against bare", "samples per second", "faults a sample",
        "PSS, MB",
    )  # fmt: skip
    lines: list[list[str]] = []
    for name, result in results.items():
        base = statistics.median(result["variants"]["bare"]["per_cpu"])
        for variant, v in result["variants"].items():
            ratio = f"{statistics.median(v['per_cpu']) / base:.2f}"
            ends = [f"{v['faults']:,.1f}", f"{v['pss']:,.0f}"]
            lines.append([name, variant, spread(v["per_cpu"]), ratio, spread(v["per_second"]), *ends])
    return rows(head, lines)


def notes(results: dict[str, Any]) -> str:
    """What each work was, and when it was measured."""
    return "\n" + "".join(
        f"- {name}: {result['work']}; {when(result['taken'])}\n" for name, result in results.items()
    )


def chart(results: dict[str, Any]) -> Figure:
    """Throughput against the bare loop, with the range of the repeats."""
    figure = sheet(8.4, 4.2)
    axes = figure.add_subplot()
    shown = {name: result["variants"] for name, result in results.items()}
    names = [name for name in VARIANTS if any(name in variants for variants in shown.values())]
    for place, name in enumerate(names):
        works = [one for one in shown if name in shown[one]]
        base = [statistics.median(shown[one]["bare"]["per_cpu"]) for one in works]
        rates = [shown[one][name]["per_cpu"] for one in works]
        middle = [statistics.median(rate) / b for rate, b in zip(rates, base, strict=True)]
        low = [m - min(rate) / b for m, rate, b in zip(middle, rates, base, strict=True)]
        high = [max(rate) / b - m for m, rate, b in zip(middle, rates, base, strict=True)]
        at = [list(shown).index(one) + (place - 2) * 0.17 for one in works]
        colour, bars = COLOURS[list(VARIANTS).index(name)], {"linewidth": 0.9, "ecolor": INK}
        axes.bar(at, middle, 0.16, label=name, color=colour, yerr=[low, high], error_kw=bars, zorder=2)
    axes.axhline(1, color=MUTED, linewidth=0.8, zorder=3)
    axes.set_xticks(range(len(results)), [f"{name}\n{WORKS[name]}" for name in results])
    axes.set_ylabel("samples per CPU second, bare loop = 1", fontsize=8.5, color=INK)
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    plain(axes)
    caption = [
        "Bars: medians over rounds, whiskers: smallest to largest. No bar: not measured.",
        "bare: FedAvg by hand; loader: over a DataLoader; tricks: bare in channels_last with memory that",
        "stays; ours: FederatedLoop with Lightning.",
    ]
    handles, _ = axes.get_legend_handles_labels()
    write_text(figure, "What a round costs beside a loop written by hand", caption, handles)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--works", nargs="+", default=[*WORKS])
    parser.add_argument("--page", action="store_true", help="keep the results, and put them on the page")
    parser.add_argument("--draw", action="store_true", help="draw the kept results, measure nothing")
    given = parser.parse_args()
    if given.draw:
        save(chart(kept("throughput")), CHART)
        return
    results = kept("throughput")
    for name in given.works:
        results[name] = sit(name, given.repeats)
        print(table({name: results[name]}), flush=True)
        results = {one: results[one] for one in WORKS if one in results}
        if given.page:
            keep("throughput", results)
    if given.page:
        put("throughput", table(results) + notes(results))
        save(chart(results), CHART)


if __name__ == "__main__":
    main()
