"""The page of when FedGM helps: where it is ahead of FedAvg's best, from made-up runs and stored ones."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs.pages import when_pictures
from docs.pages.when import (
    Regime,
    at_equal_budget,
    best,
    command,
    map_rows,
    markdown,
    outcomes,
    row,
    tried,
    unfinished,
    usable,
)
from fedgm.figures.style import BLUE, RED
from fedgm.study.points import Job
from fedgm.study.report import marks
from fedgm.tasks.metric import scoreboard
from tests.results.made_records import record

START, END = marks("docs.pages.when")


def run(
    algorithm, eta, score, delay=1, anchor="start", beta=0.9, nu=0.9, status="finished", seed=0, name=None,
    normalize="reference",
):  # fmt: skip
    job = Job(0, seed, {}, (), Path(), f"{algorithm}{eta}{delay}{anchor}{beta}{nu}{normalize}", 50, 5)
    ideal = delay == 1
    config = {
        "algorithm.eta": eta,
        "algorithm.beta": None if algorithm == "fedavg" else beta,
        "algorithm.nu": None if algorithm == "fedavg" else nu,
        "schedule.name": "constant",
        "participation.name": "ideal" if ideal else "autonomous",
        "participation.normalize": "none" if ideal else normalize,
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
    assert row(by_regime[Regime(1, "")], 0.9, 0.9) == {
        1.0: pytest.approx(2.0), 2.0: pytest.approx(6.0), 4.0: pytest.approx(7.0), 5.0: "diverged",
    }  # fmt: skip
    assert row(by_regime[Regime(5, "start")], 0.9, 0.9) == pytest.approx({0.5: -2.0})
    assert row(by_regime[Regime(5, "current")], 0.9, 0.9) == {}  # FedAvg has not been run there
    assert best(by_regime[Regime(1, "")], "fedgm").eta == 4.0


def test_an_eta_is_usable_within_three_points_of_the_rules_own_best_unless_it_diverged():
    ranges = usable(tried(RUNS)[Regime(1, "")])
    assert ranges == {("fedavg", 0.0, 0.0): [1.0], ("fedgm", 0.9, 0.9): [2.0, 4.0]}


def test_runs_that_a_rung_stopped_are_no_ends():
    """Their scores so far are too low: they are neither a loss nor an unusable eta."""
    more = [*RUNS, run("fedgm", 2.0, 0.15, delay=5, status="paused")]
    points = tried(more)[Regime(5, "start")]
    assert row(points, 0.9, 0.9) == {0.5: pytest.approx(-2.0), 2.0: "stopped"}
    assert usable(points)["fedgm", 0.9, 0.9] == [0.5]
    page = markdown({Regime(5, "start"): points}, {}, "", scoreboard({}).judge)
    assert "| delay 5, start | fedgm, beta 0.9, nu 0.9 | 0.5 | 2, 1 stopped early |" in page
    assert (
        "| 28.0 (eta 0.5) | not run | 26.0 (eta 0.5, 0.9, 0.9) | 20.5 (15.0 to 26.0), 1 stopped early |"
        in page
    )


def test_a_line_of_which_no_run_reached_its_end_is_known():
    lost = [run("fedavg", 0.5, 0.2, delay=10), run("fedgm", 0.5, 0.2, delay=10, status="paused")]
    rows = map_rows(tried([*RUNS, *lost]))
    assert list(rows) == [  # no FedAvg at `current`
        "ideal clients: β 0.9, ν 0.9", "delay 5, start: β 0.9, ν 0.9", "delay 10, start: β 0.9, ν 0.9",
    ]  # fmt: skip
    assert unfinished(rows) == ["delay 10, start: β 0.9, ν 0.9"]


def test_the_literal_reading_and_the_long_memory_are_lines_of_their_own():
    own = {"delay": 5, "normalize": "none", "name": "autonomous_literal"}
    literal = [run("fedavg", 0.5, 0.3, **own), run("fedgm", 1.0, 0.34, beta=0.95, nu=0.7, **own)]
    later = run("fedgm", 1.0, 0.3, delay=5, beta=0.95, nu=0.7, name="autonomous_long_memory")
    rows = map_rows(tried([*RUNS, *literal, later]))
    assert rows["delay 5, literal: β 0.95, ν 0.7"] == pytest.approx({1.0: 4.0})
    assert rows["delay 5, start: β 0.95, ν 0.7"] == pytest.approx({1.0: 2.0})
    assert rows["delay 5, start: β 0.9, ν 0.9"] == pytest.approx({0.5: -2.0})


def test_chance_is_hatched_and_off_the_scale_of_the_gains():
    rows = {"a": {0.5: 3.0, 1.0: -2.0}, "b": {0.5: "chance", 1.0: "stopped"}}
    [axes] = when_pictures.draw_gains(rows, ["c"]).axes
    [image] = axes.get_images()
    assert image.get_clim() == (-3.0, 3.0)
    assert image.get_array().mask.tolist() == [[False, False], [True, True]]
    assert [(patch.get_xy(), bool(patch.get_hatch())) for patch in axes.patches] == [((-0.5, 0.5), True)]


def test_ranges_are_coloured_by_rule_and_join_only_neighbours_that_were_run():
    ends = {0.5: "usable", 1.0: "usable", 2.0: "usable", 4.0: "chance"}
    settings = {"ideal clients": {"FedAvg": ("fedavg", ends), "FedGM": ("fedgm", {0.5: "learned"})}}
    [axes] = when_pictures.draw_ranges(settings, "c").axes
    joined = [list(line.get_xdata()) for line in axes.get_lines() if line.get_linestyle() == "-"]
    assert joined == [[0.5, 1.0]]  # 1.5 and 3 were not run
    assert [line.get_marker() for line in axes.get_lines() if list(line.get_xdata()) == [4.0]] == ["x"]
    assert {line.get_markeredgecolor() for line in axes.get_lines() if line.get_marker() != "None"} == {
        RED,
        BLUE,
    }
    assert [text.get_text() for text in axes.texts] == ["ideal clients"]


def test_every_eta_that_was_run_has_one_outcome():
    more = [*RUNS, run("fedgm", 2.0, 0.15, delay=5, status="paused")]
    by_setting = tried(more)
    assert outcomes(by_setting[Regime(5, "start")])["fedgm", 0.9, 0.9] == {0.5: "usable", 2.0: "stopped"}
    ends = outcomes(by_setting[Regime(1, "")])["fedgm", 0.9, 0.9]
    assert ends == {1.0: "learned", 2.0: "usable", 4.0: "usable", 5.0: "diverged"}


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
