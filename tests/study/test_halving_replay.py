"""Halving replayed on stored curves: the decisions are those that the sweep would have taken."""

from pathlib import Path

import pytest

from benchmarks.halving_replay import draw, main, numbered, replay
from fedgm.results import archive
from fedgm.results.run import Run
from fedgm.study.points import Job
from fedgm.study.rungs import Halving
from tests.results.made_records import record

ROOT = Path(__file__).parents[2]


def curve(mark: str, eta: float, values, status="finished", beta=0.9) -> Run:
    """A run of nine rounds, each evaluated; ``mark`` is its hash, by which archives are sorted."""
    momentum = {"algorithm.eta": eta, "algorithm.beta": beta, "algorithm.nu": 0.9}
    return record(Job(0, 0, {}, (), Path("none"), mark, 9, 1), values, status, config=momentum)


def test_ties_go_to_the_point_that_comes_first_in_the_sweep_file(tmp_path, capsys):
    runs = [
        curve("a", 2.0, [0.2] * 3 + [0.5] * 6),
        curve("b", 1.0, [0.2] * 3 + [0.3] * 6, beta=0.95),
        curve("c", 1.0, [0.2] * 3 + [0.4] * 6, beta=0.7),
    ]
    archive.write(tmp_path / "grid.jsonl", runs)
    main([str(tmp_path / "grid.jsonl")])
    said = capsys.readouterr().out
    assert "chose eta 1, beta 0.7, nu 0.9; best eta 2, beta 0.9, nu 0.9" in said
    # Of three equal points one goes on: 3 x 3 + 6 of 27 rounds. Means of nine: .3333 and .4.
    assert "3 runs, regret 6.67 points, 56 % of the rounds" in said


def test_a_point_that_diverges_in_the_round_of_a_rung_loses():
    runs = {0: curve("a", 1.0, [0.9] * 3, "diverged"), 1: curve("b", 2.0, [0.1] * 9)}
    replayed = replay(runs, Halving(3, min_iter=3), "test/acc")
    assert (replayed.chosen, replayed.regret) == ("eta 2, beta 0.9, nu 0.9", 0.0)
    assert replayed.share == 1.0  # 3 + 9 of 12 rounds


def test_the_picture_says_whose_points_these_are_and_leads_to_the_winner():
    runs = dict(enumerate(curve(str(i), 1.0 + i, [0.1 * (i + 1)] * 9) for i in range(3)))
    figure = draw(runs, Halving(3, min_iter=3), "test/acc", "made_grid")
    caption = " ".join(figure.get_supxlabel().split())
    assert caption.startswith("made_grid: 3 points of FedGM, ideal clients, profile tiny, 9 rounds, seed 0.")
    assert figure.axes[0].get_xlabel() == "test accuracy, %: mean up to round 3"
    [winner] = figure.axes[0].texts
    assert winner.arrow_patch is not None
    assert winner.xy == pytest.approx((30, 30))


@pytest.mark.parametrize("algorithm", ["fedgm", "fedavgm", "fedavg"])
def test_the_page_of_all_grids_says_what_the_replay_says(algorithm):
    path = ROOT / "docs" / "results" / "small" / f"{algorithm}_grid.jsonl"
    runs = numbered(run for run in archive.read(path) if run.facts["seed"] == 0)
    replayed = replay(runs, Halving(3, min_iter=3), "test/acc")
    line = f"| {algorithm} | {replayed.regret:.2f} | {100 * replayed.share:.0f} % |\n"
    assert line in (ROOT / "docs" / "grids.md").read_text()
