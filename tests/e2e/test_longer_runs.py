"""A longer run holds the shorter ones: its first rows are theirs, and a figure is drawn from them."""

import json
from dataclasses import replace

import pytest
from omegaconf import DictConfig, OmegaConf

import fedgm
from fedgm.config.identity import dotted
from fedgm.results import archive
from fedgm.results.find import below
from fedgm.results.run import Run
from fedgm.study import longer, report, reproduce
from fedgm.study.figure_runs import make
from tests.conftest import quick

SMALL = [
    "profile=tiny", "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20",
    "clients.count=10", "clients.per_round=2", "local.unit=steps", "local.epochs=2", "track.mode=disabled",
]  # fmt: skip
ALONE = ["schedule.etas=[2.0]"]
MULTISTAGE = ["schedule.etas=[2.0,1.0,0.5]"]
CLOCK = ("seconds", "commit", "versions")


def trained(folder, *words) -> Run:
    fedgm.run([*words, *SMALL, f"output_dir={folder}"])
    [found] = below(folder)
    return found


@pytest.fixture(scope="module")
def paused(tmp_path_factory) -> Run:
    """Eight of twelve rounds."""
    home = tmp_path_factory.mktemp("paused")
    return trained(home, "+experiment=multistage_long", *ALONE, "rounds=12", "stop_after=8")


def planned(*words):
    return make("multistage", [0], [*SMALL, *words], "none")


def parts_of(one, run: Run):
    return {key: part for key, (part, _) in longer.parts(one, {run.key: run}).items()}


def as_of(cfg: DictConfig, run: Run, **facts) -> Run:
    """The rows of a run, as if it had this configuration."""
    values = dotted(OmegaConf.to_container(cfg, resolve=True))
    return replace(run, facts={**run.facts, **facts}, config=values)


MODES = {
    "ideal": [],
    "autonomous": ["participation=autonomous"],
    "event": ["participation=event"],
    "client states": ["client=scaffold"],
    "few evaluations": ["eval.every=3"],
}


@pytest.mark.parametrize("mode", quick(MODES, "event"))
def test_the_beginning_of_a_longer_run_is_the_record_of_the_shorter_one(tmp_path, mode):
    words = MODES[mode]
    experiment = ["+experiment=multistage", *ALONE, *words]
    short = trained(tmp_path / "short", *experiment, "rounds=6")
    long = trained(tmp_path / "long", "+experiment=multistage_long", *ALONE, *words, "rounds=12")
    part = parts_of(planned("rounds=6", *words), long)[short.key]
    follows = {longer.FOLLOWS}  # a column that a part does not have
    assert part.evaluations == [{k: row[k] for k in row if k not in follows} for row in short.evaluations]
    assert part.config == short.config
    apart = {key for key in part.facts if part.facts[key] != short.facts[key]}
    assert apart <= {*CLOCK}


def test_stages_that_end_elsewhere_share_nothing(tmp_path):
    long = trained(tmp_path, "+experiment=multistage_long", *MULTISTAGE, "rounds=14")
    assert parts_of(planned("rounds=7"), long) == {}


def test_a_last_evaluation_that_the_longer_run_does_not_have_shares_nothing(tmp_path):
    long = trained(tmp_path, "+experiment=multistage_long", *ALONE, "rounds=12", "eval.every=3")
    assert parts_of(planned("rounds=7", "eval.every=3"), long) == {}


def test_other_values_share_nothing(paused):
    assert parts_of(planned("rounds=6", "local.lr=0.02"), paused) == {}


def test_a_run_under_way_is_a_part_once_it_is_there(paused):
    assert paused.status == "paused"
    [part] = parts_of(planned("rounds=8"), paused).values()
    assert part.status == "finished"
    assert part.facts["rounds_done"] == 8
    assert parts_of(planned("rounds=9"), paused) == {}


# A loss above its limit ends a run after the row of its round, an update that is not finite before it.
LOST = [(5, ["diverged"]), (6, []), (7, ["finished"])]


@pytest.mark.parametrize(("done", "statuses"), LOST)
def test_a_diverged_run_has_diverged_only_up_to_the_round_in_which_it_did(paused, done, statuses):
    facts = {**paused.facts, "status": "diverged", "reason": "not finite", "rounds_done": done}
    lost = replace(paused, facts=facts, evaluations=paused.evaluations[:done])
    parts = parts_of(planned("rounds=6"), lost).values()
    assert [part.status for part in parts] == statuses
    assert all(part.facts["rounds_done"] == min(6, done) for part in parts)
    assert all(part.facts["reason"] == ("not finite" if part.is_divergent else None) for part in parts)


