"""FedExP (Jhunjhunwala 2023): the server rate follows from the norms of the clients' updates."""

from dataclasses import dataclass
from math import inf

from torch import Tensor, float64
from torch.linalg import vector_norm

from fedgm.errors import require
from fedgm.server.momentum import GeneralMomentum
from fedgm.server.rule import Hyper, State


def extrapolation(squared: float, delta: Tensor, eps: float) -> float:
    """``max(1, mean_i |D_i|^2 / (2 (|D|^2 + eps)))``: large where clients disagree.

    >>> from torch import tensor
    >>> extrapolation(squared=32.0, delta=tensor([2.0]), eps=0.0)
    4.0
    >>> extrapolation(squared=4.0, delta=tensor([2.0]), eps=0.0)  # clients that agree
    1.0
    """
    return max(1.0, squared / (2 * (vector_norm(delta, dtype=float64).item() ** 2 + eps)))


@dataclass(frozen=True)
class FedExP:
    """Eq. 2 at eta times the extrapolation of the round; eta = 1 and nu = 0 are FedExP itself.

    Its authors evaluate the mean of the last two models, as the last oscillates: ``eval.point=average``.

    >>> from torch import tensor
    >>> rule = FedExP(eta=1.0, beta=0.0, nu=0.0, eps=1e-3)
    >>> round(rule.adapted(rule.hyper, delta=tensor([2.0]), squared=32.0)["eta"], 2)
    4.0
    """

    eta: float
    beta: float
    nu: float
    eps: float

    def __post_init__(self) -> None:
        require(0 < self.eps < inf, "algorithm.eps", self.eps, "a positive number", "algorithm.eps=0.001")
        self._momentum  # noqa: B018  refuses a wrong eta, beta or nu

    @property
    def _momentum(self) -> GeneralMomentum:
        return GeneralMomentum(self.eta, self.beta, self.nu)

    @property
    def hyper(self) -> Hyper:
        """The triple before the norms of a round are known."""
        return {"eta": self.eta, "beta": self.beta, "nu": self.nu}

    def follow(self, eta: float, first: float) -> Hyper:
        """As FedGM does."""
        return self._momentum.follow(eta, first)

    def adapted(self, hyper: Hyper, delta: Tensor, squared: float) -> Hyper:
        """The triple of a round in which the clients' updates have the mean square ``squared``."""
        return {**hyper, "eta": hyper["eta"] * extrapolation(squared, delta, self.eps)}

    def gain(self, hyper: Hyper) -> float:
        """eta (1 - beta nu), at the eta of the round."""
        return self._momentum.gain(hyper)

    def init(self, x: Tensor) -> State:
        """d_0 = 0, and the model before the first step."""
        return {**self._momentum.init(x), "before": x}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """Eq. 2 at the adapted eta."""
        x_next, after = self._momentum.step(x, state, delta, hyper)
        return x_next, {**after, "before": x}

    def average(self, x: Tensor, state: State, after: Hyper) -> Tensor:
        """The mean of the last two models."""
        return (x + state["before"]) / 2
