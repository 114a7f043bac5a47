"""What `fedgm suggest` and `schedule=auto` have a model of (docs/suggest.md), and what is refused."""

from typing import Any, cast

from fedgm.config import RunConfig
from fedgm.errors import RefusedError
from fedgm.theory.stability import IDEAL, Reading

KNOWN = ("ideal", "autonomous", "autonomous_literal")
CLIENTS = ("plain", "fedprox")  # of which FedAvg's edge is known


def reading_of(config: RunConfig) -> Reading:
    """How updates come about: the range test has ideal clients, so what stale ones do must be modelled."""
    node = config.participation
    plain = {"privacy": "none", "work": "constant"}  # others ask for a schedule that the test does not have
    parts = [(group, name, getattr(config, group)["name"]) for group, name in plain.items()]
    checks = [(name == wanted, f"{group}={name}. Try {group}={wanted}") for group, wanted, name in parts]
    checks += [_client(config), *_checks(node, config.local.epochs)]
    reasons = [f"- {reason}" for ok, reason in checks if not ok]
    if reasons:
        raise RefusedError("\n".join(["`fedgm suggest` has no model of this configuration:", *reasons]))
    if node["name"] == "ideal":
        return IDEAL
    low, high = node["epochs"]
    name = f"delay {node['delay']}, {node['anchor']}/{node['normalize']}"
    return Reading(name, node["delay"], (low, high), node["normalize"], node["anchor"], node["reference"])


def require_ideal(config: RunConfig) -> None:
    """A test inside the run must show clients as the model has them, and its values are FedGM's."""
    name, scheme = config.algorithm["name"], config.participation["name"]
    free = f"algorithm={name}: after the test eta, beta and nu are free, which is FedGM. Try algorithm=fedgm"
    stale = f"participation={scheme}: FedAvg's edge says how far FedGM can go where no client is stale"
    hint = "participation=ideal, or `fedgm suggest`, which knows some delays"
    reasons = [free] * (name != "fedgm") + [f"{stale}. Try {hint}"] * (scheme != "ideal")
    ok, reason = _client(config)
    reasons += [reason] * (not ok)
    if reasons:
        raise RefusedError("\n- ".join(["schedule=auto has no model of this configuration:", *reasons]))


def _client(config: RunConfig) -> tuple[bool, str]:
    """Whether clients make the updates of FedAvg, and what to say where they do not."""
    name = config.client["name"]
    return name in CLIENTS, f"client={name}: the test would be of {name}, not of FedAvg. Try client=plain"


def _checks(node: dict[str, Any], local: int) -> list[tuple[bool, str]]:
    """Whether it is modelled, and what to say where it is not."""
    if node["name"] not in KNOWN:
        return [(False, f"participation={node['name']}. Try participation=ideal")]
    pulls = "stale clients pull x back there, so a larger eta is hardly faster"
    how, work, reference = node["normalize"], node["epochs"], node.get("reference", local)
    entries = cast(list[Any], work) if isinstance(work, list) else [work, work]  # of ideal clients: a number
    pair = len(entries) == 2 and (isinstance(work, list) or node["name"] == "ideal")
    idle = "clients that sit out leave cohorts of other sizes than the test's"
    key, scaled = "participation.reference", f"the test shows what local.epochs={local} does"
    return [
        (node.get("anchor", "start") == "start", f"participation.anchor=current: {pulls}. Try fedgm sweep"),
        (how in ("none", "reference"), f"participation.normalize={how}. Try participation.normalize=none"),
        (pair, f"participation.epochs={work}: it is the least and the most. Try participation.epochs=[1,6]"),
        (0 not in entries, f"participation.epochs={work}: {idle}. Try participation.epochs=[1,6]"),
        (reference == local, f"{key}={reference}: {scaled}. Try {key}={local}"),
    ]
