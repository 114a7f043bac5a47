"""FedGM as an ordinary torch optimiser: for every engine that takes one for its server.

The step on ``p.grad = D`` is Eq. 2. On gradients of a loss it is QHM, an inner optimiser. Only torch is
imported here, neither Lightning nor Hydra.

>>> import torch
>>> from torch.nn import Parameter
>>> x = Parameter(torch.tensor([1.0]))
>>> server = GeneralMomentum([x], lr=2.0, beta=0.5, nu=0.5)
>>> x.grad = torch.tensor([0.5])  # D: old minus new weights, the mean over the clients
>>> server.step()
>>> x
Parameter containing:
tensor([0.2500], requires_grad=True)
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import Optimizer, ParamsT

from fedgm.errors import require
from fedgm.schedule.plan import Multistage as StagesOfEq3
from fedgm.server.momentum import GeneralMomentum as ServerMomentum
from fedgm.server.momentum import Momentum, server_step
from fedgm.server.plan import Plan

OF_SGD = ("weight_decay", "momentum", "dampening", "nesterov")


class GeneralMomentum(Optimizer):
    """Eq. 2: ``d = (1 - beta) g + beta d;  h = (1 - nu) g + nu d;  x -= lr h``, with d_0 = 0.

    d averages, so ``torch.optim.SGD(lr, momentum=b)`` is ``GeneralMomentum(lr / (1 - b), b, nu=1)``, and with
    ``nesterov=True`` it is ``nu=b``. Sparse gradients are allowed; the momentum moves every entry anyway, so
    they are as dense ones. Weight decay is not part of Eq. 2, and refused.
    """

    def __init__(
        self, params: ParamsT, lr: float, beta: float, nu: float, *, weight_decay: float = 0.0,
        foreach: bool | None = None,
    ) -> None:  # fmt: skip
        _require_plain({"weight_decay": weight_decay})
        super().__init__(params, {"lr": lr, "beta": beta, "nu": nu, "foreach": foreach})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Torch's own, and every group has values in range."""
        _require_plain(param_group)
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        lr, beta, nu = (group[name] for name in ("lr", "beta", "nu"))
        require(0 <= lr < inf, "lr", lr, "a number of at least 0", "lr=1.0")
        require(0 <= beta < 1, "beta", beta, "0 <= beta < 1", "beta=0.9")
        require(isfinite(nu), "nu", nu, "a finite number, usually in [0, 1]", "nu=0.9")

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore
        """One server step; parameters without a gradient stay as they are, and so does their momentum."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        moved = [p for p in group["params"] if p.grad is not None]
        grads = [p.grad.to_dense() if p.grad.is_sparse else p.grad for p in moved]
        for p in moved:
            if "d" not in self.state[p]:
                self.state[p]["d"] = torch.zeros_like(p)
        d = [self.state[p]["d"] for p in moved]
        m = Momentum(float(group["lr"]), group["beta"], group["nu"])
        foreach = group["foreach"]
        if foreach is None:  # as torch chooses: where one launch for all tensors saves time
            foreach = bool(moved) and all(p.device.type == "cuda" for p in moved)
        (_step_together if foreach else _step_each)(moved, d, grads, m)


def _step_each(x: list[Tensor], d: list[Tensor], grads: list[Tensor], m: Momentum) -> None:
    for place, before, grad in zip(x, d, grads, strict=True):
        x_next, d_next = server_step(place, before, grad, m)
        place.copy_(x_next)
        before.copy_(d_next)


def _step_together(x: list[Tensor], d: list[Tensor], grads: list[Tensor], m: Momentum) -> None:
    """The same sums in the same order, so the same bits, with one call for all tensors of a group."""
    if not x:
        return
    torch._foreach_mul_(d, m.beta)
    torch._foreach_add_(d, torch._foreach_mul(grads, 1 - m.beta))
    h = torch._foreach_mul(grads, 1 - m.nu)
    torch._foreach_add_(h, torch._foreach_mul(d, m.nu))
    torch._foreach_mul_(h, m.eta)
    torch._foreach_sub_(x, h)


def _require_plain(group: dict[str, Any]) -> None:
    """Torch keeps unknown keys of a group and nobody reads them: those that would be missed are refused."""
    for name in OF_SGD:
        value = group.get(name)
        allowed = f"no {name}: Eq. 2 has lr, beta and nu"
        require(not value, name, value, allowed, f"{name}=0, or torch.optim.SGD")


class Multistage(LRScheduler):
    """Sets lr, beta and nu of every group in each round from a plan; step it once a round.

    ``etas`` with ``rounds`` is Eq. 3: lengths of stages and betas follow from each group's own beta and nu.
    A :class:`Plan` (of any schedule) is taken as it is. After the last round the last values stay.

    >>> from torch.nn import Parameter
    >>> server = GeneralMomentum([Parameter(torch.zeros(1))], lr=2.0, beta=0.9, nu=0.9)
    >>> schedule = Multistage(server, etas=[2.0, 1.0, 0.5], rounds=1000)
    >>> for _ in range(143):
    ...     server.step()
    ...     schedule.step()
    >>> server.param_groups[0]["lr"], round(server.param_groups[0]["beta"], 6)
    (1.0, 0.947368)
    """

    def __init__(
        self, optimizer: Optimizer, etas: Sequence[float] | Plan, rounds: int | None = None,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self._plans = [_plan(group, etas, rounds) for group in optimizer.param_groups]
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        """The rate of the round that comes; beta and nu are set beside it."""
        rates: list[float | Tensor] = []
        for group, plan in zip(self.optimizer.param_groups, self._plans, strict=True):
            hyper = plan.at(min(self.last_epoch + 1, plan.ends[-1]))[1]
            group["beta"], group["nu"] = hyper["beta"], hyper["nu"]
            rates.append(hyper["eta"])
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Plain values: plans are given again when the scheduler is made again."""
        return {name: value for name, value in super().state_dict().items() if name != "_plans"}


def _plan(group: dict[str, Any], etas: Sequence[float] | Plan, rounds: int | None) -> Plan:
    """Of one group, from its own beta and nu."""
    if isinstance(etas, Plan):
        known = all({"eta", "beta", "nu"} <= stage.hyper.keys() for stage in etas.stages)
        require(
            known, "etas", etas, "a plan of eta, beta and nu: one of FedGM's family", "etas=[2.0,1.0,0.5]"
        )
        return etas
    allowed = "the number of server rounds, which Eq. 3 divides into stages"
    require(rounds is not None and rounds > 0, "rounds", rounds, allowed, "rounds=1000")
    for name in ("beta", "nu"):
        group.setdefault(f"initial_{name}", group[name])  # a scheduler that is made again begins with them
    rule = ServerMomentum(float(etas[0]), group["initial_beta"], group["initial_nu"])
    return StagesOfEq3(etas).plan(cast(int, rounds), rule)
