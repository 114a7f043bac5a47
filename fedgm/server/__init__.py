"""Server rules as pure functions; neither Lightning nor Hydra is imported here."""

from fedgm.server.momentum import GeneralMomentum, Momentum, gain, momentum_constant, server_step
from fedgm.server.rule import Hyper, ServerRule, State

__all__ = [
    "GeneralMomentum",
    "Hyper",
    "Momentum",
    "ServerRule",
    "State",
    "gain",
    "momentum_constant",
    "server_step",
]
