"""Runs that cases are made of: small ones in every mode, undisturbed results, templates to be copied."""

import random
import shutil
from pathlib import Path

from fedgm.results import rows, summary
from tests.e2e.commands import Command, Commands, result, run_folder, timeless
from tests.fuzz.overrides import SMALL

PAUSE = 3  # rounds after which templates are paused
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
ALONE = [mode for mode in MODES if mode != "two workers"]
LIMITED = {"powerless": True, "memory": 6 * 2**30}  # files that may not be read, files that claim to be huge
Result = tuple[bytes, list[dict]]


class FindingError(AssertionError):
    """A case that ended neither well nor as a refusal."""


class Runs:
    """Starts commands; references and templates are made once."""

    def __init__(self, commands: Commands, home: Path) -> None:
        self.commands, self.home = commands, home
        self._references: dict[tuple[str, int], Result] = {}
        self._templates: dict[tuple[str, bool, int], Path] = {}

    def run(self, home: Path, *words: str, odd: dict | None = None, **env: str) -> Command:
        """A command that ends, without a traceback; ``odd`` and ``env`` as for ``Commands.start``."""
        odd = {**LIMITED, **(odd or {})}
        return self.ended(self.commands.start(home, *words, odd=odd, **env), " ".join(words))

    def ended(self, command: Command, what: str) -> Command:
        """The same for one that was started."""
        try:
            command.wait()
        except AssertionError as error:
            raise FindingError(f"{what}: {error}") from None
        if "Traceback" in command.text or (command.code or 0) < 0:
            raise FindingError(f"{what}: code {command.code}\n{command.text[-3000:]}")
        return command

    def reference(self, mode: str, seed: int = 0) -> Result:
        """Model and rows of an undisturbed run."""
        if (mode, seed) not in self._references:
            self._references[mode, seed] = result(self.template(mode, True, seed))
        return self._references[mode, seed]

    def template(self, mode: str, done: bool, seed: int = 0) -> Path:
        """The output folder of a run that is paused after round 3, or finished."""
        if (mode, done, seed) not in self._templates:
            home = self.home / f"template {mode} {done} {seed}"
            stop = [] if done else [f"stop_after={PAUSE}"]
            command = self.run(home, *MODES[mode], f"seed={seed}", *stop)
            assert command.code == 0, command.text
            self._templates[mode, done, seed] = home
        return self._templates[mode, done, seed]

    def copy(self, mode: str, done: bool, home: Path, seed: int = 0) -> Path:
        """A template's run folder below a home of its own."""
        shutil.copytree(self.template(mode, done, seed), home, symlinks=True)
        return run_folder(home)


def refusal(command: Command, what: str) -> str:
    """A message and code 2, or code 1 for what is no matter of the command line."""
    text = command.words
    if command.code not in (1, 2) or "error: " not in text:
        raise FindingError(f"{what}: code {command.code} without a message\n{command.text[-2000:]}")
    if command.code == 2 and " Try " not in text:
        raise FindingError(f"{what}: no way out in {text[-500:]}")
    return f"refused ({command.code})"


def good(command: Command) -> Result:
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


def same_or_refused(runs: Runs, command: Command, mode: str, seed: int, what: str) -> str:
    """The bytes of the undisturbed run, or a refusal."""
    if command.code != 0:
        return refusal(command, what)
    if result(command.output_dir) != runs.reference(mode, seed):
        raise FindingError(f"{what}: another result\n{command.text}")
    return "good"


def any_mode(draw: random.Random) -> tuple[str, bool]:
    """A mode of one process, and whether its run is finished or paused."""
    return draw.choice(ALONE), draw.random() < 0.35
