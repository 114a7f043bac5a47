"""What the model of `fedgm suggest` and `schedule=auto` knows (docs/suggest.md): one list of refusals."""

from typing import Any

from fedgm.config import RunConfig
from fedgm.errors import RefusedError
from fedgm.theory.stability import IDEAL, Reading

KNOWN = ("ideal", "autonomous", "autonomous_current", "autonomous_literal")
PLAIN = {"upload": "plain", "sending": "all", "privacy": "none", "work": "constant"}
Checks = list[tuple[bool, str]]  # whether it is modelled, and what to say where it is not


def require_modelled(config: RunConfig, inside_a_run: bool = False) -> None:
    """Refuse all but Eq. 2, the plain mean of updates, and noise from which clients come.

    ``schedule=auto`` is ``inside_a_run``: its probe must show clients as they will be, its values are FedGM.
    """
    checks = [*_cohorts(config), *_updates(config), *(_inside(config) if inside_a_run else [])]
    reasons = [f"- {reason}" for ok, reason in checks if not ok]
    if reasons:
        what = "schedule=auto" if inside_a_run else "`fedgm suggest`"
        raise RefusedError("\n".join([f"{what} has no model of this configuration:", *reasons]))


def reading_of(config: RunConfig) -> Reading:
    """How the deltas of a configuration that is modelled come about."""
    node = config.participation
    if node["name"] == "ideal":
        return IDEAL
    low, high = node["epochs"]
    name = f"delay {node['delay']}, {node['anchor']}/{node['normalize']}"
    return Reading(name, node["delay"], (low, high), node["normalize"], node["anchor"], node["reference"])


def _inside(config: RunConfig) -> Checks:
    name, scheme = config.algorithm["name"], config.participation["name"]
    free = f"algorithm={name}: after the probe eta, beta and nu are free, which is FedGM. Try algorithm=fedgm"
    stale = "a probe inside the run knows nothing of how stale clients will be"
    hint = "participation=ideal, or `fedgm suggest`, which knows some delays"
    return [
        (name == "fedgm", free),
        (scheme == "ideal" or scheme not in KNOWN, f"participation={scheme}: {stale}. Try {hint}"),
    ]


def _updates(config: RunConfig) -> Checks:
    """What clients send, and how it is averaged."""
    parts = [(group, plain, getattr(config, group)["name"]) for group, plain in PLAIN.items()]
    rule, weights = config.client["name"], config.clients.weights
    corrected = "its updates are corrected, which the model does not know"
    return [
        *((name == plain, f"{group}={name}. Try {group}={plain}") for group, plain, name in parts),
        (rule in ("plain", "fedprox"), f"client={rule}: {corrected}. Try client=plain"),
        (weights == "uniform", f"clients.weights={weights}: D is no plain mean. Try clients.weights=uniform"),
    ]  # fmt: skip


def _cohorts(config: RunConfig) -> Checks:
    """Who comes and how much they work: m of n clients, drawn uniformly, whose mean delta has a response."""
    node: dict[str, Any] = config.participation
    m, n, local = config.clients.per_round, config.clients.count, config.local.epochs
    spread = "noise is measured by how clients differ"
    every = "every client takes part, so D has no noise of sampling"
    checks = [
        (m >= 2, f"clients.per_round={m}: {spread}. Try clients.per_round=5"),
        (m < n, f"clients.per_round={m}: {every}. Try clients.per_round={max(n // 2, 2)}"),
        (node["name"] in KNOWN, f"participation={node['name']}. Try participation=ideal"),
    ]
    if node["name"] not in KNOWN:
        return checks
    sampler = node.get("sampler", {}).get("name", "uniform")
    how, work, reference = node["normalize"], node["epochs"], node.get("reference", local)
    works = isinstance(work, int) or 0 not in work
    idle = "clients that sit out leave cohorts of other sizes than the probe's"
    key, scaled = "participation.reference", f"the probe shows what local.epochs={local} does"
    return [
        *checks,
        (sampler == "uniform", f"participation/sampler={sampler}. Try participation/sampler=uniform"),
        (how in ("none", "reference"), f"participation.normalize={how}. Try participation.normalize=none"),
        (works, f"participation.epochs={work}: {idle}. Try participation.epochs=[1,6]"),
        (reference == local, f"{key}={reference}: {scaled}. Try {key}={local}"),
    ]
