"""Tools of the page in a real browser: address, files, crosshair, keys, charts; and nothing is cut."""

import csv
import io
import struct
from xml.etree import ElementTree

import pytest

from tests.dashboard.chromium import BINARY
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BINARY is None, reason="needs Chromium")]
SHOWN = """[document.getElementById('problem').value, document.getElementById('filter').value,
    [...document.querySelectorAll('.line.on')].map((line) => line.innerText),
    document.querySelectorAll('.chart').length,
    [...document.querySelectorAll('.runs input:checked')].length, document.getElementById('unzoom').hidden,
    document.querySelector('#parallel .caption')?.innerText]"""


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
