"""`--dry-run`: the rounds that are left by hand, and hours from rounds that were measured."""

import json
import re
from pathlib import Path
from statistics import median

import pytest
from click.testing import CliRunner

from fedgm.commands import main
from fedgm.results import rows
from fedgm.results.run import once
from fedgm.study import hours, points
from fedgm.study.hours import expected_hours, rounds_left
from fedgm.study.sweep_progress import Results, targets
from tests.results.made_records import record
from tests.study.planned_sweep import FILE, WHOLE, plan
from tests.study.stored_runs import store

SMALL = (
    "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20", "clients.count=10",
    "clients.per_round=2", "local.unit=steps", "local.epochs=1",
)  # fmt: skip


def timed(job: points.Job, rounds: int, seconds: float, evaluation: float, status: str = "paused") -> None:
    """A run folder whose rounds took ``seconds`` each, its evaluations ``evaluation``."""
    store(job, [0.3] * (rounds // job.eval_every), status, done=rounds)
    lines = [json.loads(line) for line in (job.folder / "metrics.jsonl").read_text().splitlines()]
    for row in lines:
        row |= {"time/round": seconds, "time/eval": evaluation if row["test/acc"] is not None else None}
    (job.folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))


# Rungs after rounds 6 and 18 of 30; six points, then two, then one ----------------------------------------


def test_halving_fixes_the_rounds_before_it_is_known_who_runs_them(tmp_path):
    results = Results(plan(tmp_path))
    assert sum(rounds_left(results)) == pytest.approx(6 * 6 + 2 * 12 + 1 * 12)
    assert rounds_left(results)[0] == pytest.approx(6 + 12 / 3 + 12 / 6)
    assert sum(rounds_left(results, halving=False)) == 6 * 30
    assert sum(rounds_left(Results(plan(tmp_path, seeds=(0, 1))))) == pytest.approx(2 * 72)
    assert sum(rounds_left(Results(plan(tmp_path, WHOLE)))) == 6 * 30


def test_what_is_run_and_what_is_decided_counts(tmp_path):
    made = plan(tmp_path)
    for number, job in enumerate(made.jobs):
        store(job, [0.1, 0.1 * number], "paused")
    results = Results(made)
    assert rounds_left(results) == pytest.approx([12 / 3 + 12 / 6] * 6)
    targets(results)  # the rung decides: the last two go on
    assert rounds_left(results) == pytest.approx([0, 0, 0, 0, 18, 18])
    store(made.jobs[4], [0.1] * 4, "paused")  # on its way to the second rung
    assert rounds_left(results) == pytest.approx([0, 0, 0, 0, 12, 18])
    store(made.jobs[4], [0.1] * 4, "diverged")  # it will lose, so that the other one goes on
    assert rounds_left(results) == pytest.approx([0, 0, 0, 0, 0, 24])


def test_a_point_that_has_diverged_leaves_its_place_to_the_others(tmp_path):
    made = plan(tmp_path)
    store(made.jobs[0], [0.9], "diverged", done=4)
    assert rounds_left(Results(made)) == pytest.approx([0] + [6 + 12 * 2 / 5 + 12 * 1 / 5] * 5)
    for job in made.jobs:
        store(job, [0.9], "diverged", done=4)
    assert rounds_left(Results(made)) == [0] * 6


# Hours ----------------------------------------------------------------------------------------------------


def test_hours_are_those_of_the_measured_rounds_with_their_evaluations(tmp_path):
    made = plan(tmp_path, WHOLE)
    timed(made.jobs[0], 30, 2.0, 6.0, "finished")  # 2 s, and a third of 6 s, a round
    timed(made.jobs[1], 10, 2.0, 6.0)
    assert expected_hours(Results(made), 2, print) == pytest.approx((20 + 4 * 30) * 4.0 / 2 / 3600)
    halved = plan(tmp_path)
    assert expected_hours(Results(halved), 1, print) == pytest.approx(
        4.0 * sum(rounds_left(Results(halved))) / 3600
    )


def test_more_workers_than_runs_do_not_make_them_shorter(tmp_path):
    made = plan(tmp_path, WHOLE)
    for job in made.jobs[:4]:
        timed(job, 30, 2.0, 6.0, "finished")
    timed(made.jobs[4], 10, 2.0, 6.0)  # 20 rounds are left, and 30 of the last
    assert expected_hours(Results(made), 1, print) == pytest.approx((20 + 30) * 4.0 / 3600)
    assert expected_hours(Results(made), 8, print) == pytest.approx(30 * 4.0 / 3600)


def test_a_model_has_its_own_time_and_rounds_before_an_evaluation_tell_nothing(tmp_path):
    text = WHOLE.replace("algorithm.beta: {values: [0.7, 0.9]}", "model: {values: [resnet, vgg11]}")
    made = plan(tmp_path, text)
    timed(made.jobs[0], 6, 1.0, 3.0)  # resnet: 2 s
    timed(made.jobs[1], 6, 4.0, 3.0)  # vgg11: 5 s
    timed(made.jobs[2], 2, 100.0, 0.0)  # its first rounds, not evaluated yet
    assert expected_hours(Results(made), 1, print) == pytest.approx(
        (24 + 28 + 30) * 2 / 3600 + (24 + 60) * 5 / 3600
    )


def test_nothing_is_run_where_nothing_is_left(tmp_path, monkeypatch):
    made = plan(tmp_path)
    monkeypatch.setattr(hours, "_first_rounds", lambda *_: pytest.fail("there was nothing to measure for"))
    assert expected_hours(Results(made, once(record(job, [0.3] * 10) for job in made.jobs)), 1, print) == 0.0


def test_the_first_rounds_are_run_up_to_an_evaluation(tmp_path, monkeypatch):
    made = plan(tmp_path, WHOLE, words=("eval.every=5", *SMALL))
    seen: list[rows.Row] = []
    real = hours._seconds

    def watched(folder: Path, job: points.Job) -> list[float]:
        seen.extend(rows.read(folder / "metrics.jsonl"))
        return real(folder, job)

    monkeypatch.setattr(hours, "_seconds", watched)
    said: list[str] = []
    expected = expected_hours(Results(made), 1, said.append)
    assert said == ["no round has been timed yet: the first 5 of a run are tried out now"]
    assert [row["round"] for row in seen] == [1, 2, 3, 4, 5]
    assert [row["time/eval"] is None for row in seen] == [True] * 4 + [False]
    round_ = median(row["time/round"] or 0.0 for row in seen) + (seen[-1]["time/eval"] or 0.0) / 5
    assert expected == pytest.approx(6 * 30 * round_ / 3600)
    assert not (tmp_path / "o").exists()


# As typed -------------------------------------------------------------------------------------------------


def typed(*words: str) -> str:
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 0, done.output
    return done.output


def test_a_dry_run_says_points_rounds_hours_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "s.yaml").write_text(FILE)
    place = str(tmp_path / "o")
    text = typed(
        "sweep", str(tmp_path / "s.yaml"), "--dry-run", "--workers", "2", "--output-dir", place, *SMALL
    )
    assert "s: 6 points x 1 seeds = 6 runs, 0 done" in text
    assert "rounds:  30 each, profile tiny, experiment fedgm" in text
    assert "halving: decides after rounds 6, 18; 72 rounds to run, 180 without it" in text
    assert re.search(r"are tried out now\ntime:    about \d+ seconds? with 2 workers\n$", text)
    assert "algorithm.eta=0.5 algorithm.beta=0.7 seed=0\n" in text
    assert "... and 1 more" in text
    assert not (tmp_path / "o").exists()
    timed(plan(tmp_path).jobs[0], 30, 90.0, 30.0, "finished")  # 100 s a round; 5 * 6 + 20 + 10 are left
    text = typed("sweep", str(tmp_path / "s.yaml"), "--dry-run", "--workers", "1", "--output-dir", place)
    assert "6 runs, 1 done" in text
    assert "about 1.7 hours with 1 workers" in text
    for job in plan(tmp_path).jobs:
        timed(job, 30, 9.0, 3.0, "finished")
    text = typed("sweep", str(tmp_path / "s.yaml"), "--dry-run", "--workers", "1", "--output-dir", place)
    assert text.endswith("time:    nothing is left to run\n")


