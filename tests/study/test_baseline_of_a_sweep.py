"""FedAvg's best beside a sweep: which stored runs count as its peers, and the map that is drawn from them."""

import json
from copy import deepcopy
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from fedgm.config import compose
from fedgm.results.find import below
from fedgm.results.run import once
from fedgm.study import points, sweep_file, sweep_pictures
from fedgm.study.points import Job
from fedgm.study.sweep_progress import Results
from tests.study.stored_runs import store

FILE = """
method: grid
metric: {name: test/acc, goal: maximize}
parameters:
  algorithm.eta: {values: [1.0, 2.0]}
  algorithm.beta: {values: [0.7, 0.9]}
command: ["${program}", +experiment=EXPERIMENT, profile=tiny, rounds=4, "${args_no_hyphens}"]
"""
FEDAVG = ("profile=tiny", "rounds=4", "algorithm=fedavg")


@pytest.fixture(scope="module")
def fedavg() -> DictConfig:
    return compose(["+experiment=fedgm", *FEDAVG])


def keep(cfg: DictConfig, score: float, home: Path, status: str = "finished", **values) -> Path:
    """A run folder with the configuration that a run writes; its curve and its hash are made up."""
    changed = deepcopy(cfg)
    for key, value in values.items():
        OmegaConf.update(changed, key, value)
    mark = sha256(repr((changed.algorithm.name, score, status, values)).encode()).hexdigest()
    folder = home / changed.name / mark / f"seed={changed.seed}"
    put(
        Job(0, changed.seed, {}, (), folder, mark, changed.rounds, changed.eval.every), changed, score, status
    )
    return folder


def put(job: Job, cfg: DictConfig, score: float, status: str = "finished") -> None:
    store(job, [score] * job.rounds, status)
    facts = json.loads((job.folder / "summary.json").read_text())
    facts |= {"algorithm": cfg.algorithm.name, "name": cfg.name}
    (job.folder / "summary.json").write_text(json.dumps(facts))
    (job.folder / "config.yaml").write_text(OmegaConf.to_yaml(cfg, resolve=True))


def sweep(
    folder: Path, experiment: str = "fedgm", text: str = FILE, seeds=(0,), words=()
) -> points.SweepPlan:
    """A sweep of which every run is finished, with scores .31, .32, .33, .34."""
    (folder / "s.yaml").write_text(text.replace("EXPERIMENT", experiment))
    made = points.make(sweep_file.read(folder / "s.yaml"), words, seeds, str(folder / "o"))
    for job, cfg in zip(made.jobs, made.configs, strict=True):
        put(job, cfg, 0.31 + 0.01 * job.point)
    return made


def baseline(made: points.SweepPlan, archive=()) -> tuple[float | None, str]:
    score, name = sweep_pictures._baseline(Results(made, once(archive)))
    return score if score is None else round(score, 6), name


def test_the_best_fedavg_run_is_named_with_its_eta_and_its_map_is_drawn(tmp_path, fedavg):
    made = sweep(tmp_path)
    assert baseline(made) == (None, "")
    names = [path.name for path in sweep_pictures.draw(Results(made))]
    assert names == ["heatmap.png", "parallel.png", "importance.png"]
    for eta, score in ((0.5, 0.30), (1.5, 0.33), (2.5, 0.10)):
        keep(fedavg, score, tmp_path / "o", **{"algorithm.eta": eta})
    assert baseline(made) == (0.33, "FedAvg's best (η = 1.5)")
    names = [path.name for path in sweep_pictures.draw(Results(made), tmp_path / "drawn")]
    assert names == ["heatmap.png", "parallel.png", "importance.png", "advantage.png"]


def test_where_less_is_better_the_lowest_is_the_best(tmp_path, fedavg):
    made = sweep(tmp_path, text=FILE.replace("maximize", "minimize"))
    for eta, score in ((0.5, 0.30), (1.5, 0.20)):
        keep(fedavg, score, tmp_path / "o", **{"algorithm.eta": eta})
    assert baseline(made) == (0.2, "FedAvg's best (η = 1.5)")


OTHER = {
    "seed": {"seed": 1},
    "rounds": {"rounds": 5},
    "experiment": {"name": "run"},
    "data": {"data.alpha": 0.3},
    "split": {"data.seed": 3},
    "local work": {"local.epochs": 2},
    "clients": {"clients.per_round": 4},
    "evaluations": {"eval.every": 2},
}
SAME = {
    "workers": {"trainer.workers": 1},
    "tracking": {"track.mode": "disabled", "checkpoint.every": 5},
    "what is drawn": {"figure": None, "winners": None},
    "unused momentum": {"paper_momentum.eta": 3.0},
    "the judging column": {"eval.metric": "test/loss"},
    "where the data lie": {"data.root": "elsewhere"},
}


