"""The pictures of a sweep, on constructed points."""

from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest

from fedgm.errors import ConfigError
from fedgm.figures import advantage, cells, heatmap, importance, parallel
from fedgm.figures.points import Point, best, label, levels, limits, swept
from fedgm.figures.sweep import draw_sweep
from fedgm.tasks.metric import Column, Metric, column

ETA, BETA, NU = "algorithm.eta", "algorithm.beta", "algorithm.nu"
ACC = column("test/acc")
CAPTION = "FedGM, profile small, 125 rounds, seed 0."


def point(i, values, score, status="finished"):
    return Point(i, values, status, score, score, 125 if status == "finished" else 40, 125)


def cube(status=lambda e, b, n: "finished"):
    """eta x beta x nu with the best score planted at (2, .9, .7)."""
    axes = product((1.0, 2.0, 3.0, 4.0), (0.7, 0.9), (0.7, 0.95))
    return [
        point(
            i,
            {"algorithm": "fedgm", ETA: e, BETA: b, NU: n},
            0.5 if (e, b, n) == (2.0, 0.9, 0.7) else 0.3 + 0.01 * i / 16,
            status(e, b, n),
        )
        for i, (e, b, n) in enumerate(axes)
    ]


def square(scores, status=("finished",) * 4):
    """Keys a and b of two values each; scores in the order (0,0), (0,1), (1,0), (1,1)."""
    places = product((0.0, 1.0), (0.0, 1.0))
    return [point(i, {"a": a, "b": b}, scores[i], status[i]) for i, (a, b) in enumerate(places)]


def test_swept_keys_are_those_that_vary_and_words_follow_numbers():
    assert swept(cube()) == [ETA, BETA, NU]
    points = [point(i, {"k": v}, 0.1) for i, v in enumerate(["b", 10.0, "a", 2.0])]
    assert levels(points, "k") == [2.0, 10.0, "b", "a"]


def test_the_best_is_finished_and_ties_go_to_the_lower_number():
    points = [
        point(0, {"a": 1.0}, 0.9, "diverged"),
        point(1, {"a": 2.0}, 0.8, "paused"),
        point(3, {"a": 3.0}, 0.5),
        point(2, {"a": 4.0}, 0.5),
        point(4, {"a": 5.0}, float("nan")),
        point(5, {"a": 6.0}, 0.2),
    ]
    winner, lowest = best(points, "maximize"), best(points, "minimise")
    assert winner is not None
    assert winner.number == 2
    assert lowest is not None
    assert lowest.number == 5
    with pytest.raises(ConfigError, match=r"metric\.goal=most"):
        best(points, "most")


def test_layout_takes_the_key_with_most_values_or_the_keys_asked_for():
    assert heatmap.layout(cube()) == heatmap.Layout(ETA, BETA, NU, [])
    assert heatmap.layout(cube(), [BETA, NU]) == heatmap.Layout(BETA, NU, ETA, [])
    many = [point(p.number, {**p.values, "seed": float(p.number % 2)}, p.score) for p in cube()]
    plan = heatmap.layout(many)
    assert plan is not None
    assert plan.folded == ["seed"]


def test_the_planted_best_stands_in_its_cell_and_is_the_one_outlined():
    points = cube()
    plan = heatmap.layout(points)
    assert plan is not None
    panels = heatmap.tables(points, plan, "maximize")
    assert list(panels) == [0.7, 0.95]
    assert (len(panels[0.7]), len(panels[0.7][0])) == (2, 4)
    winner = best(points, "maximize")
    cell = panels[0.7][1][1]  # beta .9 is the second row, eta 2 the second column
    assert winner is not None
    assert cell == winner
    figure = heatmap.draw(points, CAPTION, ACC, "maximize")
    assert figure is not None
    first, second = figure.axes[:2]
    assert cells.outline(first, panels[0.7], winner)
    assert not cells.outline(second, panels[0.95], winner)


def test_a_cell_of_several_runs_shows_the_best_that_finished():
    runs = [
        point(0, {"a": 1.0}, 0.9, "paused"),
        point(1, {"a": 1.0}, 0.4),
        point(2, {"a": 1.0}, 0.6),
        point(3, {"a": 1.0}, None, "diverged"),
    ]
    chosen = cells.pick(runs, "maximize"), cells.pick(runs, "minimize"), cells.pick(runs[3:], "maximize")
    assert [p.number if p else None for p in chosen] == [2, 1, 3]
    assert cells.pick([], "maximize") is None


