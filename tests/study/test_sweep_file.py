"""Sweep files: what W&B takes runs here too, what cannot run is refused with the key and what to write."""

from pathlib import Path

import pytest
import yaml

from fedgm.errors import ConfigError, FedGMError
from fedgm.study import sweep_file
from fedgm.study.rungs import Halving

ROOT = Path(__file__).parents[2]
GOOD = {
    "method": "grid",
    "metric": {"name": "test/acc", "goal": "maximize"},
    "parameters": {"algorithm.eta": {"values": [0.5, 1.0]}, "algorithm.beta": {"value": 0.9}},
    "command": ["${env}", "${interpreter}", "${program}", "+experiment=fedgm", "${args_no_hyphens}"],
}
RANDOM = {"method": "random", "run_cap": 3}
QUANTUM = {"distribution": "q_uniform", "min": 0.0, "max": 1.0}


def written(folder: Path, **changes) -> Path:
    content = {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}
    path = folder / "s.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_grid_is_every_combination_in_the_files_order(tmp_path):
    parameters = {"a": {"values": [1, 2]}, "b": {"values": ["x", "y"]}, "c": {"value": 7}}
    read = sweep_file.read(written(tmp_path, parameters=parameters))
    pairs = [(point["a"], point["b"]) for point in read.points]
    assert pairs == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]
    assert all(point["c"] == 7 for point in read.points)
    assert (read.swept, read.fixed, read.name) == (["a", "b"], ("+experiment=fedgm",), "s")