@pytest.fixture(scope="module")
def planned(tmp_path_factory) -> points.SweepPlan:
    return sweep(tmp_path_factory.mktemp("sweep"))


@pytest.mark.parametrize("values", OTHER.values(), ids=OTHER)
def test_a_run_of_another_setting_is_no_peer(planned, tmp_path, fedavg, values):
    keep(fedavg, 0.30, tmp_path, **{"algorithm.eta": 1.0})
    keep(fedavg, 0.40, tmp_path, **{"algorithm.eta": 2.0, **values})
    assert baseline(planned, below(tmp_path)) == (0.3, "FedAvg's best (η = 1)")


@pytest.mark.parametrize("values", SAME.values(), ids=SAME)
def test_what_cannot_change_a_result_makes_no_difference(planned, tmp_path, fedavg, values):
    keep(fedavg, 0.40, tmp_path, **{"algorithm.eta": 2.0, **values})
    assert baseline(planned, below(tmp_path)) == (0.4, "FedAvg's best (η = 2)")


@pytest.mark.parametrize("status", ["paused", "diverged", "failed", "running"])
def test_only_a_finished_run_counts(planned, tmp_path, fedavg, status):
    keep(fedavg, 0.40, tmp_path, status, **{"algorithm.eta": 2.0})
    assert baseline(planned, below(tmp_path)) == (None, "")


def test_another_algorithm_is_no_fedavg_and_fedavg_s_own_sweep_has_no_baseline(tmp_path, fedavg):
    made = sweep(tmp_path)
    keep(compose(["+experiment=fedgm", *FEDAVG, "algorithm=fedavgm"]), 0.40, tmp_path / "o")
    assert baseline(made) == (None, "")
    keep(fedavg, 0.40, tmp_path / "o", **{"algorithm.eta": 2.0})
    assert baseline(made)[0] == 0.4
    changed = FILE.replace("  algorithm.beta: {values: [0.7, 0.9]}\n", "  algorithm: {value: fedavg}\n")
    assert baseline(sweep(tmp_path, text=changed)) == (None, "")


def test_each_reading_is_compared_with_its_own(tmp_path):
    """Two sweeps and a FedAvg run of each reading in one folder."""
    current = ["participation=autonomous_current"]
    for words, score in (([], 0.2), (current, 0.3)):
        keep(compose(["+experiment=autonomous", *FEDAVG, *words]), score, tmp_path / "o")
    assert baseline(sweep(tmp_path, "autonomous"))[0] == 0.2
    assert baseline(sweep(tmp_path, "autonomous", words=current))[0] == 0.3


def test_a_run_of_an_older_version_counts_too(planned, tmp_path, fedavg):
    place = keep(fedavg, 0.40, tmp_path, **{"algorithm.eta": 2.0})
    config = yaml.safe_load((place / "config.yaml").read_text())
    for key in ("task", "upload", "callbacks", "figure"):
        del config[key]  # keys of later versions
    config["participation"] = {**config["participation"], "_target_": "fedgm.participation.Ideal"}
    del config["participation"]["sampler"], config["local"]["state"]
    (place / "config.yaml").write_text(yaml.safe_dump(config))
    assert baseline(planned, below(tmp_path)) == (0.4, "FedAvg's best (η = 2)")


def test_a_run_of_another_seed_that_came_first_hides_no_peer(tmp_path, fedavg):
    made = sweep(tmp_path, seeds=(0, 1))
    (made.jobs[0].folder / "summary.json").unlink()  # seed 0 of the first point is not there yet
    assert made.jobs[1].seed == 1
    keep(fedavg, 0.40, tmp_path / "o", **{"algorithm.eta": 2.0})
    assert baseline(made) == (0.4, "FedAvg's best (η = 2)")


def test_a_sweep_over_the_data_has_no_single_baseline(tmp_path, fedavg):
    """A FedAvg run at alpha 0.3 says nothing of the points at alpha 0.5."""
    text = FILE.replace("algorithm.beta: {values: [0.7, 0.9]}", "data.alpha: {values: [0.3, 0.5]}")
    made = sweep(tmp_path, text=text)
    for alpha in (0.3, 0.5):
        keep(fedavg, 0.40, tmp_path / "o", **{"data.alpha": alpha})
    assert baseline(made) == (None, "")
