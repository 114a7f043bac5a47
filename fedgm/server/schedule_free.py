"""Schedule-Free SGD as a server rule; its beta comes from :mod:`fedgm.schedule.schedule_free`."""

from dataclasses import dataclass

from fedgm.server.momentum import GeneralMomentum


@dataclass(frozen=True)
class ScheduleFree(GeneralMomentum):
    """FedGM whose beta is the schedule's; without it beta would stay 0."""
