"""Maps of a sweep with points that were stopped early or ended near chance."""

from itertools import product

import pytest
from matplotlib.colors import to_hex

from fedgm.figures import advantage, heatmap, importance, parallel
from fedgm.figures.points import Point, best
from fedgm.figures.style import ALGORITHMS, EMPTY, FAINT
from fedgm.figures.sweep import draw_sweep
from fedgm.tasks.metric import column

ETA, BETA, NU = "algorithm.eta", "algorithm.beta", "algorithm.nu"
ACC = column("test/acc")


def row(scores, statuses=()) -> list[Point]:
    """A point for each eta."""
    marks = [*statuses, *["finished"] * (len(scores) - len(statuses))]
    return [
        Point(i, {ETA: float(i)}, mark, score, score, 9, 9)
        for i, (score, mark) in enumerate(zip(scores, marks, strict=True))
    ]


HALVED = row([0.21, 0.11, 0.30, 0.32, 0.29], ["paused", "near chance"])


def maps(points, baseline=0.305):
    return (
        heatmap.draw(points, "", ACC, "maximize"),
        advantage.draw(points, "", ACC, "maximize", baseline),
    )


def faces(figure) -> list[str]:
    return [to_hex(patch.get_facecolor()) for patch in figure.axes[0].patches if patch.get_fill()]


@pytest.mark.parametrize("picture", [0, 1])
def test_only_points_that_ended_above_chance_have_a_colour_and_stretch_the_scale(picture):
    figure, alone = maps(HALVED)[picture], maps(HALVED[2:])[picture]
    assert figure is not None
    assert alone is not None
    assert faces(figure)[:2] == [EMPTY, FAINT]
    assert faces(figure)[2:5] == faces(alone)[:3]
    assert len(set(faces(alone)[:3])) == 3
    stopped, chance, *ended = (text.get_fontsize() for text in figure.axes[0].texts)
    assert stopped < chance == ended[0]


def test_a_title_counts_gains_among_finished_points_alone():
    points = row([0.35, 0.40, 0.11, 0.32, 0.29, 0.3], ["paused", "paused", "near chance"])
    points[-1] = Point(5, {ETA: 5.0}, "diverged", 0.3, 0.3, 4, 9)
    figure = advantage.draw(points, "", ACC, "maximize", 0.31)
    assert figure is not None
    title = figure.get_suptitle().replace("\n", " ").strip()
    assert title == "Ahead of FedAvg's best at 1 of 3 finished points (2 stopped early, 1 diverged)"


def test_a_point_near_chance_is_the_best_only_among_its_like():
    points = row([0.2, 0.1], ["near chance", "near chance"])
    assert best(points, "maximize") == points[0]
    assert all(figure is not None and len(figure.axes) == 1 for figure in maps(points))  # no colour, no bar


@pytest.mark.parametrize("mark", ["paused", "running"])
def test_statistics_over_stopped_points_are_not_drawn_and_old_ones_are_removed(tmp_path, mark):
    places = list(product((1.0, 2.0), (0.7, 0.9)))
    points = [
        Point(i, {ETA: e, BETA: b}, "finished", 0.3 + i / 50, 0.3, 9, 9) for i, (e, b) in enumerate(places)
    ]
    names = {path.name for path in draw_sweep(tmp_path, points, "", ACC, "maximize", None)}
    assert names == {"heatmap.png", "parallel.png", "importance.png"}
    points[0] = Point(0, points[0].values, mark, 0.2, 0.2, 3, 9)
    assert importance.draw(points, "", ACC, "maximize") is None
    assert parallel.draw(points, "", ACC, "maximize") is None
    draw_sweep(tmp_path, points, "", ACC, "maximize", None)
    assert {path.name for path in tmp_path.iterdir()} == {"heatmap.png"}


def test_a_single_row_has_a_bar_that_says_where_it_is_cut():
    figure = heatmap.draw(row([0.205, 0.239, 0.251, 0.255, 0.253, 0.236]), "", ACC, "maximize")
    assert figure is not None
    assert figure.axes[-1].get_xlabel() == "test accuracy, %\none colour below 23.9"
    whole = heatmap.draw(row([0.24, 0.25]), "", ACC, "maximize")
    assert whole is not None
    assert whole.axes[-1].get_xlabel() == "test accuracy, %"


def test_on_a_shared_scale_equal_scores_have_equal_colours():
    ours, theirs = row([0.2, 0.3]), row([0.4, 0.3])
    one, other = (heatmap.draw(points, "", ACC, "maximize", shared=(0.2, 0.4)) for points in (ours, theirs))
    assert one is not None
    assert other is not None
    assert faces(one)[1] == faces(other)[1]
    assert faces(one)[0] != faces(other)[0]
    assert "One colour scale for all grids." in one.get_supxlabel()


def test_rows_lie_by_their_mean_unless_points_were_stopped():
    """Good where nu is below beta: in the order of the values that would be rows 2, 1 and 4, 3."""
    places = list(product((1.0, 2.0), (0.7, 0.9), (0.6, 0.8)))
    points = [
        Point(i, {ETA: e, BETA: b, NU: n}, "finished", 0.1 + b - n, 0.3, 9, 9)
        for i, (e, b, n) in enumerate(places)
    ]
    made = advantage.grid(points, "maximize")
    assert made is not None
    assert [(values[BETA], values[NU]) for values in made[1]] == [
        (0.7, 0.8),
        (0.7, 0.6),
        (0.9, 0.8),
        (0.9, 0.6),
    ]
    figure = advantage.draw(points, "", ACC, "maximize", 0.2)
    assert figure is not None
    assert "Rows by their mean, the best on top." in " ".join(figure.get_supxlabel().split())
    points[0] = Point(0, points[0].values, "paused", 0.9, 0.9, 3, 9)
    made = advantage.grid(points, "maximize")
    assert made is not None
    assert [(values[BETA], values[NU]) for values in made[1]] == [
        (0.7, 0.6),
        (0.7, 0.8),
        (0.9, 0.6),
        (0.9, 0.8),
    ]


def test_bars_of_importance_have_no_algorithm_s_colour():
    places = list(product((1.0, 2.0), (0.7, 0.9)))
    points = [
        Point(i, {ETA: e, BETA: b}, "finished", i * i / 50, 0.3, 9, 9) for i, (e, b) in enumerate(places)
    ]
    figure = importance.draw(points, "", ACC, "maximize")
    assert figure is not None
    assert not {to_hex(bar.get_facecolor()) for bar in figure.axes[0].patches} & {*ALGORITHMS.values()}
