"""What a sweep shows: the live table, a line per run, and how far its winner can be trusted."""

import re
from io import StringIO

import pytest

from fedgm import clock
from fedgm.lock import locked
from fedgm.screen import Screen
from fedgm.study import figure_runs, points
from fedgm.study.display import Display, closing
from fedgm.study.runner import Runner
from fedgm.study.sweep_progress import Results
from fedgm.study.winners import ranking
from tests.study.planned_sweep import WHOLE, plan
from tests.study.stored_runs import store


def screen(terminal: bool) -> Screen:
    return Screen(file=StringIO(), force_terminal=terminal, width=100, legacy_windows=False)


def shown(console: Screen) -> str:
    """All that was printed since the last look, without the codes of a terminal, in one line."""
    assert isinstance(console.file, StringIO)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())
    console.file.seek(0)
    console.file.truncate()
    return " ".join(text.split())


def runner_of(results: Results, *numbers: int) -> Runner:
    """One that has started these jobs."""
    running = {number: results.plan.jobs[number] for number in numbers}
    return Runner(results, 2, lambda runner: None, lambda runner, job: None, running)


def test_the_live_table_has_round_eta_counts_and_the_best_so_far(tmp_path, monkeypatch):
    jobs = plan(tmp_path, WHOLE).jobs
    results = Results(plan(tmp_path, WHOLE))
    store(jobs[0], [0.2, 0.25], "running")
    store(jobs[1], [0.3] * 10)
    store(jobs[2], [0.4] * 10)
    store(jobs[3], [0.9], "diverged", done=4)
    store(jobs[4], [0.35] * 3, "paused")
    now = [100.0]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    console = screen(terminal=True)
    with locked(jobs[0].folder), Display(console, results) as table:
        table.show(runner_of(results, 0))
        first = shown(console)
        store(jobs[0], [0.2, 0.25, 0.25, 0.28], "running")  # six more rounds
        now[0] += 30.0
        table.show(runner_of(results, 0))
        second = shown(console)
    assert "s: 6 runs, profile tiny" in first
    assert re.search(r"running . round . ETA . test/acc", first)
    assert re.search(r"eta 0\.5, beta 0\.7 . 6/30 . - . 25\.00 %", first)
    assert re.search(r"eta 0\.5, beta 0\.7 . 12/30 . 1:30 . 28\.00 %", second)  # 5 s a round, 18 to go
    assert "1 diverged, 2 finished, 1 paused, 1 running, 1 waiting" in second
    assert "best so far: eta 1.0, beta 0.7: 40.00 %" in second


def test_a_run_is_timed_from_when_it_was_started_here(tmp_path, monkeypatch):
    """One that ended and was started again begins anew."""
    results = Results(plan(tmp_path, WHOLE))
    job = results.plan.jobs[0]
    now = [0.0]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    console = screen(terminal=True)
    with Display(console, results) as table:
        store(job, [0.2] * 2, "running")
        table.show(runner_of(results, 0))
        table.show(runner_of(results))  # it was killed
        now[0] = 1000.0
        table.show(runner_of(results, 0))
        now[0] = 1003.0
        store(job, [0.2] * 3, "running")
        shown(console)
        table.show(runner_of(results, 0))
    assert "9/30 │ 0:21 │" in shown(console)  # 1 s a round, not 1000 s


def test_without_a_terminal_every_run_that_ends_is_a_line(tmp_path):
    results = Results(plan(tmp_path, WHOLE))
    jobs = results.plan.jobs
    console = screen(terminal=False)
    with Display(console, results) as lines:
        lines.show(runner_of(results, 0))
        assert shown(console) == ""
        store(jobs[0], [0.3] * 10)
        store(jobs[1], [0.2], "diverged", done=4)
        lines.report(runner_of(results, 1), jobs[0])  # both have ended: each line counts one
        assert shown(console) == "[1/6] eta 0.5, beta 0.7: finished, 30.00 %"
        runner = runner_of(results)
        lines.report(runner, jobs[1])
        assert shown(console) == "[2/6] eta 0.5, beta 0.9: diverged, 10.00 %"
        runner.failed[jobs[2].key] = "killed (out of memory?)"
        lines.report(runner, jobs[2])
        assert shown(console) == "[2/6] eta 1.0, beta 0.7: killed (out of memory?), -"
    with Display(screen(terminal=True), results) as table:
        shown(table.console)
        table.report(runner, jobs[0])
        assert shown(table.console) == ""  # the table says it


# How far a winner can be trusted --------------------------------------------------------------------------


@pytest.fixture
def twelve(tmp_path) -> Results:
    """Finished, at 20 % to 31 %; the last point is the best."""
    made = plan(tmp_path, WHOLE.replace("[0.5, 1.0, 2.0]", "[0.5, 1, 1.5, 2, 2.5, 3]"))
    for number, job in enumerate(made.jobs):
        store(job, [0.2 + 0.01 * number] * 10)
    return Results(made)


def test_beside_the_best_of_all_stands_the_best_of_ten(twelve):
    console = screen(terminal=False)
    closing(console, twelve, {})
    said = shown(console)
    # The best of 10 of 12 is .31; it is not drawn in 2/12: then .30; both are not in 1/66: then .29.
    mean = 100 * (0.31 * 10 / 12 + 0.30 * (2 / 12 - 1 / 66) + 0.29 / 66)
    assert "12 finished best of 12: 31.00 %; best of 10 drawn from them:" in said
    assert f"drawn from them: {mean:.2f} % (90 % of draws: 30.00 % to 31.00 %)" in said
    assert "other seeds" not in said


def test_the_winner_on_other_seeds_is_said_with_each_of_them(twelve):
    winner = ranking(twelve)[0].job
    assert winner.point == 11
    for seed, value in ((1, 0.2), (2, 0.36)):
        other = points.Job(
            11, seed, winner.values, (), winner.folder.with_name(f"seed={seed}"), winner.hash, 30, 3
        )
        store(other, [value] * 10)
    console = screen(terminal=False)
    closing(console, twelve, {})
    assert "the winner on other seeds: 28.00 % (1: 20.00 %, 2: 36.00 %)" in shown(console)


def test_the_closing_table_names_what_failed_and_why(tmp_path):
    results = Results(plan(tmp_path, WHOLE))
    store(results.plan.jobs[0], [0.3] * 10)
    console = screen(terminal=False)
    closing(console, results, {results.plan.jobs[1].key: "ended by SIGABRT"})
    said = shown(console)
    assert "s: mean of the last 10 evaluations, seed 0" in said
    assert re.search(r"1 . eta 0\.5, beta 0\.7 . 30\.00 % . 30\.00 %", said)
    assert "1 finished, 5 waiting" in said
    assert "failed eta 0.5, beta 0.9: ended by SIGABRT" in said
    assert "best of" not in said  # not all are done


def test_lines_of_all_figures_have_names_of_their_own():
    """Two figures have a line "Autonomous FedGM (literal)"; the live table shows lines of all of them."""
    words = ["profile=tiny", "rounds=100", "eval.every=5"]
    places = [
        {str(job.values["line"]) for job in figure_runs.make(name, 1, words, "outputs").jobs.values()}
        for name in ("autonomous_literal", "long")
    ]
    assert places[0].isdisjoint(places[1])
