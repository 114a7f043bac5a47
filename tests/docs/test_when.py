"""The page of when FedGM helps: where it is ahead of FedAvg's best, from made-up runs and stored ones."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs.pages.when import (
    Regime,
    advantage,
    at_equal_budget,
    best,
    command,
    map_rows,
    markdown,
    stopped,
    tried,
    usable,
)
from fedgm.study.points import Job
from fedgm.study.report import marks
from fedgm.tasks.metric import scoreboard
from tests.results.made_records import record

START, END = marks("docs.pages.when")


def run(
    algorithm, eta, score, delay=1, anchor="start", beta=0.9, nu=0.9, status="finished", seed=0, name=None
):
    job = Job(0, seed, {}, (), Path(), f"{algorithm}{eta}{delay}{anchor}{beta}{nu}", 50, 5)
    ideal = delay == 1
    config = {
        "algorithm.eta": eta,
        "algorithm.beta": None if algorithm == "fedavg" else beta,
        "algorithm.nu": None if algorithm == "fedavg" else nu,
        "schedule.name": "constant",
        "participation.name": "ideal" if ideal else "autonomous",
        **({} if ideal else {"participation.delay": delay, "participation.anchor": anchor}),
    }
    made = record(job, [score] * 10, status, algorithm, config=config)
    return replace(made, facts={**made.facts, "name": name or ("fedgm" if ideal else "autonomous")})


RUNS = [
    run("fedavg", 1.0, 0.34), run("fedavg", 2.0, 0.28), run("fedavg", 3.0, 0.11),
    run("fedgm", 1.0, 0.36), run("fedgm", 2.0, 0.40),
    run("fedgm", 4.0, 0.41), run("fedgm", 5.0, 0.2, status="diverged"),
    run("fedgm", 2.0, 0.9, nu=0.7, seed=1), run("fedgm", 2.0, 0.9, name="vgg"),  # judged, or of another grid
    run("fedavg", 0.5, 0.28, delay=5), run("fedgm", 0.5, 0.26, delay=5),
    run("fedgm", 1.0, 0.3, delay=5, anchor="current"),
]  # fmt: skip


def test_gains_are_against_the_best_of_fedavg_in_the_same_setting():
    by_regime = tried(RUNS)
    assert list(by_regime) == [Regime(1, ""), Regime(5, "current"), Regime(5, "start")]
    assert advantage(by_regime[Regime(1, "")]) == pytest.approx({1.0: 2.0, 2.0: 6.0, 4.0: 7.0, 5.0: -24.0})
    assert advantage(by_regime[Regime(5, "start")]) == pytest.approx({0.5: -2.0})
    assert advantage(by_regime[Regime(5, "current")]) == {}  # FedAvg has not been run there
    assert best(by_regime[Regime(1, "")], "fedgm").eta == 4.0


def test_an_eta_is_usable_within_three_points_of_the_rules_own_best_unless_it_diverged():
    ranges = usable(tried(RUNS)[Regime(1, "")])
    assert ranges == {("fedavg", 0.0, 0.0): [1.0], ("fedgm", 0.9, 0.9): [2.0, 4.0]}


def test_runs_that_a_rung_stopped_are_no_ends():
    """Their scores so far are too low: they are neither a loss nor an unusable eta."""
    more = [*RUNS, run("fedgm", 2.0, 0.15, delay=5, status="paused")]
    points = tried(more)[Regime(5, "start")]
    assert advantage(points) == pytest.approx({0.5: -2.0})
    assert stopped(points) == [2.0]
    assert usable(points)["fedgm", 0.9, 0.9] == [0.5]
    page = markdown({Regime(5, "start"): points}, {}, "", scoreboard({}).judge)
    assert "| delay 5, start | fedgm, beta 0.9, nu 0.9 | 0.5 | 2, 1 stopped early |" in page
    assert (
        "| 28.0 (eta 0.5) | not run | 26.0 (eta 0.5, 0.9, 0.9) | 20.5 (15.0 to 26.0), 1 stopped early |"
        in page
    )


def test_the_map_has_a_row_for_a_setting_of_which_all_points_were_stopped():
    lost = [run("fedavg", 0.5, 0.2, delay=10), run("fedgm", 0.5, 0.2, delay=10, status="paused")]
    rows = map_rows(tried([*RUNS, *lost]))
    assert list(rows) == ["ideal clients", "delay 5, start", "delay 10, start"]  # no FedAvg at `current`
    assert rows["delay 10, start"] == {}


def test_equal_budgets_are_said_to_be_equal():
    points = tried(RUNS)[Regime(5, "start")]
    assert "| budgets are equal |" in markdown({Regime(5, "start"): points}, {}, "", scoreboard({}).judge)


@pytest.mark.parametrize("changed", [{"participation.delay": 1}, {"participation.epochs": [3, 3]}])
def test_runs_that_take_the_simulation_apart_are_no_points_of_a_grid(changed):
    apart = run("fedgm", 2.0, 0.9, delay=5)
    apart = replace(apart, config={**apart.config, **changed})
    assert tried([*RUNS, apart]) == tried(RUNS)


def test_the_budget_is_fedavgs():
    budget = at_equal_budget(tried(RUNS)[Regime(1, "")], "fedgm")
    assert (budget.k, budget.n) == (3, 4)
    assert budget.mean == pytest.approx(41 * 0.75 + 40 * 0.25)  # the best of 3 of 4 misses it in 1 of 4


@pytest.mark.slow
def test_the_page_keeps_its_prose_and_gets_new_tables(tmp_path):
    page = tmp_path / "when.md"
    page.write_text(f"# Mine\n\n{START}\nold\n{END}\n\nThe end.\n")
    written = []
    for _ in range(2):
        done = CliRunner().invoke(command, ["docs/results/small", "--page", str(page)])
        assert done.exit_code == 0, done.output
        written.append([path.read_bytes() for path in sorted(tmp_path.iterdir())])
    assert written[0] == written[1]  # the same runs give the same bytes
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "when.md",
        "when_gain.png",
        "when_ranges.png",
    ]
    text = page.read_text()
    assert text.startswith("# Mine\n")
    assert text.endswith(f"{END}\n\nThe end.\n")
    assert "old" not in text
    assert "| ideal clients | 34.1 (eta 1) |" in text
