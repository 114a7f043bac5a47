"""Values for the server without a grid: a short FedAvg run, then what the model makes of its noise."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf
from pathlib import Path

from fedgm.config import compose, validate
from fedgm.errors import RefusedError, require
from fedgm.results import rows
from fedgm.results.summary import Status
from fedgm.running.modelled import reading_of, require_modelled
from fedgm.running.start import execute, require_working
from fedgm.screen import Screen
from fedgm.theory.suggestion import ETAS, FARTHEST, PROBE_ETA, SETTLED, Suggestion, measure, suggest

ROUNDS = 25
SET = ("algorithm", "schedule", "winners", "name", "stop_after")  # by the probe


@dataclass(frozen=True)
class Advice:
    """A suggestion, where its probe is, and what to type."""

    suggestion: Suggestion
    rounds: int
    probe: Path
    command: str
    staged: str | None  # the command with stages, where they are expected to gain

    def lines(self) -> list[str]:
        """As people read it."""
        found, measured = self.suggestion, self.suggestion.measured
        eta, beta, nu = found.momentum
        larger = "a larger eta gains less than 2 %" if eta < ETAS[-1] else "no larger eta was tried"
        low, middle, high = (_times(each) for each in found.speedup)
        best = "" if isinf(found.speedup[1]) else f" at its best eta, {found.fedavg:g}"
        said = [
            f"eta {eta:g}, beta {beta:g}, nu {nu:g} for {self.rounds} rounds",
            f"{100 * measured.share:.0f} ± {200 * measured.error:.0f} % of the squared update D is noise "
            f"(rounds {measured.rounds[0]} to {measured.rounds[-1]} of a FedAvg with ideal clients).",
            "Among steep and flat directions with that much noise, these values leave the smallest loss; "
            f"{larger}.",
            f"Expected: FedAvg needs {middle} times the rounds{best} "
            f"({low} to {high} over what was measured and assumed).",
        ]
        if self.staged:
            etas = ", ".join(f"{eta:g}" for eta in found.etas)
            beta, nu = found.staged.beta, found.staged.nu
            said.append(f"In stages (Eq. 3) the model prefers eta {etas} from beta {beta:g}, nu {nu:g}.")
        return said


def advise(overrides: Sequence[str], probe_rounds: int = ROUNDS, console: Screen | None = None) -> Advice:
    """Run or continue the probe of this configuration, and search."""
    ok = probe_rounds > SETTLED + 1
    require(ok, "--rounds", probe_rounds, f"above {SETTLED + 1}", f"--rounds {ROUNDS}")
    for word in overrides:
        if _group(word) in SET:
            raise RefusedError(f"{word}: the probe sets {_group(word)} itself. Try fedgm suggest without it")
    wanted = [*overrides, "algorithm=fedgm", "schedule=constant"]
    config = validate(compose(wanted))
    require_modelled(config)
    require_working(compose(wanted), wanted)  # what the suggested command would refuse
    words = probing(overrides, config.participation["name"] == "ideal", probe_rounds)
    ended = execute(compose(words), words, console or Screen())
    if ended.status is not Status.FINISHED:
        raise RefusedError(f"the probe has {ended.status}: see {ended.folder}. Try a smaller local.lr")
    measured = measure(rows.read(ended.folder / "metrics.jsonl"), config.clients.count)
    last = min(10 * config.eval.every, config.rounds)
    found = suggest(measured, config.rounds, last, reading_of(config))
    return Advice(found, config.rounds, ended.folder, *commands(overrides, found))


def probing(overrides: Sequence[str], ideal: bool, rounds: int) -> list[str]:
    """The words of the probe: FedAvg with ideal clients; where those of the run are ideal, they stay."""
    replaced = ("rounds",) if ideal else ("rounds", "participation")
    kept = [word for word in overrides if _group(word) not in replaced]
    return [
        *kept, *([] if ideal else ["participation=ideal"]),
        "algorithm=fedavg", f"algorithm.eta={PROBE_ETA:g}", "schedule=constant", "winners=null", "name=probe",
        f"rounds={rounds}", f"eval.every={rounds}",
    ]  # fmt: skip


def commands(overrides: Sequence[str], found: Suggestion) -> tuple[str, str | None]:
    """What to type for the values, and for stages if there are any, whatever an experiment's schedule is."""
    typed = ["python", "run.py", *overrides, "algorithm=fedgm"]
    eta, beta, nu = found.momentum
    values = [f"algorithm.eta={eta:g}", f"algorithm.beta={beta:g}", f"algorithm.nu={nu:g}"]
    constant = shlex.join([*typed, *values, "schedule=constant"])
    if not found.etas:
        return constant, None
    etas = ",".join(f"{eta:g}" for eta in found.etas)  # algorithm.eta beside them would be refused
    values = [f"algorithm.beta={found.staged.beta:g}", f"algorithm.nu={found.staged.nu:g}"]
    return constant, shlex.join([*typed, *values, "schedule=multistage", f"schedule.etas=[{etas}]"])


def _times(needed: float) -> str:
    return f"more than {FARTHEST}" if isinf(needed) else f"{needed:.1f}"


def _group(word: str) -> str:
    """What a word of the command line sets: participation of ``participation/sampler=uniform``."""
    return word.lstrip("+~").partition("=")[0].partition(".")[0].partition("/")[0]
