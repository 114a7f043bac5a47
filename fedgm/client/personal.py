"""Per-FedAvg: a global model from which one step leads to each client's own."""

from dataclasses import dataclass

from torch import Tensor, no_grad, zeros_like

from fedgm.client.rules import LARGEST, Adjust, Local, Plain
from fedgm.errors import require


@dataclass(frozen=True)
class PerFedAvg(Plain):
    """w -= eta_l v, v = grad f_i(w - alpha grad f_i(w; B1); B2): x is to be good after a step of each client.

    ``hessian`` None drops the Hessian (FO); a number h is the width of its difference (HF): eta_l (v - alpha
    (grad f_i(w + h v; B3) - grad f_i(w - h v; B3))/(2 h)) (Fallah et al. 2020). A step takes two (FO) or
    three (HF) of the client's batches; those that are left over at the end are not used. The loss in the
    rows is the one before and after the inner step, in turns.
    """

    alpha: float = 0.01
    hessian: float | None = None
    needs_plain_sgd = True
    changes_gradients = True

    def __post_init__(self) -> None:
        key, allowed = "client.alpha", f"0 to {LARGEST:g}"
        require(0 <= self.alpha <= LARGEST, key, self.alpha, allowed, "client.alpha=0.01")
        ok, allowed = self.hessian is None or 0 < self.hessian <= 1, "above 0, at most 1, or null"
        require(ok, "client.hessian", self.hessian, allowed, "client.hessian=0.001")

    @property
    def needs_second_gradient(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The other end of the difference."""
        return self.hessian is not None

    def begin(self, local: Local) -> Adjust | None:
        """Every batch is a step of the loop; only the last of two or three moves w."""
        parts, count = (2 if self.hessian is None else 3), 0
        w, v = zeros_like(local.x), zeros_like(local.x)

        def adjust(parameters: list[Tensor]) -> None:
            nonlocal count
            place, whole = count % parts, count - count % parts + parts <= local.steps
            count += 1
            if not whole:
                return self._stay(parameters)
            if place == 0:
                _read(parameters, local.split(w))
                _move(parameters, local.split(w - self.alpha * _gradient(parameters, local)))
            elif place == 1:
                v.copy_(_gradient(parameters, local))
                _move(parameters, local.split(w if self.hessian is None else w + self.hessian * v))
            if place < parts - 1:
                return self._stay(parameters)
            return _direct(parameters, local.split(self._direction(parameters, local, w, v)), local.split(w))

        return adjust

    def _direction(self, parameters: list[Tensor], local: Local, w: Tensor, v: Tensor) -> Tensor:
        """What the last batch steps along."""
        if self.hessian is None:
            return v
        below = local.work.gradient_at(w - self.hessian * v)
        return v - self.alpha * (_gradient(parameters, local) - below) / (2 * self.hessian)

    @staticmethod
    def _stay(parameters: list[Tensor]) -> None:
        """No step of the optimiser."""
        for w in parameters:
            if w.grad is not None:
                w.grad.zero_()


def _gradient(parameters: list[Tensor], local: Local) -> Tensor:
    """As one flat vector, 0 where there is none."""
    flat = zeros_like(local.x)
    for w, part in zip(parameters, local.split(flat), strict=True):
        if w.grad is not None:
            part.copy_(w.grad)
    return flat


def _read(parameters: list[Tensor], into: list[Tensor]) -> None:
    for w, part in zip(parameters, into, strict=True):
        part.copy_(w.detach())


@no_grad()
def _move(parameters: list[Tensor], there: list[Tensor]) -> None:
    for w, part in zip(parameters, there, strict=True):
        w.copy_(part)


def _direct(parameters: list[Tensor], along: list[Tensor], origin: list[Tensor]) -> None:
    """Back at ``origin``, with ``along`` as the gradient."""
    _move(parameters, origin)
    for w, part in zip(parameters, along, strict=True):
        if w.grad is not None:
            w.grad.copy_(part)
