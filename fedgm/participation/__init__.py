"""Who takes part in a round, how stale, with how much local work."""

from fedgm.participation.autonomous import Autonomous
from fedgm.participation.event import Event
from fedgm.participation.ideal import Ideal
from fedgm.participation.samplers import Bernoulli, Biased, Sampler, Uniform
from fedgm.participation.task import ClientTask, Participation

__all__ = [
    "Autonomous",
    "Bernoulli",
    "Biased",
    "ClientTask",
    "Event",
    "Ideal",
    "Participation",
    "Sampler",
    "Uniform",
]
