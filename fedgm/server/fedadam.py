"""FedAdam (Reddi 2021)."""

from dataclasses import dataclass

from fedgm.server.adaptive import Forgetting


@dataclass(frozen=True)
class FedAdam(Forgetting):
    """``v = beta2 v + (1-beta2) D^2``; unlike Adam without bias correction, v_0 = tau^2 stands in for it."""
