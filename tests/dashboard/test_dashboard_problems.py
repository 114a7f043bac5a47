"""Like beside like: runs of one problem, runs of one setting, and the seed on which a winner was chosen."""

import json
from pathlib import Path
from statistics import mean, stdev

import pytest

from fedgm.dashboard import payload
from fedgm.dashboard.collect import Collector
from fedgm.dashboard.problems import choosers, problems
from fedgm.results.find import below
from tests.dashboard.dashboard_runs import STAGES, write_run

STORED = Path(__file__).parents[2] / "docs" / "results" / "small"


def built(*paths):
    return payload.build(Collector(paths).collect(), "runs", lambda run: None)


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"name": "cifar10"}}, {"data": {"alpha": 0.5}}, {"data": {"partition": "shards"}},
        {"model": {"name": "vgg11"}}, {"clients": {"per_round": 2}},
        {"participation": {"name": "autonomous"}}, {"local": {"epochs": 1}},
        {"task": {"name": "next_token"}}, {"eval": {"every": 10}}, {"data": {"seed": 7}},
    ],
    ids=str,
)  # fmt: skip
def test_data_split_model_clients_and_local_work_make_a_problem(tmp_path, change):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", config=change)
    assert len(problems(below(tmp_path))) == 2


def test_rounds_make_a_problem(tmp_path):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", rounds=50)
    labels = [problem.label for problem in problems(below(tmp_path))]
    assert labels == ["synthetic, resnet, 100 rounds", "synthetic, resnet, 50 rounds"]


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": {"eta": 3.0}}, {"schedule": {"name": "cosine"}}, {"client": {"name": "scaffold"}},
        {"upload": {"name": "topk"}}, {"trainer": {"workers": 4}}, {"model": {"channels_last": True}},
    ],
    ids=str,
)  # fmt: skip
def test_the_method_makes_no_problem(tmp_path, change):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", seed=1, config=change)
    assert len(problems(below(tmp_path))) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"trainer": {"workers": 4, "name": "cpu"}}, {"track": {"mode": "online"}},
        {"data": {"root": "elsewhere"}}, {"checkpoint": {"every": 5}}, {"upload": {"name": "plain"}},
        {"participation": {"anchor": "start"}}, {"eval": {"point": "sent", "clients": 0}},
        {"task": {"name": "classification"}},
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_change_a_result_and_younger_keys_make_no_setting(tmp_path, change):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", seed=1, config=change)
    values = built(tmp_path)
    assert len({run["hash"] for run in values["runs"]}) == 1
    assert [(run["config"], run["without"]) for run in values["runs"]] == [({}, []), ({}, [])]
    assert not {key for key in values["config"] if key.startswith(("trainer", "track", "checkpoint"))}


def test_a_key_that_is_younger_than_a_run_has_its_implied_value(tmp_path):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", config={"participation": {"anchor": "current"}})
    values = built(tmp_path)
    anchors = {
        run["config"].get("participation.anchor", values["config"]["participation.anchor"])
        for run in values["runs"]
    }
    assert anchors == {"start", "current"}


def test_seeds_that_follow_the_seed_are_no_difference(tmp_path):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", seed=1)
    values = built(tmp_path)
    assert "seed" not in values["config"]
    assert values["config"]["data.seed"] == "seed"
    assert all(run["config"] == {} for run in values["runs"])


def test_problems_with_several_algorithms_come_first(tmp_path):
    for seed in range(3):
        write_run(tmp_path / f"long {seed}", seed=seed, rounds=200)
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", "fedavg")
    assert [(len(p.runs), p.label) for p in problems(below(tmp_path))] == [
        (2, "synthetic, resnet, 100 rounds"),
        (3, "synthetic, resnet, 200 rounds"),
    ]


def chosen(path):
    return {(run["config"].get("algorithm.eta"), run["seed"]) for run in built(path)["runs"] if run["chose"]}


def test_the_seed_of_a_grid_chose_its_best_setting(tmp_path):
    for eta in (0.5, 1.0, 2.0):  # 2 is the best
        write_run(tmp_path / f"{eta} 0", eta=eta)
    for seed in (1, 2, 3):
        write_run(tmp_path / f"2 {seed}", eta=2.0, seed=seed)
    write_run(tmp_path / "1 1", eta=1.0, seed=1)
    (problem,) = problems(below(tmp_path))
    ((winner, seed),) = choosers(problem)
    (run,) = [run for run in problem.runs if run.key == (winner, seed)]
    assert (run.config["algorithm.eta"], seed) == (2.0, 0)
    assert [run["chose"] for run in built(tmp_path)["runs"]].count(True) == 1


def test_seeds_that_all_settings_have_chose_nothing(tmp_path):
    for eta in (0.5, 2.0):
        for seed in (0, 1):
            write_run(tmp_path / f"{eta} {seed}", eta=eta, seed=seed)
    write_run(tmp_path / "other", "fedavg")
    assert chosen(tmp_path) == set()


def test_a_winner_by_a_loss_is_the_lowest(tmp_path):
    for eta in (0.5, 2.0):
        write_run(tmp_path / f"{eta} 0", eta=eta, metrics=("test/loss",))
    write_run(tmp_path / "2 1", eta=2.0, seed=1, metrics=("test/loss",))
    for place in tmp_path.iterdir():
        facts = json.loads((place / "summary.json").read_text())
        loss = {"name": "loss", "label": "loss", "better": "lower"}
        text = json.dumps({**facts, "metric": "test/loss", "metrics": [loss]})
        (place / "summary.json").write_text(text)
    (problem,) = problems(below(tmp_path))
    ((winner, _),) = choosers(problem)
    assert {run.config["algorithm.eta"] for run in problem.runs if run.key[0] == winner} == {2.0}


def test_stored_winners_have_the_means_of_the_figures():
    """Figure 1ab of the README: 35.14 ± 0.94, 39.17 ± 1.49 and 43.14 ± 1.00 %."""
    values = built(STORED)
    assert "cifar10, resnet, 125 rounds, ideal" in values["problems"][0]["label"]
    some = [run for run in values["runs"] if run["problem"] == 0]
    figures = {"fedavg": (35.14, 0.94), "fedavgm": (39.17, 1.49), "fedgm": (43.14, 1.00)}
    for algorithm, numbers in figures.items():
        (chooser,) = [run for run in some if run["algorithm"] == algorithm and run["chose"]]
        others = [run for run in some if run["hash"] == chooser["hash"] and not run["chose"]]
        assert (chooser["seed"], sorted(run["seed"] for run in others)) == (0, [1, 2, 3, 4, 5, 6])
        scores = [100 * run["scores"]["test/acc"] for run in others]
        assert (mean(scores), stdev(scores)) == pytest.approx(numbers, abs=0.005)


def test_stages_have_their_etas(tmp_path):
    write_run(tmp_path / "a", stages=STAGES)
    write_run(tmp_path / "b", stages=[{"rounds": 50, "eta": 1.0}, {"rounds": 50, "eta": 1.0}], eta=3.0)
    write_run(tmp_path / "c", eta=2.0)
    by_etas = [run["etas"] for run in built(tmp_path)["runs"]]
    assert sorted(by_etas) == [[], [], [2.0, 1.0]]