@pytest.mark.parametrize("status", ["damaged", "failed", "killed", "running"])
def test_a_run_of_which_nobody_knows_whether_it_is_whole_is_left_alone(paused, status):
    assert parts_of(planned("rounds=6"), replace(paused, facts={**paused.facts, "status": status})) == {}


ROUNDS = [{"rounds": None}, {"rounds": "many"}, {"rounds": 1e400}]
NAMES = [{"name": None}, {"name": "../x"}, {"name": "${x}"}]


@pytest.mark.parametrize("facts", [*ROUNDS, *NAMES], ids=str)
def test_an_odd_record_of_somebody_else_stops_nothing(paused, facts):
    other = replace(paused, facts={**paused.facts, **facts})
    assert parts_of(planned("rounds=6"), other) == {}


def test_a_record_without_rows_holds_nothing(paused):
    assert parts_of(planned("rounds=6"), replace(paused, evaluations=[])) == {}


@pytest.mark.slow
def test_stages_of_given_lengths_have_no_longer_run(paused):
    lengths = ["schedule=stages", "schedule.etas=[2.0,1.0]", "schedule.lengths=[3,4]", "rounds=7"]
    one = make("fedgm", [0], [*SMALL, *lengths], "none")
    assert parts_of(one, paused) == {}


OTHERS_PARTS = ["callbacks=early_stopping", "data.source._target_=my.Source", "task._target_=my.Task"]


@pytest.mark.parametrize("word", OTHERS_PARTS)
def test_what_is_not_ours_might_look_at_the_number_of_rounds(paused, word):
    other = planned("rounds=6", word)
    long = OmegaConf.merge(other.configs["eta_2", 0], {"rounds": 12, "name": "multistage_long"})
    run = as_of(long, paused)
    assert parts_of(other, run) == {}


def test_how_many_clients_took_part_between_evaluations_may_be_unknown(tmp_path):
    words = ["participation=autonomous", "participation.epochs=[0,2]", "eval.every=3"]
    long = trained(tmp_path, "+experiment=multistage_long", *ALONE, *words, "rounds=12")
    [part] = parts_of(planned("rounds=6", *words), long).values()
    assert part.facts["local_steps"] is None


def test_a_run_that_is_done_comes_before_a_longer_one_that_is_not(paused):
    cfg = planned("rounds=6").configs["eta_2", 0]
    longest = OmegaConf.merge(cfg, {"rounds": 24, "name": "multistage_long"})
    shorter = OmegaConf.merge(cfg, {"rounds": 8, "name": "multistage_long"})
    runs = [
        as_of(longest, paused, rounds=24),
        as_of(shorter, paused, rounds=8, status="finished"),
        paused,
    ]
    found = longer.parts(planned("rounds=6"), {run.key: run for run in runs})
    assert [whole.facts["rounds"] for _, whole in found.values()] == [8]


@pytest.mark.slow
def test_a_figure_takes_its_lines_from_longer_runs_and_says_so(tmp_path):
    words = [*SMALL, "rounds=14"]
    reproduce.reproduce("fig8", words, seeds=[0], workers=2, output_dir=tmp_path / "long", out=tmp_path / "8")
    stored = tmp_path / "long.jsonl"
    first, *others = below(tmp_path / "long")
    assert len(first.facts["stages"]) == 1
    facts = {**first.facts, "status": "paused", "rounds_done": 9}  # not at its end, but past that of the part
    archive.write(stored, [replace(first, facts=facts, evaluations=first.evaluations[:9]), *others])
    work = reproduce.load("fig2", [*SMALL, "rounds=7"], [0], tmp_path / "short", known=[stored])
    assert [job.values["line"] for job in work.missing] == ["fig2 multistage, eta 2, 1, 0.5"]
    assert work.run(1) == {}
    [verdict] = work.conclude(tmp_path / "2")
    assert verdict["beginnings"] == {key: {"0": 14} for key in ("eta_2", "eta_1", "eta_05")}
    page = report.markdown([verdict], tmp_path / "2", tmp_path)
    assert " eta 2 | eta 1 | eta 0.5: the first 7 rounds of runs of 14 (seeds 0)." in page
    assert verdict["missing"] == []
    assert work.export(tmp_path / "both.jsonl") == 4
    kept = {run.facts["rounds"] for run in archive.read(tmp_path / "both.jsonl")}
    assert kept == {7, 14}  # parts are stored as the runs that they are of
    again = reproduce.load("fig2", [*SMALL, "rounds=7"], [0], tmp_path, stored=tmp_path / "both.jsonl")
    [redrawn] = again.conclude(tmp_path / "again")
    assert json.dumps(redrawn) == json.dumps(verdict)
