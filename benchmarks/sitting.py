"""All variants of all works in one sitting, interleaved; writes docs/benchmarks.md and its chart.

    python -m benchmarks.sitting [--repeats 5] [--works W1 W2 small W3 W4] [--json FILE] [--page]

Every process is started once; then they take turns, a round each. Shown are samples per CPU second, which a
neighbour on the machine disturbs least, and per second of wall clock.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.page import put
from benchmarks.processes import descendants, pss

WORKS = ("W1", "W2", "small", "W3", "W4")
# variant -> the process that knows it
VARIANTS = {
    "bare": "apart",
    "loader": "apart",
    "tricks": "together",
    "ours": "together",
    "ours, 2 workers": "two",
}
ONE_CLIENT = ("W3", "W4")  # nothing to share out, and no pictures in W4


class Process:
    """A contestant, and the most memory that it and its workers were seen with."""

    def __init__(self, work: str, kind: str) -> None:
        self.started, self.first, self.pss = time.perf_counter(), 0.0, 0.0
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.contestants", work, kind]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def round(self, variant: str) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"variant": variant.split(",")[0]}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"{variant} has died"
        self.first = self.first or time.perf_counter() - self.started
        self.pss = max(self.pss, sum(map(pss, descendants(self.process.pid))))
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


def sit(work: str, repeats: int) -> dict[str, Any]:
    """Rounds of every variant in turn; the first of each warms up."""
    variants = [v for v in VARIANTS if work not in ONE_CLIENT or v in ("bare", "tricks", "ours")]
    processes = {kind: Process(work, kind) for kind in dict.fromkeys(VARIANTS[v] for v in variants)}
    found: dict[str, list[dict[str, float]]] = {variant: [] for variant in variants}
    try:
        for repeat in range(repeats + 1):
            for variant in variants:
                taken = processes[VARIANTS[variant]].round(variant)
                if repeat:
                    found[variant].append(taken)
    finally:
        for process in processes.values():
            process.close()
    return {
        variant: {
            "per_cpu": [r["samples"] / r["cpu"] for r in taken],
            "per_second": [r["samples"] / r["wall"] for r in taken],
            "faults": statistics.median(r["faults"] / r["samples"] for r in taken),
            "pss": processes[VARIANTS[variant]].pss,
        }
        for variant, taken in found.items()
    }


def table(results: dict[str, Any]) -> str:
    """Medians and ranges, and the ratio to the bare loop."""
    lines = [
        "| work | variant | samples per CPU second | against bare | samples per second "
        "| faults a sample | PSS, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for work, variants in results.items():
        base = statistics.median(variants["bare"]["per_cpu"])
        for name, v in variants.items():
            cpu, wall = v["per_cpu"], v["per_second"]
            lines.append(
                f"| {work} | {name} | {statistics.median(cpu):,.0f} ({min(cpu):,.0f} - {max(cpu):,.0f}) "
                f"| {statistics.median(cpu) / base:.2f} | {statistics.median(wall):,.0f} "
                f"({min(wall):,.0f} - {max(wall):,.0f}) | {v['faults']:,.1f} | {v['pss']:,.0f} |"
            )
    return "\n".join(lines) + "\n"


def chart(results: dict[str, Any], path: Path) -> None:
    """Throughput against the bare loop, with the range of the repeats."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    names = [name for name in VARIANTS if any(name in found for found in results.values())]
    for place, name in enumerate(names):
        works = [work for work in results if name in results[work]]
        base = [statistics.median(results[work]["bare"]["per_cpu"]) for work in works]
        rates = [results[work][name]["per_cpu"] for work in works]
        middle = [statistics.median(rate) / b for rate, b in zip(rates, base, strict=True)]
        low = [m - min(rate) / b for m, rate, b in zip(middle, rates, base, strict=True)]
        high = [max(rate) / b - m for m, rate, b in zip(middle, rates, base, strict=True)]
        at = [list(results).index(work) + (place - 2) * 0.17 for work in works]
        axes.bar(at, middle, 0.16, label=name, yerr=[low, high], error_kw={"linewidth": 0.8})
    axes.axhline(1, color="#8a8a8a", linewidth=0.8)
    axes.set_xticks(range(len(results)), list(results))
    axes.set_ylabel("samples per CPU second, bare loop = 1")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--works", nargs="+", default=WORKS)
    parser.add_argument("--json", type=Path, default=Path("docs/results/benchmarks.json"))
    parser.add_argument("--page", action="store_true", help="put the table into docs/benchmarks.md")
    given = parser.parse_args()
    results = json.loads(given.json.read_text()) if given.json.exists() else {}
    for work in given.works:
        results[work] = sit(work, given.repeats)
        print(table({work: results[work]}), flush=True)
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    results = {work: results[work] for work in WORKS if work in results}
    if given.page:
        put("throughput", table(results))
        chart(results, Path("docs/benchmarks.png"))


if __name__ == "__main__":
    main()
