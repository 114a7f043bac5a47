"""Values for the server without a grid: a range test of FedAvg, then what theory makes of its edge."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from warnings import catch_warnings, filterwarnings

from fedgm.config import compose, validate
from fedgm.errors import RefusedError, require
from fedgm.results import rows
from fedgm.results.summary import Status
from fedgm.running.modelled import reading_of
from fedgm.running.start import execute, require_working
from fedgm.schedule import stage_ends
from fedgm.screen import Screen
from fedgm.theory.auto import RATIO
from fedgm.theory.suggestion import Step, Suggestion, edge_of, is_past, steps_of, suggest

ROUNDS, EACH, START = 48, 4, 0.35  # at most, of a step; the first eta
DROPS = (1.0, 0.5, 0.25)  # of eta, as in the paper's Figure 2
STAGES = (
    "The second command is the paper's three stages from there. Three stages cost 1 to 33 points against "
    "constant values on three problems (docs/suggest.md): W2 gives most rounds to the smallest eta."
)
SET = ("algorithm", "schedule", "winners", "name", "stop_after", "callbacks")  # by the test


@dataclass(frozen=True)
class Advice:
    """A suggestion, the steps of its test and where they are, and what to type."""

    suggestion: Suggestion
    steps: tuple[Step, ...]
    rounds: int
    test: Path
    command: str
    staged: str  # in the paper's three stages; empty where one of them would be

    def lines(self) -> list[str]:
        """As people read it."""
        (eta, beta, nu), edge = self.suggestion.momentum, self.suggestion.edge
        about, low, high = self.suggestion.gain(self.rounds)
        first, last = self.steps[0].eta, self.steps[-1].eta
        return [
            f"eta {eta:g}, beta {beta:g}, nu {nu:g} for {self.rounds} round{'s' * (self.rounds > 1)}",
            f"FedAvg's training loss was lowest at eta {edge:.2g} (tried: {first:.2g} to {last:.2g}, "
            f"{len(self.steps)} steps of {EACH} rounds).",
            "This is about the largest eta that stays as steady as the best points of our grids did. Edges "
            f"differ between seeds, by a factor of 2: if the run is unsteady, try eta {eta / RATIO:.2g}.",
            f"Expected: FedAvg would need about {about:.1f} times as many rounds ({low:.1f} to {high:.1f}: "
            "what six problems left open).",
            *[STAGES] * bool(self.staged),
        ]


def advise(overrides: Sequence[str], test_rounds: int = ROUNDS, console: Screen | None = None) -> Advice:
    """Run or continue the range test of this configuration, and search."""
    ok = test_rounds >= 2 * EACH
    require(ok, "--rounds", test_rounds, f"at least {2 * EACH}", f"--rounds {ROUNDS}")
    for word in overrides:
        if _group(word) in SET:
            raise RefusedError(f"{word}: the test sets {_group(word)} itself. Try fedgm suggest without it")
    wanted = [*overrides, "algorithm=fedgm", "schedule=constant"]
    config = validate(compose(wanted))
    reading = reading_of(config)
    require_working(compose(wanted), wanted)  # what the suggested command would refuse
    words = range_test(overrides, config.participation["name"] == "ideal", test_rounds)
    from fedgm.federated.callback import StopWhenDecided  # imports Lightning

    with catch_warnings():
        filterwarnings("ignore", "schedule=auto goes on with")  # it does not: the run ends there
        ended = execute(compose(words), words, console or Screen(), callbacks=[StopWhenDecided(test_rounds)])
    if ended.status not in (Status.FINISHED, Status.DIVERGED):
        raise RefusedError(f"the range test has {ended.status}: see {ended.folder}")
    steps = steps_of(rows.read(ended.folder / "metrics.jsonl"))
    if ended.status is Status.DIVERGED and not is_past(steps):
        steps.append(Step(steps[-1].eta * RATIO if steps else START, inf))
    if not is_past(steps) and len(steps) > 1:
        said = f"FedAvg's training loss has not risen by a tenth up to eta {steps[-1].eta:.2g}"
        raise RefusedError(f"{said}: its edge is not known. Try a longer test (--rounds {2 * test_rounds})")
    try:
        found = suggest(edge_of(steps), config.rounds, reading)
    except RefusedError as error:
        hint = "Try a smaller local.lr or fewer local.epochs: a round goes too far already"
        raise RefusedError(f"{error}. {hint}") from None
    typed = commands(overrides, found, config.rounds)
    return Advice(found, tuple(steps), config.rounds, ended.folder, *typed)


def range_test(overrides: Sequence[str], ideal: bool, rounds: int) -> list[str]:
    """The words of the test: ideal clients; where those of the run are ideal, they stay."""
    replaced = ("rounds",) if ideal else ("rounds", "participation")
    kept = [word for word in overrides if _group(word) not in replaced]
    return [
        *kept, *([] if ideal else ["participation=ideal"]),
        "algorithm=fedgm", "schedule=auto", f"schedule.start={START}", f"schedule.each={EACH}",
        "winners=null", "name=range_test", f"rounds={2 * rounds}", f"eval.every={EACH}",
    ]  # fmt: skip


def commands(overrides: Sequence[str], found: Suggestion, rounds: int) -> tuple[str, str]:
    """What to type for the values, and for stages if none is empty, whatever an experiment has."""
    typed = ["python", "run.py", *overrides, "algorithm=fedgm"]
    eta, *shape = found.momentum
    beta, nu = (f"algorithm.{name}={value:g}" for name, value in zip(("beta", "nu"), shape, strict=True))
    etas = [f"{eta * drop:g}" for drop in DROPS]  # algorithm.eta beside them would be refused
    staged = shlex.join([*typed, beta, nu, "schedule=multistage", f"schedule.etas=[{','.join(etas)}]"])
    fits = len({0, *stage_ends(rounds, [*map(float, etas)])}) > len(DROPS)
    return (
        shlex.join([*typed, f"algorithm.eta={eta:g}", beta, nu, "schedule=constant"]),
        staged if fits else "",
    )


def _group(word: str) -> str:
    """What a word of the command line sets: participation of ``participation/sampler=uniform``."""
    return word.lstrip("+~").partition("=")[0].partition(".")[0].partition("/")[0]
