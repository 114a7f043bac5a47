"""What benchmarks write: tables between marks, and verdicts that follow from the numbers."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer

from benchmarks import page, sitting
from benchmarks.targets import Target, ratio, table
from fedgm.figures.style import BLUE


def test_a_table_replaces_what_stands_between_its_marks(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- a -->\nold\n<!-- a -->\nafter\n")
    page.put("a", page.rows(("x", "y"), [("1", "2")]), path)
    assert path.read_text() == "before\n<!-- a -->\n| x | y |\n| --- | --- |\n| 1 | 2 |\n<!-- a -->\nafter\n"
    with pytest.raises(AssertionError, match="no two lines"):
        page.put("b", "", path)


def test_a_result_is_kept_with_its_commit_day_and_load(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    path = tmp_path / "page.md"
    path.write_text("<!-- fixed -->\n<!-- fixed -->\n")
    page.show("fixed", {"taken": page.taken(), "cases": [1]}, "table\n", path)
    assert page.kept("fixed")["cases"] == [1]
    assert set(page.kept("fixed")["taken"]) == {"commit", "date", "load"}
    assert "load at start" in path.read_text()
    assert page.kept("server") == {}


@pytest.mark.parametrize(
    ("bound", "at_least", "measured", "said"),
    [
        (1.25, True, (1.2, 1.3, 1.4), "met"),
        (1.25, True, (1.1, 1.2, 1.3), "missed by 4 %; the range reaches it"),
        (10.0, False, (10.5, 10.5, 10.5), "missed by 5 %"),
        (10.0, False, (9.9, 9.9, 9.9), "met"),
        (None, True, (1.0, 1.0, 1.0), ""),
    ],
)
def test_a_verdict_follows_from_the_numbers(bound, at_least, measured, said):
    assert Target("x", bound, measured, at_least).line()[2] == said


def test_a_ratio_has_the_range_of_its_extremes():
    assert ratio([2.0, 3.0, 4.0], [1.0, 2.0, 4.0]) == (0.5, 1.5, 4.0)


def test_what_was_not_measured_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    lines = table().splitlines()[2:]
    assert len(lines) > 20
    assert all(line.endswith("| not measured |") for line in lines)


def test_the_targets_on_the_page_are_those_of_the_kept_numbers():
    assert table().strip() in page.PAGE.read_text()


def test_the_chart_says_what_each_work_is_and_gives_the_accent_to_ours():
    figure = sitting.chart(page.kept("throughput"))
    [axes] = figure.axes
    words = [label.get_text() for label in axes.get_xticklabels()]
    assert words[0] == "W1\nResNet-8, 32x32\nbatch 32"
    assert all(len(label.splitlines()) == 3 for label in words)
    drawn = [bars for bars in axes.containers if isinstance(bars, BarContainer)]
    colours = {bars.get_label(): to_hex(bars[0].get_facecolor()) for bars in drawn}
    assert [name for name, colour in colours.items() if colour == BLUE] == ["ours"]
    assert "No bar: not measured." in figure.get_supxlabel()
