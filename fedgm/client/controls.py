"""Client rules that keep something for each client: SCAFFOLD-M, FedDyn, EASGD, DC-ASGD.

What a client keeps costs a model's size on disk for every client that has taken part.
"""

from dataclasses import dataclass

from torch import Tensor, no_grad, where, zeros_like

from fedgm.client.momenta import mix, per_rate, require_share, require_step
from fedgm.client.rules import LARGEST, Adjust, Came, Local, Plain, Returned, State
from fedgm.errors import require


@dataclass(frozen=True)
class ScaffoldM(Plain):
    """g <- beta (grad - c_i + c) + (1-beta) g;  c_i' = mean of K gradients;  g = D/(eta_l K);  x -= gamma g.

    c += m/n mean(c_i' - c_i) as in SCAFFOLD (Cheng et al. 2024, Algorithm 2). c_i, c and g are 0 at first.
    ``gamma`` None is eta_l K, so that x -= D; with beta = 1 it is then SCAFFOLD.
    """

    beta: float = 0.1
    gamma: float | None = None
    keeps = 1
    sends = True
    fetches = 2
    needs_plain_sgd = True
    needs_plain_server = True
    reads_delta = True
    changes_gradients = True

    def __post_init__(self) -> None:
        require_share("client.beta", self.beta, 0.1)
        require_step(self.gamma)

    def begin(self, local: Local) -> Adjust | None:
        """What every gradient gets besides."""
        return mix(local, self.beta, self._added(local)[0])

    def _added(self, local: Local) -> tuple[Tensor, Tensor]:
        """beta (c - c_i) + (1-beta) g, and c_i."""
        zero = zeros_like(local.x)
        c, g, c_i = local.shared.get("c", zero), local.shared.get("g", zero), local.kept.get("c", zero)
        return self.beta * (c - c_i) + (1 - self.beta) * g, c_i

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """delta/(K eta_l) is beta times the mean gradient, and what was added to it."""
        added, before = self._added(local)
        after = (per_rate(delta, local.lr) / steps - added) / self.beta
        if isinstance(local.lr, Tensor):  # what has the rate 0 does not move, and its gradient is not known
            after = where(local.lr > 0, after, before)
        return Returned({"c": after}, after - before)

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """Both vectors that clients are sent, and gamma g in the place of D."""
        c = shared.get("c", zeros_like(came.delta)) + (came.m / came.n) * came.message
        g = per_rate(came.delta, came.lr) / came.steps
        return {"c": c, "g": g}, came.delta if self.gamma is None else self.gamma * g


@dataclass(frozen=True)
class FedDyn(Plain):
    """Local steps on f_i(w) - <h_i, w> + alpha/2 |w - x|^2;  h_i -= alpha (w - x);  x = mean_S w - h/alpha.

    h -= alpha/n sum_S (w_i - x) (Acar et al. 2021). The server keeps h/alpha, which does not depend on alpha:
    the sum of m/n D over all rounds. So a small alpha is not FedAvg. The optimiser is any.
    """

    alpha: float = 0.01
    keeps = 1
    changes_gradients = True
    needs_plain_server = True
    needs_uniform_mean = True
    needs_plain_upload = True
    reads_delta = True

    def __post_init__(self) -> None:
        allowed = f"above 0, at most {LARGEST:g}"
        require(0 < self.alpha <= LARGEST, "client.alpha", self.alpha, allowed, "client.alpha=0.01")

    def begin(self, local: Local) -> Adjust | None:
        """g - h_i + alpha (w - x)."""
        start = local.split(local.x)
        h = local.split(local.kept["h"]) if local.kept else None

        def adjust(parameters: list[Tensor]) -> None:
            for place, w in enumerate(parameters):
                if w.grad is not None:
                    w.grad.add_(w.detach() - start[place], alpha=self.alpha)
                    if h is not None:
                        w.grad.sub_(h[place])

        return adjust

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """h_i + alpha delta; nothing is sent besides the delta."""
        h = self.alpha * delta
        return Returned({"h": h + local.kept["h"] if local.kept else h}, delta[:0])

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """D + h/alpha, with this round's D in h."""
        h = shared.get("h", zeros_like(came.delta)) + (came.m / came.n) * came.delta
        return {"h": h}, came.delta + h


@dataclass(frozen=True)
class EASGD(Plain):
    """x_i <- x_i - eta_l g(x_i) - e_i, then K - 1 plain steps;  x += sum_S e_i;  e_i = a (x_i - x).

    A client keeps its own x_i and trains from it; both pulls are from values before the exchange (Zhang et
    al. 2015). D is m a times the mean of x - x_i, so x -= D is EASGD and another server rule is a combination
    of ours. A client that comes for the first time starts from x. Buffers are those of the global model.
    """

    a: float = 0.18
    keeps = 1
    needs_uniform_mean = True
    needs_plain_upload = True
    reads_delta = True

    def __post_init__(self) -> None:
        require_share("client.a", self.a, 0.18)

    def begin(self, local: Local) -> Adjust | None:
        """Train from x_i; the pull of the centre goes with the first step, whose gradient is at x_i."""
        if not local.kept:
            return None
        local.work.start_from(local.kept["x"])
        pulls = [local.split(self.a * (local.kept["x"] - local.x))]

        def adjust(parameters: list[Tensor]) -> None:
            if pulls:
                with no_grad():
                    for w, pull in zip(parameters, pulls.pop(), strict=True):
                        w.sub_(pull)

        return adjust

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """x_i after training is kept; x - x_i from before it is what the centre gets."""
        before = local.kept.get("x", local.x)
        return Returned({"x": local.x - delta}, delta[:0], local.x - before)

    def server(self, shared: State, came: Came) -> tuple[State, Tensor]:
        """The sum over the cohort."""
        return shared, came.m * self.a * came.delta


@dataclass(frozen=True)
class DCASGD(Plain):
    """D_i <- K eta_l (g + lam g*g*(x_t - x_start)), g = D_i/(K eta_l): a late update, corrected on arrival.

    lam = lam_0, or (adaptive) lam_0/sqrt(MS + 1e-7) with MS = decay MS + (1-decay) g*g, kept for each client
    (Zheng et al. 2017, Eq. 10). K = 1 is the paper's; with more the mean gradient is corrected. An update
    that is not late stays as it is.
    """

    lam: float = 2.0
    adaptive: bool = True
    decay: float = 0.95
    needs_plain_sgd = True
    needs_plain_upload = True
    reads_delta = True

    def __post_init__(self) -> None:
        require(0 <= self.lam <= LARGEST, "client.lam", self.lam, f"0 to {LARGEST:g}", "client.lam=2")
        require(0 <= self.decay < 1, "client.decay", self.decay, "at least 0, below 1", "client.decay=0.95")

    @property
    def keeps(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """MS, where there is one."""
        return int(self.adaptive)

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """With lam g*g as a stand-in for the Hessian, g at x_start becomes one at x_t."""
        g, kept = per_rate(delta, local.lr) / steps, dict[str, Tensor]()
        bend = self.lam * g * g
        if self.adaptive:
            kept["squares"] = (1 - self.decay) * g * g + self.decay * local.kept.get("squares", zeros_like(g))
            bend = bend / (kept["squares"] + 1e-7).sqrt()
        now = local.work.model(0)
        assert now is not None
        return Returned(kept, delta[:0], delta + steps * local.lr * bend * (now - local.x))
