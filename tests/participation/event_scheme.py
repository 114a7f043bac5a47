"""Event schemes as the tests of the virtual clock make them."""

from fedgm.participation import ClientFacts, Event, under_clock
from fedgm.participation.task import step_per_epoch

ROUNDS = range(1, 31)


# Equal devices, no network, nobody away.
NEUTRAL = {
    "normalize": "reference", "concurrency": None, "wait": False, "step_time": 1.0, "timed": "steps",
    "speed_sigma": 0.0, "speeds": None, "network": 0.0, "available": 1.0, "period": 3600.0, "dropout": 0.0,
    "timeout": 60.0, "staleness": "none", "exponent": 0.5, "hinge_a": 10.0, "hinge_b": 4.0,
    "max_staleness": 10,
}  # fmt: skip


def event(count=100, per_round=5, epochs=(3, 3), seed=0, steps=step_per_epoch, **more) -> Event:
    facts = ClientFacts(steps)
    fixed = {"count": count, "per_round": per_round, "epochs": epochs, "reference": 3, "seed": seed}
    return under_clock(**NEUTRAL | fixed | more, facts=facts)


def three(per_round, **more):
    """Clients 0, 1, 2 that take 2, 3, 7 seconds, all at work at once."""
    seconds = (2, 3, 7)
    more = {"steps": lambda client, epochs: seconds[client], "concurrency": 3} | more
    return event(3, per_round, epochs=(1, 1), normalize="none", **more)


def arrivals(scheme, rounds):
    """The time of each server step, and which clients with which staleness it averages."""
    return [
        (scheme.log(t)["clock/time"], {task.client: task.staleness for task in scheme.tasks(t)})
        for t in range(1, rounds + 1)
    ]
