"""Cohorts that are drawn: Autonomous Multistage FedGM (Alg. 4) as the paper simulates it, and Alg. 3.

``ideal`` is Alg. 4 without delay and with equal work: one scheme, bit for bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

from fedgm.draws import generator
from fedgm.errors import require
from fedgm.participation.local_work import Normalize, draw_epochs, epoch_range, weights
from fedgm.participation.samplers import Sampler, Uniform, is_uniform
from fedgm.participation.task import NO_DATA, Anchor, ClientFacts, ClientTask

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
    there). ``cohort/idle`` counts such clients. If all are idle, the cohort draws its epochs again.

    ``anchor`` and ``normalize`` choose between readings of the paper's simulation: literal (start, none) is
    its words, start (start, reference) also evens out unequal work, current (current, none)
    measures a delta from x_t, wherever the client started. Alg. 4 itself divides by K (``steps``). ``age``
    chooses whether each client draws its own tau, or the round draws one for all.

    >>> scheme = Autonomous(Uniform(10, 3, seed=0), delay=5, epochs=(1, 6), reference=3, seed=0)
    >>> all(task.staleness < 5 and task.weight == 3 / task.epochs for task in scheme.tasks(t=20))
    True
    """

    sampler: Sampler
    delay: int
    epochs: Sequence[int]
    reference: int
    seed: int
    normalize: Normalize = "reference"
    anchor: Anchor = "start"
    age: Age = "client"
    facts: ClientFacts = NO_DATA

    def __post_init__(self) -> None:
        key = "participation.delay"
        require(self.delay >= 1, key, self.delay, "at least 1 (1 is no delay)", f"{key}=5")
        epoch_range(self.epochs)

    @property
    def history(self) -> int:
        """The last ``delay`` models, x_t among them."""
        return self.delay

    @property
    def arrives_uniformly(self) -> bool:
        """Whether every client is as likely as any other to be in a cohort."""
        return is_uniform(self.sampler)

    def tasks(self, t: int) -> list[ClientTask]:
        """The working clients of round ``t``; the cost does not grow with the number of clients."""
        workers = [worker for worker in self._cohort(t) if worker.epochs > 0]
        steps = [self.facts.steps(*worker) for worker in workers]
        epochs = [worker.epochs for worker in workers]
        factors = weights(self.normalize, epochs, steps, self.reference, self.facts.effective)
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
        if self.delay == 1:
            return 0  # every client starts from x_t
        draws = {
            "client": generator(self.seed, "staleness", t, client),
            "round": generator(self.seed, "staleness-of-round", t),
        }
        return int(draws[self.age].integers(min(self.delay, t)))


def ideal(
    count: int,
    per_round: int,
    epochs: int,
    seed: int,
    normalize: Normalize = "none",
    sampler: Sampler | None = None,
    facts: ClientFacts = NO_DATA,
) -> Autonomous:
    """The paper's synchronous setting (Alg. 3): every client of a cohort starts from x_t, with equal work.

    >>> [task.staleness for task in ideal(count=10, per_round=3, epochs=2, seed=0).tasks(t=1)]
    [0, 0, 0]
    """
    cohorts = sampler or Uniform(count, per_round, seed)  # stored runs of older versions name no sampler
    return Autonomous(cohorts, 1, (epochs, epochs), epochs, seed, normalize, facts=facts)
