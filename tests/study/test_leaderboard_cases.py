"""Boards that are seldom written: one judging seed, rounds of different sizes, 1e-3, a seed that is typed."""

from dataclasses import replace

import pytest

from fedgm import intake
from fedgm.errors import FedGMError
from fedgm.study import board_file, board_page
from fedgm.study.board import load
from fedgm.study.standings import standings
from tests.study.test_leaderboard import FILE, fill, planned


def test_a_number_that_yaml_takes_for_a_text_is_a_number(tmp_path):
    assert planned(tmp_path, FILE.replace("level: 0.5", "level: 5e-1")).board.level == 0.5
    points = board_file._points("x", {"algorithm.eta": intake.from_yaml("[1e-3, 1e-2]")})
    assert points == ({"algorithm.eta": 0.001}, {"algorithm.eta": 0.01})
    assert board_file._points("x", [intake.from_yaml("{algorithm.eta: 1e0}")]) == ({"algorithm.eta": 1.0},)


def test_one_judging_seed_has_no_interval(tmp_path):
    fill(tmp_path)
    found = standings(planned(tmp_path, FILE.replace("[1, 2, 3]", "[2]")))
    assert board_page._rows(found)[1][5:7] == ["61.0", "2.0"]
    said = board_page.sentences(found)
    assert said[:2] == [
        "First is FedGM.",
        "One seed says nothing of the noise of seeds, so there are no intervals.",
    ]
    text = " ".join([*said, *board_page.markdown(found)])
    assert "judged on seed 2 (mean of the last 10 evaluations of test/acc)." in text
    assert not any(word in text for word in ("inf", "0 degrees", "do not tell", "beyond the noise"))


def test_a_round_that_differs_from_the_last_one_counts_in_what_was_sent(tmp_path):
    fill(tmp_path)
    line = standings(planned(tmp_path)).lines[0]
    rows = [{"round": 0}, {"round": 2, "bytes/up": 300, "bytes/down": 100}, {"round": 4, "bytes/up": 0}]
    judged = {seed: replace(run, evaluations=rows) for seed, run in line.judged.items()}
    assert replace(line, judged=judged).megabytes == pytest.approx(200 / 1e6)


def test_the_seed_is_the_boards():
    with pytest.raises(
        FedGMError, match=r"seed=3: tune and judge of the board set it. Try a board of your own"
    ):
        load("hapt", ["seed=3"])
