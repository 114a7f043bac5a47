"""Tools of the page in a real browser: address, files, crosshair, keys, charts; and nothing is cut."""

import csv
import io
import struct
from xml.etree import ElementTree

import pytest

from tests.dashboard.chromium import BINARY
from tests.dashboard.dashboard_runs import store_page, write_grid, write_run
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BINARY is None, reason="needs Chromium")]
SHOWN = """[document.getElementById('problem').value, document.getElementById('filter').value,
    [...document.querySelectorAll('.line.on')].map((line) => line.innerText),
    document.querySelectorAll('.chart').length,
    [...document.querySelectorAll('.runs input:checked')].length, document.getElementById('unzoom').hidden,
    document.querySelector('#parallel .caption')?.innerText]"""


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    place = tmp_path_factory.mktemp("tools")
    write_grid(place / "runs")
    for name in ("fedavg", "fedgm"):
        write_run(place / "runs" / f"short {name}", name, rounds=50)
    return store_page(place / "runs", place / "page.html")


@pytest.fixture
def opened(browser, grid):
    browser.size(1500, 1000)
    browser.call("Page.navigate", url="about:blank")
    browser.open(grid)
    yield browser
    assert browser.problems() == []


def drag(page, selector, start, end):
    page.js(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
    x, y, width, height = page.box(selector)
    places = [(x + a * width, y + b * height) for a, b in (start, end)]
    page.mouse("mousePressed", *places[0])
    page.mouse("mouseMoved", *places[1])
    page.mouse("mouseReleased", *places[1])


def again(page, grid):
    """The same address in a fresh page."""
    address = page.js("location.href")
    page.call("Page.navigate", url="about:blank")
    page.open(address)
    return address


def test_picks_zoom_filters_and_lines_live_in_the_address(opened, grid):
    opened.choose("#filter", "eta<4", "input")
    opened.until("location.hash.includes('filter')")
    opened.js("document.querySelectorAll('.line')[5].click()")
    drag(opened, "#chart-0 .over", (0.3, 0.5), (0.6, 0.5))
    drag(
        opened,
        "#parallel canvas",
        (64 / opened.box("#parallel canvas")[2], 0.3),
        (64 / opened.box("#parallel canvas")[2], 0.6),
    )
    opened.js("document.getElementById('add-panel').click()")
    before, picture = opened.js(SHOWN), opened.inked("#chart-0 canvas")
    assert before[3] == 3
    assert before[5] is False
    assert "settings selected" in before[6]
    again(opened, grid)
    assert opened.js(SHOWN) == before
    assert opened.inked("#chart-0 canvas") == picture
    for _ in range(3):
        opened.js("[...document.querySelectorAll('.runs input:not(:checked)')][0].click()")
    picked = opened.js(SHOWN)
    assert picked[4] == 3
    again(opened, grid)
    assert opened.js(SHOWN) == picked


def test_a_view_pasted_into_the_open_page_is_shown(opened):
    opened.js("location.hash = 'filter=fedavgm&metric=test%2Floss&problem=(all)'")
    opened.until("document.querySelector('#table-count').innerText === '24 of 63 runs'")
    assert opened.js("document.getElementById('metric').value") == "test/loss"
    assert opened.js("document.getElementById('problem').value") == "(all)"


def test_an_address_that_asks_for_what_is_not_there_opens(opened, grid):
    opened.call("Page.navigate", url="about:blank")
    words = "problem=gone&metric=test/gone&panels=a,b&lines=x,y&picks=z&zoom=5,1&brushes=q|a|b"
    words += "&group=no.key&x=nothing"
    opened.open(f"{grid}#{words}")
    assert opened.count(".runs tbody tr") > 0


@pytest.fixture
def saved(opened, tmp_path):
    """Press a button and return the file."""
    opened.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))

    def save(what, name):
        opened.js(f"document.querySelector('[data-save={what}]').click()")
        path = tmp_path / f"a-grid-{name}"
        until(path.exists)
        return path.read_bytes()

    return save


def table(data):
    return list(csv.DictReader(io.StringIO(data.decode())))


def test_curves_are_saved_as_csv_svg_and_png(opened, saved):
    rows = table(saved("curves-csv", "curves.csv"))
    lines = opened.js("[...document.querySelectorAll('.line.on .name')].map((name) => name.firstChild.data)")
    assert {row["line"] for row in rows} == set(lines)
    assert {row["metric"] for row in rows} == {"test/acc", "train/loss"}
    assert [row["round"] for row in rows if row["line"] == lines[0]][:21] == [str(5 * i) for i in range(21)]
    svg = ElementTree.fromstring(saved("curves-svg", "curves.svg"))
    texts = "\n".join(node.text or "" for node in svg.iter("{http://www.w3.org/2000/svg}text"))
    assert all(line in texts for line in lines)
    assert "test accuracy, %" in texts
    strokes = {node.get("stroke") for node in svg.iter("{http://www.w3.org/2000/svg}path")}
    assert {"#0072b2", "#d55e00", "#009e73"} <= strokes
    png = saved("curves-png", "curves.png")
    width, height = struct.unpack(">II", png[16:24])
    assert png.startswith(b"\x89PNG")
    assert width > 1500
    assert height > 500


