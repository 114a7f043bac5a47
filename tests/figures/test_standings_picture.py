"""The picture of a leaderboard."""

from pathlib import Path

from fedgm.figures.standings import Bar, draw
from fedgm.figures.style import BLUE
from fedgm.results.interval import mean_interval
from fedgm.study import board, board_page
from fedgm.study.standings import standings
from fedgm.tasks.metric import ACCURACY


def test_a_picture_is_not_stretched_by_a_rule_that_diverged():
    def bar(key, scores, diverged=()):
        return Bar(key, key, "server", mean_interval(scores), scores, diverged)

    bars = [bar("fedgm", [0.84, 0.85, 0.86]), bar("fedavg", [0.80, 0.81, 0.82])]
    lost = bar("fedexp", [0.84, 0.68, 0.1], [3])
    title = "t", "test/acc", ACCURACY, "c"
    alone, beside = (draw(some, *title).axes[0] for some in (bars, [*bars, lost]))
    assert beside.get_xlim() == alone.get_xlim()
    assert beside.get_yticklabels()[2].get_text() == "fedexp\ndiverged on seed 3"


def test_a_mean_hides_no_seed_and_lines_of_one_colour_have_marks_of_their_own():
    scores = [0.84, 0.85, 0.86]  # one of them is the mean
    bars = [Bar(key, key, "server", mean_interval(scores), scores) for key in ("fedgm", "suggested")]
    [axes] = draw(bars, "t", "test/acc", ACCURACY, "c").axes
    _, mean, seeds, _, other, _ = axes.get_lines()
    assert mean.get_markerfacecolor() == "white"
    assert seeds.get_zorder() > mean.get_zorder()
    assert (mean.get_color(), other.get_color()) == (BLUE, BLUE)
    assert mean.get_marker() != other.get_marker()


def test_the_caption_says_what_was_trained_and_how_many_may_be_first(tmp_path, monkeypatch):
    stored = [Path(__file__).parents[2] / "docs/results/leaderboard"]
    captions = []
    monkeypatch.setattr(board_page, "draw", lambda *told: captions.append(told[-1]))
    monkeypatch.setattr(board_page, "save", lambda _, path: path)
    board_page.write(standings(board.load("hapt", stored=stored)), tmp_path / "page.md")
    assert captions[0].startswith("Profile small, model cnn1d, 30 rounds. Each rule is tuned")
    assert captions[0].endswith("Seeds do not tell FedGM, suggested apart from 12 of 13 others.")
