"""kill -9 at random moments over all modes; every run ends with the bytes of an undisturbed one.

python tests/fuzz/kills.py --count 100 --seed 0
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from fedgm.results import rows  # noqa: E402
from tests.e2e.commands import Command, Commands, timeless  # noqa: E402
from tests.fuzz.runs import MODES  # noqa: E402

SWEEP = """\
method: grid
metric: {name: test/acc, goal: maximize}
parameters:
  algorithm.eta: {values: [0.5, 1.0]}
command: ["${program}", %s, "${args_no_hyphens}"]
"""


class Kills:
    """Starts, kills and comes back; one undisturbed result for each mode."""

    def __init__(self, commands: Commands, home: Path, seed: int) -> None:
        self.commands, self.home, self.draw = commands, home, random.Random(seed)
        self.file = home / "grid.yaml"
        self.file.write_text(SWEEP % ", ".join(f'"{word}"' for word in MODES["one worker"]))
        self.calm: dict[str, dict[str, tuple[bytes, list[dict]]]] = {}
        self.seconds: dict[str, float] = {}

    def start(self, mode: str, home: Path) -> Command:
        """``fedgm sweep`` or ``python run.py``."""
        if mode == "sweep":
            return self.commands.tool(
                home, "sweep", str(self.file), "--output-dir", str(home), "--workers", "2"
            )
        return self.commands.start(home, *MODES[mode])

    def undisturbed(self, mode: str) -> dict[str, tuple[bytes, list[dict]]]:
        """Model and rows of every run of the mode."""
        if mode not in self.calm:
            home, begun = self.home / f"calm {mode}", time.monotonic()
            command = self.start(mode, home)
            assert command.wait() == 0, command.text
            self.calm[mode], self.seconds[mode] = outcome(home), time.monotonic() - begun
        return self.calm[mode]

    def case(self, mode: str, number: int, kills: int) -> int:
        """So many kills of one run, then to the end; how many of them met it alive."""
        expected, home, met = self.undisturbed(mode), self.home / f"{mode} {number}", 0
        for _ in range(kills):
            command = self.start(mode, home)
            time.sleep(self.draw.uniform(0, self.seconds[mode]))
            command.send_group(9) if mode != "sweep" else command.send(9)
            met += command.wait() == -9
        command = self.start(mode, home)
        assert command.wait() == 0, command.text
        assert "Traceback" not in command.text, command.text
        assert outcome(home) == expected, f"{mode}: other bytes after {kills} kills\n{command.text}"
        return met


def outcome(home: Path) -> dict[str, tuple[bytes, list[dict]]]:
    """By folder, because a sweep has several."""
    models = sorted(home.glob("*/*/seed=*/model.safetensors"))
    return {
        str(path.parent.relative_to(home)): (
            path.read_bytes(),
            timeless(rows.read(path.parent / "metrics.jsonl")),
        )
        for path in models
    }


def storm(commands: Commands, home: Path, count: int, seed: int) -> Counter:
    """Kills by mode, until there were ``count``."""
    kills, met, number = Kills(commands, home, seed), Counter(), 0
    modes = [*MODES, "sweep"]
    while sum(met.values()) < count:
        mode = modes[number % len(modes)]
        met[mode] += kills.case(mode, number, kills.draw.choice((1, 2, 3)))
        print(f"{mode}: {met[mode]} kills, {sum(met.values())} of {count}", flush=True)
        number += 1
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    commands, begun = Commands(), time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        met = storm(commands, Path(home), asked.count, asked.seed)
    commands.close()
    print(f"{dict(met)}: {sum(met.values())} kills, all byte-equal, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
