"""The virtual clock: examples worked out by hand, what can go wrong, and that it stays small."""

import numpy as np
import pytest

from fedgm.errors import ConfigError
from fedgm.participation import Event, Ideal, clock, devices
from fedgm.participation.clock import Interval
from fedgm.participation.devices import Devices, read_speeds
from fedgm.participation.staleness import Discount
from fedgm.participation.timeline import draw_timeline

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


# By hand ---------------------------------------------------------------------------------------------


def test_three_clients_by_hand_a_step_at_every_arrival():
    # 0 comes at 2, 4, 6, 8; 1 at 3, 6, 9; 2 at 7. At 6 client 1, which began at 3, goes before client 0,
    # which began at 4; both then fetch x_6.
    assert arrivals(three(per_round=1), 8) == [
        (2.0, {0: 0}),  # fetched x_1
        (3.0, {1: 1}),  # x_1 in round 2
        (4.0, {0: 1}),  # x_2, fetched at 2
        (6.0, {1: 1}),  # x_3, fetched at 3
        (6.0, {0: 1}),  # x_4, fetched at 4
        (7.0, {2: 5}),  # x_1
        (8.0, {0: 1}),  # x_6, fetched at 6
        (9.0, {1: 2}),  # x_6
    ]


def test_three_clients_by_hand_a_step_at_every_second_arrival():
    # A client that has delivered rests until the server has stepped: 0 from 2 to 3 and from 5 to 6.
    assert arrivals(three(per_round=2), 4) == [
        (3.0, {0: 0, 1: 0}),
        (6.0, {0: 0, 1: 0}),  # fetched x_2 at 3, back at 5 and 6
        (8.0, {2: 2, 0: 0}),  # 2 at 7 with x_1; 0 at 8 with x_3
        (10.0, {1: 1, 0: 0}),  # 1 at 9 with x_3; 0 at 10 with x_4
    ]


def test_three_clients_by_hand_waiting_for_all():
    scheme = three(per_round=3, wait=True)
    assert arrivals(scheme, 2) == [(7.0, {0: 0, 1: 0, 2: 0}), (14.0, {0: 0, 1: 0, 2: 0})]
    assert [scheme.tasks(t) for t in ROUNDS] == [Ideal(3, 3, 1, seed=0).tasks(t) for t in ROUNDS]


def test_the_trace_says_who_worked_when():
    scheme = three(per_round=1, max_staleness=4)
    assert scheme.trace(1) == [Interval(0, 0.0, 2.0, 1, "used")]
    assert scheme.trace(2) == [Interval(1, 0.0, 3.0, 1, "used")]
    # Client 2 comes at 7 with x_1, five rounds old: discarded; the server steps with client 0 at 8.
    assert scheme.trace(6) == [Interval(2, 0.0, 7.0, 1, "discarded"), Interval(0, 6.0, 8.0, 6, "used")]


def test_waiting_slots_are_filled_at_the_server_step():
    # Of clients that take 1 second, two work at a time for steps of one update: with `wait` the second
    # arrival at 1 is used in round 2, before anything new begins.
    scheme = event(50, 1, concurrency=2, wait=True, steps=lambda client, epochs: 1, normalize="none")
    steps = [(time, *ages.values()) for time, ages in arrivals(scheme, 4)]
    assert steps == [(1.0, 0), (1.0, 1), (2.0, 0), (2.0, 1)]


# Ideal is the special case ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting",
    [
        {},  # equal speeds, no network, always available, as many slots as updates
        {"step_time": 0.0},
        {"step_time": 0.0, "steps": lambda client, epochs: epochs * (client + 1)},
        {"wait": True, "speed_sigma": 1.0, "network": 3.0},
        {"wait": True, "speed_sigma": 1.0, "steps": lambda client, epochs: epochs * (client + 1)},
    ],
)
def test_ideal_is_recovered_bit_for_bit(setting):
    ideal, scheme = Ideal(100, 5, 3, seed=0), event(**setting)
    assert [scheme.tasks(t) for t in ROUNDS] == [ideal.tasks(t) for t in ROUNDS]


@pytest.mark.parametrize(
    "setting",
    [
        {"speed_sigma": 0.5},
        {"network": 1.0},
        {"concurrency": 6},
        {"available": 0.5},
        {"dropout": 0.2},
        {"epochs": (3, 4)},
        {"seed": 1},
        {"steps": lambda client, epochs: epochs * (client + 1)},
    ],
)
def test_any_other_setting_is_not_ideal(setting):
    ideal, scheme = Ideal(100, 5, 3, seed=0), event(**setting)
    assert [scheme.tasks(t) for t in ROUNDS] != [ideal.tasks(t) for t in ROUNDS]


def test_the_synchronous_clock_waits_for_the_slowest():
    scheme = event(wait=True, speed_sigma=1.0, step_time=2.0, max_staleness=0)
    speed, now = Devices(seed=0, speed_sigma=1.0).speed, 0.0
    for t in ROUNDS:
        now += max(3 * 2.0 / speed(task.client) for task in scheme.tasks(t))
        assert scheme.log(t)["clock/time"] == pytest.approx(now, rel=1e-12)
    assert scheme.history == 1


