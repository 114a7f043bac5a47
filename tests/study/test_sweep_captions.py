"""The caption of a sweep's pictures says what makes the grid what it is."""

from pathlib import Path

import pytest

from fedgm.config.identity import resolved
from fedgm.study import points, sweep_file
from fedgm.study.sweep_pictures import caption
from fedgm.study.sweep_progress import Results
from tests.results.made_records import record
from tests.study.planned_sweep import FILE, plan

SWEEPS = Path(__file__).parents[2] / "sweeps"
CURRENT = "participation=autonomous_current"


def said(made: points.SweepPlan, statuses=("finished",)) -> str:
    """The caption where every run is stored with the configuration that it was planned with."""
    runs = {
        job.key: record(
            job, [0.3] * 10, statuses[i % len(statuses)], made.algorithm, config=resolved(made.configs[i])
        )
        for i, job in enumerate(made.jobs)
    }
    for run in runs.values():
        run.facts["local_steps"] = 36.2 if run.status == "finished" else 35.0
    return caption(Results(made, runs))


@pytest.mark.parametrize(
    ("words", "reading"),
    [
        ([], "clients autonomous, anchor start, normalize reference"),
        ([CURRENT], "clients autonomous_current, anchor current, normalize none"),
    ],
)
def test_a_caption_says_the_reading_and_the_values_that_are_fixed(tmp_path, words, reading):
    file = sweep_file.read(SWEEPS / "delay10_fedgm_grid.yaml")
    assert said(points.make(file, words, [0], str(tmp_path))) == (
        "delay10_fedgm_grid: FedGM, beta 0.9, nu 0.9, profile small, data cifar10, alpha 0.5, "
        f"{reading}, delay 10, epochs 1 to 6, 125 rounds, seed 0, K = 36.2 local steps on average."
    )


def test_a_rate_that_follows_another_is_said_so_and_what_is_swept_is_left_out(tmp_path):
    follows = FILE.replace("early_", '  algorithm.nu: {value: "${algorithm.beta}"}\nearly_')
    words = said(plan(tmp_path, follows))
    assert words.startswith("s: FedGM, nu = beta, profile tiny, ")
    assert "clients ideal, epochs " in words
    assert "normalize" not in words
    swept = FILE.replace(
        "algorithm.beta: {values: [0.7, 0.9]}", "participation: {values: [ideal, autonomous]}"
    )
    words = said(plan(tmp_path, swept))
    assert words.startswith("s: FedGM, beta 0.95, nu 0.9, profile tiny, ")
    assert "clients" not in words


def test_local_steps_are_those_of_runs_that_ended_and_no_commit_is_named(tmp_path):
    words = said(plan(tmp_path), ("finished", "paused"))
    assert words.endswith("30 rounds, seed 0, K = 36.2 local steps on average.")
    assert caption(Results(plan(tmp_path))) == "s: profile tiny, 30 rounds, seed 0."
