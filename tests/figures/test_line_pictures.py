"""Lines of one colour are told apart; names stand beside the panels that need them; heights serve."""

import math

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from fedgm.figures import dots, lines, names, style
from fedgm.figures.pane import Drawn, Pane, reach, residual
from fedgm.results.curve import fluctuation
from fedgm.results.run import Run, last_quarter
from fedgm.tasks.metric import column

ACC = Pane(column("test/acc"))
LOSS = Pane(column("test/loss"))


def made(values, stages=(), **facts):
    """A run with these values as test and, reversed in order of lines, as training accuracy."""
    rows = [{"round": t, "test/acc": v, "train/acc": 1 - v, "test/loss": v} for t, v in enumerate(values, 1)]
    return Run({"status": "finished", "rounds": len(values), "stages": stages, **facts}, {}, rows)


def line(name, values, **more):
    return Drawn(name, (made(values),), "fedgm", **more)


def labels(axes):
    return [text.get_text() for text in axes.texts]


def test_a_larger_eta_is_darker_and_ideal_clients_are_plain():
    styles = style.line_styles(["fedgm"] * 3, [(True, 1.0), (True, 2.0), (True, 5.0)])
    shades = [style.luminance(to_rgb(colour)) for colour, _ in styles]
    assert shades == sorted(shades, reverse=True)
    assert styles[2] == (style.BLUE, "-")
    stale, ideal = style.line_styles(["fedgm", "fedgm"], [(False, 4.0), (True, 0.5)])
    assert ideal == (style.BLUE, "-")
    assert stale != ideal


def test_words_have_a_contrast_of_three_to_one_on_white():
    every = [*style.ALGORITHMS.values(), *style.OTHERS]
    shades = [colour for own in style.ALGORITHMS for colour, _ in style.line_styles([own] * 4)]
    for colour in (*every, *shades):
        assert 1.05 / (style.luminance(to_rgb(style.readable(colour))) + 0.05) >= 3
    assert style.readable(style.BLUE) == style.BLUE
    drawn = [Drawn(name, (made([0.1, 0.2]),), "fedavg") for name in "abc"]
    [axes] = lines.draw(drawn, [ACC], "t", ["c"]).axes
    assert all(style.luminance(to_rgb(text.get_color())) <= style.LIGHTEST for text in axes.texts)


def test_a_loss_that_falls_far_at_once_leaves_the_height_to_what_follows():
    start = {"initial": {"test/loss": 4.3}}
    drawn = Drawn("a", (made([2.8, 2.5, 2.4], **start),))
    [axes] = lines.draw([drawn], [LOSS], "t", ["c"]).axes
    assert axes.get_ylim() == pytest.approx((2.38, 2.82))
    assert "4.3 at the start" in labels(axes)
    [axes] = lines.draw([Drawn("a", (made([3.6, 1.5, 1.4], **start),))], [LOSS], "t", ["c"]).axes
    assert axes.get_ylim()[1] > 4.3  # a part of the whole


def test_what_a_guess_has_is_named_beside_the_panel():
    drawn = Drawn("a", (made([2.4, 2.2, 2.1], classes=10),))
    loss, acc = lines.draw([drawn], [LOSS, ACC], "t", ["c"]).axes
    assert set(labels(loss)) == {"a", "guessing: ln 10"}
    assert all(text.get_position()[0] > 1 for text in loss.texts)
    assert labels(acc) == ["a"]


def test_panels_whose_curves_end_in_another_order_have_names_of_their_own():
    drawn = [line("a", [0.1, 0.2]), line("b", [0.1, 0.3])]
    train, test = lines.draw(drawn, [Pane(column("train/acc")), ACC], "t", ["c"]).axes
    assert sorted(labels(train)) == sorted(labels(test)) == ["a", "b"]
    first, last = lines.draw(drawn, [ACC, ACC], "t", ["c"]).axes
    assert (labels(first), sorted(labels(last))) == ([], ["a", "b"])


def test_no_name_stands_below_or_above_its_panel():
    assert names.apart([0.0, 0.0, 1.0, 1.0], 0.1) == pytest.approx([0.0, 0.1, 0.9, 1.0])


def test_a_line_with_stages_is_thicker_than_those_without():
    stages = [{"rounds": 1, "eta": 2.0}, {"rounds": 2, "eta": 1.0}]
    drawn = [line("a", [0.1, 0.2, 0.3]), Drawn("b", (made([0.1, 0.2, 0.3], stages),), "fedgm")]
    [axes] = lines.draw(drawn, [ACC], "t", ["c"]).axes
    plain, staged = axes.get_lines()
    assert staged.get_linewidth() > plain.get_linewidth()
    assert staged.get_linestyle() == "-"


@pytest.mark.parametrize(("low", "shared"), [(0.7, True), (0.05, False)])
def test_rows_share_their_height_where_none_is_pressed_together(low, shared):
    drawn = [line("a", [0, 1], row="one"), line("b", [0, low], row="two")]
    first, second = lines.draw(drawn, [ACC], "t", ["c"]).axes
    assert (first.get_ylim() == second.get_ylim()) == shared


def test_residuals_are_what_fluctuations_are_taken_of():
    rng = np.random.default_rng(0)
    calm, wild = (
        made((0.3 + 0.001 * np.arange(200) + rng.normal(0, s, 200)).tolist()) for s in (0.001, 0.01)
    )
    low, high = last_quarter(wild)
    panes = [Pane(column(f"{split}/acc"), low, high, residual=True) for split in ("train", "test")]
    left = residual(wild, panes[1])
    assert (min(left), max(left)) == (151, 200)
    wanted = 100 * fluctuation(*wild.within("test/acc", last_quarter))
    assert fluctuation([int(t) for t in left], list(left.values())) == pytest.approx(wanted)
    drawn = [Drawn("calm", (calm,)), Drawn("wild", (wild,))]
    train, test = lines.draw(drawn, panes, "t", ["c"]).axes
    assert train.get_ylim() == test.get_ylim()
    assert f"wild: sd {wanted:.2g} points" in labels(test)
    assert reach(drawn, panes) >= max(map(abs, left.values()))
    assert residual(made([0.1, 0.3]), panes[1]) == {}


def test_a_long_name_is_folded_and_its_lines_have_room():
    name = "FedGM, multistage, etas 2 then 1 then 0.5, a name that is long"
    [axes] = lines.draw([line(name, [0.1, 0.2]), line(f"{name} too", [0.1, 0.2])], [ACC], "t", ["c"]).axes
    assert all(len(row) <= names.WIDEST for text in labels(axes) for row in text.splitlines())
    assert all(text.count("\n") >= 2 for text in labels(axes))
    low, high = sorted(text.get_position()[1] for text in axes.texts)
    assert (high - low) * 2.5 > 0.99 * names.height(labels(axes))


def test_dots_are_means_beside_their_seeds():
    runs = (made([0.2] * 10), made([0.4] * 10))
    drawn = [Drawn("a", runs, "fedgm", row="one"), Drawn("b", runs[:1], "fedavg", row="two")]
    [axes] = dots.draw(drawn, [column("test/acc")], "t", ["c"]).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["one", "a", "two", "b"]
    seeds, mean, *_ = axes.get_lines()
    assert list(seeds.get_xdata()) == pytest.approx([20, 40])
    assert (list(mean.get_xdata()), list(mean.get_ydata())) == (pytest.approx([30]), [1])
    assert (mean.get_color(), axes.get_lines()[3].get_color()) == (style.BLUE, style.RED)
    assert labels(axes) == ["30.0", "20.0"]
    assert math.isclose(axes.get_ylim()[0], 3.6)  # the first line is above
