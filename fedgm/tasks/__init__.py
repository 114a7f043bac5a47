"""What a run trains: a loss, and metrics by the names that the task gives them."""

from typing import TYPE_CHECKING, Any

from fedgm.tasks.metric import LOSS, Metric, Scoreboard

if TYPE_CHECKING:
    from fedgm.tasks.module import TaskModule

__all__ = ["LOSS", "Metric", "Scoreboard", "TaskModule"]


def __getattr__(name: str) -> Any:
    """Import late: readers of stored runs need metrics, and not Lightning."""
    if name == "TaskModule":
        from fedgm.tasks.module import TaskModule

        return TaskModule
    raise AttributeError(f"module 'fedgm.tasks' has no attribute '{name}'")
