"""`fedgm sweep` on stored runs: what --status, --best, --write, --export and --stored say and leave."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fedgm.commands import main
from fedgm.errors import ConfigError, FedGMError, RefusedError
from fedgm.results import archive, index
from fedgm.study import points, sweep, sweep_file, sweep_progress
from tests.study.stored_runs import store

FILE = """
method: grid
metric: {name: test/acc, goal: maximize}
parameters:
  algorithm.eta: {values: [0.5, 1.0, 2.0]}
command: ["${program}", +experiment=fedgm, profile=tiny, "${args_no_hyphens}"]
"""


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "s.yaml").write_text(FILE)
    return tmp_path / "s.yaml"


def stored(path: Path, scores=(0.2, 0.4, 0.3), *words: str, seeds=(0,)) -> points.SweepPlan:
    made = points.make(sweep_file.read(path), words, seeds, str(path.parent / "o"))
    for job in made.jobs:
        store(job, [scores[job.point]] * job.rounds)
    return made


def typed(path: Path, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, ["sweep", str(path), "--output-dir", str(path.parent / "o"), *words])
    assert done.exit_code == code, done.output
    return done.output


def test_status_says_how_far_it_is_and_leaves_nothing_behind(path):
    made = stored(path)
    before = sorted(path.parent.rglob("*"))
    text = typed(path, "--status")
    assert "3 finished" in text
    assert "eta 1.0" in text
    assert "40.00 %" in text
    assert sorted(path.parent.rglob("*")) == before
    assert not made.folder.exists()


def test_a_second_status_reads_no_run_that_is_done(path, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(index, "LEAST", 1)
    stored(path)
    first = typed(path, "--status")
    monkeypatch.setattr(sweep_progress, "read_folder", lambda folder: pytest.fail(f"{folder} was read"))
    assert typed(path, "--status") == first


def test_best_draws_and_write_keeps_the_winner(path, tmp_path, monkeypatch):
    made = stored(path)
    monkeypatch.setattr(sweep, "conf_dir", lambda: tmp_path / "conf")
    text = typed(path, "--best", "--write")
    assert (made.folder / "heatmap.png").exists()
    assert str(tmp_path / "conf" / "best" / "tiny.yaml") in text.replace("\n", "")
    kept = yaml.safe_load((tmp_path / "conf" / "best" / "tiny.yaml").read_text())
    assert kept["fedgm"]["fedgm"]["eta"] == 1.0
    assert kept["fedgm"]["fedgm"]["sweep"] == "s"
    stored(path, (0.9, 0.1, 0.1), seeds=(1,))
    assert "was chosen on seed 0 and stays" in typed(path, "--best", "--write", "--seeds", "1", code=2)
    assert "--write goes with --best" in typed(path, "--write", code=2)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (None, "(3 waiting). The same command without --best runs what is left"),
        ("failed", "(3 failed). The same command without --best runs what is left"),
        ("diverged", "(3 diverged). Try a sweep of smaller rates"),
    ],
)
def test_best_without_a_winner_says_why(path, status, said):
    made = points.make(sweep_file.read(path), (), (0,), str(path.parent / "o"))
    for job in made.jobs if status else ():
        store(job, [0.2] * 5, status)
    assert f"no winner: no run of seed 0 has finished {said}" in " ".join(typed(path, "--best").split())
    if status == "diverged":
        assert "no winner: no run of seed 0 has finished" in typed(path, "--best", "--write", code=1)


def test_a_bundled_sweep_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [sweep_file.read(Path(word)).name for word in ("fedavg_grid", "sweeps/fedavg_grid.yaml")]
    assert names == ["fedavg_grid"] * 2
    (tmp_path / "fedavg_grid").write_text(FILE)  # what is here comes first
    assert len(sweep_file.read(Path("fedavg_grid")).points) == 3
    with pytest.raises(RefusedError, match=r"fedgm_gird: No such file.* Try fedgm_grid"):
        sweep_file.read(Path("fedgm_gird"))


def test_nobody_has_won_an_unfinished_or_shortened_sweep(path, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "conf_dir", lambda: tmp_path / "conf")
    made = stored(path)
    store(made.jobs[2], [0.9] * 5, "paused")
    assert "1 of 3 runs are not done" in typed(path, "--best", "--write", code=1)
    stored(path, (0.2, 0.4, 0.3), "rounds=6")
    assert "a shorter sweep chooses no winner" in typed(path, "--best", "--write", "rounds=6", code=2)
    path.write_text(FILE.replace("algorithm.eta", "data.alpha"))
    stored(path)
    assert "data.alpha" in typed(path, "--best", "--write", code=2)
    path.write_text(FILE.replace("+experiment=fedgm", "+experiment=vgg"))
    stored(path)
    assert "it takes those of fedgm" in typed(path, "--best", "--write", code=2)
    assert not (tmp_path / "conf").exists()


def test_exported_results_count_as_done_elsewhere(path, tmp_path):
    made = stored(path)
    store(made.jobs[2], [0.3] * 5, "paused")
    assert f"3 runs in {tmp_path / 'r.jsonl'}" in typed(
        path, "--status", "--export", str(tmp_path / "r.jsonl")
    )
    assert {run.status for run in archive.read(tmp_path / "r.jsonl")} == {"finished", "paused"}
    elsewhere = sweep.load(path, output_dir=tmp_path / "empty", stored=[tmp_path / "r.jsonl"])
    states = [elsewhere.results.state(job) for job in elsewhere.plan.jobs]
    assert states == ["finished", "finished", "paused"]
    with pytest.raises(FedGMError, match="contains no run"):
        sweep.load(path, output_dir=tmp_path / "empty", stored=[tmp_path / "missing.jsonl"])


@pytest.mark.parametrize("word", ["seed=5", "output_dir=elsewhere", "stop_after=5", "rerun=true"])
def test_overrides_that_fight_the_runner_are_refused(path, word):
    assert f"{word}: the sweep itself decides this" in typed(path, "--status", word, code=2)


def test_points_that_are_one_run_and_a_metric_that_none_has_are_refused(path):
    path.write_text(FILE.replace("[0.5, 1.0, 2.0]", "[1, 1.0]"))
    with pytest.raises(ConfigError, match="points 0 and 1"):
        points.make(sweep_file.read(path), [], [0], "o")
    path.write_text(FILE.replace("test/acc", "test/accuracy"))
    assert "metric: {name: test/acc, goal: maximize}" in typed(path, code=2)


def test_a_number_that_yaml_takes_for_a_word_is_the_number_of_hydra(path):
    path.write_text(FILE.replace("[0.5, 1.0, 2.0]", "[5e-1, 2.0]"))
    first = points.make(sweep_file.read(path), [], [0], "o").jobs
    path.write_text(FILE.replace("[0.5, 1.0, 2.0]", "[0.5, 2.0]"))
    assert [job.hash for job in first] == [
        job.hash for job in points.make(sweep_file.read(path), [], [0], "o").jobs
    ]
