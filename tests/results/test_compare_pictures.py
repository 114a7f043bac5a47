"""Curves that compare runs: colours, styles, means, marks."""

import math

import pytest

from fedgm.errors import ConfigError
from fedgm.figures import lines, pane, style
from fedgm.results.run import Run
from fedgm.tasks.metric import column


def test_more_than_eight_lines_are_told_apart_by_style():
    assert len(set(style.line_styles(["fedgm"] * 32))) == 32
    assert len(set(style.line_styles([f"rule{i}" for i in range(5)] + ["fedgm", "fedavg", "fedavgm"]))) == 8


def test_a_colour_belongs_to_an_algorithm_whatever_stands_beside_it():
    board = ["fedavg", "fedavgm", "fednag", "fedgm", "fedadam", "fedyogi", "fedexp", "fedacg"]
    assert len({*style.colours(board).values()}) == len(board)
    for algorithms in (board, ["fedgm", "fedavg"], ["fedgm", "mine", "fedgm"]):
        drawn = dict(zip(algorithms[::-1], style.line_styles(algorithms)[::-1], strict=True))
        assert drawn["fedgm"] == (style.BLUE, "-")
        assert drawn.get("fedavg", (style.RED, "-")) == (style.RED, "-")
        alone = {name: style.colours([name])[name] for name in algorithms}
        assert style.colours(algorithms) == alone


def test_lines_of_two_rules_with_one_colour_differ():
    assert style.colours(["fedadam", "fedamsgrad"]) == {"fedadam": style.ORANGE, "fedamsgrad": style.ORANGE}
    one, other = style.line_styles(["fedadam", "fedamsgrad"])
    assert one != other


def test_the_mean_is_drawn_where_all_seeds_are_and_divergence_is_marked():
    def run(values, status="finished"):
        return Run({"status": status}, {}, [{"round": i, "test/acc": v} for i, v in enumerate(values)])

    drawn = pane.Drawn("a", (run([0.1, 0.3, 0.5]), run([0.1, 0.5], "diverged")))
    figure = lines.draw([drawn], [pane.Pane(column("test/acc"))], "t", ["c"])
    [axes] = figure.axes
    mean = axes.get_lines()[0]
    assert list(mean.get_xdata()) == [0, 1]
    assert list(mean.get_ydata()) == pytest.approx([10, 40])
    longer, shorter, cross = axes.get_lines()[1:]
    assert list(longer.get_ydata()) == pytest.approx([10, 30, 50])
    assert list(shorter.get_ydata()) == pytest.approx([10, 50])
    assert (cross.get_marker(), list(cross.get_ydata())) == ("x", pytest.approx([50]))
    assert [text.get_text() for text in axes.texts] == ["a"]


def test_values_that_are_not_finite_are_left_out():
    rows = [{"round": 1, "x": math.nan}, {"round": 2, "x": None}, {"round": 3, "x": 1.0}]
    run = Run({"status": "finished", "initial": {"x": 0.5}}, {}, rows)
    assert pane.points(run, pane.Pane(column("x"))) == {0.0: 0.5, 3.0: 1.0}  # from the untrained model on


def test_a_format_is_known_by_its_name(tmp_path):
    figure = lines.draw([], [pane.Pane(column("test/acc"))], "t", ["c"])
    with pytest.raises(ConfigError, match="--out"):
        style.save(figure, tmp_path / "a.bmp")
