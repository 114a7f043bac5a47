"""MIFA and AFA-CS (Anarchic FL): the server steps with the last known update of every client."""

from dataclasses import dataclass

from torch import Tensor, zeros_like

from fedgm.client.rule import Adjust, Local, Plain, Returned, State


@dataclass(frozen=True)
class LastUpdates(Plain):
    """D = 1/n sum_i G_i over *all* n clients, where G_i is client i's last (weighted) delta, 0 until it came.

    A client keeps G_i and sends the change of it; the server keeps the mean. So the server never holds
    more than one vector, and every client that has taken part costs a model's size on disk.
    """

    sends = True
    needs_uniform_mean = True
    needs_plain_upload = True

    def begin(self, local: Local) -> Adjust | None:
        """Local training is plain."""
        return None

    def end(self, local: Local, delta: Tensor, steps: int, weight: float) -> Returned:
        """The new G_i and what changed."""
        now = delta if weight == 1 else weight * delta
        return Returned({"g": now}, now - local.own.get("g", zeros_like(now)))

    def server(self, shared: State, message: Tensor, delta: Tensor, m: int, n: int) -> tuple[State, Tensor]:
        """The mean of all last updates takes the place of the cohort's."""
        g = shared.get("g", zeros_like(delta)) + (m / n) * message
        return {"g": g}, g
