"""How far a sweep may go, who wins, and what is kept of it: on run folders with made-up curves."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import yaml

from fedgm import config
from fedgm.api import load_runs
from fedgm.config.identity import identity
from fedgm.errors import ConfigError, FedGMError
from fedgm.results import archive
from fedgm.results.find import below, find, read_folder
from fedgm.results.run import once
from fedgm.running.folder import locate
from fedgm.screen import Screen
from fedgm.study import points, sweep_file
from fedgm.study.sweep import Sweep
from fedgm.study.sweep_pictures import drawn_points
from fedgm.study.sweep_progress import Results, targets
from fedgm.study.winners import at_budget, entry, other_seeds, ranking, write_best
from tests.results.made_records import record as made
from tests.study.planned_sweep import FILE, plan
from tests.study.stored_runs import store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def planned(tmp_path) -> points.SweepPlan:
    return plan(tmp_path)


@pytest.mark.usefixtures("real_composition")
def test_a_job_is_what_hydra_composes_from_its_words(planned):
    job = planned.jobs[3]
    cfg = config.compose(list(job.overrides))
    assert (identity(cfg), locate(cfg, job.overrides)) == (job.hash, job.folder)
    assert (cfg.algorithm.eta, cfg.algorithm.beta, job.rounds, job.eval_every) == (1.0, 0.9, 30, 3)


each_file = pytest.mark.parametrize(
    "file",
    [sweep_file.read(p) for p in sorted((ROOT / "sweeps").glob("*.yaml")) if "bayes" not in p.stem],
    ids=lambda file: file.path.stem,
)


@pytest.mark.slow
@each_file
@pytest.mark.usefixtures("real_composition")
def test_a_point_of_every_file_is_what_hydra_composes(file):
    (job,) = points.make(replace(file, points=file.points[-1:]), [], [3], "o").jobs
    cfg = config.compose(list(job.overrides))
    assert identity(cfg) == job.hash
    assert cfg.seed == job.seed == 3


@pytest.mark.slow
@each_file
def test_all_points_of_every_file_have_hashes_of_their_own(file):
    made = points.make(file, [], [3], "o")
    assert len({job.hash for job in made.jobs}) == len(made.jobs) == len(file.points)


def test_bad_parameters_are_refused_with_the_near_key(tmp_path):
    for key, message in (
        ("algorithm.bta", r"parameters\.algorithm\.bta.*Try algorithm\.beta"),
        ("rouns", "Try rounds"),
    ):
        (tmp_path / "s.yaml").write_text(FILE.replace("algorithm.beta", key))
        with pytest.raises(ConfigError, match=message):
            points.make(sweep_file.read(tmp_path / "s.yaml"), [], [0], "o")
    (tmp_path / "s.yaml").write_text(
        FILE.replace("[0.7, 0.9]", "[high, 0.9]").replace("algorithm.beta", "clients.count")
    )
    with pytest.raises(ConfigError, match=r"parameters\.clients\.count=high"):
        points.make(sweep_file.read(tmp_path / "s.yaml"), [], [0], "o")
    (tmp_path / "s.yaml").write_text(FILE.replace("+experiment=fedgm", "+experiment=fedgn"))
    with pytest.raises(ConfigError, match="fedgn"):
        points.make(sweep_file.read(tmp_path / "s.yaml"), [], [0], "o")


def test_an_override_may_not_fight_the_file(tmp_path):
    (tmp_path / "s.yaml").write_text(FILE)
    with pytest.raises(ConfigError, match=r"algorithm\.eta=3.*the sweep file sets"):
        points.make(sweep_file.read(tmp_path / "s.yaml"), ["algorithm.eta=3"], [0], "o")


# Rungs after 2 and 6 of 10 evaluations: rounds 6 and 18 ---------------------------------------------------


def allowed(results: Results) -> list[int]:
    limits = targets(results)
    return [limits.get(job.key, 0) for job in results.plan.jobs]


def test_a_rung_waits_for_all_then_lets_the_best_third_go_on(planned):
    results = Results(planned)
    assert allowed(results) == [6] * 6
    for job, value in zip(planned.jobs[:5], (0.1, 0.5, 0.3, 0.4, 0.2), strict=True):
        store(job, [0.0, value], "paused")
    assert allowed(results) == [6] * 6  # one is missing
    store(planned.jobs[5], [0.9], "diverged", done=4)
    assert allowed(results) == [6, 18, 6, 18, 6, 6]  # ceil(6/3) = 2: the diverged one lost
    store(planned.jobs[1], [0.0, 0.5, 0, 0, 0, 0.9], "paused")
    store(planned.jobs[3], [0.0, 0.4, 1, 1, 1, 1], "paused")
    assert allowed(results) == [6, 18, 6, 30, 6, 6]


def test_what_comes_after_a_rung_does_not_change_its_decision(planned):
    for number, job in enumerate(planned.jobs):
        store(job, [0.1, 0.1 * number], "paused")
    assert allowed(Results(planned)) == [6, 6, 6, 6, 18, 18]
    store(planned.jobs[5], [0.1, 0.5, 0.0, 0.0], "diverged")  # after the rung, which has let it pass
    assert allowed(Results(planned)) == [6, 6, 6, 6, 18, 18]


def test_a_crashed_point_loses_its_rung_and_the_grid_goes_on(planned):
    for job in planned.jobs[1:]:
        store(job, [0.1, 0.2], "paused")
    results = Results(planned, lost={planned.jobs[0].key})
    assert allowed(results) == [6, 18, 18, 6, 6, 6]  # ties: the lower numbers


def test_a_file_without_halving_runs_to_the_end(tmp_path):
    made = plan(tmp_path, FILE.replace("early_terminate", "run_cap: 6 #"), [0, 1])
    assert allowed(Results(made)) == [30] * 12
    assert [job.seed for job in made.jobs[:4]] == [0, 1, 0, 1]


# Winners --------------------------------------------------------------------------------------------------


def test_the_winner_has_the_best_mean_of_its_last_ten_and_is_kept(planned, tmp_path):
    for number, job in enumerate(planned.jobs):
        store(
            job,
            [0.0, *[0.1 * number] * 9] if number != 5 else [0.9] * 10,
            "finished" if number < 5 else "diverged",
        )
    ranked = ranking(Results(planned))
    assert [e.job.point for e in ranked] == [4, 3, 2, 1, 0]  # 5 diverged
    assert ranked[0].score == pytest.approx(0.36)  # (0 + 9 x 0.4) / 10
    path = tmp_path / "best" / "tiny.yaml"
    write_best(path, planned, ranked[0])
    kept = yaml.safe_load(path.read_text())
    assert kept["fedgm"]["fedgm"] == entry(ranked[0], planned)
    assert {k: kept["fedgm"]["fedgm"][k] for k in ("eta", "beta", "commit", "seed")} == {
        "eta": 2.0, "beta": 0.7, "commit": "abc", "seed": 0,
    }  # fmt: skip
    write_best(path, planned, ranked[1])
    assert yaml.safe_load(path.read_text())["fedgm"]["fedgm"]["eta"] == 1.0


def test_other_seeds_of_the_winner_are_found_but_never_choose(planned):
    for number, job in enumerate(planned.jobs):
        store(job, [0.1 * number] * 10)
    winner = ranking(Results(planned))[0]
    for seed, value in ((1, 0.2), (2, 0.4)):
        folder = winner.job.folder.with_name(f"seed={seed}")
        store(points.Job(5, seed, winner.job.values, (), folder, winner.job.hash, 30, 3), [value] * 10)
    assert other_seeds(winner, Results(planned)) == pytest.approx({1: 0.2, 2: 0.4})
    assert ranking(Results(planned))[0].job.point == 5


def test_the_best_at_a_smaller_budget_waits_for_all_and_counts_the_diverged(tmp_path):
    etas = ", ".join(str(0.5 * n) for n in range(1, 7))
    (tmp_path / "s.yaml").write_text(
        FILE.replace("0.5, 1.0, 2.0", etas).replace("early_terminate", "run_cap: 9 #")
    )
    made = points.make(sweep_file.read(tmp_path / "s.yaml"), [], [0], str(tmp_path / "o"))
    for number, job in enumerate(made.jobs[:11]):
        store(job, [0.2 + 0.01 * number] * 10)
    assert at_budget(Results(made), ranking(Results(made))) is None  # one of twelve is missing
    store(made.jobs[11], [0.9] * 10, "diverged")  # counts with chance, 0.1
    budget = at_budget(Results(made), ranking(Results(made)))
    assert (budget.n, budget.k, budget.whole) == (12, 10, pytest.approx(0.30))
    # The best of 10 of 12 is 0.30; it is not drawn in 2/12: then 0.29; both are not in 1/66: then 0.28.
    assert budget.mean == pytest.approx(0.30 * 10 / 12 + 0.29 * (2 / 12 - 1 / 66) + 0.28 / 66)


# Archives -------------------------------------------------------------------------------------------------


def test_an_archive_gives_back_what_was_stored_and_counts_as_done(planned, tmp_path):
    for number, job in enumerate(planned.jobs):
        store(job, [0.1 * number + 0.01] * 10, "finished" if number else "diverged")
    before = [read_folder(job.folder) for job in planned.jobs]
    archive.write(tmp_path / "r" / "a.jsonl", before)
    after = once(archive.read(tmp_path / "r" / "a.jsonl"))
    for job, run in zip(planned.jobs, before, strict=True):
        stored = after[job.key]
        assert (stored.facts, stored.config, stored.evaluations) == (run.facts, run.config, run.evaluations)
        assert stored.evaluations[-1]["total/steps"] == 300  # 30 rounds of 10
    elsewhere = points.make(planned.file, [], [0], str(tmp_path / "empty"))
    results = Results(elsewhere, after)
    assert {results.state(job) for job in elsewhere.jobs} == {"finished", "diverged"}
    assert [e.score for e in ranking(results)] == [e.score for e in ranking(Results(planned))]


def test_a_run_in_two_files_counts_once_as_the_one_that_is_done(planned, tmp_path):
    """Figures and grids share runs."""
    job = planned.jobs[0]
    further = [made(replace(job, seed=2), [0.2] * n, "paused") for n in (1, 3, 2)]
    assert list(once(further).values()) == [further[1]]
    archive.write(tmp_path / "a.jsonl", [made(job, [0.2], "paused")])
    archive.write(tmp_path / "b.jsonl", [made(job, [0.3] * 2), made(replace(job, seed=1), [0.3] * 2)])
    archive.write(tmp_path / "c.jsonl", [made(job, [0.2], "paused")])
    for runs in (below(tmp_path), find([tmp_path])):
        assert [(run.facts["seed"], run.status) for run in runs] == [(0, "finished"), (1, "finished")]
    assert len(load_runs(tmp_path)) == 4


def test_equal_runs_give_equal_bytes_and_a_foreign_file_is_refused(planned, tmp_path):
    for job in planned.jobs:
        store(job, [0.25] * 10)
    runs = below(planned.output_dir)
    archive.write(tmp_path / "a.jsonl", runs)
    archive.write(tmp_path / "b.jsonl", reversed(runs))
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    for text in ("", "{}\n", "[1]\n", "no json"):
        (tmp_path / "c.jsonl").write_text(text)
        with pytest.raises(FedGMError, match=r"c\.jsonl"):
            archive.read(tmp_path / "c.jsonl")


def test_a_damaged_folder_is_no_record(planned):
    job = planned.jobs[0]
    store(job, [0.5] * 10)
    for text in ("", "[]", "{}", '"x"'):
        (job.folder / "summary.json").write_text(text)
        assert read_folder(job.folder) is None
    assert Results(planned).state(job) == "waiting"


def test_damaged_folders_are_run_again_and_stop_nothing(planned):
    results = Results(planned)
    for job in planned.jobs:
        store(job, [0.5] * 10)
    assert all(results.is_through(job, job.rounds) for job in planned.jobs)
    first, second, third, *others = planned.jobs
    (first.folder / "summary.json").write_text('[{"status": "finished"}]')
    (second.folder / "metrics.jsonl").write_bytes(b"\xff\n")
    content = json.loads((third.folder / "summary.json").read_text())
    (third.folder / "summary.json").write_text(json.dumps({**content, "rounds_done": 30}))
    (third.folder / "metrics.jsonl").unlink()
    assert [results.is_through(job, job.rounds) for job in (first, third)] == [False, False]
    assert [results.state(job) for job in (first, third)] == ["waiting", "damaged"]
    assert results.rounds(first) == results.rounds(third) == 0
    assert len(ranking(results)) == len(others)
    targets(results)


def concluded(results: Results) -> None:
    Sweep(results, Screen(file=StringIO())).conclude({}, send=False)


def test_a_damaged_run_is_a_failed_cell_of_the_pictures(planned):
    for job in planned.jobs:
        store(job, [0.5] * 10)
    summary = planned.jobs[2].folder / "summary.json"
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "rounds_done": 29}))
    results = Results(planned)
    concluded(results)
    assert (planned.folder / "heatmap.png").exists()
    assert [p.status for p in drawn_points(results)] == ["finished"] * 2 + ["failed"] + ["finished"] * 3
    assert results.state(planned.jobs[2]) in (planned.folder / "points.csv").read_text().splitlines()[3]


def test_the_table_is_written_before_the_pictures(planned):
    for job in planned.jobs:
        store(job, [0.5] * 10)
    (planned.folder / "heatmap.png").mkdir(parents=True)  # in the way of the first picture
    with pytest.raises(IsADirectoryError):
        concluded(Results(planned))
    assert len((planned.folder / "points.csv").read_text().splitlines()) == 1 + 6


@pytest.mark.parametrize("line", ["[]", "3", '{"no": 1}', '{"evaluations": 3, "config": [], "without": {}}'])
def test_a_damaged_archive_is_called_damaged(tmp_path, line):
    path = tmp_path / "stored.jsonl"
    path.write_text(json.dumps({"format": archive.FORMAT, "config": {}}) + "\n" + line + "\n")
    with pytest.raises(FedGMError, match="stored results are damaged"):
        archive.read(path)
