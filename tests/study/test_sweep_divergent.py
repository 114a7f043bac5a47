"""Points that end near chance keep their value, in pictures, as winners and on the page of all grids."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs.pages.winners import command
from fedgm.figures.points import best
from fedgm.results import archive
from fedgm.results.run import Run, once
from fedgm.study import points, sweep_file, sweep_pictures
from fedgm.study.sweep_progress import Results
from fedgm.study.winners import ranking
from tests.results.made_records import record
from tests.study.planned_sweep import WHOLE, plan

GRID = Path(__file__).parents[2] / "sweeps" / "fedavg_grid.yaml"


@pytest.fixture
def jobs(tmp_path) -> tuple[points.Job, ...]:
    return plan(tmp_path, WHOLE).jobs


def near_chance(run: Run) -> Run:
    """The same with a training loss of ln 10."""
    return replace(run, evaluations=[{**row, "train/loss": 2.3026} for row in run.evaluations])


def test_a_point_near_chance_keeps_its_value_and_only_one_that_ended_so_is_diverged(tmp_path, jobs):
    runs = [
        record(jobs[0], [0.3] * 10),
        near_chance(record(jobs[1], [0.19] * 10)),
        near_chance(record(jobs[2], [0.5] * 10)),  # far above chance: no mark
        record(jobs[3], [0.1] * 2, "paused"),
        record(jobs[4], [0.9] * 2, "diverged"),
    ]
    results = Results(plan(tmp_path, WHOLE), once(runs))
    drawn = sweep_pictures.drawn_points(results)
    statuses = ["finished", "near chance", "finished", "paused", "diverged", "waiting"]
    assert [p.status for p in drawn] == statuses
    assert (drawn[1].score, drawn[1].scored, drawn[4].scored) == (pytest.approx(0.19), True, False)
    winner = best(drawn, "maximize")
    assert winner is not None
    assert winner.number == 2
    assert [entry.job.point for entry in ranking(results)] == [2, 0, 1]
    assert sweep_pictures.caption(results).endswith("Near chance by the rule of docs/claims.md: 1.")


def test_a_winner_is_a_finished_point(tmp_path, jobs):
    runs = [near_chance(record(jobs[0], [0.19] * 10)), record(jobs[1], [0.9] * 2, "diverged")]
    [first] = ranking(Results(plan(tmp_path, WHOLE), once(runs)))
    assert (first.job.point, first.score) == (0, pytest.approx(0.19))


def test_the_page_of_all_grids_counts_it(tmp_path):
    jobs = points.make(sweep_file.read(GRID), [], [0], str(tmp_path / "none")).jobs
    runs = [record(job, [0.3 if job.point < 8 else 0.11] * 12, algorithm="fedavg") for job in jobs]
    runs = [near_chance(run) if job.point >= 8 else run for job, run in zip(jobs, runs, strict=True)]
    runs = [replace(run, facts={**run.facts, "name": "fedgm"}) for run in runs]
    archive.write(tmp_path / "rows" / "fedavg_grid.jsonl", runs)
    page = tmp_path / "docs" / "grids.md"
    done = CliRunner().invoke(command, [str(tmp_path / "rows"), "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert "| ideal clients | fedavg | 8 finished, 2 near chance | eta 0.5 | 30.00 % |" in page.read_text()
