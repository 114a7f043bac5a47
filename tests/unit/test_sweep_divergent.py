"""Finished points that docs/claims.md calls divergent are diverged, in pictures and on the grids' page."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedgm.commands.winners import command
from fedgm.figures.points import best
from fedgm.results import archive
from fedgm.results.record import RunRecord
from fedgm.study import points, sweep_file, sweep_pictures
from fedgm.study.sweep_progress import Results, index
from tests.unit.made_records import record

GRID = Path(__file__).parents[2] / "sweeps" / "fedavg_grid.yaml"
FILE = """
method: grid
metric: {name: test/acc, goal: maximize}
parameters:
  algorithm.eta: {values: [0.5, 1.0, 2.0]}
  algorithm.beta: {values: [0.7, 0.9]}
command: ["${program}", +experiment=fedgm, profile=tiny, rounds=30, eval.every=3, "${args_no_hyphens}"]
"""


@pytest.fixture
def jobs(tmp_path) -> tuple[points.Job, ...]:
    return planned(tmp_path).jobs


def planned(folder: Path) -> points.SweepPlan:
    (folder / "s.yaml").write_text(FILE)
    return points.make(sweep_file.read(folder / "s.yaml"), [], [0], str(folder / "o"))


def without_learning(run: RunRecord) -> RunRecord:
    """The same with a training loss above ln 10, whatever it reached in the test."""
    rows = [{**row, "train/loss": 2.4} for row in run.evaluations]
    return replace(run, evaluations=rows)


def test_a_point_that_ended_at_chance_is_marked_as_diverged_and_is_not_the_best(tmp_path, jobs):
    runs = [
        record(jobs[0], [0.3] * 10),
        record(jobs[1], [0.11] * 10),
        without_learning(record(jobs[2], [0.5] * 10)),
        record(jobs[3], [0.1] * 2, "paused"),
        record(jobs[4], [0.9] * 2, "diverged"),
    ]
    results = Results(planned(tmp_path), index(runs))
    drawn = sweep_pictures.drawn_points(results)
    assert [p.status for p in drawn] == ["finished", *["diverged"] * 2, "paused", "diverged", "waiting"]
    winner = best(drawn, "maximize")
    assert winner is not None
    assert winner.number == 0
    assert sweep_pictures.caption(results).endswith("Divergent by the rule of docs/claims.md: 2.")


def test_a_baseline_that_learned_nothing_is_none(tmp_path, jobs):
    own = [record(job, [0.3] * 10) for job in jobs]
    fedavg = record(replace(jobs[0], hash="other"), [0.5] * 10, algorithm="fedavg")
    for run, drawn in ((fedavg, True), (without_learning(fedavg), False)):
        results = Results(planned(tmp_path), index([*own, run]))
        names = [path.name for path in sweep_pictures.draw(results, tmp_path / "pictures")]
        assert ("advantage.png" in names) == drawn


def test_the_page_of_all_grids_counts_it(tmp_path):
    jobs = points.make(sweep_file.read(GRID), [], [0], str(tmp_path / "none")).jobs
    runs = [record(job, [0.3 if job.point < 8 else 0.11] * 12, algorithm="fedavg") for job in jobs]
    runs = [replace(run, facts={**run.facts, "name": "fedgm"}) for run in runs]
    archive.write(tmp_path / "rows" / "fedavg_grid.jsonl", runs)
    page = tmp_path / "docs" / "grids.md"
    done = CliRunner().invoke(command, [str(tmp_path / "rows"), "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert "| ideal clients | fedavg | 8 finished, 2 diverged | eta 0.5 | 30.00 % |" in page.read_text()
