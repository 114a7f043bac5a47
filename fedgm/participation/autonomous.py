"""Autonomous Multistage FedGM (Alg. 4) as the paper simulates it: ages and local work are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

from fedgm.draws import generator
from fedgm.errors import require
from fedgm.participation.epochs import draw_epochs, epoch_range
from fedgm.participation.normalize import Effective, Normalize, weights
from fedgm.participation.samplers import Sampler
from fedgm.participation.task import Anchor, ClientTask, Steps, step_per_epoch

Age = Literal["client", "round"]


class Worker(NamedTuple):
    """A client of the cohort and the epochs that it drew."""

    client: int
    epochs: int


@dataclass(frozen=True)
class Autonomous:
    """A client starts from one of the last ``delay`` global models and trains as long as it likes.

    tau is uniform in {0 .. min(delay, t) - 1}: in early rounds among the models that exist. A client that
    draws 0 epochs has nothing to send, so it is not among the arrivals that Alg. 4 averages: it leaves the
    cohort, and the mean is over the others (a zero in the mean would shrink the step, and 1/K has no value
    there). ``cohort/idle`` counts such clients. If all are idle, the cohort draws its epochs anew.

    ``anchor`` and ``normalize`` choose between the two readings of the paper's simulation: start/reference is
    Alg. 4 as printed, current/none measures a delta from x_t, wherever the client started. ``age`` chooses
    whether each client draws its own tau, or the round draws one for all.
    """

    sampler: Sampler
    delay: int
    epochs: Sequence[int]
    reference: int
    seed: int
    normalize: Normalize = "reference"
    anchor: Anchor = "start"
    age: Age = "client"
    steps: Steps | None = None
    effective: Effective | None = None

    def __post_init__(self) -> None:
        key = "participation.delay"
        require(self.delay >= 1, key, self.delay, "at least 1 (1 is no delay)", f"{key}=5")
        epoch_range(self.epochs)

    @property
    def history(self) -> int:
        """The last ``delay`` models, x_t among them."""
        return self.delay

    def tasks(self, t: int) -> list[ClientTask]:
        """The working clients of round ``t``."""
        workers = [worker for worker in self._cohort(t) if worker.epochs > 0]
        steps = [(self.steps or step_per_epoch)(*worker) for worker in workers]
        epochs = [worker.epochs for worker in workers]
        factors = weights(self.normalize, epochs, steps, self.reference, self.effective)
        return [
            ClientTask(client, self._staleness(t, client), epochs, weight)
            for (client, epochs), weight in zip(workers, factors, strict=True)
        ]

    def log(self, t: int) -> dict[str, float | int]:
        """How many clients of the cohort did nothing, where that can happen."""
        if self.epochs[0] > 0:
            return {}
        return {"cohort/idle": sum(worker.epochs == 0 for worker in self._cohort(t))}

    def _cohort(self, t: int) -> list[Worker]:
        cohort, bounds = self.sampler.cohort(t), epoch_range(self.epochs)
        for attempt in count():
            workers = [Worker(c, draw_epochs(bounds, self.seed, t, c, attempt)) for c in cohort]
            if any(worker.epochs for worker in workers):
                return workers
        raise AssertionError("unreachable: high >= 1, so some attempt has a worker")

    def _staleness(self, t: int, client: int) -> int:
        draws = {
            "client": generator(self.seed, "staleness", t, client),
            "round": generator(self.seed, "staleness-of-round", t),
        }
        return int(draws[self.age].integers(min(self.delay, t)))
