"""Words of a picture leave room for what is drawn, and for each other."""

from itertools import pairwise

import pytest
from matplotlib.text import Text

from fedgm.figures import advantage
from fedgm.figures.lines import draw
from fedgm.figures.names import GAP
from fedgm.figures.pane import Drawn, Pane
from fedgm.figures.points import Point
from fedgm.results.run import Run
from fedgm.study.figure_picture import caption
from fedgm.study.figure_runs import make
from fedgm.tasks.metric import column

SENTENCE = "Server rates: eta 0.5, beta 0.7, nu 0.7 (winner of a grid on seed 0)."


def curves(sentences: int):
    """Eight lines that end within a point of each other."""
    ends = [0.30 + 0.001 * i for i in range(8)]
    rows = [[{"round": t, "test/acc": 0.1 + t * (end - 0.1) / 9} for t in range(10)] for end in ends]
    lines = [Drawn(f"line {i}", (Run({"status": "finished"}, {}, rounds),)) for i, rounds in enumerate(rows)]
    figure = draw(lines, [Pane(column("test/acc"))], "A title", [SENTENCE] * sentences)
    figure.draw_without_rendering()
    return figure


def tall(figure) -> float:
    """Inches of the axes."""
    return figure.axes[0].get_position().height * figure.get_figheight()


def test_a_long_caption_takes_no_room_from_the_axes():
    short, long = curves(1), curves(12)
    assert tall(long) == pytest.approx(tall(short), rel=0.05)
    assert long.get_figheight() > short.get_figheight() + 1


@pytest.mark.parametrize("sentences", [1, 12])
def test_labels_of_lines_that_end_together_do_not_touch(sentences):
    figure = curves(sentences)
    places = sorted(text.get_position()[1] * tall(figure) for text in figure.axes[0].texts)
    assert len(places) == 8
    assert min(above - below for below, above in pairwise(places)) > 0.85 * GAP


def test_a_line_that_leads_to_a_label_ends_where_its_words_begin():
    for label in curves(1).axes[0].texts:
        words = Text.get_window_extent(label)  # without the line
        assert label.arrow_patch.get_window_extent().x1 <= words.x0 + 1


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_label_of_a_colour_bar_is_no_longer_than_the_bar(rows):
    points = [
        Point(
            i,
            {"algorithm.eta": eta, "algorithm.beta": float(row)},
            "finished",
            0.3 + i / 100 if i else 0.1,
            0.3,
            9,
            9,
        )
        for i, (row, eta) in enumerate((row, eta) for row in range(rows) for eta in (0.1, 0.25, 0.5, 1.0))
    ]
    figure = advantage.draw(points, "A caption.", column("test/acc"), "maximize", 0.31)
    assert figure is not None
    figure.draw_without_rendering()
    bar = figure.axes[-1]
    label = (bar.yaxis if rows > 4 else bar.xaxis).label  # below a low map
    assert label.get_text().startswith("test accuracy gained, points\none colour below −")
    size, room = label.get_window_extent(), bar.get_window_extent()
    assert size.height <= room.height if rows > 4 else size.width <= room.width


def test_server_rates_that_lines_share_are_said_once():
    planned = make("autonomous_parts", [1], [], "none")
    lines = [
        {"key": name, "name": name, "values": rates, "seeds": {1: "finished"}}
        for name, rates in [("a", "eta 1"), ("b", "eta 2"), ("c", "eta 1"), ("d", None)]
    ]
    assert "Server rates: eta 1: a and c; eta 2: b." in caption(planned, {}, lines)


@pytest.mark.parametrize(("figure", "says"), [("fedavg_eta", True), ("autonomous_parts", False)])
def test_lines_that_end_near_chance_are_named_where_the_rules_apply(figure, says):
    lines = [
        {"key": "a", "name": "a", "values": None, "seeds": {"0": "near chance", "1": "finished"}},
        {"key": "b", "name": "b", "values": None, "seeds": {"0": "finished", "1": "finished"}},
    ]
    words = " ".join(caption(make(figure, [0, 1], [], "none"), {}, lines))
    assert ("Near chance by the rule of docs/claims.md: a (1 of 2 seeds)." in words) == says
    assert "Not complete" not in words
