"""The paper's synchronous setting: m of n clients, uniformly without replacement."""

from dataclasses import dataclass

from fedgm.draws import generator
from fedgm.participation.task import ClientTask


@dataclass(frozen=True)
class Ideal:
    """Every sampled client starts from x_t and does the same local work (Alg. 3)."""

    count: int
    per_round: int
    epochs: int
    seed: int

    def tasks(self, t: int) -> list[ClientTask]:
        """The cohort of round ``t``; the cost does not grow with ``count``."""
        cohort = generator(self.seed, "cohort", t).choice(self.count, self.per_round, replace=False)
        return [ClientTask(int(client), staleness=0, epochs=self.epochs, weight=1.0) for client in cohort]
