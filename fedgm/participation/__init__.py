"""Who takes part in a round, how stale, with how much local work."""

from fedgm.participation.autonomous import Autonomous, ideal
from fedgm.participation.event import Event, under_clock
from fedgm.participation.samplers import Bernoulli, Biased, Cyclic, LongestAbsent, Sampler, Uniform
from fedgm.participation.task import ClientFacts, ClientTask, Participation

__all__ = [
    "Autonomous",
    "Bernoulli",
    "Biased",
    "ClientFacts",
    "ClientTask",
    "Cyclic",
    "Event",
    "LongestAbsent",
    "Participation",
    "Sampler",
    "Uniform",
    "ideal",
    "under_clock",
]
