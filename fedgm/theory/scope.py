"""What no theorem of the paper covers, and why: better no verdict than a wrong one."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fedgm.errors import RefusedError


class Training(NamedTuple):
    """The parts of a configuration that the theorems make assumptions about."""

    client: str  # the client rule's name
    plain: bool  # whether it leaves LocalOPT as it is
    keeps_state: bool
    optimizer: Mapping[str, Any]  # the local optimiser's node
    clip: float | None
    weights: str  # of clients in the mean
    participation: Mapping[str, Any]
    upload: str = "plain"  # what a client sends of its delta


def require_covered(training: Training) -> None:
    """Raise with every reason why Theorems 1 to 3 say nothing about a run."""
    reasons = [reason for reason in (*_client(training), *_server(training)) if reason]
    if reasons:
        raise RefusedError("no theorem covers this configuration:\n" + "\n".join(f"- {r}" for r in reasons))


def _client(training: Training) -> list[str]:
    """LocalOPT (Alg. 2) is plain SGD on f_i, with unbiased gradients and nothing carried over."""
    node, name = training.optimizer, training.client
    rule = str(node.get("_target_", "")).rsplit(".", 1)[-1]
    momentum, decay = node.get("momentum", 0), node.get("weight_decay", 0)
    problem = (
        "its clients keep a state from round to round" if training.keeps_state else "it changes the gradients"
    )
    return [
        "" if training.plain else f"client={name}: {problem}, where Alg. 2 is plain SGD. Try client=plain",
        "" if rule == "SGD" else f"local optimizer {rule}: its steps are adaptive. Try local.optimizer=sgd",
        f"local.momentum={momentum}: a local step depends on the ones before it. Try local.momentum=0"
        if momentum and rule == "SGD"
        else "",
        f"local.weight_decay={decay}: clients then minimise another function than f. Try local.weight_decay=0"
        if decay
        else "",
        f"local.clip={training.clip:g}: a clipped gradient is biased. Try local.clip=null"
        if training.clip is not None
        else "",
    ]


def _server(training: Training) -> list[str]:
    """D is the plain mean of updates, each measured from where its client started."""
    participation, weights = training.participation, training.weights
    discount, anchor = participation.get("staleness", "none"), participation.get("anchor", "start")
    return [
        f"upload={training.upload}: the server averages whole updates. Try upload=plain"
        if training.upload != "plain"
        else "",
        f"clients.weights={weights}: f is the plain mean over clients. Try clients.weights=uniform"
        if weights != "uniform"
        else "",
        f"participation.staleness={discount}: an old update counts in full. Try participation.staleness=none"
        if discount != "none"
        else "",
        f"participation.anchor={anchor}: Alg. 4 measures a delta from where the client started. "
        "Try participation.anchor=start"
        if anchor != "start"
        else "",
    ]
