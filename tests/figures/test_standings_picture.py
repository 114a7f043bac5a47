"""The picture of a leaderboard."""

from fedgm.figures.standings import Bar, draw
from fedgm.results.interval import mean_interval
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