def test_asynchronous_steps_take_less_time_than_synchronous_ones():
    slow = event(wait=True, speed_sigma=1.0)
    fast = event(wait=False, speed_sigma=1.0)
    assert fast.log(30)["clock/time"] < 0.6 * slow.log(30)["clock/time"]


HARD = {
    "epochs": (0, 3), "concurrency": 12, "speed_sigma": 1.0, "network": 2.0, "available": 0.3, "period": 50.0,
    "dropout": 0.2, "timeout": 9.0, "max_staleness": 3, "staleness": "polynomial", "normalize": "fednova",
}  # fmt: skip


def test_a_round_depends_on_neither_order_nor_object():
    scheme = event(**HARD)
    forwards = [(scheme.tasks(t), scheme.log(t), scheme.trace(t)) for t in ROUNDS]
    for t in (30, 7, 8, 1, 19):
        assert (scheme.tasks(t), scheme.log(t), scheme.trace(t)) == forwards[t - 1]
        assert event(**HARD).tasks(t) == forwards[t - 1][0]
    with pytest.raises(IndexError, match="counted from 1"):
        scheme.tasks(0)


def test_what_always_holds():
    scheme = event(**HARD)
    time, begun, works = 0.0, {}, []
    for t in range(1, 201):
        tasks, log = scheme.tasks(t), scheme.log(t)
        assert len(tasks) == len({task.client for task in tasks}) == 5
        assert all(0 <= task.staleness <= min(3, t - 1) and 1 <= task.epochs <= 3 for task in tasks)
        assert log["clock/time"] >= time
        assert log["cohort/staleness"] == sum(task.staleness for task in tasks) / 5
        time = log["clock/time"]
        outcomes = [work.outcome for work in scheme.trace(t)]
        assert outcomes.count("used") == 5
        assert outcomes.count("discarded") == log["cohort/stale"]
        assert outcomes.count("dropped") == log["cohort/dropped"]
        works += scheme.trace(t)
    for work in sorted(works, key=lambda work: work.start):
        assert work.start >= begun.get(work.client, 0.0)  # nobody works twice at a time
        begun[work.client] = work.end
    for moment in np.linspace(0, time, 200):
        assert sum(work.start < moment < work.end for work in works) <= 12


# Weights ---------------------------------------------------------------------------------------------


def test_fedbuff_weights_are_one_over_the_root_of_one_plus_the_age():
    tasks = [three(1, staleness="polynomial").tasks(t)[0] for t in range(1, 9)]
    ages = [0, 1, 1, 1, 1, 5, 1, 2]  # as worked out above
    assert [task.weight for task in tasks] == pytest.approx([1 / (1 + tau) ** 0.5 for tau in ages], rel=1e-15)
    assert tasks[0].weight == 1.0


@pytest.mark.parametrize(
    ("discount", "expected"),
    [
        (Discount("none"), [1, 1, 1, 1]),
        (Discount("polynomial", exponent=1.0), [1, 1 / 5, 1 / 6, 1 / 7]),
        (Discount("hinge", hinge_a=10, hinge_b=4), [1, 1, 1 / 11, 1 / 21]),
    ],
)
def test_discounts_by_hand(discount, expected):
    assert [discount(tau) for tau in (0, 4, 5, 6)] == pytest.approx(expected, rel=1e-15)


def test_age_and_work_both_count():
    tasks = event(speed_sigma=1.0, epochs=(1, 6), staleness="polynomial", exponent=1.0).tasks(20)
    assert len({task.staleness for task in tasks}) > 1
    assert [t.weight for t in tasks] == pytest.approx([3 / t.epochs / (1 + t.staleness) for t in tasks])


# What can go wrong -----------------------------------------------------------------------------------