@pytest.mark.parametrize(
    ("name", "points", "rungs"),
    [
        ("fedgm_grid", 90, None), ("fedavgm_grid", 30, None), ("fedavg_grid", 10, None),
        ("autonomous_fedgm_grid", 36, [3, 9]), ("autonomous_fedavg_grid", 12, [3, 9]),
        ("vgg_grid", 30, None), ("heterogeneity_grid", 60, None), ("multistage", 9, None),
        ("delay10_fedgm_grid", 6, None), ("delay10_fedavg_grid", 6, None),
    ],
)  # fmt: skip
def test_our_files_have_the_papers_points(name, points, rungs):
    read = sweep_file.read(ROOT / "sweeps" / f"{name}.yaml")
    assert len(read.points) == len({tuple(point.items()) for point in read.points}) == points
    assert (read.halving.rungs(25) if read.halving else None) == rungs


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metod": "grid", "method": ...}, r"s\.yaml: metod.*Try method: as the key"),
        ({"method": "gird"}, r"s\.yaml: method=gird.*grid or random.*Try method: grid"),
        ({"method": "bayes"}, r"method=bayes.*W&B's server.*Try wandb sweep"),
        ({"metric": ...}, r"s\.yaml: metric=None.*metric: {name: test/loss, goal: minimize}"),
        ({"metric": {"name": "test/acc", "goal": "up"}}, r"metric\.goal=up.*maximize or minimize"),
        ({"metric": {"name": "test/acc", "gaol": "maximize"}}, r"metric\.gaol=.*Try goal: as the key"),
        ({"metric": {"nmae": "test/acc"}}, r"metric\.nmae=.*Try name: as the key"),
        ({"parameters": {}}, r"s\.yaml: parameters=\{\}.*at least one key"),
        ({"parameters": {"a": {"values": []}}}, r"parameters\.a\.values=\[\].*a list of values"),
        ({"parameters": {"a": {"values": [{"b": 1}]}}}, r"parameters\.a=\{'b': 1\}.*a file in conf/"),
        ({"parameters": {"a": {"valus": [1.0]}}}, r"parameters\.a\.valus=.*Try values: as the key"),
        (
            {"parameters": {"a": {"values": [1.0], "distrbution": "uniform"}}},
            r"a\.distrbution=.*Try distribution:",
        ),
        (
            {"parameters": {"a": {"values": [1.0], "min": 0}}},
            r"parameters\.a\.min=0: categorical has no such key",
        ),
        (
            {"parameters": {"a": {"values": [1.0], "value": 2}}},
            r"parameters\.a\.values=.*constant has no such key",
        ),
        ({"parameters": {"a": 3}}, r"parameters\.a=3.*value:, values:"),
        ({"parameters": {"a": {"min": 0.0, "max": 1.0}}}, r"parameters\.a=.*a grid has no distributions"),
        ({"command": ["${program}", "${args}"]}, r"command=.*\$\{args_no_hyphens\}"),
        ({"early_terminate": {"type": "median"}}, r"early_terminate=.*type: hyperband"),
        ({"early_terminate": {"type": "hyperband"}}, r"early_terminate=.*min_iter, or max_iter and s"),
        ({"early_terminate": {"type": "hyperband", "min_iter": 3, "eta": 1}}, r"early_terminate\.eta=1"),
        (
            {**RANDOM, "parameters": {"a": {"values": [1], "probabilities": [1]}}},
            r"a\.probabilities=.*unknown key",
        ),
        (
            {**RANDOM, "parameters": {"a": {"min": 0, "max": 1, "q": 0.1}}},
            r"a\.q=0\.1: int_uniform has no such key",
        ),
        (
            {**RANDOM, "parameters": {"a": {"distribution": "beta"}}},
            r"parameters\.a=beta: expected constant, categ",
        ),
        ({**RANDOM, "parameters": {"a": {**QUANTUM, "q": 0}}}, r"q_uniform needs q: above 0"),
        ({**RANDOM, "parameters": {"a": {**QUANTUM, "q": "x"}}}, r"q_uniform needs numbers"),
        ({**RANDOM, "parameters": {"a": {"distribution": "normal", "sigma": -1}}}, r"sigma: of 0 or more"),
        ({"method": "random"}, r"run_cap=None.*run_cap: 20"),
    ],
)
def test_a_bad_file_is_refused_with_the_key_and_what_to_write(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        sweep_file.read(written(tmp_path, **changes))


def test_the_mean_that_wandb_ranks_by_names_its_column(tmp_path):
    metric = {"name": "last10/test/acc", "goal": "maximize"}
    assert sweep_file.read(written(tmp_path, metric=metric)).metric == "test/acc"


def test_what_wandbs_server_alone_reads_of_a_metric_is_no_typo(tmp_path):
    metric = {"name": "test/loss", "target": 0.5, "impute": "worst"}
    read = sweep_file.read(written(tmp_path, metric=metric))
    assert (read.metric, read.goal) == ("test/loss", "minimize")


@pytest.mark.parametrize("text", ["a: [", "- 1\n", ""])
def test_what_is_no_sweep_file_is_refused(tmp_path, text):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(FedGMError, match=r"s\.yaml"):
        sweep_file.read(tmp_path / "s.yaml")


def test_random_points_follow_from_the_file_alone_and_keep_their_ranges(tmp_path):
    parameters = {
        "a": {"min": 0.5, "max": 5.0}, "b": {"values": ["x", "y"]}, "n": {"min": 1, "max": 3},
        "l": {"distribution": "log_uniform_values", "min": 0.001, "max": 1.0},
        "q": {"distribution": "q_uniform", "min": 0.0, "max": 1.0, "q": 0.25},
    }  # fmt: skip
    path = written(tmp_path, method="random", parameters=parameters, run_cap=200)
    points = sweep_file.read(path).points
    assert points == sweep_file.read(path).points
    assert len(points) == 200
    assert all(0.5 <= p["a"] <= 5 and p["b"] in "xy" and 0.001 <= p["l"] <= 1 for p in points)
    assert {p["n"] for p in points} == {1, 2, 3}
    assert {p["q"] for p in points} == {0.0, 0.25, 0.5, 0.75, 1.0}
    assert sum(p["l"] < 0.0316 for p in points) == pytest.approx(100, abs=30)  # half of them, on a log scale


# Halving: by hand -----------------------------------------------------------------------------------------


def test_rungs_count_evaluations_as_hyperband_does():
    assert Halving(3, min_iter=3).rungs(25) == [3, 9]
    assert Halving(3, min_iter=3).rungs(100) == [3, 9, 27, 81]
    assert Halving(3, min_iter=3).rungs(9) == [3]  # the end of the run is not a rung
    assert Halving(3, max_iter=27, s=2).rungs(100) == [3, 9]
    assert Halving(2, min_iter=5).rungs(4) == []


def test_the_best_third_goes_on_rounded_up_ties_to_the_lower_and_nothing_diverged():
    scores = {0: 0.3, 1: 0.5, 2: 0.5, 3: None, 4: 0.1, 5: 0.5, 6: 0.2}  # 7 points: ceil(7/3) = 3
    assert Halving(3, min_iter=1).survivors(scores, higher=True) == [1, 2, 5]
    assert Halving(3, min_iter=1).survivors(scores, higher=False) == [0, 4, 6]
    assert Halving(4, min_iter=1).survivors(scores, higher=True) == [1, 2]
    assert Halving(3, min_iter=1).survivors({0: None, 1: None}, higher=True) == []
    assert Halving(3, min_iter=1).survivors({0: 0.1, 1: None, 2: 0.0}, higher=True) == [0]
