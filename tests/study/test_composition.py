"""One composition a sweep: every point has the hash that Hydra's own composition of its words has."""

from copy import deepcopy

import pytest
import yaml

from fedgm.config import compose
from fedgm.config.identity import identity
from fedgm.study import composition, points, sweep_file

WORDS = ["profile=tiny", "track.mode=disabled"]


def planned(folder, parameters: dict, seeds=(0,), words=WORDS):
    content = {
        "method": "grid",
        "metric": {"name": "test/acc", "goal": "maximize"},
        "parameters": {key: {"values": values} for key, values in parameters.items()},
        "command": ["${program}", *words, "${args_no_hyphens}"],
    }
    (folder / "s.yaml").write_text(yaml.safe_dump(content))
    return points.make(sweep_file.read(folder / "s.yaml"), [], seeds, str(folder))


@pytest.mark.parametrize(
    "parameters",
    [
        {"algorithm.eta": [0.5, 1, 2.0], "algorithm.beta": [0.7, 0.9]},
        {"local.lr": [0.1, 0.01], "algorithm.eta": [1.0, 2.0]},  # the optimisers follow local.lr
        {"algorithm": ["fednag", "fedgm"], "algorithm.beta": [0.7, 0.9]},  # nu of fednag follows beta
        {
            "clients.count": [10, 20],
            "data.alpha": [0.1, 1.0],
        },  # participation follows the one, split the other
        {"paper_rounds": [1000, 2000], "eval.loss_limit": [10.0, 20.0]},  # rounds are computed
        {"seed": [0, 1], "data.seed": [0, 1]},  # a seed that does not follow the run's
        {"algorithm.nu": ["${algorithm.beta}", 0.5], "algorithm.beta": [0.7, 0.9]},
        {"profile.resolution": [8, 16], "eval.every": [1, 2]},
    ],
    ids=lambda parameters: ",".join(parameters),
)
def test_the_hash_of_a_point_is_that_of_its_words(tmp_path, parameters):
    plan = planned(tmp_path, parameters)
    for job, cfg in zip(plan.jobs, plan.configs, strict=True):
        assert job.hash == identity(cfg)
        own = compose(list(job.overrides))
        assert (job.hash, job.rounds, job.eval_every) == (identity(own), own.rounds, own.eval.every)


def test_points_that_nothing_follows_are_resolved_once(tmp_path, monkeypatch):
    resolved: list[int] = []
    composed: list[int] = []
    copied: list[int] = []
    original, by_hydra = composition.resolved, composition.compose
    monkeypatch.setattr(composition, "resolved", lambda cfg: (resolved.append(1), original(cfg))[1])
    monkeypatch.setattr(composition, "compose", lambda words: (composed.append(1), by_hydra(words))[1])
    monkeypatch.setattr(composition, "deepcopy", lambda cfg: (copied.append(1), deepcopy(cfg))[1])
    plan = planned(tmp_path, {"algorithm.eta": [n / 10 for n in range(1, 31)]}, seeds=(0, 1))
    assert len({job.hash for job in plan.jobs}) == 30
    assert len(resolved) == 2  # one for each seed
    assert len(copied) < 10  # the configuration of a job is made when it is asked for: 60 need much memory
    list(plan.configs)  # as they are checked before the first run
    assert len(composed) == 1  # by Hydra, for all


def test_what_a_reference_can_mean_is_not_free():
    cfg = compose([*WORDS, "algorithm.eta=1.0"])
    values = {"algorithm.eta": 1.0}
    assert composition._free(cfg, values) == {"algorithm.eta"}
    for text in (
        "${mine:x}",
        "${a.${b}}",
        "${${a}}",
        "${a[0]}",
        "${algorithm}",
        "${.eta}",
        "${algorithm.eta}",
    ):
        other = cfg.copy()
        other.name = text
        assert composition._free(other, values) == set(), text
