"""A server under a virtual clock: clients fetch, work and send at their own pace (Alg. 4).

A discrete-event simulation. What training gives does not change who arrives when, so the whole of it runs
ahead of the training, and again from the start after a resume: it is a function of the seed alone.

Rules:

- ``concurrency`` slots; in each a client works on the model x_v that it fetched when it began.
- The server steps when ``per_round`` updates have arrived. What arrives at one moment is taken in, in the
  order in which the work was given out, before anything new begins at that moment.
- An empty slot is filled at once; with ``wait``, one that delivered stays empty until the server has stepped.
- A client at work, or with an update that the server has not used yet, is not drawn.
- The first filling of round t proposes the very clients of the synchronous cohort draw.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from fedgm.draws import generator
from fedgm.participation.devices import Devices
from fedgm.participation.epochs import draw_epochs
from fedgm.participation.task import Steps

PROPOSALS = 32  # clients looked at for one slot before it waits for a window to open
DENSE = 4  # below so many clients a slot all are looked at, so that the last free one is found

Outcome = Literal["used", "discarded", "dropped"]


class Interval(NamedTuple):
    """One client's work, for a picture of who worked when."""

    client: int
    start: float
    end: float  # of a dropped client: when the server gave it up
    version: int  # v: it fetched x_v, so its staleness in round t is t - v
    outcome: Outcome


@dataclass
class Work:
    """One client in one slot."""

    number: int  # in the order given out
    client: int
    version: int = 0  # 0: has not begun, its window is shut
    epochs: int = 0
    start: float = 0.0
    drops: bool = False


@dataclass
class Round:
    """What happened from one server step to the next."""

    t: int
    time: float = 0.0  # of the step
    waited: float = 0.0  # seconds in which every slot waited for a window to open
    dropped: int = 0  # given up after the timeout
    stale: int = 0  # discarded on arrival
    idle: int = 0  # drew 0 epochs, and left the slot to another client
    refills: int = 0
    proposals: int = 0
    arrived: list[Work] = field(default_factory=list[Work])
    intervals: list[Interval] = field(default_factory=list[Interval])


@dataclass(frozen=True)
class Rules:
    """The server's side of the simulation."""

    count: int
    per_round: int
    concurrency: int
    wait: bool
    epochs: tuple[int, int]
    timeout: float
    max_staleness: int
    seed: int


class Clock:
    """Virtual time, the events to come, and who is busy; all of it as small as the slots are few."""

    def __init__(self, rules: Rules, devices: Devices, steps: Steps) -> None:
        self.rules, self.devices, self.steps = rules, devices, steps
        self.now = 0.0
        self._events: list[tuple[float, int, Work]] = []  # a heap by (time, number)
        self._busy: set[int] = set()
        self._vacant = rules.concurrency
        self._begun = 0  # works that have begun and not ended
        self._numbers = 0
        self._round = Round(t=0)

    @property
    def rounds(self) -> int:
        """Server steps made."""
        return self._round.t

    def step(self) -> Round:
        """Run until the server's next step."""
        self._busy -= {work.client for work in self._round.arrived}
        if self.rules.wait:
            self._vacant += len(self._round.arrived)
        now = self._round = Round(t=self._round.t + 1)
        while len(now.arrived) < self.rules.per_round:
            if self._events and self._events[0][0] <= self.now:
                self._happen(heapq.heappop(self._events)[2])
            else:
                self._refill()
                self._advance()
        now.time = self.now
        now.arrived.sort(key=lambda work: work.number)
        return now

    def _advance(self) -> None:
        """To the next event; if nothing has begun, that is the next window to open."""
        if not self._events:
            return  # everyone proposed was idle: the next filling draws anew
        time = max(self.now, self._events[0][0])
        if self._begun == 0:
            self._round.waited += time - self.now
        self.now = time

    def _happen(self, work: Work) -> None:
        """A window opens, an update arrives, or a client is given up."""
        if work.version == 0:
            self._begin(work)
            return
        self._begun -= 1
        outcome: Outcome = "used"
        if work.drops:
            outcome, self._round.dropped = "dropped", self._round.dropped + 1
        elif self._round.t - work.version > self.rules.max_staleness:
            outcome, self._round.stale = "discarded", self._round.stale + 1
        else:
            self._round.arrived.append(work)
        self._round.intervals.append(Interval(work.client, work.start, self.now, work.version, outcome))
        if outcome != "used":
            self._busy.remove(work.client)
        if outcome != "used" or not self.rules.wait:
            self._vacant += 1

    def _refill(self) -> None:
        """Give every empty slot a client that may start now, else the first proposed one that will be able to."""
        if self._vacant == 0:
            return
        rng = generator(self.rules.seed, "cohort", self._round.t, self._round.refills)
        later: list[tuple[float, int]] = []
        looked_at: set[int] = set()
        for client in self._proposals(rng):
            self._round.proposals += 1
            if client in self._busy or client in looked_at:
                continue
            looked_at.add(client)
            opening = self.devices.opening(client, self.now)
            if opening > self.now:
                later.append((opening, client))
            else:
                self._begin(self._assign(client))
            if self._vacant == 0:
                break
        for opening, client in heapq.nsmallest(self._vacant, later):
            work = self._assign(client)
            heapq.heappush(self._events, (opening, work.number, work))
        self._round.refills += 1

    def _proposals(self, rng: np.random.Generator) -> Iterator[int]:
        """The synchronous draw for the empty slots; then more, as far as that is not enough."""
        rules, vacant = self.rules, self._vacant
        yield from rng.choice(rules.count, vacant, replace=False).tolist()
        if rules.count <= DENSE * rules.concurrency:
            yield from rng.permutation(rules.count).tolist()
        else:
            batches = (rng.integers(rules.count, size=PROPOSALS).tolist() for _ in range(vacant))
            yield from chain.from_iterable(batches)

    def _assign(self, client: int) -> Work:
        self._busy.add(client)
        self._vacant -= 1
        self._numbers += 1
        return Work(self._numbers, client)

    def _begin(self, work: Work) -> None:
        """Fetch x_t and go to work, unless there are no epochs to do."""
        t, client, attempt = self._round.t, work.client, self._round.refills
        work.epochs = draw_epochs(self.rules.epochs, self.rules.seed, t, client, attempt)
        if work.epochs == 0:
            self._round.idle += 1
            self._busy.remove(client)
            self._vacant += 1
            return
        work.version, work.start = t, self.now
        work.drops = self.devices.drops(client, work.number)
        steps = self.steps(client, work.epochs)
        seconds = self.devices.seconds(client, steps, work.number)
        self._begun += 1
        end = self.now + (self.rules.timeout if work.drops else seconds)
        heapq.heappush(self._events, (end, work.number, work))
