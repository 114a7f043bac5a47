"""A longer run holds the shorter ones: its first rows are theirs, and a figure is drawn from them."""

import json
from dataclasses import replace

import pytest

import fedgm
from fedgm.paper import longer, reproduce
from fedgm.paper.plan import make
from fedgm.track import archive, record

SMALL = [
    "profile=tiny", "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20",
    "clients.count=10", "clients.per_round=2", "local.unit=steps", "local.epochs=2", "track.mode=disabled",
]  # fmt: skip
ALONE = ["schedule.etas=[2.0]"]
MULTISTAGE = ["schedule.etas=[2.0,1.0,0.5]"]
CLOCK = ("seconds", "commit", "versions")


def trained(folder, *words) -> record.RunRecord:
    fedgm.run([*words, *SMALL, f"output_dir={folder}"])
    [found] = record.below(folder)
    return found


@pytest.fixture(scope="module")
def paused(tmp_path_factory) -> record.RunRecord:
    """Eight of twelve rounds."""
    home = tmp_path_factory.mktemp("paused")
    return trained(home, "+experiment=multistage_long", *ALONE, "rounds=12", "stop_after=8")


def planned(*words):
    return make("multistage", [0], [*SMALL, *words], "none")


def parts_of(one, run: record.RunRecord):
    return {key: part for key, (part, _) in longer.parts(one, {run.key: run}).items()}


@pytest.mark.parametrize(
    "words",
    [[], ["participation=autonomous"], ["participation=event"], ["client=scaffold"], ["eval.every=3"]],
)
def test_the_beginning_of_a_longer_run_is_the_record_of_the_shorter_one(tmp_path, words):
    experiment = ["+experiment=multistage", *ALONE, *words]
    short = trained(tmp_path / "short", *experiment, "rounds=6")
    long = trained(tmp_path / "long", "+experiment=multistage_long", *ALONE, *words, "rounds=12")
    part = parts_of(planned("rounds=6", *words), long)[short.key]
    assert part.evaluations == short.evaluations
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


@pytest.mark.parametrize(
    ("end", "status", "done"), [(5, "diverged", 5), (6, "diverged", 6), (7, "finished", 6)]
)
def test_a_diverged_run_has_diverged_only_where_it_ended(paused, end, status, done):
    facts = {**paused.facts, "status": "diverged", "reason": "loss", "rounds_done": end}
    lost = replace(paused, facts=facts, evaluations=paused.evaluations[:end])
    [part] = parts_of(planned("rounds=6"), lost).values()
    assert (part.status, part.facts["rounds_done"], len(part.evaluations)) == (status, done, done)
    assert part.facts["reason"] == ("loss" if status == "diverged" else None)


def test_a_figure_takes_its_lines_from_longer_runs_and_says_so(tmp_path):
    words = [*SMALL, "rounds=14"]
    reproduce.reproduce("fig8", words, seeds=[0], workers=2, output_dir=tmp_path / "long", out=tmp_path / "8")
    stored = tmp_path / "long.jsonl"
    first, *others = record.below(tmp_path / "long")
    assert len(first.facts["stages"]) == 1
    facts = {**first.facts, "status": "paused", "rounds_done": 9}  # not at its end, but past that of the part
    archive.write(stored, [replace(first, facts=facts, evaluations=first.evaluations[:9]), *others])
    work = reproduce.load("fig2", [*SMALL, "rounds=7"], [0], tmp_path / "short", known=[stored])
    assert [job.values["line"] for job in work.missing] == ["fig2 multistage, eta 2, 1, 0.5"]
    assert work.run(1) == {}
    [verdict] = work.conclude(tmp_path / "2")
    assert verdict["parts"] == {"eta 2": 14, "eta 1": 14, "eta 0.5": 14}
    assert verdict["missing"] == []
    assert work.export(tmp_path / "both.jsonl") == 4
    kept = {run.facts["rounds"] for run in archive.read(tmp_path / "both.jsonl")}
    assert kept == {7, 14}  # parts are stored as the runs that they are of
    again = reproduce.load("fig2", [*SMALL, "rounds=7"], [0], tmp_path, stored=tmp_path / "both.jsonl")
    [redrawn] = again.conclude(tmp_path / "again")
    assert json.dumps(redrawn) == json.dumps(verdict)
