"""A server under a virtual clock: clients fetch, work and send at their own pace (Alg. 4).

A discrete-event simulation. What training gives does not change who arrives when, so the whole of it runs
ahead of the training, and again from the start after a resume: it is a function of the seed alone.

Rules:

- ``concurrency`` slots; in each a client works on the model x_v that it fetched when it began.
- The server steps when ``per_round`` updates have arrived. What arrives at one moment is taken in, in the
  order in which the work began, before anything new begins at that moment.
- An empty slot is filled at once; with ``wait``, one that delivered stays empty until the server has stepped.
- A client at work, or with an update that the server has not used yet, is not drawn.
- The first filling of round t proposes the very clients of the synchronous cohort draw.
- A slot waits where no proposed client is available: for the first of them whose window opens, or for the
  next slot to become empty, when others are proposed.
"""

import heapq
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from fedgm.participation.devices import Devices
from fedgm.participation.local_work import draw_epochs
from fedgm.participation.samplers import Sampler, proposals
from fedgm.participation.task import Steps

Outcome = Literal["used", "discarded", "dropped"]


class WorkSpan(NamedTuple):
    """One client's work, for a picture of who worked when."""

    client: int
    start: float
    end: float  # of a dropped client: when the server gave it up
    version: int  # v: it fetched x_v, so its staleness in round t is t - v
    outcome: Outcome


@dataclass(frozen=True)
class Assignment:
    """One client in one slot."""

    number: int  # in the order in which work began
    client: int
    version: int  # v: on the model x_v
    epochs: int
    start: float
    drops: bool


@dataclass
class Round:
    """What happened from one server step to the next."""

    t: int
    time: float = 0.0  # of the step
    waited: float = 0.0  # seconds in which nobody worked because every window was closed
    dropped: int = 0  # given up after the timeout
    stale: int = 0  # discarded on arrival
    idle: int = 0  # drew 0 epochs, and left the slot to another client
    fillings: int = 0  # times that clients were proposed for empty slots
    proposals: int = 0
    arrived: list[Assignment] = field(default_factory=list[Assignment])
    intervals: list[WorkSpan] = field(default_factory=list[WorkSpan])


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

    def __init__(self, rules: Rules, devices: Devices, sampler: Sampler, steps: Steps) -> None:
        self.rules, self.devices, self.sampler, self.steps = rules, devices, sampler, steps
        self.now = 0.0
        self._ends: list[tuple[float, int, Assignment]] = []  # a heap by (time, number): what is at work
        self._openings: list[tuple[float, int]] = []  # sorted: windows that an empty slot waits for
        self._busy: set[int] = set()
        self._vacant = rules.concurrency
        self._propose = True  # a slot has become empty since the last proposals
        self._begun = 0
        self._round = Round(t=0)

    def step(self) -> Round:
        """Run until the server's next step."""
        self._busy -= {work.client for work in self._round.arrived}
        self._vacant += len(self._round.arrived) if self.rules.wait else 0
        self._propose = True
        now = self._round = Round(t=self._round.t + 1)
        while len(now.arrived) < self.rules.per_round:
            if self._ends and self._ends[0][0] <= self.now:
                self._end(heapq.heappop(self._ends)[2])
            else:
                self._fill()
                self._advance()
        now.time = self.now
        now.arrived.sort(key=lambda work: work.number)
        return now

    def _advance(self) -> None:
        """To the next end of work or, while a slot is empty, to the next opening window."""
        waiting = self._openings if self._vacant else []
        times = [heap[0][0] for heap in (self._ends, waiting) if heap]
        if not times:
            self._propose = True  # all that were proposed are idle: the next proposals are other draws
            return
        time = max(self.now, min(times))
        if not self._ends:
            self._round.waited += time - self.now
        self.now = time

    def _end(self, work: Assignment) -> None:
        """An update arrives, or a client is given up."""
        now, outcome = self._round, _outcome(work, self._round.t, self.rules.max_staleness)
        now.intervals.append(WorkSpan(work.client, work.start, self.now, work.version, outcome))
        now.dropped += outcome == "dropped"
        now.stale += outcome == "discarded"
        if outcome == "used":
            now.arrived.append(work)  # and busy until the server has stepped
        else:
            self._busy.remove(work.client)
        if outcome != "used" or not self.rules.wait:
            self._vacant, self._propose = self._vacant + 1, True

    def _fill(self) -> None:
        """Begin work in empty slots: clients whose window has opened first, then new proposals."""
        while self._openings and self._openings[0][0] <= self.now:
            opening, client = self._openings.pop(0)
            if opening == self.now:  # an earlier one passed while no slot was empty
                self._begin(client)
        if not self._vacant or not self._propose:
            return
        now, most = self._round, self.rules.concurrency
        later = set(self._openings)
        looked_at: set[int] = set()
        for client in proposals(self.sampler, now.t, now.fillings, self._vacant, most):
            now.proposals += 1
            if client not in looked_at and client not in self._busy:
                looked_at.add(client)
                opening = self.devices.opening(client, self.now)
                if opening <= self.now:
                    self._begin(client)
                else:
                    later.add((opening, client))
            if not self._vacant:
                break
        self._openings = heapq.nsmallest(most, later)
        self._propose = False
        now.fillings += 1

    def _begin(self, client: int) -> None:
        """Fetch x_t and go to work, unless no slot is left or there are no epochs to do."""
        if not self._vacant or client in self._busy:
            return
        t, seed = self._round.t, self.rules.seed
        epochs = draw_epochs(self.rules.epochs, seed, t, client, attempt=self._round.fillings)
        if epochs == 0:
            self._round.idle += 1
            return
        self._begun += 1
        work = Assignment(self._begun, client, t, epochs, self.now, self.devices.drops(client, self._begun))
        seconds = self.devices.seconds(client, self.steps(client, epochs), work.number)
        end = self.now + (self.rules.timeout if work.drops else seconds)
        heapq.heappush(self._ends, (end, work.number, work))
        self._busy.add(client)
        self._vacant -= 1


def _outcome(work: Assignment, t: int, max_staleness: int) -> Outcome:
    """What becomes of a piece of work that ends in round ``t``."""
    if work.drops:
        return "dropped"
    return "used" if t - work.version <= max_staleness else "discarded"
