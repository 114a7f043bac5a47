"""The virtual clock: examples worked out by hand, what can go wrong, and that it stays small."""

import numpy as np
import pytest

from fedgm.figures.timeline import draw_timeline
from fedgm.participation import devices, ideal, samplers
from fedgm.participation.devices import Devices
from fedgm.participation.local_work import Discount
from fedgm.participation.virtual_clock import WorkSpan
from tests.participation.event_scheme import ROUNDS, arrivals, event, three

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
    assert [scheme.tasks(t) for t in ROUNDS] == [ideal(3, 3, 1, seed=0).tasks(t) for t in ROUNDS]


def test_the_trace_says_who_worked_when():
    scheme = three(per_round=1, max_staleness=4)
    assert scheme.trace(1) == [WorkSpan(0, 0.0, 2.0, 1, "used")]
    assert scheme.trace(2) == [WorkSpan(1, 0.0, 3.0, 1, "used")]
    # Client 2 comes at 7 with x_1, five rounds old: discarded; the server steps with client 0 at 8.
    assert scheme.trace(6) == [WorkSpan(2, 0.0, 7.0, 1, "discarded"), WorkSpan(0, 6.0, 8.0, 6, "used")]


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
    plain, scheme = ideal(100, 5, 3, seed=0), event(**setting)
    assert [scheme.tasks(t) for t in ROUNDS] == [plain.tasks(t) for t in ROUNDS]


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
    plain, scheme = ideal(100, 5, 3, seed=0), event(**setting)
    assert [scheme.tasks(t) for t in ROUNDS] != [plain.tasks(t) for t in ROUNDS]


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


# Size ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"available": 0.2, "period": 100.0, "dropout": 0.1}])
def test_the_work_of_a_step_does_not_grow_with_the_number_of_clients(monkeypatch, more):
    draws = [0]

    def counted(make):
        def generator(*args, **keywords):
            draws[0] += 1
            return make(*args, **keywords)

        return generator

    for module in (samplers, devices):
        monkeypatch.setattr(module, "generator", counted(module.generator))
    counts, proposals = [], []
    for count in (1_000, 100_000):
        draws[0] = 0
        scheme = event(count, concurrency=20, speed_sigma=0.5, network=1.0, **more)
        rounds = [scheme._at(t) for t in range(1, 101)]
        counts.append(draws[0])
        proposals.append(sum(r.proposals for r in rounds))
        assert max(r.proposals for r in rounds) <= 2 * 20 * (1 + samplers.PROPOSALS)
        assert len(scheme._clock._busy) <= 25
        assert len(scheme._clock._ends) + len(scheme._clock._openings) <= 40
    assert counts[1] == pytest.approx(counts[0], rel=0.25)
    assert proposals[1] == pytest.approx(proposals[0], rel=0.25)


# The picture -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [HARD, {"step_time": 0.0}, {"wait": True, "speed_sigma": 1.0}])
def test_a_timeline_can_be_drawn_of_anything(tmp_path, setting):
    draw_timeline(event(**setting), 12, tmp_path / "timeline.png", "Title")
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")