def test_legend_names_the_marks_that_occur_and_no_others():
    points = cube(lambda e, b, n: "diverged" if e == 4.0 else "paused" if e == 3.0 else "finished")
    plan = heatmap.layout(points)
    assert plan is not None
    tables = list(heatmap.tables(points[:-1], plan, "maximize").values())
    names = [str(entry.get_label()) for entry in cells.keys_of(tables, best=True)]
    assert names == ["best", "stopped early: score so far", "diverged", "not run yet"]


def marks(figure) -> dict[str, set[tuple[float, float]]]:
    """Where the cells of a figure's first panel have a hatch, a cross, an exclamation mark or a number."""
    panel, marks = figure.axes[0], defaultdict[str, set](set)
    for patch in panel.patches:
        if patch.get_hatch():
            marks[patch.get_hatch()].add((patch.get_x() + 0.5, patch.get_y() + 0.5))
    for line in panel.lines:
        marks[str(line.get_marker())].update(zip(line.get_xdata(), line.get_ydata(), strict=True))
    for text in panel.texts:
        marks["!" if text.get_text() == "!" else "number"].add(text.get_position())
    return dict(marks)


@pytest.mark.parametrize("picture", ["heatmap", "advantage"])
def test_a_cell_whose_run_did_not_finish_bears_its_mark(picture):
    status = ("finished", "paused", "running", "near chance", "failed", "diverged", "waiting", "finished")
    places = product((0.0, 1.0), (0.0, 1.0, 2.0, 3.0))  # b is the row, a the column
    points = [point(i, {"a": a, "b": b}, 0.3 + 0.01 * i, status[i]) for i, (b, a) in enumerate(places)]
    if picture == "heatmap":
        figure = heatmap.draw(points, CAPTION, ACC, "maximize")
    else:
        figure = advantage.draw(points, CAPTION, ACC, "maximize", 0.3)
    assert marks(figure) == {
        "number": {(0, 0), (1, 0), (2, 0), (3, 0), (3, 1)}, "..": {(2, 0)}, "//": {(3, 0)},
        "!": {(0, 1)}, "x": {(1, 1)},
    }  # fmt: skip


def test_colour_scale_is_not_stretched_by_a_few_bad_runs():
    assert limits([0.40, 0.36, 0.34, 0.38, 0.10], "maximize") == pytest.approx((0.24, 0.40))
    assert limits([1.0, 1.2, 1.1, 900.0], "minimize") == pytest.approx((1.0, 1.4))
    assert limits([0.2, 0.4], "maximize") == (0.2, 0.4)
    low, high = limits([0.3], "maximize")
    assert low < 0.3 < high


def test_importance_by_hand():
    """Mean .2, total .10; a: 4 x .15^2 = .09, b: 4 x .05^2 = .01."""
    shares = importance.importance(square((0.0, 0.1, 0.3, 0.4)), "maximize")
    assert shares == pytest.approx({"a": 0.9, "b": 0.1, "interactions": 0.0})


def test_importance_counts_a_diverged_run_as_the_worst_measured():
    """0, .1, .3 and a diverged run that counts 0: mean .1, total .06, each key 4 x .05^2 = .01."""
    status = ("finished", "finished", "finished", "diverged")
    up = importance.importance(square((0.0, 0.1, 0.3, 0.8), status), "maximize")
    assert up == pytest.approx({"a": 1 / 6, "b": 1 / 6, "interactions": 2 / 3})
    down = importance.importance(square((0.3, 0.2, 0.0, None), status), "minimize")
    assert down == pytest.approx(up)


