"""Nothing on the page is cut or overlaps, at any width."""

import pytest

from tests.dashboard.chromium import BINARY
from tests.dashboard.dashboard_runs import store_page, write_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BINARY is None, reason="needs Chromium")]


@pytest.fixture
def crowded(browser, tmp_path):
    """Settings that differ in eight keys with long names and values, fourteen etas, long labels."""
    for i in range(14):
        values = (i % 2, i % 3, i // 2 % 3, i // 3 % 2)
        more = {f"an_option_with_a_long_name_{k}": value for k, value in enumerate(values)}
        rule = ("plain", "scaffold", "a_rule_of_another_package")[i * i % 5 % 3]
        schedule = f"a_schedule_with_a_long_name_{i // 5}"
        config = {"algorithm": more, "schedule": {"name": schedule}, "client": {"name": rule}}
        for j, beta in enumerate((0.5, 0.9)):
            write_run(tmp_path / "runs" / f"{i} {j}", eta=0.25 * (i + 1), beta=beta, config=config)
    browser.size(1500, 1000)
    browser.call("Page.navigate", url="about:blank")
    browser.open(store_page(tmp_path / "runs", tmp_path / "page.html"))
    yield browser
    assert browser.problems() == []


@pytest.mark.parametrize("width", [1500, 900, 420])
def test_titles_of_parallel_coordinates_do_not_overlap(crowded, width):
    crowded.size(width, 1000)
    crowded.until(f"document.querySelector('#parallel canvas').clientWidth < {width}")
    titles = crowded.js("JSON.parse(document.querySelector('#parallel canvas').dataset.titles)")
    assert len(titles) >= 8
    canvas = crowded.js("document.querySelector('#parallel canvas').clientWidth")
    for i, a in enumerate(titles):
        assert 0 <= a["left"] < a["right"] <= canvas
        for b in titles[i + 1 :]:
            assert a["row"] != b["row"] or a["right"] < b["left"]


@pytest.mark.parametrize("width", [1500, 750, 400])
def test_heat_maps_and_legends_are_not_cut(crowded, width):
    crowded.size(width, 1000)
    crowded.until(f"document.querySelector('#parallel canvas').clientWidth < {width}")
    crowded.choose("#heat-x", "algorithm.eta")
    crowded.choose("#heat-y", "algorithm.beta")
    crowded.choose("#heat-z", "(nothing)")
    assert crowded.count(".heat tr:first-child td") == 14
    inside = """[...document.querySelectorAll('%s')].every((node) => {
        const [box, frame] = [node, document.querySelector('%s')].map((one) => one.getBoundingClientRect());
        return box.left >= frame.left - 1 && box.right <= frame.right + 1
            && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1; })"""
    assert crowded.js(inside % (".heat table, .heat td, .heat-scale, .heat-scale span", "#heat .body"))
    assert crowded.js(
        "(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth)(document.querySelector('#heat .body'))"
    )
    crowded.js("document.getElementById('show-all').click()")
    assert crowded.count(".line.on") == 28
    assert crowded.js(inside % (".line, .line .name, .line .num", "#curves"))
    whole = (
        "({scrollWidth: w, scrollHeight: h, clientWidth: cw, clientHeight: ch}) => w <= cw + 1 && h <= ch + 1"
    )
    for part in ("#legend", "#legend .list"):
        assert crowded.js(f"({whole})(document.querySelector('{part}'))"), part
    assert crowded.js(f"[...document.querySelectorAll('.line')].every({whole})")


def test_a_legend_of_many_lines_is_shown_on_demand(crowded):
    crowded.js("document.getElementById('show-none').click()")
    assert crowded.count(".line") == 8
    assert crowded.text("#legend-more") == "and 20 more"
    crowded.js("document.getElementById('legend-more').click()")
    assert crowded.count(".line") == 28


def test_notes_are_said_once_with_a_count(browser, tmp_path):
    for name in ("a", "b", "c", "d", "e"):
        write_run(tmp_path / name)
    browser.open(store_page(tmp_path, tmp_path / "page.html"))
    assert browser.text("#notes summary") == "Left out: 1 note"
    note = browser.js("document.querySelector('#notes li').textContent")
    assert note.startswith("the same run (hash and seed) is already on the page (4): ")
    assert note.endswith(" and 1 more")
    assert browser.problems() == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("width", "scale"), [(1500, 1), (750, 2), (400, 1)])
def test_light_dark_narrow_and_at_200_percent(browser, grid, tmp_path, dark, width, scale):
    browser.size(width, 900, dark, scale)
    browser.call("Page.navigate", url="about:blank")
    browser.open(grid)
    assert browser.js("document.documentElement.scrollWidth <= innerWidth")
    for panel in ("glance", "curves", "sweep", "compare", "table"):
        assert browser.js(
            f"document.getElementById('{panel}').getBoundingClientRect().right <= innerWidth"
        ), panel
    assert browser.problems() == []
    browser.size(1500, 1000)
