"""`fedgm reproduce` from stored results: verdict, picture, report; nothing is trained here."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import fedgm.commands as cli
from fedgm import api
from fedgm.commands.reproduce import parse_seeds
from fedgm.errors import ConfigError
from fedgm.figures.names import apart
from fedgm.results import archive
from fedgm.study import figure_runs, reproduce
from fedgm.study.evidence import grid_runs
from fedgm.study.report import markdown, marks, replace_between, table
from tests.conftest import quick
from tests.results.made_records import record

WORDS = ["profile=tiny", "rounds=100", "eval.every=5"]


def planned(experiment, seeds=3):
    return figure_runs.make(experiment, seeds, WORDS, "outputs")


@pytest.fixture(scope="module")
def archived(tmp_path_factory):
    """Figure 1ab: FedGM at 60 %, FedAvgM at 51 %, FedAvg at 50 % without seed 3."""
    level = {"fedgm": 0.6, "fedavgm": 0.51, "fedavg": 0.5}
    one = planned("fedgm")
    runs = [
        record(job, [level[key] + 0.001 * seed] * 20, algorithm=key)
        for (key, seed), job in one.jobs.items()
        if (key, seed) != ("fedavg", 3)
    ]
    path = tmp_path_factory.mktemp("stored") / "results.jsonl"
    archive.write(path, runs)
    return path


@pytest.fixture(scope="module")
def archived_etas(tmp_path_factory):
    """Figure 5: eta 3 diverges, eta 2 wobbles more than eta 1."""
    runs = []
    for (key, seed), job in planned("fedavg_eta", [1, 2, 3]).jobs.items():
        if key == "eta_3":
            runs.append(record(job, [0.5] * 6, "diverged", "fedavg"))  # high before it was lost
        else:
            size = 0.01 if key == "eta_1" else 0.05 + 0.001 * seed
            runs.append(record(job, [0.4 + (-1) ** i * size for i in range(20)], algorithm="fedavg"))
    path = tmp_path_factory.mktemp("stored") / "results.jsonl"
    archive.write(path, runs)
    return path


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Where the verdicts below draw."""
    return tmp_path_factory.mktemp("drawn")


@pytest.fixture(scope="module")
def judged(archived, drawn):
    [verdict] = api.reproduce("fig1ab", WORDS, stored=archived, out=drawn)
    return verdict


@pytest.fixture(scope="module")
def judged_etas(archived_etas, drawn):
    [verdict] = api.reproduce("fig5", WORDS, stored=archived_etas, out=drawn, seeds=[1, 2, 3])
    return verdict


@pytest.fixture(scope="module")
def not_run(archived, drawn):
    [verdict] = api.reproduce("fig7", WORDS, stored=archived, out=drawn)
    return verdict


def test_a_figure_is_drawn_and_judged_from_an_archive(judged, drawn):
    verdict = judged
    assert json.loads((drawn / "fig1ab" / "verdict.json").read_text())["claims"] == verdict["claims"]
    assert (drawn / "fig1ab" / "fig1ab.png").read_bytes().startswith(b"\x89PNG")
    assert (drawn / "fig1ab" / "fig1ab.pdf").read_bytes().startswith(b"%PDF")
    c1, c2, margin = verdict["claims"]
    assert [part["verdict"] for part in c1["parts"]] == ["holds", "holds", "undecided", "undecided"]
    assert c1["parts"][1]["mean"] == pytest.approx(9.0)
    assert verdict["missing"] == ["FedAvg, seed 3: missing"]
    assert c1["parts"][2]["missing"] == ["FedAvg, seed 3: missing"]
    assert "no comparison at equal budget: 0 of 90 points of FedGM's grid have results" in c1["notes"]
    assert (c2["verdict"], margin["verdict"]) == ("undecided", "undecided")
    lines = {line["key"]: line for line in verdict["lines"]}
    assert lines["fedgm"]["seed 0"] is None
    assert lines["fedgm"]["values"] == "eta 10, beta 0.95, nu 0.9 (winner of tiny_fedgm on seed 0)"
    assert lines["fedgm"]["last10"]["test/acc"]["mean"] == pytest.approx(0.602)
    assert (verdict["seeds"], verdict["judged on"]) == ([1, 2, 3], [1, 2, 3])


