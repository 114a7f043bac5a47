"""A stored run's numbers by hand: score, final, curve, the mark near chance, classes, windows."""

import math
from dataclasses import replace

import pytest

from fedgm.results.run import (
    Run,
    Status,
    first_quarter,
    last_quarter,
    once,
    quarter,
    settled_stage_1,
    stage,
)
from fedgm.tasks.metric import LOSS, Metric, Scoreboard
from tests.study.made_curves import flat, made

LN10 = math.log(10)


def test_a_score_is_the_mean_of_the_last_ten():
    assert made(test=[0.9] * 5 + [0.2, 0.4] * 5).score("test/acc") == pytest.approx(0.3)
    assert made(test=[0.1, 0.3]).score() == pytest.approx(0.2)  # the headline, of all where there are fewer
    assert made(test=[0.1, None, 0.3]).score() is None
    assert made(test=[0.1] * 10 + [0.5] * 10).score(until=50) == pytest.approx(0.1)


def test_a_finished_run_keeps_its_number_and_one_that_ended_as_diverged_counts_with_chance():
    low = flat(0, 0.05, loss=[9.0] * 25)
    assert (low.near_chance, low.score(), low.final()) == (True, 0.05, 0.05)
    lost = flat(0, 0.5, status="diverged")
    assert (lost.is_divergent, lost.score(), lost.final(), lost.score("train/acc")) == (True, 0.1, 0.1, 0.1)
    assert lost.score("train/loss") is None  # a loss has no chance level
    assert flat(0, 0.5, status="diverged", classes=None).score() is None
    assert flat(0, 0.5, status="diverged", rounds=250).score(until=50) == 0.5  # it was well then


def test_a_task_without_a_chance_level_has_neither_chance_nor_mark():
    board = Scoreboard((LOSS, Metric("bpc", "bits")), "test/bpc").describe()
    run = flat(0, 0.05, loss=[9.0] * 25, status="diverged", classes=None)
    run = replace(run, facts={**run.facts, **board})
    assert (run.score(), run.score("test/loss"), run.chance(), run.near_chance) == (None, None, None, False)


@pytest.mark.parametrize(
    ("accuracy", "loss", "classes", "marked"),
    [
        (0.217, 0.95 * LN10, 10, True),  # 0.1 + 0.13 * 0.9 = 0.217
        (0.2171, 0.95 * LN10, 10, False),
        (0.217, 0.9499 * LN10, 10, False),
        (0.1, 1.0, 10, False),  # both are needed
        (0.34, 2.6, 100, False),  # healthy, though 2.6 > ln 10
        (0.1, 4.3, 100, False),  # healthy, though so low: 4.3 < 0.95 ln 100
        (0.138, 4.4, 100, True),  # 0.01 + 0.13 * 0.99 = 0.1387; 0.95 ln 100 = 4.375
        (0.14, 4.4, 100, False),
        (0.1, 9.0, None, False),
    ],
)
def test_near_chance_is_what_the_page_says(accuracy, loss, classes, marked):
    run = flat(0, accuracy, loss=[loss] * 25, classes=classes)
    assert run.near_chance is marked
    assert replace(run, facts={**run.facts, "status": "paused"}).near_chance is False  # it had hardly begun
    assert replace(run, facts={**run.facts, "status": "diverged"}).near_chance is False  # that is another end


def test_the_mark_looks_at_the_last_ten_alone():
    assert not made(0, [0.05] * 15 + [0.5] * 10, loss=[9.0] * 15 + [1.0] * 10).near_chance


def test_classes_are_those_of_the_summary_then_of_the_source_then_of_cifar10():
    def run(facts, config):
        return Run({"hash": "a", "seed": 0, "status": "finished", **facts}, config, [])

    assert run({"classes": 100}, {"data.source.classes": 7}).classes == 100
    assert run({"classes": None}, {"data.source.classes": 7}).classes == 7
    assert run({}, {"data.name": "cifar10"}).classes == 10
    assert run({"data": "cifar10"}, {}).classes == 10
    assert run({"data": "npz"}, {}).classes is None


def test_chance_fills_what_comes_after_the_end():
    run = made(0, [0.5, 0.5], status="diverged", rounds=20)  # evaluations after 5 and 10, none after 15, 20
    assert run.curve("test/acc") == ([5, 10, 15, 20], [0.5, 0.5, 0.1, 0.1])
    assert made(0, [0.5, 0.5], rounds=20).curve("test/acc") == ([5, 10], [0.5, 0.5])
    assert made(0, [0.1], status="diverged", rounds=12).planned == [5, 10, 12]


def test_windows_by_hand():
    run = made(0, [0.1] * 50, rounds=250, ends=(36, 107, 250))
    assert quarter(250) == 63  # 62.5, half up
    assert (first_quarter(run), last_quarter(run)) == ((0, 63), (187, 250))
    assert (stage(1)(run), stage(2)(run), stage(3)(run)) == ((0, 36), (36, 107), (107, 250))
    assert settled_stage_1(run) == (12, 36)
    assert run.within("test/acc", stage(1))[0] == [5, 10, 15, 20, 25, 30, 35]
    assert stage(4)(run) == (0, 0)


def test_of_two_copies_the_one_that_is_done_or_went_further_stays():
    runs = [flat(0, 0.5, n=n, status=status) for n, status in ((4, "paused"), (9, "paused"), (5, "finished"))]
    runs = [replace(run, facts={**run.facts, "hash": "same"}) for run in runs]
    assert once(runs[:2]) == {("same", 0): runs[1]}
    assert once(runs) == once(reversed(runs)) == {("same", 0): runs[2]}


def test_a_status_is_a_word_and_an_unknown_one_is_refused():
    assert Run.missing(3).status == "missing"
    assert Run.missing(3).key[1] == Run.missing(3).seed == 3
    assert f"{Status.KILLED}" == "killed"
    with pytest.raises(ValueError, match="odd"):
        _ = Run({"status": "odd"}, {}, []).status


def test_a_label_names_the_rule_and_its_rates():
    config = {"algorithm.eta": 2.0, "algorithm.beta": 0.9, "algorithm.nu": 0.7}
    run = Run({"algorithm": "fedgm", "hash": "a", "seed": 0, "status": "finished"}, config, [])
    assert run.label == "FedGM, eta 2, beta 0.9, nu 0.7"
