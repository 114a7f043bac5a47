"""What the types of the schema do not say, refused before anything is loaded.

Groups that are built by ``_target_`` must be keys, not numbers or lists; the schema says only Any there. And
nothing may take years or more memory than the machine has: the estimates are lower bounds, so that nothing is
refused which a patient user with a large machine could run.
"""

import os
from collections.abc import Mapping
from math import ceil
from typing import Any, cast

from fedgm.config.options import NAMED_BY, present_target
from fedgm.config.refusals import unknown_key
from fedgm.config.schema import RunConfig
from fedgm.errors import require, require_fits

GROUPS = (
    "algorithm", "schedule", "participation", "client", "upload", "sending", "privacy", "work", "task",
    "model",
)  # fmt: skip
FIGURE = (
    "number",
    "title",
    "kind",
    "note",
    "panels",
    "metric",
    "claims",
    "seeds",
    "added",
    "lines",
)  # of a figure

STEP = 1e-3  # seconds: a local step through Lightning is never faster
EVENT = 1e-4  # seconds: a piece of work under the virtual clock is simulated no faster
LONGEST = 10 * 24 * 3600  # seconds of local steps
LONGEST_SIMULATION = 3600  # seconds of the virtual clock; a resumed run simulates again
WORKER = 2**26  # bytes of a process that trains, besides what it shares with the first one
PER_CORE, FEWEST = 4, 16  # workers; a small machine may still try what a large one does
COPIES = 6  # of the model: x, d, the client's, its gradient, and the sum in float64


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
    callbacks = {name: node for name, node in config.callbacks.items() if name != "name"}
    _require_entries("callbacks", callbacks, "a callback", "~callbacks.{}")
    _require_entries("track.loggers", config.track.loggers, "a logger", "track=csv")
    _require_entries("local.optimizers", config.local.optimizers, "an optimiser", "local.optimizer=sgd")
    _require_names(config)
    _require_clients(config)
    _require_figure(config.figure)
    _require_winners(config.best)
    layout = config.model.get("channels_last")
    ok = isinstance(layout, bool)
    require(ok, "model.channels_last", layout, "true or false", "model.channels_last=true")


def _require_entries(key: str, entries: Mapping[str, Any], what: str, hint: str) -> None:
    for name, node in entries.items():
        ok = isinstance(node, Mapping) and "_target_" in node
        allowed = f"keys with a _target_, from which {what} is built"
        require(ok, f"{key}.{name}", node, allowed, hint.format(name))


def _require_names(config: RunConfig) -> None:
    """Refuse a part of ours under the name of another: runs are told apart by the names of our parts."""
    for key in (*GROUPS, "data.source"):
        node = config.data.source if key == "data.source" else getattr(config, key)
        name = config.data.name if key == "data.source" else node["name"]
        target, named = str(node.get("_target_")), present_target(key, str(name))
        is_other = target.startswith("fedgm.") and named is not None and target != named
        reason = f"{NAMED_BY[key]}={name} is {named}"
        require_fits(not is_other, f"{key}._target_", target, reason, f"{NAMED_BY[key]}=NAME beside it")


def _require_clients(config: RunConfig) -> None:
    """Refuse to draw from clients that do not exist, or an empty cohort: it would be drawn again for ever."""
    sampler = config.participation.get("sampler")
    for key, node in {"participation": config.participation, "participation.sampler": sampler}.items():
        values = cast(Mapping[str, Any], node) if isinstance(node, Mapping) else {}
        most = config.clients.count
        for name in ("count", "per_round"):
            value = values.get(name)
            ok = type(value) is not int or 1 <= value <= most  # what is not a number is refused by its part
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


def require_possible(config: RunConfig) -> None:
    """Refuse what would never end or never fit, as far as the configuration alone shows it."""
    _require_time(config)
    _require_simulation(config)
    _require_images(config)
    _require_workers(config)


def require_model_fits(config: RunConfig, parameters: int, history: int) -> None:
    """Refuse a model, or a history of past models, that memory cannot hold."""
    sizes = _whole_numbers(config.model, "model")
    if isinstance(config.data.source, Mapping):
        sizes |= {
            k: v
            for k, v in _whole_numbers(config.data.source, "data.source").items()
            if k.endswith("classes")
        }
    key = max(sizes, key=lambda name: sizes[name], default="model")
    value = sizes.get(key, config.model.get("name", ""))
    need, what = 4 * parameters * COPIES, f"a model of {parameters:,} parameters"
    _require_memory(need, key, value, what, min(value, 16) if isinstance(value, int) else "NAME")
    if (workers := _workers(config)) > 1:
        asked = config.trainer.workers
        _require_memory(need * workers, "trainer.workers", asked, f"{workers} workers with {what}", 1)
    ages = _whole_numbers(config.participation, "participation")
    key = max(("participation.delay", "participation.max_staleness"), key=lambda name: ages.get(name, 0))
    kept = min(history, config.rounds)
    what = f"{kept:,} past models of {parameters:,} parameters"
    _require_memory(4 * parameters * kept, key, ages.get(key), what, 10)


def memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _workers(config: RunConfig) -> int:
    """Processes that this one will fork; torchrun and srun start theirs elsewhere, too."""
    asked = config.trainer.workers
    outside = any(name in os.environ for name in ("TORCHELASTIC_RUN_ID", "SLURM_STEP_NUM_TASKS"))
    return 1 if outside or not isinstance(asked, int) else min(asked, config.clients.per_round)