ADDED = ["+figure.seeds.tiny=5", "+figure.added.tiny=[4,5]"]


@pytest.mark.parametrize("there", quick([(), (4,), (4, 5)], (4,), (4, 5)))
def test_added_seeds_are_judged_once_all_of_them_are_there(there, tmp_path):
    """On seeds 1, 2, 3 FedGM is ahead of FedAvgM by 9 points, on the added ones behind by 9."""
    one = figure_runs.make("fedgm", None, [*WORDS, *ADDED], "outputs")
    assert (one.seeds, one.added, one.first) == ((1, 2, 3, 4, 5), (4, 5), (1, 2, 3))
    level = {"fedgm": 0.6, "fedavgm": 0.51, "fedavg": 0.5}
    runs = [
        record(job, [(level[key] if seed < 4 else 1.1 - level[key]) + 0.001 * seed * (key == "fedgm")] * 20)
        for (key, seed), job in one.jobs.items()
        if seed < 4 or seed in there
    ]
    archive.write(tmp_path / "rows.jsonl", runs)
    [verdict] = api.reproduce("fig1ab", [*WORDS, *ADDED], stored=tmp_path / "rows.jsonl", out=tmp_path)
    c1, page = verdict["claims"][0], markdown([verdict], tmp_path, tmp_path)
    if there == (4, 5):
        assert (verdict["judged on"], verdict["missing seeds"]) == ([1, 2, 3, 4, 5], [])
        assert (c1["verdict"], c1["added seeds"]) == (
            "undecided",
            {"seeds": [4, 5], "verdict": "does not hold"},
        )
        assert "added seeds 4, 5 alone: does not hold" in page
    else:
        assert (verdict["judged on"], verdict["missing seeds"]) == ([1, 2, 3], [4, 5])
        assert (c1["verdict"], "added seeds" in c1) == ("holds", False)
        assert "**holds** (runs are missing: seeds 4, 5)" in page
        missing = "seeds 4, 5" if not there else "seed 5"
        assert f"- Figure 1ab: FedGM, {missing}: missing; FedAvgM" in page
        assert list(verdict["lines"][0]["seeds"]) == ["1", "2", "3"]


def test_seed_0_chose_the_winners_and_judges_nothing(archived, tmp_path):
    """Its value stands beside the others and enters no interval, though it is asked for."""
    chosen = record(planned("fedgm").choosing("fedavg"), [0.62] * 20, algorithm="fedavg")
    archive.write(tmp_path / "more.jsonl", [*archive.read(archived), chosen])
    seeds = [0, 1, 2]
    [verdict] = api.reproduce("fig1ab", WORDS, stored=tmp_path / "more.jsonl", out=tmp_path, seeds=seeds)
    assert verdict["lines"][2]["seed 0"] == pytest.approx(0.62)
    assert (verdict["seeds"], verdict["judged on"]) == ([0, 1, 2], [1, 2])
    assert verdict["claims"][0]["parts"][2]["values"]["FedAvg"].keys() == {"1", "2"}
    assert verdict["command"].endswith("--seeds 0,1,2")


def test_the_grid_behind_a_winner_is_found_point_by_point(archived):
    """FedAvg's grid has 10 points; Figure 1ab's line at tiny's winner, eta 3, is the sixth of them."""
    chosen = record(planned("fedgm").choosing("fedavg"), [0.62] * 20, algorithm="fedavg")
    stored = {chosen.key: chosen}
    runs = grid_runs("fedavg_grid", WORDS, lambda job: stored.get(job.key), "outputs", stored.values())
    assert [run is not None for run in runs] == [*[False] * 5, True, *[False] * 4]
    assert runs[5].score("test/acc") == pytest.approx(0.62)
    others = archive.read(archived)  # none of seed 0
    assert grid_runs("fedgm_grid", WORDS, lambda job: None, "outputs", others) == [None] * 90


