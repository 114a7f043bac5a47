"""Client rules that mix a direction of the server's into gradients: FedCM, FedAvg-M, MimeLite, GHBM, STEM.

Clients keep nothing; what they are sent besides the model is as old as the model.
"""

from dataclasses import dataclass

from torch import Tensor, where, zeros_like

from fedgm.client.rules import LARGEST, Adjust, Came, Local, Plain, Returned, State
from fedgm.errors import require


@dataclass(frozen=True)
class Mixed(Plain):
    """What the rules of this file have in common: g <- factor g + direction, then plain SGD."""

    fetches = 1
    needs_plain_sgd = True
    changes_gradients = True


def mix(local: Local, factor: float, direction: Tensor | None) -> Adjust:
    """g <- factor g + direction, before every local step.

    >>> from torch import nn, tensor
    >>> w = nn.Parameter(tensor([3.0]))
    >>> w.grad = tensor([2.0])
    >>> local = Local(tensor([1.0]), {}, {}, lr=0.1, split=lambda x: [x], client=0, round=1)
    >>> mix(local, 0.5, tensor([0.25]))([w])
    >>> w.grad
    tensor([1.2500])
    """
    parts = None if direction is None else local.split(direction)

    def adjust(parameters: list[Tensor]) -> None:
        for place, w in enumerate(parameters):
            if w.grad is not None:
                w.grad.mul_(factor)
                if parts is not None:
                    w.grad.add_(parts[place])

    return adjust


def per_rate(moved: Tensor, lr: float | Tensor) -> Tensor:
    """``moved`` / eta_l, each parameter by the rate of its group; 0 where that is 0 and nothing moves."""
    if isinstance(lr, Tensor):
        return where(lr > 0, moved / lr, zeros_like(moved))
    return moved / lr if lr else zeros_like(moved)


def require_share(key: str, value: float, example: float) -> None:
    """A factor of a convex combination that leaves something of the gradient."""
    require(0 < value <= 1, key, value, "above 0, at most 1", f"{key}={example}")


@dataclass(frozen=True)
class FedCM(Mixed):
    """g <- a g + (1-a) Delta, Delta = D/(K eta_l) of the round before (Xu et al. 2021).

    D is the cohort's mean as it came, whatever the server rule makes of it; eta_l is that of D's round and K
    the client's own. Delta is 0 in round 1. With K = 1 and x -= D it is Eq. 2 with (1, 1-a, 1).
    """

    a: float = 0.1
    reads_delta = True

    def __post_init__(self) -> None:
        require_share("client.a", self.a, 0.1)

    def begin(self, local: Local) -> Adjust | None:
        """The last direction of all, as long as one step each."""
        last = local.shared.get("D")
        return mix(local, self.a, None if last is None else (1 - self.a) / local.steps * last)

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """D/eta_l is what clients are sent in the next round."""
        return {"D": per_rate(came.delta, came.lr)}, came.delta


@dataclass(frozen=True)
class FedAvgM(Mixed):
    """g_i <- beta grad f_i + (1-beta) g;  g = D/(eta_l K);  x -= gamma g (Cheng et al. 2024, Algorithm 1).

    g is 0 in round 1. ``gamma`` None is eta_l K, so that x -= D. K is the mean over the cohort.
    """

    beta: float = 0.1
    gamma: float | None = None
    reads_delta = True
    needs_plain_server = True

    def __post_init__(self) -> None:
        require_share("client.beta", self.beta, 0.1)
        require_step(self.gamma)

    def begin(self, local: Local) -> Adjust | None:
        """The server's g beside the gradient."""
        g = local.shared.get("g")
        return mix(local, self.beta, None if g is None else (1 - self.beta) * g)

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """g, and gamma g in the place of D."""
        g = per_rate(came.delta, came.lr) / came.steps
        return {"g": g}, came.delta if self.gamma is None else self.gamma * g


def require_step(gamma: float | None) -> None:
    """gamma of FedAvg-M and SCAFFOLD-M."""
    allowed = f"above 0, at most {LARGEST:g}, or null for local.lr times the local steps"
    require(gamma is None or 0 < gamma <= LARGEST, "client.gamma", gamma, allowed, "client.gamma=null")


@dataclass(frozen=True)
class MimeLite(Mixed):
    """y -= eta_l ((1-beta) g + beta m), m as it was sent;  server: m = (1-beta) mean_S grad f_i(x) + beta m.

    grad f_i(x) is over all of a client's samples, at the model that it was sent: one more pass over its data,
    and a second vector sent (Karimireddy et al. 2021). beta = 0 is LocalOPT.
    """

    beta: float = 0.9
    sends = True
    needs_uniform_mean = True

    def __post_init__(self) -> None:
        require(0 <= self.beta < 1, "client.beta", self.beta, "at least 0, below 1", "client.beta=0.9")

    def begin(self, local: Local) -> Adjust | None:
        """Measure grad f_i(x) first, then train with m as it was sent."""
        local.work.notes["gradient"] = local.work.full_gradient()
        m = local.shared.get("m")
        return mix(local, 1 - self.beta, None if m is None else self.beta * m)

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """grad f_i(x) is the message."""
        return Returned({}, local.work.notes["gradient"])

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """Momentum of gradients at x, not of updates."""
        m = (1 - self.beta) * came.message
        return {"m": m + self.beta * shared["m"] if shared else m}, came.delta


