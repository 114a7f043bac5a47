"""Server rules that divide by a size of the update, and so are not of FedGM's family.

The adaptive rules (Reddi 2021, Wang 2022, Ma and Yarats 2019) divide a damped momentum by the root of a
second moment, coordinate by coordinate; NSGD-M (Cutkosky and Mehta 2020) divides it by its own length.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, isfinite, nan

from torch import Tensor, float64, full_like, maximum, zeros_like
from torch.linalg import vector_norm

from fedgm.errors import require
from fedgm.server.rule import Hyper, OnlyEta, State


@dataclass(frozen=True)
class Adaptive(OnlyEta, ABC):
    """``d = beta1 d + (1-beta1) D;  x -= eta d / (sqrt(v) + tau)`` with v_0 = tau^2, no bias correction.

    A rule adds :meth:`second_moment`; schedules change eta alone.
    """

    eta: float
    beta1: float
    tau: float

    def __post_init__(self) -> None:
        require(0 < self.eta < inf, "algorithm.eta", self.eta, "a positive number", "algorithm.eta=0.01")
        require(0 <= self.beta1 < 1, "algorithm.beta1", self.beta1, "0 <= beta1 < 1", "algorithm.beta1=0.9")
        require(0 < self.tau < inf, "algorithm.tau", self.tau, "a positive number", "algorithm.tau=0.001")

    def gain(self, hyper: Hyper) -> float:
        """Not a number: the first step depends on the size of D."""
        return nan

    def init(self, x: Tensor) -> State:
        """d_0 = 0, v_0 = tau^2."""
        return {"d": zeros_like(x), "v": full_like(x, self.tau**2)}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        d = self.first_moment(state["d"], delta)
        v = self.second_moment(state["v"], delta)
        return x - hyper["eta"] * d / (v.sqrt() + self.tau), {"d": d, "v": v}

    def first_moment(self, d: Tensor, delta: Tensor) -> Tensor:
        """The damped momentum after this update."""
        return self.beta1 * d + (1 - self.beta1) * delta

    @abstractmethod
    def second_moment(self, v: Tensor, delta: Tensor) -> Tensor:
        """v after this update; it must stay non-negative."""


@dataclass(frozen=True)
class Forgetting(Adaptive):
    """An adaptive rule whose second moment forgets at rate beta2, by default as Adam's."""

    beta2: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.beta2 < 1, "algorithm.beta2", self.beta2, "0 <= beta2 < 1", "algorithm.beta2=0.99")

    def second_moment(self, v: Tensor, delta: Tensor) -> Tensor:
        """A running mean of squares."""
        return self.beta2 * v + (1 - self.beta2) * delta.square()


@dataclass(frozen=True)
class FedAdagrad(Adaptive):
    """FedAdagrad (Reddi 2021): ``v += D^2``, so steps only ever shrink.

    >>> from torch import tensor
    >>> rule, x = FedAdagrad(eta=0.1, beta1=0.0, tau=4.0), tensor([1.0])
    >>> rule.step(x, rule.init(x), tensor([3.0]), rule.hyper)[0]  # 1 - 0.1 * 3 / (sqrt(4^2 + 3^2) + 4)
    tensor([0.9667])
    """

    def second_moment(self, v: Tensor, delta: Tensor) -> Tensor:
        """The sum of squares."""
        return v + delta.square()


@dataclass(frozen=True)
class FedAdam(Forgetting):
    """FedAdam (Reddi 2021): ``v = beta2 v + (1-beta2) D^2``.

    Unlike Adam it has no bias correction: v_0 = tau^2 keeps the first steps finite.

    >>> from torch import tensor
    >>> rule = FedAdam(eta=0.1, beta1=0.0, tau=1.0, beta2=0.0)
    >>> x = tensor([1.0])
    >>> x_next, state = rule.step(x, rule.init(x), tensor([3.0]), rule.hyper)
    >>> x_next  # 1 - 0.1 * 3 / (sqrt(3^2) + 1)
    tensor([0.9250])
    """


@dataclass(frozen=True)
class FedYogi(Forgetting):
    """FedYogi (Reddi 2021): ``v -= (1-beta2) D^2 sign(v - D^2)``.

    v moves by at most D^2, so one large v is not forgotten at once.

    >>> from torch import tensor
    >>> rule, x = FedYogi(eta=0.1, beta1=0.0, tau=4.0, beta2=0.0), tensor([1.0])
    >>> rule.step(x, rule.init(x), tensor([3.0]), rule.hyper)[0]  # v = 4^2 - 3^2
    tensor([0.9549])
    """

    def second_moment(self, v: Tensor, delta: Tensor) -> Tensor:
        """Additive where Adam's is multiplicative."""
        square = delta.square()
        return v - (1 - self.beta2) * square * (v - square).sign()


@dataclass(frozen=True)
class FedAMSGrad(Forgetting):
    """FedAMS (Wang 2022), option 2: FedAdam at the largest v so far, ``x -= eta d / (sqrt(vmax) + tau)``.

    >>> from torch import tensor
    >>> rule, x = FedAMSGrad(eta=0.1, beta1=0.0, tau=4.0, beta2=0.0), tensor([1.0])
    >>> rule.step(x, rule.init(x), tensor([3.0]), rule.hyper)[0]  # v = 3^2, vmax = 4^2
    tensor([0.9625])
    """

    def init(self, x: Tensor) -> State:
        """vmax starts at v_0."""
        state = super().init(x)
        return {**state, "vmax": state["v"].clone()}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        d = self.first_moment(state["d"], delta)
        v = self.second_moment(state["v"], delta)
        vmax = maximum(state["vmax"], v)
        return x - hyper["eta"] * d / (vmax.sqrt() + self.tau), {"d": d, "v": v, "vmax": vmax}


