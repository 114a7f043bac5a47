"""The autonomous grids under both readings of Alg. 4: one override plans the other, and each has a winner."""

from pathlib import Path

import pytest
import yaml

from fedgm.config import compose
from fedgm.config.identity import identity
from fedgm.study import points, sweep_file
from fedgm.study.sweep_progress import Results
from fedgm.study.winners import ranking, write_best
from tests.study.stored_runs import store

SWEEPS = Path(__file__).parents[2] / "sweeps"
CURRENT = "participation=autonomous_current"
SIZES = {
    "autonomous_fedgm_grid": 36, "autonomous_fedavg_grid": 12, "delay10_fedgm_grid": 6,
    "delay10_fedavg_grid": 6,
}  # fmt: skip


def planned(name: str, folder: Path, *words: str) -> points.SweepPlan:
    return points.make(sweep_file.read(SWEEPS / f"{name}.yaml"), words, [0], str(folder))


SLOW = ("autonomous_fedgm_grid", "delay10_fedavg_grid")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in SIZES]
)
def test_one_override_plans_a_grid_under_the_second_reading(name, tmp_path):
    first, second = planned(name, tmp_path), planned(name, tmp_path, CURRENT)
    assert (first.reading, second.reading) == ("start", "current")
    for made, expected in ((first, ("start", "reference")), (second, ("current", "none"))):
        read = [(cfg.participation.anchor, cfg.participation.normalize) for cfg in made.configs]
        assert read == [expected] * SIZES[name]
        assert {cfg.participation.delay for cfg in made.configs} == {10 if "delay10" in name else 5}
    # Runs, run folders and the sweep's own folder are apart: both readings may share an output_dir.
    assert len({job.hash for job in (*first.jobs, *second.jobs)}) == 2 * SIZES[name]
    assert len({job.folder for job in (*first.jobs, *second.jobs)}) == 2 * SIZES[name]
    assert first.folder != second.folder
    job = second.jobs[-1]
    assert identity(compose(job.overrides)) == job.hash


def test_each_reading_keeps_a_winner_of_its_own(tmp_path):
    for words, best in (((), 2), ((CURRENT,), 4)):
        made = planned("delay10_fedgm_grid", tmp_path, "profile=tiny", "rounds=3", *words)
        for job in made.jobs:
            store(job, [0.5 if job.point == best else 0.3] * 3)
        write_best(tmp_path / "best.yaml", made, ranking(Results(made))[0])
    kept = yaml.safe_load((tmp_path / "best.yaml").read_text())["autonomous_delay10"]["fedgm"]
    assert {reading: entry["eta"] for reading, entry in kept.items()} == {"start": 0.5, "current": 2.0}
