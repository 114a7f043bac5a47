"""Values that would never end or never fit: refused before anything is loaded, with the estimate.

Estimates are lower bounds, so that nothing is refused which a patient user with a large machine could run.
"""

import os
from collections.abc import Mapping
from math import ceil
from typing import Any

from fedgm.config.schema import RunConfig
from fedgm.errors import require

STEP = 1e-3  # seconds: a local step through Lightning is never faster
EVENT = 1e-4  # seconds: a piece of work under the virtual clock is simulated no faster
LONGEST = 10 * 24 * 3600  # seconds of local steps
LONGEST_SIMULATION = 3600  # seconds of the virtual clock; a resumed run simulates again
WORKER = 2**26  # bytes of a process that trains, besides what it shares with the first one
PER_CORE, FEWEST = 4, 16  # workers; a small machine may still try what a large one does
COPIES = 6  # of the model: x, d, the client's, its gradient, and the sum in float64


def require_possible(config: RunConfig) -> None:
    """Refuse what the configuration alone shows to be endless or too large."""
    _require_time(config)
    _require_simulation(config)
    _require_images(config)
    _require_workers(config)


def require_model_fits(config: RunConfig, parameters: int, history: int) -> None:
    """Refuse a model, or a history of past models, that memory cannot hold."""
    key, value = _largest(config.model, "model", data=config.data.source)
    need = 4 * parameters * COPIES
    _require_memory(need, key, value, f"a model of {parameters:,} parameters", _smaller(value))
    if (workers := _workers(config)) > 1:
        what = f"{workers} workers with a model of {parameters:,} parameters"
        _require_memory(need * workers, "trainer.workers", config.trainer.workers, what, 1)
    kept = min(history, config.rounds)
    key, value = _largest(
        {k: v for k, v in config.participation.items() if k in ("delay", "max_staleness")}, "participation"
    )
    what = f"{kept:,} past models of {parameters:,} parameters"
    _require_memory(4 * parameters * kept, key, value, what, 10)


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
    c, local, data = config.clients, config.local, config.data
    epochs: Any = config.participation.get("epochs", local.epochs)
    mean = sum(epochs) / len(epochs) if isinstance(epochs, list) and epochs else epochs
    amount = max(1.0, mean) if isinstance(mean, int | float) else 1.0
    own = data.client_samples or (data.train_samples or 0) / c.count
    per_epoch = max(1, ceil(own / local.batch_size)) if local.unit == "epochs" else 1
    rounds = min(config.rounds, config.stop_after or config.rounds)
    steps = rounds * c.per_round * amount * per_epoch
    drawn = isinstance(epochs, list) and amount != local.epochs
    sizes = {
        "rounds": (rounds, 70),
        "clients.per_round": (c.per_round, 5),
        "participation.epochs" if drawn else "local.epochs": (amount, "[1,6]" if drawn else 3),
    }
    if per_epoch > max(rounds, c.per_round, amount):
        name = "data.client_samples" if data.client_samples else "data.train_samples"
        sizes = {
            name: (data.client_samples or data.train_samples or 0, 100 if data.client_samples else 10_000)
        }
    key = max(sizes, key=lambda name: sizes[name][0])
    seconds = steps * STEP
    allowed = f"at most {_time(LONGEST)}: {steps:.3g} local steps take {_time(seconds)} or more"
    shown = list(epochs) if key == "participation.epochs" else sizes[key][0]
    require(seconds <= LONGEST, key, _plain(shown), allowed, f"{key}={sizes[key][1]}")


def _require_simulation(config: RunConfig) -> None:
    """Clients that never come back, or never come, are drawn again."""
    node, m = config.participation, config.clients.per_round
    sampler: Any = node.get("sampler")
    bias = sampler.get("bias") if isinstance(sampler, Mapping) else None
    for key, lost, low in (("dropout", node.get("dropout"), 0.1), ("sampler.bias", bias, 0.8)):
        if not isinstance(lost, int | float) or not 0 <= lost < 1:
            continue  # refused by its own part
        slots = node.get("concurrency") or 0
        pieces = (config.rounds * m + (slots if isinstance(slots, int) else 0)) / (1 - lost)
        seconds = pieces * EVENT
        allowed = (
            f"at most {_time(LONGEST_SIMULATION)} of simulation: {pieces:.3g} draws take {_time(seconds)}"
        )
        many = isinstance(slots, int) and slots > config.rounds * m / (1 - lost)
        name = "participation.concurrency" if many else f"participation.{key}"
        value, hint = (slots, f"{name}={m}") if many else (lost, f"{name}={low}")
        require(seconds <= LONGEST_SIMULATION, name, value, allowed, hint)


def _require_images(config: RunConfig) -> None:
    """Sources that make images at ``data.resolution``: all of them are in memory."""
    source, data = config.data.source, config.data
    if not isinstance(source, Mapping) or "resolution" not in source or data.resolution is None:
        return
    count = (data.train_samples or 10_000) + (data.test_samples or 2_000)
    need = 3 * count * data.resolution**2
    key = "data.resolution" if data.resolution**2 > count else "data.train_samples"
    value = data.resolution if key == "data.resolution" else data.train_samples
    what = f"{count:,} images of {data.resolution}x{data.resolution}"
    _require_memory(need, key, value, what, 16 if key == "data.resolution" else 10_000)
    classes = source.get("classes")
    if isinstance(classes, int):
        most = min(data.train_samples or 10_000, data.test_samples or 2_000)
        allowed = f"2 to {most}: every class has an image for training and one for testing"
        require(classes <= most, "data.source.classes", classes, allowed, "data.source.classes=10")


def _require_memory(need: int, key: str, value: object, what: str, example: object) -> None:
    have = memory()
    allowed = f"what fits into {_size(have)} of memory: {what} take {_size(need)} or more"
    require(need <= have, key, value, allowed, f"{key}={example}")


def _largest(node: Mapping[str, Any], key: str, data: Any = None) -> tuple[str, object]:
    """The key with the largest whole number, which is the one to blame for a size."""
    numbers = {f"{key}.{k}": v for k, v in node.items() if isinstance(v, int) and not isinstance(v, bool)}
    if isinstance(data, Mapping) and isinstance(data.get("classes"), int):
        numbers["data.source.classes"] = data["classes"]
    blamed = max(numbers, key=lambda name: numbers[name], default=key)
    return blamed, numbers.get(blamed, node.get("name", ""))


def _smaller(value: object) -> object:
    return min(value, 16) if isinstance(value, int) else "NAME"


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:,.3g} {unit}" if count < 1e6 else f"{count:.1e} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def _time(seconds: float) -> str:
    for unit, length in (("years", 365.25 * 86400), ("days", 86400), ("hours", 3600)):
        if seconds >= length:
            return (
                f"{seconds / length:,.3g} {unit}"
                if seconds / length < 1e6
                else f"{seconds / length:.1e} {unit}"
            )
    return f"{seconds:.0f} s"
