"""Values for the server without a grid: a short FedAvg run, then what the model makes of its noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedgm.config import RunConfig, compose, validate
from fedgm.errors import RefusedError, require
from fedgm.results import rows
from fedgm.results.summary import Status
from fedgm.running.start import execute
from fedgm.screen import Screen
from fedgm.theory.stability import IDEAL, Reading
from fedgm.theory.suggestion import (
    PROBE_ETA,
    SETTLED,
    Measured,
    Suggestion,
    share_of_noise,
    suggest,
)

ROUNDS = 25
SET = ("algorithm", "schedule", "winners", "rounds", "name", "output_dir", "stop_after")  # by the probe


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
        low, middle, high = found.speedup
        said = [
            f"eta {eta:g}, beta {beta:g}, nu {nu:g} for {self.rounds} rounds",
            f"{100 * measured.share:.0f} ± {200 * measured.error:.0f} % of the squared update D is noise "
            f"(rounds {measured.rounds[0]} to {measured.rounds[-1]} of a FedAvg with ideal clients).",
            "Among steep and flat directions with that much noise, these values leave the smallest loss; "
            "a larger eta gains less than 2 %.",
            f"Expected: the best FedAvg (eta {found.fedavg:g}) needs {middle:.1f} times the rounds "
            f"({low:.1f} to {high:.1f} over what was measured and assumed).",
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
        key = word.lstrip("+~").partition("=")[0]
        if key.partition(".")[0] in SET and key not in ("rounds", "output_dir"):
            raise RefusedError(f"{word}: the probe sets {key} itself. Try fedgm suggest without it")
    config = validate(compose([*overrides, "algorithm=fedgm", "schedule=constant"]))
    reading, last = reading_of(config), min(10 * config.eval.every, config.rounds)
    words = [word for word in overrides if not word.startswith(("rounds=", "participation"))]
    words += [
        "algorithm=fedavg", f"algorithm.eta={PROBE_ETA:g}", "schedule=constant", "participation=ideal",
        "winners=null", "name=probe", f"rounds={probe_rounds}", f"eval.every={probe_rounds}",
    ]  # fmt: skip
    ended = execute(compose(words), words, console or Screen())
    if ended.status is not Status.FINISHED:
        raise RefusedError(f"the probe has {ended.status}: see {ended.folder}. Try a smaller local.lr")
    measured = measure(ended.folder, config.clients.count)
    found = suggest(measured, config.rounds, last, reading)
    typed = " ".join(overrides)
    values = "algorithm.eta={:g} algorithm.beta={:g} algorithm.nu={:g}"
    command = f"python run.py {typed} algorithm=fedgm {values.format(*found.momentum)}"
    staged = None
    if found.etas:
        etas = ",".join(f"{eta:g}" for eta in found.etas)
        staged = f"python run.py {typed} algorithm=fedgm {values.format(*found.staged)} "
        staged = f"{staged}schedule=multistage 'schedule.etas=[{etas}]'".replace("  ", " ")
    return Advice(found, config.rounds, ended.folder, command.replace("  ", " "), staged)


def measure(folder: Path, clients: int) -> Measured:
    """The share of noise in D, from the rows of a probe."""
    columns = ("round", "update/norm", "client/drift", "cohort/clients")
    rounds = [
        [float(row[column] or 0.0) for column in columns] for row in rows.read(folder / "metrics.jsonl")
    ]
    t, norms, drifts, cohort = zip(*(values for values in rounds if values[0] >= SETTLED), strict=True)
    share, error = share_of_noise(norms, drifts, [int(m) for m in cohort], clients)
    return Measured(share, error, range(SETTLED, int(t[-1]) + 1))


def reading_of(config: RunConfig) -> Reading:
    """How the deltas of a configuration come about; a refusal where the model does not apply."""
    require_modelled(config)
    node = config.participation
    if node["name"] == "ideal":
        return IDEAL
    low, high = node["epochs"]
    name = f"delay {node['delay']}, {node['anchor']}/{node['normalize']}"
    reference = node["reference"] or config.local.epochs
    return Reading(name, node["delay"], (low, high), node["normalize"], node["anchor"], reference)


def require_modelled(config: RunConfig) -> None:
    """The model knows Eq. 2, the plain mean of updates, and noise from which clients come."""
    node, clients = config.participation, config.clients
    known = ("ideal", "autonomous", "autonomous_current", "autonomous_literal")
    reasons = [
        "" if node["name"] in known else f"participation={node['name']}. Try participation=ideal",
        "" if node.get("normalize") in ("none", "reference") else "participation.normalize is not none",
        "" if config.upload["name"] == "plain" else f"upload={config.upload['name']}. Try upload=plain",
        "" if config.sending["name"] == "all" else f"sending={config.sending['name']}. Try sending=all",
        "" if config.privacy["name"] == "none" else f"privacy={config.privacy['name']}. Try privacy=none",
        "" if clients.per_round >= 2 else "clients.per_round=1: noise is measured by how clients differ",
        "" if clients.per_round < clients.count else "every client takes part, so D has no noise of sampling",
        "" if config.client["name"] in ("plain", "fedprox") else f"client={config.client['name']}: its "
        "updates are corrected, which the model does not know. Try client=plain",
    ]  # fmt: skip
    if any(reasons):
        listed = "\n".join(f"- {reason}" for reason in reasons if reason)
        raise RefusedError(f"`fedgm suggest` has no model of this configuration:\n{listed}")