def test_a_claim_over_two_figures_says_which_one_is_missing(judged_etas):
    [c4] = judged_etas["claims"]
    assert [part["verdict"] for part in c4["parts"]] == ["holds", "undecided", "holds"]
    assert "FedGM, eta 5, seeds 1, 2, 3: missing" in c4["parts"][1]["missing"]
    assert judged_etas["lines"][2]["seeds"] == {"1": "diverged", "2": "diverged", "3": "diverged"}
    assert c4["parts"][2]["high"] < 1


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes(archived_etas, judged_etas, drawn, tmp_path):
    api.reproduce("fig5", WORDS, stored=archived_etas, out=tmp_path, seeds=[1, 2, 3])
    for name in ("fig5.png", "fig5.pdf", "verdict.json"):
        assert (tmp_path / "fig5" / name).read_bytes() == (drawn / "fig5" / name).read_bytes()


def test_the_report_says_what_was_run_and_what_was_not(archived, tmp_path):
    words = ["reproduce", "fig1ab", "--stored", str(archived), *WORDS, "--out", str(tmp_path / "figures")]
    result = CliRunner().invoke(cli.main, [*words, "--report", str(tmp_path / "page.md")])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "page.md").read_text()
    assert "![Figure 1ab](figures/fig1ab/fig1ab.png)" in page
    assert (
        "| 1ab | C1: FedGM beats FedAvgM and FedAvg, in training and test | runs are missing; 100 rounds, "
        in page
    )
    assert "| line | train/acc | test/acc | test/acc, last round | rounds to 50 % | runs |" in page
    assert "| FedGM | 62.20 ± 0.10 % | 60.20 ± 0.10 % | 60.20 ± 0.10 % | 5 | 3 finished |" in page
    assert "eta 10, beta 0.95, nu 0.9 (winner of tiny_fedgm on seed 0)" in page
    assert "- Figure 1ab: FedAvg, seed 3: missing" in page


def test_the_table_of_a_readme_says_what_is_not_as_planned(judged, judged_etas, not_run):
    first, second, third = table([judged, judged_etas, not_run]).splitlines()[2:]
    numbers = "FedGM 60.20 ± 0.10 %; FedAvgM 51.20 ± 0.10 %; FedAvg 50.15 ± 0.07 % (2 of 3 seeds)"
    assert f"tiny, 100 rounds, seeds 1, 2, 3: {numbers} | C1: " in first
    assert "<br>C2: " in first
    assert "eta 3 10.00 ± 0.00 % (3 of 3 diverged)" in second
    assert third.endswith("| not run |")


