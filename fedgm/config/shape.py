"""Groups that are built by ``_target_`` are keys, not numbers or lists: the schema says only Any there."""

from collections.abc import Mapping
from typing import Any, cast

from fedgm.config.refusals import unknown_key
from fedgm.config.schema import RunConfig
from fedgm.errors import require

GROUPS = ("algorithm", "schedule", "participation", "client", "upload", "task", "model")

FIGURE = (
    "number",
    "title",
    "panels",
    "metric",
    "claims",
    "seeds",
    "added",
    "lines",
)  # keys of an experiment's figure


def require_shape(config: RunConfig) -> None:
    """Refuse a group, a callback or a logger that nothing can be built from."""
    for group in GROUPS:
        node = getattr(config, group)
        ok = isinstance(node, Mapping) and "_target_" in node and "name" in node
        require(ok, group, node, "an option of this group, with its name and _target_", f"{group}=NAME")
    ok = isinstance(config.data.source, Mapping)
    require(ok, "data.source", config.data.source, "keys with a _target_", "data=synthetic")
    ok = isinstance(config.callbacks, Mapping)
    require(ok, "callbacks", config.callbacks, "entries with a _target_", "callbacks=none")
    for name, node in config.callbacks.items():
        ok = name == "name" or isinstance(node, Mapping)
        allowed = "keys with a _target_, from which a callback is built"
        require(ok, f"callbacks.{name}", node, allowed, f"~callbacks.{name}")
    for name, node in config.track.loggers.items():
        ok = isinstance(node, Mapping) and "_target_" in node
        allowed = "keys with a _target_, from which a logger is built"
        require(ok, f"track.loggers.{name}", node, allowed, "track=csv")
    for name, node in config.local.optimizers.items():
        ok = isinstance(node, Mapping) and "_target_" in node
        allowed = "keys with a _target_, from which an optimiser is built"
        require(ok, f"local.optimizers.{name}", node, allowed, "local.optimizer=sgd")
    _require_clients(config)
    _require_figure(config.figure)
    _require_winners(config.best)
    layout = config.model.get("channels_last")
    ok = isinstance(layout, bool)
    require(ok, "model.channels_last", layout, "true or false", "model.channels_last=true")


def _require_clients(config: RunConfig) -> None:
    """Refuse to draw from clients that do not exist, or nobody: a cohort of none is drawn again for ever."""
    sampler = config.participation.get("sampler")
    for key, node in {"participation": config.participation, "participation.sampler": sampler}.items():
        known = cast(Mapping[str, Any], node) if isinstance(node, Mapping) else {}
        most = config.clients.count
        for name in ("count", "per_round"):
            value = known.get(name)
            ok = type(value) is not int or 1 <= value <= most  # what is no number is refused by its part
            bound = "clients.count" if name == "count" else f"{key}.count"
            require(ok, f"{key}.{name}", value, f"1 to {most}, which is {bound}", f"{key}.{name}={most}")
            most = value if name == "count" and type(value) is int else most


def _require_figure(figure: Any) -> None:
    """Refuse what no figure has; :mod:`fedgm.study.figure` looks at the values."""
    ok = figure is None or isinstance(figure, Mapping)
    require(ok, "figure", figure, "null or keys such as title and lines", "figure=null")
    for name, value in cast(Mapping[str, Any], figure or {}).items():
        if name not in FIGURE:
            raise unknown_key(f"figure.{name}", value, [f"figure.{key}" for key in FIGURE])


def _require_winners(best: Any) -> None:
    """Refuse winners that are not written by experiment and algorithm: nothing would read them."""
    ok = isinstance(best, Mapping)
    require(ok, "best", best, "winners by experiment and algorithm", "best={}")
    for experiment, winners in cast(Mapping[str, Any], best).items():
        key = f"best.{experiment}"
        ok = isinstance(winners, Mapping) and all(isinstance(each, Mapping) for each in winners.values())
        require(ok, key, winners, "the winner of each algorithm, with its eta, beta and nu", f"~{key}")
