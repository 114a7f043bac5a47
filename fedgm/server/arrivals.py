"""Rules for clients that come as they like: amplified FedAvg, delayed Nesterov, momentum approximation."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

import numpy as np
import torch
from torch import Tensor, zeros_like

from fedgm.errors import require
from fedgm.server.rule import Hyper, OnlyEta, State


@dataclass(frozen=True)
class Amplified(OnlyEta):
    """Amplified FedAvg (Wang and Ji 2022): x -= D;  after ``every`` rounds x = x_0 + eta (x - x_0), x_0 = x.

    x_0 is the model ``every`` rounds ago: what that many rounds have moved together is amplified, so that all
    clients of a cycle of availability count alike in it. every = 1 is FedSGD, eta = 1 FedAvg.

    >>> rule, x = Amplified(eta=3.0, every=2), torch.zeros(1)
    >>> x, state = rule.step(x, rule.init(x), torch.tensor([-1.0]), rule.hyper)
    >>> rule.step(x, state, torch.tensor([-1.0]), rule.hyper)[0]  # 3 times the way of two rounds
    tensor([6.])
    """

    eta: float
    every: int

    def __post_init__(self) -> None:
        _positive("eta", self.eta)
        require(self.every >= 1, "algorithm.every", self.every, "at least 1 round", "algorithm.every=20")

    def gain(self, hyper: Hyper) -> float:
        """1, and eta where every round is amplified."""
        return hyper["eta"] if self.every == 1 else 1.0

    def init(self, x: Tensor) -> State:
        """x_0, and how many rounds it stands."""
        return {"start": x, "t": torch.zeros((), dtype=torch.int64)}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        x, t, start = x - delta, state["t"] + 1, state["start"]
        if int(t) % self.every:
            return x, {"start": start, "t": t}
        x = start + hyper["eta"] * (x - start)
        return x, {"start": x, "t": t}


@dataclass(frozen=True)
class DelayedNesterov:
    """Delayed Nesterov (Liu 2024), at every arrival D, N = ``every`` of which move the momentum once.

    Delta += D;  every N-th time  m = beta m + Delta/N;  x -= eta ((1 - cN + c) beta m + D/N);  Delta = 0;
    otherwise  x -= eta (c beta m + D/N).  With c = 0 the models after every N-th arrival are Eq. 2 with
    (eta/(1-beta), beta, beta) on the mean of the N arrivals. An arrival is what a round averages:
    ``clients.per_round=1`` under ``participation=event`` is the paper's.

    >>> rule, x = DelayedNesterov(eta=1.0, beta=0.5, every=2), torch.zeros(1)
    >>> x, state = rule.step(x, rule.init(x), torch.tensor([2.0]), rule.hyper)
    >>> rule.step(x, state, torch.tensor([2.0]), rule.hyper)[0]  # -1, then -1 - beta m with m = 2
    tensor([-3.])
    """

    eta: float
    beta: float
    every: int
    c: float = 0.0

    def __post_init__(self) -> None:
        _positive("eta", self.eta)
        _factor("beta", self.beta)
        require(self.every >= 1, "algorithm.every", self.every, "at least 1 arrival", "algorithm.every=5")
        ok = 0 <= self.c <= 1 / self.every
        require(ok, "algorithm.c", self.c, f"0 to 1/every = {1 / self.every:g}", "algorithm.c=0")

    @property
    def hyper(self) -> Hyper:
        """eta and beta."""
        return {"eta": self.eta, "beta": self.beta}

    def follow(self, eta: float, first: float) -> Hyper:
        """The new eta; beta stays."""
        return {**self.hyper, "eta": eta}

    def gain(self, hyper: Hyper) -> float:
        """Of a single arrival: eta/N, and where every arrival moves the momentum beta m, too."""
        return hyper["eta"] * (1 / self.every if self.every > 1 else 1 + hyper["beta"])

    def init(self, x: Tensor) -> State:
        """No momentum; nothing has arrived."""
        return {"m": zeros_like(x), "total": zeros_like(x), "t": torch.zeros((), dtype=torch.int64)}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One arrival."""
        eta, beta, N, c = hyper["eta"], hyper["beta"], self.every, self.c
        m, total, t = state["m"], state["total"] + delta, state["t"] + 1
        if int(t) % N:
            return x - eta * (c * beta * m + delta / N), {"m": m, "total": total, "t": t}
        m = beta * m + total / N
        x = x - eta * ((1 - c * N + c) * beta * m + delta / N)
        return x, {"m": m, "total": zeros_like(total), "t": t}