def test_a_client_that_never_returns_is_given_up_and_its_slot_filled(monkeypatch):
    # Client 1 never returns; 0 takes 2 seconds, 2 takes 7.
    monkeypatch.setattr(Devices, "drops", lambda self, client, work: client == 1)
    scheme = three(per_round=1, dropout=0.5, timeout=5.0, max_staleness=10)
    assert arrivals(scheme, 4) == [(2.0, {0: 0}), (4.0, {0: 0}), (6.0, {0: 0}), (7.0, {2: 3})]
    assert scheme.trace(3) == [Interval(1, 0.0, 5.0, 1, "dropped"), Interval(0, 4.0, 6.0, 3, "used")]
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
    rules = clock.Rules(2, 1, 2, False, (1, 1), 60.0, 10, 0)

    class Half(Devices):
        def opening(self, client, now):
            return now if client == 0 else max(now, 1000.0)

    simulation = clock.Clock(rules, Half(seed=0), lambda client, epochs: 1)
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
            r"participation\.concurrency=3 .*Try participation\.concurrency=5, or clients\.per_",
        ),
        ({"concurrency": 101}, r"participation\.concurrency=101 .*Try participation\.concurrency=100"),
        ({"concurrency": 0}, r"participation\.concurrency=0 .*Try participation\.concurrency=5"),
        ({"max_staleness": -1}, r"participation\.max_staleness=-1"),
        ({"timeout": -1.0}, r"participation\.timeout=-1"),
        ({"dropout": 1.0}, r"participation\.dropout=1\.0"),
        ({"available": 0.0}, r"participation\.available=0\.0"),
        ({"period": 0.0}, r"participation\.period=0\.0"),
        ({"step_time": -1.0}, r"participation\.step_time=-1\.0"),
        ({"network": float("nan")}, r"participation\.network=nan"),
        ({"exponent": -1.0}, r"participation\.exponent=-1\.0 .*participation\.exponent=0\.5"),
        ({"epochs": (0, 0)}, r"participation\.epochs=\[0, 0\]"),
        ({"speeds": "nowhere.txt"}, r"participation\.speeds=nowhere\.txt .*participation\.speeds=null"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_type(change, message):
    with pytest.raises(ConfigError, match=message):
        event(**change)


# Devices ---------------------------------------------------------------------------------------------


def test_drawn_properties_follow_their_laws():
    some = Devices(seed=0, step_time=2.0, speed_sigma=0.5, network=3.0, available=0.25, dropout=0.1)
    logs = np.log([some.speed(client) for client in range(4000)])
    assert (logs.mean(), logs.std()) == pytest.approx((0.0, 0.5), abs=0.03)
    delays = [some.seconds(7, 0, work) for work in range(4000)]
    assert np.mean(delays) == pytest.approx(3.0, rel=0.06)
    assert np.mean([some.opening(client, 123.0) == 123.0 for client in range(4000)]) == pytest.approx(
        0.25, abs=0.03
    )
    assert np.mean([some.drops(7, work) for work in range(4000)]) == pytest.approx(0.1, abs=0.02)
    assert Devices(seed=0, step_time=2.0).seconds(7, 5, 0) == 10.0


def test_windows_open_once_a_period():
    some = Devices(seed=0, available=0.25, period=100.0)
    opening = some.opening(3, 0.0) or some.opening(3, 50.0)
    assert some.opening(3, opening + 24.0) == opening + 24.0
    assert some.opening(3, opening + 26.0) == pytest.approx(opening + 100.0)


@pytest.mark.parametrize("name", ["speeds.txt", "speeds.csv", "speeds.npy"])
def test_speeds_from_a_file_are_cycled(tmp_path, name):
    path = tmp_path / name
    if name.endswith("npy"):
        np.save(path, np.array([1.0, 2.0, 4.0]))
    else:
        path.write_text("speed\n1\n2.0\n4e0  # fast\n\n" if name.endswith("csv") else "1\n2\n4\n")
    some = Devices(seed=0, speeds=str(path))
    assert [some.speed(client) for client in range(5)] == [1, 2, 4, 1, 2]
    assert some.seconds(2, steps=8, work=0) == 2.0


@pytest.mark.parametrize("text", ["", "speed\n", "1\ntwo\n", "1\n0\n", "1\n-2\n", "1,2\n", "nan\n1\n-1\n"])
def test_a_file_without_speeds_is_refused(tmp_path, text):
    path = tmp_path / "speeds.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"participation\.speeds=.*one positive number a client"):
        read_speeds(str(path))


# Size ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"available": 0.2, "period": 100.0, "dropout": 0.1}])
def test_the_work_of_a_step_does_not_grow_with_the_number_of_clients(monkeypatch, more):
    draws = [0]

    def counted(make):
        def generator(*args, **keywords):
            draws[0] += 1
            return make(*args, **keywords)

        return generator

    for module in (clock, devices):
        monkeypatch.setattr(module, "generator", counted(module.generator))
    counts, proposals = [], []
    for count in (1_000, 100_000):
        draws[0] = 0
        scheme = event(count, concurrency=20, speed_sigma=0.5, network=1.0, **more)
        rounds = [scheme._at(t) for t in range(1, 101)]
        counts.append(draws[0])
        proposals.append(sum(r.proposals for r in rounds))
        assert max(r.proposals for r in rounds) <= 2 * 20 * (1 + clock.PROPOSALS)
        assert len(scheme._clock._busy) <= 25
        assert len(scheme._clock._ends) + len(scheme._clock._openings) <= 40
    assert counts[1] == pytest.approx(counts[0], rel=0.25)
    assert proposals[1] == pytest.approx(proposals[0], rel=0.25)


# The picture -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [HARD, {"step_time": 0.0}, {"wait": True, "speed_sigma": 1.0}])
def test_a_timeline_can_be_drawn_of_anything(tmp_path, setting):
    draw_timeline(event(**setting), 12, tmp_path / "timeline.png", "Title")
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")