def test_a_dry_run_counts_points_that_set_seed_or_rounds(tmp_path):
    part = "parameters: {seed: {values: [0, 1]}, rounds: {values: [4, 8]}}\n"
    (tmp_path / "s.yaml").write_text(f"method: grid\nmetric: {{name: test/acc, goal: maximize}}\n{part}")
    done = ("--dry-run", "--workers", "1", "--output-dir", str(tmp_path / "o"), "profile=tiny", *SMALL)
    text = typed("sweep", str(tmp_path / "s.yaml"), *done)
    assert "s: 4 points = 4 runs, 0 done" in text
    assert "rounds:  4 to 8 each" in text


def test_a_seed_named_twice_is_one_run(tmp_path):
    assert [job.seed for job in plan(tmp_path, WHOLE, seeds=(1, 0, 1)).jobs[:3]] == [1, 0, 1]
    assert len(plan(tmp_path, WHOLE, seeds=(1, 0, 1)).jobs) == 12


def test_a_dry_run_of_a_figure_says_runs_and_hours_and_leaves_nothing_behind(tmp_path):
    words = ("--profile", "tiny", "--seeds", "2", "--workers", "1", "--output-dir", str(tmp_path / "o"))
    text = typed("reproduce", "fig5", "--dry-run", *words, *SMALL, "rounds=8")
    assert re.search(r"\d+ runs to do, about \d+ (seconds?|minutes) with 1 workers", text)
    assert not (tmp_path / "o").exists()
