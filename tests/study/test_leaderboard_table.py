"""The table of a leaderboard on a narrow screen."""

from io import StringIO
from pathlib import Path

from fedgm.screen import Screen
from fedgm.study import board, board_page
from fedgm.study.standings import standings


def test_the_table_fits_80_columns_and_cuts_no_name():
    text = StringIO()
    stored = board.load("hapt", stored=[Path(__file__).parents[2] / "docs/results/leaderboard"])
    Screen(file=text, width=80).print(board_page.table(standings(stored)))
    assert "suggested" in text.getvalue()
    assert "…" not in text.getvalue()
