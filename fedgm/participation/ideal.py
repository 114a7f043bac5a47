"""The paper's synchronous setting: m of n clients, uniformly without replacement."""

from dataclasses import dataclass

from fedgm.participation.normalize import Effective, Normalize, weights
from fedgm.participation.samplers import Uniform
from fedgm.participation.task import Anchor, ClientTask, Steps, step_per_epoch


@dataclass(frozen=True)
class Ideal:
    """Every sampled client starts from x_t and does the same local work (Alg. 3)."""

    count: int
    per_round: int
    epochs: int
    seed: int
    normalize: Normalize = "none"
    steps: Steps | None = None
    effective: Effective | None = None

    @property
    def history(self) -> int:
        """Every client starts from x_t."""
        return 1

    @property
    def anchor(self) -> Anchor:
        """A delta is measured from x_t, where the client started."""
        return "start"

    def tasks(self, t: int) -> list[ClientTask]:
        """The cohort of round ``t``; the cost does not grow with ``count``."""
        cohort = Uniform(self.count, self.per_round, self.seed).cohort(t)
        steps = [(self.steps or step_per_epoch)(client, self.epochs) for client in cohort]
        factors = weights(self.normalize, [self.epochs] * len(cohort), steps, self.epochs, self.effective)
        return [ClientTask(client, 0, self.epochs, w) for client, w in zip(cohort, factors, strict=True)]

    def log(self, t: int) -> dict[str, float | int]:
        """Nothing beyond the loop's own row."""
        return {}
