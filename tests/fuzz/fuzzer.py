"""Random command lines, random damage, random kills: each case ends as a good result or as a refusal.

    python tests/fuzz/fuzzer.py --cases 300 --seed 1 --workers 2 --seconds 1800

A good result has the bytes of an undisturbed run. A refusal is a message with a way out. Everything else
(a traceback, no end within the time, a row that is not the undisturbed run's) is a finding and is printed
with the case's own seed, which repeats it: ``--only kind:seed``.
"""

import argparse
import contextlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from fedgm.results import rows, summary  # noqa: E402
from tests.e2e.commands import Command, Commands, is_alive, result, run_folder, timeless  # noqa: E402
from tests.fuzz.damage import copied, hurt  # noqa: E402
from tests.fuzz.overrides import SMALL, random_words  # noqa: E402
from tests.fuzz.readers import FindingError, read_all  # noqa: E402

PAUSE = 3  # rounds after which templates are paused
PATIENCE = 120.0  # seconds for one command; all of them take a few
MODES = {
    "one worker": (*SMALL, "rounds=5"),
    "two workers": (*SMALL, "rounds=5", "trainer.workers=2"),
    "event": (*SMALL, "rounds=5", "participation=event", "participation.concurrency=4"),
    "states": (
        *SMALL, "rounds=5", "checkpoint.sync=true", "client=scaffold", "participation=autonomous",
        "participation.delay=3", "participation.epochs=[1,2]",
    ),
    "kept optimiser": (*SMALL, "rounds=5", "local.state=keep", "local.momentum=0.9", "upload=topk"),
}  # fmt: skip


class Fuzzer:
    """Cases by kind and seed; references and templates are made once."""

    def __init__(self, commands: Commands, home: Path) -> None:
        self.commands, self.home = commands, home
        self.references: dict[str, tuple[bytes, list[dict]]] = {}
        self.templates: dict[tuple[str, bool], Path] = {}

    def case(self, kind: str, seed: int) -> str:
        """Run one; the way it ended, or :class:`FindingError`."""
        draw = random.Random(f"{kind} {seed}")
        place = self.home / f"{kind}-{seed}"
        place.mkdir()
        (place / "victim").write_text("untouched")
        ended = getattr(self, kind)(draw, place)
        if (place / "victim").read_text() != "untouched":
            raise FindingError("a file outside of the run folder was changed")
        shutil.rmtree(place)
        return ended

    def overrides(self, draw: random.Random, place: Path) -> str:
        """A random command line."""
        words = random_words(draw)
        command = self.run(place / "out", *SMALL, *words)
        if command.code != 0:
            return self.refusal(command, " ".join(words))
        own = good(command)
        if draw.random() < 0.15:
            again = self.run(place / "again", *SMALL, *words)
            if again.code != 0 or good(again) != own:
                raise FindingError(f"{words}: the same command has two results")
        return "good"

    def damage(self, draw: random.Random, place: Path) -> str:
        """Random damage to a paused or a finished run, then its own command again."""
        mode, done = draw.choice([name for name in MODES if name != "two workers"]), draw.random() < 0.35
        home = copied(self.template(mode, done), place / "out")
        hurts = [hurt(draw, run_folder(home)) for _ in range(draw.choice((1, 1, 2)))]
        read_all(home, self.reference(mode)[1], hurts)
        if not done and draw.random() < 0.3:
            self.pause_again(home, mode, hurts)
        command = self.run(home, *MODES[mode])
        ended = "good"
        if command.code != 0:
            ended = self.refusal(command, f"{mode}, done={done}: {hurts}")
            if draw.random() < 0.3:
                command = self.run(home, *MODES[mode], "rerun=true")
                if command.code != 0:
                    raise FindingError(f"{mode}, done={done}: {hurts}: rerun=true fails\n{command.text}")
        if command.code == 0 and result(home) != self.reference(mode):
            raise FindingError(f"{mode}, done={done}: {hurts}: another result\n{command.text}")
        return ended

    def pause_again(self, home: Path, mode: str, hurts: list[str]) -> None:
        """The command of a paused run once more, with the same ``stop_after``: its rows, or a refusal."""
        command = self.run(home, *MODES[mode], f"stop_after={PAUSE}")
        if command.code != 0:
            self.refusal(command, f"{mode}, stop_after again: {hurts}")
        elif good(command)[1] != self.reference(mode)[1][:PAUSE]:
            raise FindingError(f"{mode}: {hurts}: other rows after the same pause\n{command.text}")

    def worker(self, draw: random.Random, place: Path) -> str:
        """One worker of two is killed alone, at any moment from its fork on."""
        home = place / "out"
        command = self.commands.start(home, *MODES["two workers"])
        forked = False
        while not forked and is_alive(command.pid):  # git has been asked before there is a summary
            forked = any(home.glob("*/*/seed=*/summary.json")) and bool(command.children())
        time.sleep(draw.choice((0.0, draw.uniform(0, 2))))
        for child in command.children()[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, 9)
        try:
            command.wait(PATIENCE)
        except AssertionError as error:
            raise FindingError(f"a killed worker is waited for: {error}") from None
        if "Traceback" in command.text or command.code not in (0, 1):
            raise FindingError(f"code {command.code} after a killed worker\n{command.text[-3000:]}")
        if command.code == 1 and "worker 1 was killed" not in command.words:
            raise FindingError(f"a killed worker is not named\n{command.text[-3000:]}")
        again = self.run(home, *MODES["two workers"])
        if again.code != 0 or result(home) != self.reference("two workers"):
            raise FindingError(f"code {again.code} after a killed worker\n{again.text}")
        return f"good after code {command.code}"

    def kill(self, draw: random.Random, place: Path) -> str:
        """One to three kill -9 at random moments, then the same command to its end."""
        mode = draw.choice(list(MODES))
        for _ in range(draw.choice((1, 2, 3))):
            command = self.commands.start(place / "out", *MODES[mode])
            time.sleep(draw.uniform(0, 2.5))
            command.send(9)
            command.wait(PATIENCE)
        command = self.run(place / "out", *MODES[mode])
        if command.code != 0 or result(place / "out") != self.reference(mode):
            raise FindingError(f"{mode}: code {command.code} after kills\n{command.text}")
        return "good"

    def run(self, home: Path, *words: str) -> Command:
        """A command within its time and without a traceback."""
        command = self.commands.start(home, *words)
        try:
            command.wait(PATIENCE)
        except AssertionError as error:
            raise FindingError(f"{words}: {error}") from None
        if "Traceback" in command.text or (command.code or 0) < 0:
            raise FindingError(f"{words}: code {command.code}\n{command.text[-3000:]}")
        return command

    def refusal(self, command: Command, what: str) -> str:
        """A message and code 2, or code 1 for what is no matter of the command line."""
        text = command.words
        if command.code not in (1, 2) or "error: " not in text:
            raise FindingError(f"{what}: code {command.code} without a message\n{command.text[-2000:]}")
        if command.code == 2 and " Try " not in text:
            raise FindingError(f"{what}: no way out in {text[-500:]}")
        return f"refused ({command.code})"

    def reference(self, mode: str) -> tuple[bytes, list[dict]]:
        if mode not in self.references:
            home = self.home / f"reference {mode}"
            command = self.run(home, *MODES[mode])
            assert command.code == 0, command.text
            self.references[mode] = result(home)
        return self.references[mode]

    def template(self, mode: str, done: bool) -> Path:
        """A run that is paused after round 3, or finished; to be copied."""
        if (mode, done) not in self.templates:
            home = self.home / f"template {mode} {done}"
            command = self.run(home, *MODES[mode], *([] if done else [f"stop_after={PAUSE}"]))
            assert command.code == 0, command.text
            self.templates[mode, done] = home
        return self.templates[mode, done]


