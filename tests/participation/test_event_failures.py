"""What can go wrong under the virtual clock has a defined end: lost clients, shut windows, old updates."""

import pytest

from fedgm.errors import ConfigError
from fedgm.participation import Uniform, virtual_clock
from fedgm.participation.devices import Devices
from fedgm.participation.virtual_clock import WorkSpan
from tests.participation.event_scheme import ROUNDS, arrivals, event, three


def test_a_client_that_never_returns_is_given_up_and_its_slot_filled(monkeypatch):
    # Client 1 never returns; 0 takes 2 seconds, 2 takes 7.
    monkeypatch.setattr(Devices, "drops", lambda self, client, work: client == 1)
    scheme = three(per_round=1, dropout=0.5, timeout=5.0, max_staleness=10)
    assert arrivals(scheme, 4) == [(2.0, {0: 0}), (4.0, {0: 0}), (6.0, {0: 0}), (7.0, {2: 3})]
    assert scheme.trace(3) == [WorkSpan(1, 0.0, 5.0, 1, "dropped"), WorkSpan(0, 4.0, 6.0, 3, "used")]
    assert [scheme.log(t)["cohort/dropped"] for t in (1, 2, 3, 4)] == [0, 0, 1, 0]


def test_drop_outs_happen_as_often_as_asked_for_and_a_synchronous_server_replaces_them():
    scheme = event(dropout=0.3, wait=True, timeout=4.0)
    dropped = sum(scheme.log(t)["cohort/dropped"] for t in range(1, 401))
    assert dropped / (dropped + 2000) == pytest.approx(0.3, abs=0.03)
    assert {len(scheme.tasks(t)) for t in ROUNDS} == {5}


def test_a_single_client_that_often_drops_out_does_come_back():
    scheme = event(1, 1, dropout=0.9, timeout=1.0)
    assert [task.client for t in ROUNDS for task in scheme.tasks(t)] == [0] * 30


def test_when_all_are_unavailable_the_clock_jumps_to_the_next_window():
    # Two clients, each available for a hundredth of its period: 1 second in 100.
    scheme = event(2, 1, available=0.01, period=100.0, step_time=0.1)
    first = min(Devices(seed=0, available=0.01, period=100.0).opening(client, 0.0) for client in (0, 1))
    assert first > 0
    assert scheme.log(1)["clock/wait"] == first
    assert scheme.log(1)["clock/time"] == pytest.approx(first + 0.3)
    works = [work for t in range(1, 41) for work in scheme.trace(t)]
    rule = Devices(seed=0, available=0.01, period=100.0)
    moments = [(work.client, work.start + 1e-9) for work in works]  # past rounding at the opening itself
    assert all(rule.opening(client, moment) == moment for client, moment in moments)


def test_a_slot_does_not_wait_for_a_window_when_another_client_comes_free():
    # Client 0 is always available, client 1 opens after 1000 seconds: the slots do not stand empty so long.
    rules = virtual_clock.Rules(2, 1, 2, False, (1, 1), 60.0, 10, 0)

    class Half(Devices):
        def opening(self, client, now):
            return now if client == 0 else max(now, 1000.0)

    simulation = virtual_clock.Clock(rules, Half(seed=0), Uniform(2, 1, 0), lambda client, epochs: 1)
    rounds = [simulation.step() for _ in range(1002)]
    assert [r.time for r in rounds[:1000]] == [float(t) for t in range(1, 1001)]
    assert {work.client for r in rounds[1000:] for work in r.arrived} == {0, 1}


def test_old_updates_are_discarded_and_the_server_goes_on():
    free, strict = three(1), three(1, max_staleness=2)
    assert max(age for _, ages in arrivals(free, 40) for age in ages.values()) == 5
    assert max(age for _, ages in arrivals(strict, 40) for age in ages.values()) <= 2
    assert sum(strict.log(t)["cohort/stale"] for t in range(1, 41)) > 3
    assert (free.history, strict.history) == (11, 3)


def test_a_client_without_epochs_leaves_its_slot_to_another():
    scheme = event(epochs=(0, 3))
    idle = sum(scheme.log(t)["cohort/idle"] for t in range(1, 401))
    assert {len(scheme.tasks(t)) for t in ROUNDS} == {5}
    assert idle / (idle + 2000) == pytest.approx(0.25, abs=0.03)


def test_a_population_that_is_often_idle_still_makes_progress():
    scheme = event(1, 1, epochs=(0, 1))
    assert [task.epochs for t in ROUNDS for task in scheme.tasks(t)] == [1] * 30


def test_every_client_of_a_small_population_is_found():
    scheme = event(40, 40, speed_sigma=1.0, wait=True)
    assert sorted(task.client for task in scheme.tasks(3)) == list(range(40))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"concurrency": 3},
            r"participation\.concurrency=3.*Try participation\.concurrency=5, or clients\.per_",
        ),
        ({"concurrency": 101}, r"participation\.concurrency=101.*Try participation\.concurrency=100"),
        ({"concurrency": 0}, r"participation\.concurrency=0.*Try participation\.concurrency=5"),
        ({"max_staleness": -1}, r"participation\.max_staleness=-1"),
        ({"timeout": -1.0}, r"participation\.timeout=-1"),
        ({"dropout": 1.0}, r"participation\.dropout=1\.0"),
        ({"available": 0.0}, r"participation\.available=0\.0"),
        ({"period": 0.0}, r"participation\.period=0\.0"),
        ({"step_time": -1.0}, r"participation\.step_time=-1\.0"),
        ({"network": float("nan")}, r"participation\.network=nan"),
        ({"exponent": -1.0}, r"participation\.exponent=-1\.0.*participation\.exponent=0\.5"),
        ({"epochs": (0, 0)}, r"participation\.epochs=\[0, 0\]"),
        ({"speeds": "nowhere.txt"}, r"participation\.speeds=nowhere\.txt.*participation\.speeds=null"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_type(change, message):
    with pytest.raises(ConfigError, match=message):
        event(**change)
