"""Who takes part in a round, how stale, with how much local work."""

from fedgm.participation.ideal import Ideal
from fedgm.participation.task import ClientTask, Participation

__all__ = ["ClientTask", "Ideal", "Participation"]
