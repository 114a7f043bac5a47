"""Server rules and schedules as pure functions; neither Lightning nor Hydra is imported here."""

from fedgm.server.momentum import GeneralMomentum, Momentum, gain, momentum_constant, server_step
from fedgm.server.rule import Hyper, ServerRule, State
from fedgm.server.schedule import Constant, Multistage, Plan, Schedule, Stage, multistage, stage_ends

__all__ = [
    "Constant",
    "GeneralMomentum",
    "Hyper",
    "Momentum",
    "Multistage",
    "Plan",
    "Schedule",
    "ServerRule",
    "Stage",
    "State",
    "gain",
    "momentum_constant",
    "multistage",
    "server_step",
    "stage_ends",
]
