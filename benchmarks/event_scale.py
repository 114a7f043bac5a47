"""Time and memory of a server step under the virtual clock: neither grows with the number of clients.

    python -m benchmarks.event_scale

Every feature of the clock is on: uneven speeds, network, windows, drop-outs. Seconds are medians of
interleaved repeats; memory is what Python and numpy allocated for the scheme, at its peak.
"""

import statistics
import time
import tracemalloc

from rich.console import Console
from rich.table import Table

from fedgm.config import compose, validate
from fedgm.config.parts import build
from fedgm.participation import ClientFacts, Event, ideal

POPULATIONS = (1_000, 100_000, 1_000_000)
COHORT, SLOTS = 5, 20
STEPS, REPEATS = 200, 3


def scheme(population: int, available: float) -> Event:
    """Clients of 75 local steps, as in the paper's setting."""
    keys = {
        "count": population, "per_round": COHORT, "epochs": "[1,6]", "reference": 3, "concurrency": SLOTS,
        "step_time": 0.1, "timed": "steps", "available": available, "period": 600.0, "dropout": 0.05,
    }  # fmt: skip
    words = ["participation=event", *(f"participation.{key}={value}" for key, value in keys.items())]
    facts = ClientFacts(steps=lambda client, epochs: 25 * epochs)
    return build(validate(compose(words)).participation, "participation", facts)


def seconds_per_step(population: int, available: float) -> float:
    """Simulation alone: no training."""
    event = scheme(population, available)
    started = time.perf_counter()
    for t in range(1, STEPS + 1):
        event.tasks(t)
    return (time.perf_counter() - started) / STEPS


def kilobytes(population: int) -> float:
    """Peak of what was allocated from before the scheme was made until its last step."""
    tracemalloc.start()
    event = scheme(population, 0.5)
    for t in range(1, STEPS + 1):
        event.tasks(t)
    peak = tracemalloc.get_traced_memory()[1] / 1024
    tracemalloc.stop()
    return peak


def replay_seconds(population: int, rounds: int) -> float:
    """What a resume after ``rounds`` costs: all of it is simulated again."""
    started = time.perf_counter()
    scheme(population, 1.0).tasks(rounds)
    return time.perf_counter() - started


def synchronous(population: int) -> float:
    """The draw of the synchronous cohort, to compare with."""
    plain = ideal(population, COHORT, epochs=3, seed=0)
    started = time.perf_counter()
    for t in range(1, STEPS + 1):
        plain.tasks(t)
    return (time.perf_counter() - started) / STEPS


def main() -> None:
    """Print the table."""
    columns = {
        "synchronous draw": synchronous,
        "step, all available": lambda n: seconds_per_step(n, 1.0),
        "half available": lambda n: seconds_per_step(n, 0.5),
        "1 in 20 available": lambda n: seconds_per_step(n, 0.05),
    }
    table = Table("clients", *columns, "peak memory", "replay of 500 rounds")
    times = {n: {name: list[float]() for name in columns} for n in POPULATIONS}
    for _ in range(REPEATS):
        for population in POPULATIONS:
            for name, measure in columns.items():
                times[population][name].append(measure(population))
    for population in POPULATIONS:
        cells = [f"{1e3 * statistics.median(times[population][name]):.2f} ms" for name in columns]
        memory, replay = kilobytes(population), replay_seconds(population, 500)
        table.add_row(f"{population:,}", *cells, f"{memory:.0f} kB", f"{replay:.2f} s")
    Console().print(table)


if __name__ == "__main__":
    main()
