"""Which way is better."""

from fedgm.errors import require

GOALS = {"maximize": 1.0, "maximise": 1.0, "minimize": -1.0, "minimise": -1.0}


def sign(goal: str) -> float:
    """+1 where more is better, -1 where less is."""
    require(goal in GOALS, "metric.goal", goal, "maximize or minimize", "metric.goal=maximize")
    return GOALS[goal]