@dataclass(frozen=True)
class GHBM(Mixed):
    """g <- g + beta/(eta_l K) (x_{t-tau} - x_t)/tau, nothing in the first tau rounds (Zaccone et al. 2025).

    The K steps of a client add -beta (x_{t-tau} - x_t)/tau in all, whatever eta_l is. The models are those
    that the server rule made, with its momentum in them. With tau = 1, K = 1 and x -= D it is heavy ball,
    Eq. 2 with (1/(1-beta), beta, 1).
    """

    beta: float = 0.9
    tau: int = 20

    def __post_init__(self) -> None:
        require(0 <= self.beta < 1, "client.beta", self.beta, "at least 0, below 1", "client.beta=0.9")
        require(self.tau >= 1, "client.tau", self.tau, "at least 1 round", "client.tau=20")

    @property
    def lookback(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """x_{t-tau}."""
        return self.tau

    def begin(self, local: Local) -> Adjust | None:
        """What the model has moved in tau rounds, one K-th of it at every step."""
        past = local.work.model(local.age + self.tau)
        if past is None:
            return None
        drift = (past - local.x) / self.tau
        return mix(local, 1.0, self.beta / local.steps * per_rate(drift, local.lr))


@dataclass(frozen=True)
class Stem(Mixed):
    """y' = y - eta_s d;  d = grad f_i(y'; b) + (1 - a_{s+1}) (d - grad f_i(y; b)), on the same batch b.

    The server averages y and d. eta_s = eta_l/(w + sigma^2 s)^(1/3), a_{s+1} = min(1, c/(w + sigma^2
    s)^(2/3)), s the count of local steps over all rounds (Khanduri et al. 2021, with c eta_l^2 called c).
    Round 1 only measures: nobody moves, and the first d is the mean of the cohort's gradients over K batches.
    The last d of a round is not stepped along but sent. a = 1 is FedAvg at the points x - eta_s d.
    """

    c: float = 1.0
    w: float = 1.0
    sigma: float = 1.0
    sends = True
    needs_second_gradient = True
    needs_plain_server = True
    needs_uniform_mean = True
    needs_plain_upload = True
    reads_delta = True

    def __post_init__(self) -> None:
        require(0 <= self.c <= LARGEST, "client.c", self.c, f"0 to {LARGEST:g}", "client.c=1")
        require(0 < self.w <= LARGEST, "client.w", self.w, f"above 0, at most {LARGEST:g}", "client.w=1")
        require(0 <= self.sigma <= LARGEST, "client.sigma", self.sigma, f"0 to {LARGEST:g}", "client.sigma=1")

    def begin(self, local: Local) -> Adjust | None:
        """Measure where there is no direction yet, else step along it and refresh it on the same batch."""
        if "d" not in local.shared:
            return self._measure(local)
        return self._refresh(local)

    def _measure(self, local: Local) -> Adjust:
        """The mean gradient at x over K batches, without a step."""
        notes = local.work.notes
        notes["d"] = zeros_like(local.x)
        total = local.split(notes["d"])

        def adjust(parameters: list[Tensor]) -> None:
            for w, part in zip(parameters, total, strict=True):
                if w.grad is not None:
                    part.add_(w.grad / local.steps)
                    w.grad.zero_()

        return adjust

    def _refresh(self, local: Local) -> Adjust:
        """STORM's estimate; the optimiser takes the step to y' itself."""
        notes, s = local.work.notes, (local.round - 2) * local.steps
        notes["d"] = local.shared["d"]

        def adjust(parameters: list[Tensor]) -> None:
            nonlocal s
            s += 1
            shrink = (self.w + self.sigma**2 * s) ** (-1 / 3)
            a = min(1.0, self.c * shrink**2)
            d, y, g = notes["d"].clone(), zeros_like(local.x), zeros_like(local.x)
            for w, at, own, along in zip(parameters, *map(local.split, (y, g, d)), strict=True):
                at.copy_(w.detach())
                if w.grad is not None:
                    own.copy_(w.grad)
                    w.grad.copy_(shrink * along)
                else:  # it does not move
                    along.zero_()
            notes["d"] = local.work.gradient_at(y - local.lr * shrink * d) + (1 - a) * (d - g)

        return adjust

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """The refreshed direction is the message."""
        return Returned({}, local.work.notes["d"])

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """The mean direction, beside the mean of the models."""
        return {"d": came.message}, came.delta
