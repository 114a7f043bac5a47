"""Event schemes as the tests of the virtual clock make them."""

from fedgm.participation import Event

ROUNDS = range(1, 31)


def event(count=100, per_round=5, epochs=(3, 3), seed=0, **more):
    return Event(count, per_round, epochs, reference=3, seed=seed, **more)


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