def good(command: Command) -> tuple[bytes, list[dict]]:
    """Model and rows of a run that says it ended well, checked for holes."""
    folder = run_folder(command.output_dir)
    told = summary.read(folder)
    if told.get("status") not in ("finished", "diverged", "paused"):
        raise FindingError(f"code 0, but {told.get('status')}\n{command.text[-2000:]}")
    own = rows.read(folder / "metrics.jsonl")
    lines = (folder / "metrics.jsonl").read_text().count("\n") if own else 0
    if len(own) != told["rounds_done"] or lines != len(own):
        raise FindingError(f"{len(own)} rows, {lines} lines, {told['rounds_done']} rounds")
    model = folder / "model.safetensors"
    return model.read_bytes() if model.exists() else b"", timeless(own)


# In turn; the first eight have every kind.
KINDS = ("overrides", "damage", "overrides", "kill", "worker", "overrides", "damage", "overrides")
KINDS += ("damage", "overrides", "damage", "overrides")


def fuzz(
    fuzzer: Fuzzer, cases: list[tuple[str, int]], seconds: float = float("inf"), least: int = 0
) -> tuple[Counter, list[str]]:
    """Run the cases as far as the time goes, but ``least``; counts by kind and end, and the findings."""
    counts, findings, begun = Counter(), [], time.monotonic()
    for number, (kind, seed) in enumerate(cases):
        if number >= least and time.monotonic() - begun > seconds:
            break
        started = time.monotonic()
        try:
            ended = fuzzer.case(kind, seed)
            counts[f"{kind}: {ended}"] += 1
            print(f"{kind}:{seed} {ended} {time.monotonic() - started:.1f} s", flush=True)
        except FindingError as finding:
            counts[f"{kind}: FINDING"] += 1
            findings.append(f"--only {kind}:{seed}: {finding}")
            print(findings[-1], "\n", flush=True)
    return counts, findings


def cases_of(seed: int, count: int) -> list[tuple[str, int]]:
    return [(KINDS[number % len(KINDS)], seed * 1_000_000 + number) for number in range(count)]


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
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3600.0, help="no case is begun later")
    parser.add_argument("--workers", type=int, default=1, help="processes that share the cases")
    parser.add_argument("--only", nargs="*", help="kind:seed")
    asked = parser.parse_args()
    chosen = [(k, int(s)) for k, s in (word.split(":") for word in asked.only or ())]
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
