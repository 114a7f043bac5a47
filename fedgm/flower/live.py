"""Alg. 4 on a real clock: a free node gets the newest model, the server steps at every m arrivals.

An arrival is a file before it counts, and the file stays until no checkpoint can ask for it. Which arrivals a
round has used stands in ``arrivals.jsonl``. So a server that was killed finds every update that it stored,
and applies each once. Work that was under way is asked for again, with the newest model.
"""

import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from fedgm.client.rules import LastUpdates
from fedgm.client.weights import History
from fedgm.clock import steady
from fedgm.errors import FedGMError, require_fits
from fedgm.files import make_folder, write_atomically
from fedgm.flower.cohort import Arrived, RemoteCohort
from fedgm.flower.parcel import BadParcelError, Return
from fedgm.lightning import rank_zero_warn
from fedgm.participation import ClientTask
from fedgm.participation.live import Live
from fedgm.participation.replay import FILE, row, whole_rows
from fedgm.seals import DamagedError, read_sealed, sealed

STORED = Path("checkpoints") / "arrivals"  # gone when the run is done, as checkpoints are


class Working(NamedTuple):
    """A node at work."""

    client: int
    version: int  # v: on the model of round v
    since: float


class LiveCohort(RemoteCohort):
    """Waits for whoever comes."""

    def __init__(self, folder: Path, span: int, sync: bool, *rest: Any) -> None:
        super().__init__(*rest)
        assert isinstance(self.participation, Live)
        self.scheme, self.folder, self.span, self.sync = self.participation, folder, span, sync
        self.stored: dict[int, Return] = {}  # arrivals by number that no round has used, oldest first
        self.used: dict[int, int] = {}  # number -> round that used it
        self.last: dict[int, int] = {}  # client -> version of its last update that was used
        self.working: dict[str, Working] = {}  # by message
        self.failed: Counter[int] = Counter()  # of a client in a row: errors, and work that got lost
        self.why: dict[int, str] = {}  # the last reason of those that have failed since they last came
        self._begun = False
        reason = "its memory of each client holds weighted updates, and weights are known on arrival alone"
        fits = not isinstance(self.parts.rule, LastUpdates)
        require_fits(fits, "client", "mifa", reason, "participation=ideal")

    def tasks(self, t: int, history: History) -> list[ClientTask]:
        """Those that have arrived for round ``t``, in the order of their arrival."""
        if not self._begun:
            self._resume(t, history)
            self._begun = True
        counts, heard = Counter[str](), steady()
        self._discard_stale(t, counts)
        while True:
            self._send(t, history)
            if self._collect(t, history, counts):
                heard = steady()
            numbers = [n for n, came in self.stored.items() if came.round <= t][: self.scheme.per_round]
            if len(numbers) == self.scheme.per_round:
                break
            self._require_hope(t, steady() - heard)
            time.sleep(self.terms.poll)
        came = [self.stored.pop(number) for number in numbers]
        self.arrived = Arrived({each.client: each for each in came})
        tasks = self.scheme.arrived([(each.client, each.round) for each in came], t)
        self._write(t, tasks, numbers)
        self.scheme.seen[t] = {"cohort/stale": counts["stale"], "cohort/dropped": counts["dropped"]}
        return tasks

    def _discard_stale(self, t: int, counts: Counter[str]) -> None:
        """What has waited for its round too long."""
        for number in [n for n, came in self.stored.items() if t - came.round > self.scheme.max_staleness]:
            del self.stored[number]
            self._path(number).unlink(missing_ok=True)
            counts["stale"] += 1

    def _send(self, t: int, history: History) -> None:
        """The newest model to every node that is there, not at work, and has nothing waiting here."""
        busy = {work.client for work in self.working.values()} | {
            each.client for each in self.stored.values()
        }
        for client, node in self.directory.online().items():
            if client in busy or self.failed[client] >= self.terms.tries:
                continue
            task = ClientTask(client, 0, self.scheme.work(client, t), 1.0, began=t)
            order = self.order(task, t, history, before=self.last.get(client, 0) + 1)
            message = self.post.push(node, "train", order, self.terms.timeout)
            self.working[message] = Working(client, t, steady())

    def _collect(self, t: int, history: History, counts: Counter[str]) -> bool:
        """Store what has come; whether something did."""
        now = steady()
        for message in [m for m, work in self.working.items() if now - work.since > self.terms.timeout]:
            self._fail(self.working.pop(message), f"no answer after {self.terms.timeout:g} s", counts)
        answers = self.post.pull(list(self.working)) if self.working else []
        for answer in answers:
            work = self.working.pop(answer.id)
            if answer.error:
                self._fail(work, answer.error, counts)
                continue
            try:
                came = self.opened(answer.parcel, work.client, work.version, history[0])
                task = ClientTask(work.client, t - work.version, 1, 1.0)
                fresh = task.staleness <= self.scheme.max_staleness
                if fresh and not self.decoded(task, came, history).finite:
                    raise BadParcelError("its update is not finite")
            except FedGMError as error:
                self._fail(work, str(error), counts)
                continue
            del self.failed[work.client]
            self.why.pop(work.client, None)
            if fresh:
                self._store(answer.parcel, came)
            else:
                counts["stale"] += 1
        return bool(answers)

    def _fail(self, work: Working, reason: str, counts: Counter[str]) -> None:
        """The node is free again; one that keeps failing, or keeps getting lost, gets no more work."""
        counts["dropped"] += 1
        self.failed[work.client] += 1
        self.why[work.client] = reason
        out = self.failed[work.client] >= self.terms.tries
        rank_zero_warn(f"client {work.client}: {reason}{'; it gets no more work' if out else ''}")

    def _require_hope(self, t: int, silent: float) -> None:
        """End the run, with what is missing, where not enough clients can arrive any more."""
        out = [client for client, times in self.failed.items() if times >= self.terms.tries]
        left = self.data.count - len(out)
        patience = self.terms.timeout if self.directory.asking else self.terms.wait
        if left >= self.scheme.per_round and (self.working or silent <= patience):
            return
        why = [f"client {client}: {reason}" for client, reason in sorted(self.why.items())]
        why += [f"node {node}: {reason}" for node, reason in self.directory.refused.items()]
        raise FedGMError(
            f"round {t}: {len(self.stored)} of {self.scheme.per_round} updates have come, no more can "
            f"({'; '.join(why) or 'too few nodes online'}). The same command continues after round {t - 1}"
        )

    # What is kept ------------------------------------------------------------------------------------------

    def _path(self, number: int) -> Path:
        return self.folder / STORED / f"{number:08d}.safetensors"

    def _store(self, parcel: bytes, came: Return) -> None:
        """On the disk first: from here on it is not lost."""
        number = 1 + max((*self.stored, *self.used), default=0)
        path = self._path(number)
        make_folder(path.parent, self.sync)
        write_atomically(path, sealed(parcel, path.name, self.run), self.sync)
        self.stored[number] = came

    def _write(self, t: int, tasks: list[ClientTask], numbers: list[int]) -> None:
        """Before the server steps: which arrivals round ``t`` uses. Those of long ago go."""
        self.used |= dict.fromkeys(numbers, t)
        self.last |= {task.client: t - task.staleness for task in tasks}
        path = self.folder / FILE
        text = path.read_text() if path.exists() else ""
        write_atomically(path, text + row(t, self.scheme.anchor, tasks, numbers), self.sync)
        for number in [n for n, used in self.used.items() if used <= t - 1 - self.span]:
            self._path(number).unlink(missing_ok=True)

    def _resume(self, t: int, history: History) -> None:
        """Rounds before ``t`` have used what their rows say; what else is stored is still to come."""
        rows = whole_rows(self.folder / FILE)[: t - 1]
        if len(rows) < t - 1:
            raise FedGMError(f"{self.folder / FILE} has {len(rows)} whole rounds of {t - 1}. Try rerun=true")
        text = "".join((self.folder / FILE).read_text().splitlines(keepends=True)[: t - 1]) if rows else ""
        write_atomically(self.folder / FILE, text, self.sync)
        self.used = {number: found["round"] for found in rows for number in found["numbers"]}
        self.last = {c: found["round"] - age for found in rows for c, age, *_ in found["tasks"]}
        whole = True
        for path in sorted((self.folder / STORED).glob("*.safetensors")):
            if not path.stem.isdecimal() or int(path.stem) in self.used:
                continue
            try:
                parcel = read_sealed(path, path.name, self.run)
                came = Return.opened(parcel, history[0], len(self.metrics), self.parts.rule.sends)
            except (OSError, DamagedError, BadParcelError) as error:
                rank_zero_warn(f"{path.name} is damaged, and its update is lost ({error})")
                whole = False
                continue
            # Later rounds that are computed again come to the same models, if all of their updates are there.
            if t - self.scheme.max_staleness <= came.round <= t or (whole and came.round > t):
                self.stored[int(path.stem)] = came
