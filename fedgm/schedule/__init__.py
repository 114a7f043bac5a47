"""Schedules: how eta, beta and nu change over the rounds of a run; pure, as the server rules are."""

from fedgm.schedule.plan import Constant, Multistage, Plan, Schedule, Stage, stage_ends

__all__ = ["Constant", "Multistage", "Plan", "Schedule", "Stage", "stage_ends"]