@dataclass(frozen=True)
class FedAMS(Forgetting):
    """FedAMS (Wang 2022), option 1: ``vmax = max(vmax, v, tau);  x -= eta d / sqrt(vmax)``, v_0 = 0.

    ``tau`` is its paper's epsilon. It bounds v itself here, so steps are at most eta d / sqrt(tau).
    Option 2, which adds epsilon to the root, is :class:`FedAMSGrad`.

    >>> from torch import tensor
    >>> rule, x = FedAMS(eta=0.1, beta1=0.0, tau=4.0, beta2=0.0), tensor([1.0])
    >>> rule.step(x, rule.init(x), tensor([3.0]), rule.hyper)[0]  # vmax = max(3^2, 4)
    tensor([0.9000])
    """

    def init(self, x: Tensor) -> State:
        """v_0 = 0; the maximum with tau is taken at once."""
        return {"d": zeros_like(x), "v": zeros_like(x), "vmax": full_like(x, self.tau)}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        d = self.first_moment(state["d"], delta)
        v = self.second_moment(state["v"], delta)
        vmax = maximum(state["vmax"], v)  # vmax_0 = tau, so tau is in every later maximum
        return x - hyper["eta"] * d / vmax.sqrt(), {"d": d, "v": v, "vmax": vmax}


@dataclass(frozen=True)
class QHAdam(Forgetting):
    """QHAdam (Ma and Yarats 2019): Adam with FedGM's discount on both moments.

    ``x -= eta ((1-nu1) D + nu1 d') / (sqrt((1-nu2) D^2 + nu2 v') + tau)``.

    With ``bias_correction``, as in its paper, v_0 = 0, d' = d / (1-beta1^t) and v' = v / (1-beta2^t), so that
    nu1 = nu2 = 1 is Adam. Without it v_0 = tau^2, d' = d and v' = v, so that nu1 = nu2 = 1 is FedAdam.

    >>> from torch import tensor
    >>> rule, x = QHAdam(eta=0.1, beta1=0.9, tau=1.0, beta2=0.99, nu1=0.7, nu2=1.0), tensor([1.0])
    >>> rule.step(x, rule.init(x), tensor([3.0]), rule.hyper)[0]  # 1 - 0.1 * 3 / (3 + 1)
    tensor([0.9250])
    """

    nu1: float
    nu2: float
    bias_correction: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isfinite(self.nu1), "algorithm.nu1", self.nu1, "a finite number", "algorithm.nu1=0.7")
        allowed = "0 <= nu2 <= 1, or roots turn negative"
        require(0 <= self.nu2 <= 1, "algorithm.nu2", self.nu2, allowed, "algorithm.nu2=1.0")

    def init(self, x: Tensor) -> State:
        """d_0 = 0; v_0 = 0 and a count of rounds where the moments are corrected."""
        state = super().init(x)
        return {**state, "v": zeros_like(x), "t": x.new_zeros(())} if self.bias_correction else state

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        d = self.first_moment(state["d"], delta)
        v = self.second_moment(state["v"], delta)
        count = {"t": state["t"] + 1} if "t" in state else {}
        unbiased_d, unbiased_v = self._corrected(d, v, int(count["t"].item())) if count else (d, v)
        numerator = (1 - self.nu1) * delta + self.nu1 * unbiased_d
        denominator = ((1 - self.nu2) * delta.square() + self.nu2 * unbiased_v).sqrt() + self.tau
        return x - hyper["eta"] * numerator / denominator, {"d": d, "v": v, **count}

    def _corrected(self, d: Tensor, v: Tensor, t: int) -> tuple[Tensor, Tensor]:
        """Both moments as weighted means of the updates so far: zeros at the start do not count."""
        return d / (1 - self.beta1**t), v / (1 - self.beta2**t)


@dataclass(frozen=True)
class NormalizedMomentum:
    """NSGD-M: ``d = (1-beta) D + beta d;  x -= eta d / ||d||``, so every step has length eta.

    >>> from torch import tensor
    >>> rule = NormalizedMomentum(eta=0.5, beta=0.9)
    >>> x = tensor([1.0, 1.0])
    >>> rule.step(x, rule.init(x), tensor([30.0, 40.0]), rule.hyper)[0]  # 0.5 along (0.6, 0.8)
    tensor([0.7000, 0.6000])
    """

    eta: float
    beta: float

    def __post_init__(self) -> None:
        require(0 < self.eta < inf, "algorithm.eta", self.eta, "a positive number", "algorithm.eta=0.5")
        require(0 <= self.beta < 1, "algorithm.beta", self.beta, "0 <= beta < 1", "algorithm.beta=0.9")

    @property
    def hyper(self) -> Hyper:
        """Both may change from round to round."""
        return {"eta": self.eta, "beta": self.beta}

    def follow(self, eta: float, first: float) -> Hyper:
        """The new eta at the same beta; W1 has no meaning here."""
        return {"eta": eta, "beta": self.beta}

    def gain(self, hyper: Hyper) -> float:
        """Not a number: the first step has length eta, not a multiple of D's."""
        return nan

    def init(self, x: Tensor) -> State:
        """d_0 = 0."""
        return {"d": zeros_like(x)}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round; d = 0 moves nothing."""
        d = (1 - hyper["beta"]) * delta + hyper["beta"] * state["d"]
        norm = vector_norm(d, dtype=float64).item()
        return x - (hyper["eta"] / norm if norm else 0.0) * d, {"d": d}
