"""Parts that most runs do not have, where a round meets them: a sampler that looks at the model, staged local
work, privacy. The loop asks here once before and once after each round; without them nothing is done.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from fedgm.client.weights import Snapshot
from fedgm.data.clients import ClientData
from fedgm.federated.arrivals import Cohort
from fedgm.federated.cohort import ClientParts, RoundSettings
from fedgm.federated.probing import Chooser
from fedgm.federated.staged import StagedWork
from fedgm.lightning import pl
from fedgm.participation import ClientTask, Participation
from fedgm.participation.choosing import Chooses
from fedgm.tasks.metric import Row


class OptionalParts:
    """Their state and their columns."""

    def __init__(
        self,
        trainer: pl.Trainer,
        data: ClientData,
        participation: Participation,
        settings: RoundSettings,
        parts: ClientParts,
    ) -> None:
        self.data, self.participation, self.privacy = data, participation, parts.privacy
        sampler = getattr(participation, "sampler", None)
        self.chooser = Chooser(sampler, trainer, data) if isinstance(sampler, Chooses) else None
        self.work = StagedWork(settings.work, trainer, data) if settings.work else None
        self._row: Row = {}

    def clients_at_first(self) -> int:
        """Clients of round 1, as far as they are known before it."""
        return 1 if self.chooser is not None else len(self.participation.tasks(1))

    def begin(
        self, t: int, x_t: Snapshot, ask: Callable[[], list[ClientTask]]
    ) -> tuple[list[ClientTask], ClientData]:
        """The tasks of round ``t``, which ``ask`` gives, chosen by x_t where a sampler does so."""
        self._row = {}
        if self.chooser is not None:
            self.chooser.choose(t, sum(part.numel() * part.element_size() for part in x_t))
            self._row |= self.chooser.row
        tasks = ask()
        if self.work is None:
            return tasks, self.data
        tasks, data = self.work.begin(t, tasks)
        self._row |= self.work.row
        return tasks, data

    def mean(self, cohort: Cohort, t: int) -> Tensor:
        """D, noised where the run is private."""
        if self.privacy is None or cohort.norms is None:
            return cohort.mean.delta
        delta, row = self.privacy.noised(cohort.mean.delta, t, cohort.norms)
        self._row |= row
        return delta

    def columns(self, cohort: Cohort) -> Row:
        """What these parts add to the row."""
        if (senders := cohort.senders) is not None:
            self._row |= {"cohort/senders": senders.number, "bytes/norms": senders.up + senders.down}
        return self._row

    def end(self, row: Row, tasks: list[ClientTask], cohort: Cohort) -> None:
        """Tell a sampler what came of its choice."""
        if self.chooser is not None:
            self.chooser.sampler.observe(row, cohort.losses(tasks))

    def state_dict(self) -> dict[str, Any]:
        """Of the parts that remember something between rounds."""
        return {name: part.state_dict() for name, part in self._stateful().items()}

    def load_state_dict(self, content: dict[str, Any]) -> None:
        """Continue with it."""
        for name, part in self._stateful().items():
            part.load_state_dict(content[name])

    def _stateful(self) -> dict[str, Any]:
        sampler = None if self.chooser is None else self.chooser.sampler
        parts = {"sampler": sampler, "privacy": self.privacy}
        return {name: part for name, part in parts.items() if part is not None}