def test_importance_of_a_random_search_is_by_groups():
    """16 values of x in four groups; the score is the group's number, so that x explains everything."""
    points = [point(i, {"x": i * 1.01, "word": "ab"[i % 2]}, float(i // 4)) for i in range(16)]
    shares = importance.importance(points, "maximize")
    assert shares == pytest.approx({"x": 1.0, "word": 0.0})
    assert importance.importance(square((0.3,) * 4), "maximize") == {}


def test_advantage_is_positive_where_the_sweep_is_better_whatever_the_goal():
    points = square((0.5, 0.3, 0.9, None), ("finished", "finished", "diverged", "waiting"))
    assert advantage.advantages(points, "maximize", 0.4) == pytest.approx({0: 0.1, 1: -0.1})
    assert advantage.advantages(points, "minimize", 0.4) == pytest.approx({0: -0.1, 1: 0.1})
    assert advantage.reach([-9.0, -0.2, 0.3]) == 0.3  # a run at -9 does not pale the gain
    laid_out = advantage.grid(cube(), "maximize")
    assert laid_out is not None
    column, rows, table = laid_out
    assert (column, len(rows), len(table[0])) == (ETA, 4, 4)
    assert rows[1] == {BETA: 0.7, NU: 0.95}


def test_parallel_lines_of_one_value_are_spread_by_score():
    points = square((0.1, 0.4, 0.2, None), ("finished", "finished", "finished", "diverged"))
    assert parallel.heights(points, "a", "maximize") == pytest.approx(
        {0: 0.25 - 0.0875, 1: 0.25 + 0.0875, 3: 0.75 - 0.0875, 2: 0.75 + 0.0875}
    )
    ends = parallel.ends(points, "maximize")
    assert ends == pytest.approx({0: 0.0, 1: 1.0, 2: 1 / 3, 3: parallel.DIVERGED})
    assert parallel.ends(points, "minimize")[0] == pytest.approx(1.0)


@pytest.mark.slow
def test_all_pictures_twice_with_equal_bytes(tmp_path: Path):
    points = cube(lambda e, b, n: "diverged" if e == 4.0 else "near chance" if b == 0.7 else "finished")
    names = ["heatmap.png", "parallel.png", "importance.png", "advantage.png"]
    for folder in ("one", "two"):
        written = draw_sweep(tmp_path / folder, points, CAPTION, ACC, "maximize", 0.42)
        assert [path.name for path in written] == names
    for name in names:
        first = (tmp_path / "one" / name).read_bytes()
        assert first.startswith(b"\x89PNG")
        assert first == (tmp_path / "two" / name).read_bytes()
        assert b"Software" not in first


@pytest.mark.parametrize(
    "points",
    [[], [point(0, {ETA: 1.0}, 0.3)], [point(i, {ETA: 1.0 + i}, None, "waiting") for i in range(3)]],
    ids=["empty", "one", "waiting"],
)
def test_nothing_to_compare_gives_no_picture(tmp_path: Path, points):
    assert draw_sweep(tmp_path, points, CAPTION, ACC, "maximize", 0.3) == []
    assert list(tmp_path.iterdir()) == []


def test_one_key_words_and_an_unknown_metric(tmp_path: Path):
    one = [point(i, {ETA: 0.5 * i}, 2.0 - 0.1 * i) for i in range(1, 6)]
    names = [p.name for p in draw_sweep(tmp_path, one, CAPTION, column("perplexity"), "minimize", None)]
    assert names == ["heatmap.png"]
    words = [
        point(i, {"schedule": s, BETA: b}, 0.1 * i)
        for i, (s, b) in enumerate(product(("multistage", "cosine"), (0.7, 0.9)))
    ]
    assert len(draw_sweep(tmp_path, words, CAPTION, ACC, "maximise", 0.1)) == 4
    assert label("schedule", ["schedule", BETA]) == "schedule"
    assert label("a.lr", ["a.lr", "b.lr"]) == "a.lr"
    assert (ACC.number(0.4321), column("perplexity").number(1.2345)) == ("43.2", "1.23")


def test_only_diverged_runs_are_still_a_map_of_crosses(tmp_path: Path):
    points = cube(lambda e, b, n: "diverged")
    written = draw_sweep(tmp_path, points, CAPTION, ACC, "maximize", 0.4)
    assert [path.name for path in written] == ["heatmap.png"]


def test_four_keys_and_a_random_search_of_many_values(tmp_path: Path):
    four = [point(p.number, {**p.values, "data.alpha": 0.1 * (p.number % 3)}, p.score) for p in cube()]
    assert len(draw_sweep(tmp_path / "four", four, CAPTION, ACC, "maximize", 0.3)) == 4
    search = [
        point(i, {ETA: 0.1 + 0.037 * i, BETA: 0.5 + 0.003 * (i * 7 % 60)}, 0.01 * (i % 40)) for i in range(60)
    ]
    names = [p.name for p in draw_sweep(tmp_path / "search", search, CAPTION, ACC, "maximize", 0.3)]
    assert names == ["parallel.png", "importance.png"]


def test_labels_and_units_are_those_of_the_task():
    words = Column("test/top5", Metric("top5", "top-5 accuracy", "higher", 100.0, "%"))
    assert (words.axis, words.number(0.4321), words.unit) == ("test top-5 accuracy, %", "43.2", "\u00a0%")
    bits = Column("train/bpc", Metric("bpc", "bits per character", "lower", 1.0, "bits"))
    assert (bits.axis, bits.number(1.2345), bits.metric.difference) == (
        "training bits per character, bits", "1.23", "bits",
    )  # fmt: skip
    assert (column("test/top5").axis, column("test/top5").scale) == ("test/top5", 1.0)  # nobody described it
    points = square((0.1, 0.2, 0.3, 0.4))
    figure = heatmap.draw(points, CAPTION, words, "maximize")
    assert figure is not None
    assert figure.axes[-1].get_xlabel() == "test top-5 accuracy, %"
    assert "Best test top-5 accuracy: 40.0\u00a0%" in next(text.get_text() for text in figure.texts)
