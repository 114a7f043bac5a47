"""What a run trains: a loss, and metrics by the names that the task gives them."""

from fedgm.tasks.metric import LOSS, Metric, Scoreboard
from fedgm.tasks.module import TaskModule

__all__ = ["LOSS", "Metric", "Scoreboard", "TaskModule"]