def _require_workers(config: RunConfig) -> None:
    """More processes than cores only take memory from one another."""
    workers, cores, key = _workers(config), os.cpu_count() or 1, "trainer.workers"
    most = max(FEWEST, PER_CORE * cores)
    allowed = f"at most {most}, with {cores} cores here: {workers} processes would be started"
    require(workers <= most, key, config.trainer.workers, allowed, f"{key}=auto")
    _require_memory(workers * WORKER, key, config.trainer.workers, f"{workers} processes", "auto")


def _require_time(config: RunConfig) -> None:
    """Local steps of the whole run; the largest of their factors is the key to change."""
    clients, local, data = config.clients, config.local, config.data
    epochs: Any = config.participation.get("epochs", local.epochs)
    mean = sum(epochs) / len(epochs) if isinstance(epochs, list) and epochs else epochs
    amount = max(1.0, mean) if isinstance(mean, int | float) else 1.0
    samples = data.client_samples or (data.train_samples or 0) / clients.count
    batches = max(1, ceil(samples / local.batch_size)) if local.unit == "epochs" else 1
    rounds = min(config.rounds, config.stop_after or config.rounds)
    steps = rounds * clients.per_round * amount * batches
    is_drawn = isinstance(epochs, list) and amount != local.epochs
    factors: list[tuple[float, str, object, object]] = [
        (rounds, "rounds", rounds, 70),
        (clients.per_round, "clients.per_round", clients.per_round, 5),
        (amount, "participation.epochs", list(epochs), "[1,6]")
        if is_drawn
        else (amount, "local.epochs", local.epochs, 3),
        (batches, "data.client_samples", data.client_samples, 100)
        if data.client_samples
        else (batches, "data.train_samples", data.train_samples, 10_000),
    ]
    _, key, value, example = max(factors, key=lambda factor: factor[0])
    seconds = steps * STEP
    allowed = f"at most {_time(LONGEST)}: {steps:.3g} local steps take {_time(seconds)} or more"
    require(seconds <= LONGEST, key, value, allowed, f"{key}={example}")


def _require_simulation(config: RunConfig) -> None:
    """Clients that never come back, or never come, are drawn again."""
    node, per_round = config.participation, config.clients.per_round
    sampler: Any = node.get("sampler")
    bias = sampler.get("bias") if isinstance(sampler, Mapping) else None
    slots = node.get("concurrency") if isinstance(node.get("concurrency"), int) else 0
    for key, lost, example in (("dropout", node.get("dropout"), 0.1), ("sampler.bias", bias, 0.8)):
        if not isinstance(lost, int | float) or not 0 <= lost < 1:
            continue  # refused by its own part
        needed = config.rounds * per_round
        draws = (needed + slots) / (1 - lost)
        blamed = (f"participation.{key}", lost, example)
        if slots > needed / (1 - lost):
            blamed = ("participation.concurrency", slots, per_round)
        took, most = draws * EVENT, LONGEST_SIMULATION
        allowed = f"at most {_time(most)} of simulation: {draws:.3g} draws take {_time(took)}"
        require(took <= most, blamed[0], blamed[1], allowed, f"{blamed[0]}={blamed[2]}")


def _require_images(config: RunConfig) -> None:
    """Sources that make images: all of them are in memory."""
    source, data = config.data.source, config.data
    if not isinstance(source, Mapping) or not isinstance(source.get("resolution"), int):
        return
    given = {"train": data.train_samples, "test": data.test_samples, "resolution": data.resolution}
    made = {name: source.get(name) for name in given}
    usual = {"train": 10_000, "test": 2_000, "resolution": 16}
    train, test, side = (size if isinstance(size := made[name], int) else usual[name] for name in given)
    blamed = "resolution" if side**2 > train + test else "train"
    key = "data.resolution" if blamed == "resolution" else "data.train_samples"
    if made[blamed] != given[blamed]:  # typed for the source alone
        key = f"data.source.{blamed}"
    what = f"{train + test:,} images of {side}x{side}"
    _require_memory(3 * (train + test) * side**2, key, made[blamed], what, usual[blamed])
    classes, most = source.get("classes"), min(train, test)
    if isinstance(classes, int):
        allowed = f"2 to {most}: every class has an image for training and one for testing"
        require(classes <= most, "data.source.classes", classes, allowed, "data.source.classes=10")


def _require_memory(need: int, key: str, value: object, what: str, example: object) -> None:
    have = memory()
    allowed = f"what fits into {_size(have)} of memory: {what} take {_size(need)} or more"
    require(need <= have, key, value, allowed, f"{key}={example}")


def _whole_numbers(node: Mapping[str, Any], key: str) -> dict[str, int]:
    """The parameters of a part that may be to blame for a size."""
    return {f"{key}.{name}": value for name, value in node.items() if type(value) is int}


def _size(count: float) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    power = min(len(units) - 1, (int(max(count, 1)).bit_length() - 1) // 10)
    return _short(count / 1024**power, units[power])


def _time(seconds: float) -> str:
    for unit, length in (("years", 365.25 * 86400), ("days", 86400), ("hours", 3600)):
        if seconds >= length:
            return _short(seconds / length, unit)
    return f"{seconds:.0f} s"


def _short(value: float, unit: str) -> str:
    return f"{value:,.3g} {unit}" if value < 1e6 else f"{value:.1e} {unit}"