@dataclass(frozen=True)
class MomentumApproximation:
    """Momentum approximation (Yu 2024) in its light form: Eq. 2 whose coefficients follow the clients' ages.

    Updates of round t started from earlier models with shares w_t. Momentum wants the weights
    M_t = (1-beta) (.., beta^2, beta, 1) on models, and u d + v D has the weights u c + v w_t:

        u, v = argmin |u c + v w_t - M_t|^2;  c = u c + v w_t;  d = u d + v D;  x -= eta ((1-nu) D + nu d)

    Where the minimum is not unique, u and v are as small as can be. Without staleness u = beta and
    v = 1 - beta, which is Eq. 2. ``target="step"`` approximates (1-nu) e_t + nu M_t and steps by d itself.
    """

    eta: float
    beta: float
    nu: float = 1.0
    target: Literal["momentum", "step"] = "momentum"

    def __post_init__(self) -> None:
        _positive("eta", self.eta)
        _factor("beta", self.beta)
        require(isfinite(self.nu), "algorithm.nu", self.nu, "a finite number", "algorithm.nu=1.0")
        ok = self.target in ("momentum", "step")
        require(ok, "algorithm.target", self.target, "momentum or step", "algorithm.target=momentum")

    @property
    def hyper(self) -> Hyper:
        """The triple, which holds without staleness."""
        return {"eta": self.eta, "beta": self.beta, "nu": self.nu}

    def follow(self, eta: float, first: float) -> Hyper:
        """The new eta; beta and nu stay."""
        return {**self.hyper, "eta": eta}

    def gain(self, hyper: Hyper) -> float:
        """As Eq. 2: all clients of round 1 are fresh."""
        return hyper["eta"] * (1 - hyper["beta"] * hyper["nu"])

    def init(self, x: Tensor) -> State:
        """d = 0, and no model has a weight in it."""
        return {"d": zeros_like(x), "c": torch.zeros(0, dtype=torch.float64)}

    def aged(self, state: State, ages: Mapping[int, float]) -> State:
        """The state with w_t: how much D has of updates from x_0, x_1 ... x_{t-1}."""
        w = torch.zeros(state["c"].numel() + 1, dtype=torch.float64)
        for age, part in ages.items():
            w[-1 - age] += part
        return {**state, "w": w}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round; without ``aged`` all updates are fresh."""
        eta, beta, nu = hyper["eta"], hyper["beta"], hyper["nu"]
        c = np.append(state["c"].cpu().numpy(), 0.0)
        fresh = np.eye(1, len(c), len(c) - 1)[0]
        w = state["w"].cpu().numpy() if "w" in state else fresh
        wanted = (1 - beta) * beta ** np.arange(len(c) - 1.0, -1.0, -1.0)
        if self.target == "step":
            wanted = nu * wanted + (1 - nu) * fresh
        u, v = np.linalg.lstsq(np.stack([c, w], axis=1), wanted, rcond=None)[0].tolist()
        d = u * state["d"] + v * delta
        h = d if self.target == "step" else (1 - nu) * delta + nu * d
        return x - eta * h, {"d": d, "c": torch.from_numpy(u * c + v * w)}


def _positive(name: str, value: float) -> None:
    require(0 < value < inf, f"algorithm.{name}", value, "a positive number", f"algorithm.{name}=1.0")


def _factor(name: str, value: float) -> None:
    require(0 <= value < 1, f"algorithm.{name}", value, f"0 <= {name} < 1", f"algorithm.{name}=0.9")