def test_what_is_zoomed_is_what_is_saved(opened, saved):
    drag(opened, "#chart-0 .over", (0.4, 0.5), (0.7, 0.5))
    rounds = [float(row["round"]) for row in table(saved("curves-csv", "curves.csv"))]
    assert 25 < min(rounds) < max(rounds) < 75


def test_scores_and_runs_are_saved_as_csv_and_latex(opened, saved):
    rows = table(saved("glance-csv", "scores.csv"))
    assert [row["algorithm"] for row in rows] == ["FedAvg", "FedAvgM", "FedGM"]
    shown = opened.js("[...document.querySelectorAll('.big')].map((big) => big.firstChild.data)")
    assert [f"{100 * float(row['test/acc']):.1f}" for row in rows] == shown
    text = saved("glance-tex", "scores.tex").decode()
    assert r"\begin{tabular}{lrr}" in text
    assert r"FedGM, stages, $\eta$ 2 $\to$ 1, $\beta$ 0.9 & " in text
    assert rf"{shown[2]} $\pm$ " in text
    runs = table(saved("runs-csv", "runs.csv"))
    assert len(runs) == 61
    assert {run["algorithm"] for run in runs} == {"FedAvg", "FedAvgM", "FedGM"}
    lines = saved("runs-tex", "runs.tex").decode().splitlines()
    assert len([line for line in lines if line.endswith(r"\\")]) == 62
    assert r"test accuracy, \%: last 10" in lines[3]


def test_maps_and_settings_are_saved(opened, saved):
    rows = table(saved("heat-csv", "map.csv"))
    assert len(rows) == 21
    assert "algorithm.eta" in rows[0]
    svg = ElementTree.fromstring(saved("parallel-svg", "settings.svg"))
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}path"))) > 20
    assert saved("parallel-png", "settings.png").startswith(b"\x89PNG")


def test_one_crosshair_over_all_charts(opened):
    opened.js("document.getElementById('add-panel').click(); document.getElementById('add-panel').click()")
    crosses = "[...document.querySelectorAll('.over')].map((over) => over.dataset.cross)"
    empty = [opened.inked(f"#chart-{i} .over") for i in range(4)]
    x, y, width, height = opened.box("#chart-1 .over")
    opened.mouse("mouseMoved", x + 0.5 * width, y + 0.5 * height)
    at = opened.js(crosses)
    assert len(at) == 4
    assert len(set(at)) == 1
    assert 40 < float(at[0]) < 60
    assert all(opened.inked(f"#chart-{i} .over") != empty[i] for i in range(4))
    opened.js("document.querySelector('#chart-1 .over').dispatchEvent(new PointerEvent('pointerleave'))")
    assert [opened.inked(f"#chart-{i} .over") for i in range(4)] == empty


def test_a_slash_goes_to_the_filter(opened):
    opened.js("document.body.focus()")
    opened.key("/", "/")
    assert opened.js("document.activeElement.id") == "filter"
    assert opened.js("document.getElementById('filter').value") == ""
    opened.key("/", "/")  # there it is a letter
    assert opened.js("document.getElementById('filter').value") == "/"
    opened.key("Escape")
    assert opened.js("document.activeElement.id") != "filter"


def test_as_many_charts_as_wanted(opened):
    for count in range(3, 8):
        opened.js("document.getElementById('add-panel').click()")
        assert opened.count(".chart") == count
    chosen = "[...document.querySelectorAll('.chart select')].map((select) => select.value)"
    before = opened.js(chosen)
    assert len(set(before)) == 7
    opened.choose("#chart-6 select", "test/loss")
    opened.js("document.querySelector('#chart-3 .head input').click()")  # log y
    opened.js("document.querySelector('#chart-2 .close').click()")
    assert opened.js(chosen) == [*before[:2], *before[3:6], "test/loss"]
    assert opened.js("document.querySelector('#chart-2 .head input').checked")  # it moved along
    assert opened.js("document.documentElement.scrollWidth <= innerWidth")
    while opened.count(".chart .close"):
        opened.js("document.querySelector('.chart .close').click()")
    assert opened.count(".chart") == 1
    opened.js("document.getElementById('reset').click()")
    assert opened.count(".chart") == 2


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
