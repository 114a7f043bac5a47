"""SCAFFOLD: control variates take the drift of unlike clients out of local training."""

from dataclasses import dataclass

from torch import Tensor, zeros_like

from fedgm.client.rule import Adjust, Local, Plain, Returned, State


@dataclass(frozen=True)
class Scaffold(Plain):
    """y -= eta_l (g - c_i + c);  c_i' = c_i - c + (x - y)/(K eta_l);  c += m/n mean(c_i' - c_i).

    c_i is kept for every client that has taken part (it costs a model's size on disk each), c at the
    server. The second option of the paper's two ways to update c_i, the one without extra gradients.
    A stale client has fetched c together with its model, so both are of the same age.
    """

    sends = True
    needs_plain_sgd = True
    changes_gradients = True

    def begin(self, local: Local) -> Adjust | None:
        """g - c_i + c, where both are zero until they are known."""
        if not local.shared and not local.own:
            return None
        correction = local.split(_c(local.shared, local.x) - _c(local.own, local.x))

        def adjust(parameters: list[Tensor]) -> None:
            for w, c in zip(parameters, correction, strict=True):
                if w.grad is not None:
                    w.grad.add_(c)

        return adjust

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """delta is x - y, so the new c_i follows from it."""
        before = _c(local.own, local.x)
        after = before - _c(local.shared, local.x) + delta / (steps * local.lr)
        return Returned({"c": after}, after - before)

    def server(self, shared: State, message: Tensor, delta: Tensor, m: int, n: int) -> tuple[State, Tensor]:
        """c moves by the part of all clients that the cohort is; D is left to the server rule."""
        return {"c": _c(shared, delta) + (m / n) * message}, delta


def _c(state: State, like: Tensor) -> Tensor:
    """A control variate, zero as long as there is none."""
    return state.get("c", zeros_like(like))
