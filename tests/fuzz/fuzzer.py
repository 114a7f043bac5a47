"""Random cases of every kind: each ends as a good result or as a refusal.

    python tests/fuzz/fuzzer.py --cases 1000 --seed 1 --workers 2

A good result has the bytes of an undisturbed run. A refusal is a message with a way out. Everything else
(a traceback, no end, a value that is not the undisturbed run's) is a finding and is printed with the case's
own seed, which repeats it: ``--only kind:seed``.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.e2e.commands import Commands  # noqa: E402
from tests.fuzz import (  # noqa: E402
    archives,
    clocks,
    damaged,
    killed,
    modules,
    readers,
    surroundings,
    swapped,
    typed_words,
)
from tests.fuzz.runs import FindingError, Runs  # noqa: E402

KINDS: dict[str, Callable[[Runs, random.Random, Path], str]] = {
    "overrides": typed_words.case,  # random command lines
    "damage": damaged.case,  # a damaged folder, and its own command again
    "readers": readers.case,  # a damaged folder, and every reader
    "swapped": swapped.case,  # files of another run
    "archives": archives.case,  # hostile files of results, sweeps and data
    "surroundings": surroundings.case,  # variables, folders, limits of the process
    "clocks": clocks.case,
    "modules": modules.case,  # random modules against a plain loop
    "kill": killed.kill,
    "worker": killed.worker,
}
# In turn; cheap kinds more often. The first ten have every kind.
TURNS = (
    *KINDS, "overrides", "modules", "damage", "archives", "swapped", "overrides", "readers", "modules",
    "surroundings", "archives", "modules", "overrides", "damage", "modules", "clocks", "archives",
)  # fmt: skip


class Fuzzer:
    """Cases by kind and seed, each in a folder of its own."""

    def __init__(self, commands: Commands, home: Path) -> None:
        self.runs, self.home = Runs(commands, home), home

    def case(self, kind: str, seed: int) -> str:
        """Run one; the way it ended, or :class:`FindingError`."""
        place = self.home / f"{kind}-{seed}"
        place.mkdir()
        (place / "victim").write_text("untouched")
        ended = KINDS[kind](self.runs, random.Random(f"{kind} {seed}"), place)
        if (place / "victim").read_text() != "untouched":
            raise FindingError("a file outside of the run folder was changed")
        shutil.rmtree(place)
        return ended


def fuzz(
    fuzzer: Fuzzer, cases: list[tuple[str, int]], seconds: float = float("inf")
) -> tuple[Counter, list[str]]:
    """Run the cases as far as the time goes; counts by kind and end, and the findings."""
    counts, findings, begun = Counter(), [], time.monotonic()
    for kind, seed in cases:
        if time.monotonic() - begun > seconds:
            break
        started = time.monotonic()
        try:
            ended = fuzzer.case(kind, seed)
            counts[f"{kind}: {ended}"] += 1
            print(f"{kind}:{seed} {ended} {time.monotonic() - started:.1f} s", flush=True)
        except Exception as finding:  # also of the case's own code: the others still run
            counts[f"{kind}: FINDING"] += 1
            name = "" if isinstance(finding, FindingError) else f"{type(finding).__name__}: "
            findings.append(f"--only {kind}:{seed}: {name}{finding}")
            print(findings[-1], "\n", flush=True)
    return counts, findings


def cases_of(seed: int, count: int) -> list[tuple[str, int]]:
    """Kinds in turn, each case with a seed of its own."""
    return [(TURNS[number % len(TURNS)], seed * 1_000_000 + number) for number in range(count)]


def told(counts: Counter, findings: list[str], seconds: float) -> str:
    """The counts and the duration, in a line."""
    listed = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    return f"{sum(counts.values())} cases, {len(findings)} findings, {seconds:.0f} s: {listed}"


def share(cases: list[tuple[str, int]], seconds: float) -> tuple[Counter, list[str]]:
    """What one process does, with a fork server and a folder of its own."""
    commands = Commands()
    try:
        with tempfile.TemporaryDirectory() as home:
            return fuzz(Fuzzer(commands, Path(home)), cases, seconds)
    finally:
        commands.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=lambda word: int(word, 16 if len(word) > 12 else 10), default=0)
    parser.add_argument("--seconds", type=float, default=3600.0, help="no case is begun later")
    parser.add_argument("--workers", type=int, default=1, help="processes that share the cases")
    parser.add_argument("--kinds", nargs="*", choices=[*KINDS], help="only these, in turn")
    parser.add_argument("--only", nargs="*", metavar="KIND:SEED", help="only these cases")
    asked = parser.parse_args()
    chosen = [(kind, int(seed)) for kind, seed in (word.split(":") for word in asked.only or ())]
    if asked.kinds:
        numbers = [asked.seed * 1_000_000 + number for number in range(asked.cases)]
        chosen = [(asked.kinds[seed % len(asked.kinds)], seed) for seed in numbers]
    cases, begun = chosen or cases_of(asked.seed, asked.cases), time.monotonic()
    shares = [cases[first :: asked.workers] for first in range(asked.workers)]
    with ProcessPoolExecutor(asked.workers) as pool:
        parts = list(pool.map(share, shares, [asked.seconds] * asked.workers))
    counts = sum((part[0] for part in parts), Counter())
    findings = [finding for part in parts for finding in part[1]]
    print(told(counts, findings, time.monotonic() - begun))
    missing = len(cases) - sum(counts.values())
    if missing:
        print(f"{missing} cases were not begun within {asked.seconds:.0f} s")
    sys.exit(bool(findings or missing))


if __name__ == "__main__":
    main()