def test_a_table_needs_its_marks_before_anything_is_run(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("# Mine\n")
    words = ["reproduce", "all", "--profile", "tiny", "--output-dir", str(tmp_path / "o")]
    result = CliRunner().invoke(cli.main, [*words, "--table", str(readme)])
    assert result.exit_code == 2
    assert marks("fedgm reproduce")[0] in result.output
    assert not (tmp_path / "o").exists()
    result = CliRunner().invoke(cli.main, ["reproduce", "fig2", "--table", str(readme)])
    assert result.exit_code == 2


def test_a_table_goes_between_its_marks(tmp_path):
    page, (start, end) = tmp_path / "p.md", marks("x")
    page.write_text(f"before {start} old {end} after, {end} again")
    replace_between(page, "x", "new\n")
    assert page.read_text() == f"before {start}\nnew\n{end} after, {end} again"


def test_a_divergent_line_sets_no_target_and_reaches_none(judged_etas):
    assert judged_etas["speed"]["target"] == 0.4
    reached = {key: entry["reached"] for key, entry in judged_etas["speed"]["rounds"].items()}
    assert reached == {"eta_1": 3, "eta_2": 3, "eta_3": 0}
    assert judged_etas["lines"][2]["final"]["mean"] == pytest.approx(0.1)  # chance


def test_a_seed_named_thrice_is_one_observation(archived, tmp_path):
    """Three equal differences have no deviation: they would make any claim hold."""
    [verdict] = api.reproduce("fig1ab", WORDS, stored=archived, out=tmp_path, seeds=[1, 1, 1])
    assert verdict["seeds"] == [1]
    assert {claim["verdict"] for claim in verdict["claims"]} == {"undecided"}
    page = markdown([verdict], tmp_path, tmp_path)
    assert "| +9.00 points, one seed | - | undecided |" in page


def test_results_of_elsewhere_count_as_done_beside_run_folders(archived, tmp_path):
    work = reproduce.load("fig1ab", WORDS, output_dir=tmp_path, known=[archived])
    [missing] = work.missing
    assert (missing.values["line"], missing.seed) == ("fig1ab FedAvg", 3)


def test_a_figure_without_runs_is_said_not_to_be_run(not_run, drawn):
    assert not (drawn / "fig7" / "fig7.png").exists()
    assert "Not run. `fedgm reproduce fig7 profile=tiny" in markdown([not_run], drawn, drawn)
    assert not_run["claims"][0]["verdict"] == "undecided"


@pytest.mark.slow
def test_an_override_after_stored_is_no_path(tmp_path):
    result = CliRunner().invoke(cli.main, ["reproduce", "fig2", "--stored", "profile=tiny"])
    assert "docs/results" in result.output or result.exit_code == 0
    result = CliRunner().invoke(cli.main, ["reproduce", "fig2", "--stored", str(tmp_path / "none.jsonl")])
    assert result.exit_code == 2
    assert "contains no run" in result.output


@pytest.mark.parametrize(("words", "seeds"), [("3", 3), ("1,2,5", [1, 2, 5]), ("0,", [0])])
def test_seeds_are_a_number_or_a_list(words, seeds):
    assert parse_seeds(words) == seeds


@pytest.mark.parametrize("words", ["0", "x", "1,-2", ""])
def test_other_seeds_are_refused(words):
    result = CliRunner().invoke(cli.main, ["reproduce", "fig2", "--seeds", words])
    assert result.exit_code == 2
    assert "Try --seeds 3 or --seeds 1,2,5" in result.output


def test_a_plan_is_what_the_sweeps_runner_runs():
    one = planned("fedavg_eta", 2)
    sweep = figure_runs.as_sweep([one], WORDS, "outputs")
    assert len(sweep.jobs) == 6
    assert sweep.file.halving is None
    job = one.jobs["eta_2", 1]
    assert job.overrides[:3] == ("+experiment=fedavg_eta", "name=fedgm", "algorithm.eta=2.0")
    assert job.overrides[-1] == "seed=1"
    assert (job.rounds, job.eval_every) == (100, 5)
    assert one.choosing("eta_2") == replace(one.jobs["eta_2", 0])


@pytest.mark.slow
def test_runs_that_two_figures_share_are_computed_once():
    """FedAvg at eta 1 is in Figures 5 and 6 and in the grid; ideal FedGM in 1ab, 1cd and 9."""

    def planned(name, seeds):
        return figure_runs.make(name, seeds, [*WORDS, "winners=null", "profile.alpha=0.5"], "outputs")

    grid, fedavg, fedgm = (planned(name, [1]).jobs for name in ("fedgm", "fedavg_eta", "fedgm_eta"))
    assert fedavg["eta_1", 1].key == fedgm["fedavg", 1].key == grid["fedavg", 1].key
    delayed = (planned(name, [1]).jobs["ideal", 1].key for name in ("autonomous", "autonomous_delay10"))
    assert {*delayed} == {grid["fedgm", 1].key}
    assert planned("heterogeneity", [1]).jobs["fedgm_05", 1].key == grid["fedgm", 1].key


def test_labels_move_no_further_than_they_must():
    assert apart([0.1, 0.5], 0.1) == pytest.approx([0.1, 0.5])
    assert apart([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])
    assert apart([0.1, 0.12, 0.9], 0.1) == pytest.approx([0.06, 0.16, 0.9])
    assert apart([0.5, 0.5, 0.52], 0.1) == pytest.approx([0.40667, 0.50667, 0.60667], abs=1e-4)


def test_claims_are_refused_of_a_metric_of_which_less_is_better(archived, tmp_path):
    with pytest.raises(ConfigError, match=r"fedavg_eta: figure\.metric=loss: claims are about"):
        api.reproduce("fig5", [*WORDS, "figure.metric=loss"], stored=archived, out=tmp_path)
