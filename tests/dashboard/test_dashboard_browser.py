"""The dashboard in a real browser: every panel drawn, each control works, nothing leaves the page."""

import re
from pathlib import Path
from statistics import mean, stdev

import pytest

from fedgm.results.find import below
from tests.dashboard.chromium import BINARY
from tests.dashboard.dashboard_runs import store_page, write_grid

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BINARY is None, reason="needs Chromium")]
SPLIT = {
    "title": "a split",
    "clients": 3,
    "classes": ["cat", "dog"],
    "counts": [[3, 1], [0, 5], [2, 2]],
    "runs": 2,
}
# The pixels of a canvas, read from a copy: reading the page's own would make Chromium warn.
PIXELS = """((from) => { const copy = new OffscreenCanvas(from.width, from.height);
    const ink = copy.getContext('2d', {willReadFrequently: true}); ink.drawImage(from, 0, 0);
    return ink.getImageData(0, 0, from.width, from.height).data; })(document.querySelector('%s'))"""


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    place = tmp_path_factory.mktemp("grid")
    return store_page(write_grid(place / "runs"), place / "page.html", [SPLIT])


@pytest.fixture
def opened(browser, grid):
    browser.size(1500, 1000)
    browser.call("Page.navigate", url="about:blank")  # a change after # alone would not load it again
    browser.open(grid)
    yield browser
    assert browser.problems() == []
    assert {url.split("#")[0] for url in browser.requests()} <= {grid, "data:,"}


def test_every_panel_is_drawn_on_opening(opened):
    for panel in ("glance", "curves", "sweep", "staleness", "partition", "compare", "table"):
        assert opened.js(f"document.getElementById('{panel}').getBoundingClientRect().height > 60"), panel
    cards = opened.js(
        "[...document.querySelectorAll('.card-mini b')].map((b) => b.innerText.split('\\n')[0])"
    )
    assert [card.removesuffix("best").strip() for card in cards] == ["FedAvg", "FedAvgM", "FedGM"]
    assert opened.count(".line.on") == 3  # the best of each, the rest in grey
    for canvas in ("#chart-0 canvas", "#chart-1 canvas", "#parallel canvas"):
        assert opened.js(f"new Set(new Uint32Array({PIXELS % canvas}.buffer)).size") > 30, canvas
    assert opened.count(".heat td button") == 3 + 8 + 9
    assert "✕" in opened.text("#heat")
    assert opened.count(".histogram .bars i") == 16
    assert opened.count(".client") == 3
    assert opened.count(".runs tbody tr") == 61
    assert "Dashed: ends of stages" in opened.text("#curves-caption")


@pytest.mark.parametrize(
    ("control", "value", "event"),
    [
        ("#x", "total/steps", "change"), ("#x", "total/bytes", "change"), ("#x", "total/seconds", "change"),
        ("#smooth", "0.8", "input"), ("#band", "sd", "change"), ("#band", "none", "change"),
        ("#metric", "test/loss", "change"), ("#group", "algorithm", "change"),
        ("#group", "algorithm.eta", "change"),
        ("#group", "(each run)", "change"), ("#chart-0 select", "update/norm", "change"),
    ],
)  # fmt: skip
def test_a_control_changes_the_curves(opened, control, value, event):
    before = opened.inked("#chart-0 canvas")
    opened.choose(control, value, event)
    assert opened.inked("#chart-0 canvas") != before
    assert opened.js("document.getElementById('chart-0').dataset.lines") != "0"
    opened.js("document.getElementById('reset').click()")
    assert opened.inked("#chart-0 canvas") == before


@pytest.mark.parametrize("box", ["#logx", "#each", "#others", "#chart-0 input"])
def test_a_box_changes_the_curves_and_changes_them_back(opened, box):
    before = opened.inked("#chart-0 canvas")
    click = f"document.querySelector({box!r}).click()"
    opened.js(click)
    assert opened.inked("#chart-0 canvas") != before
    opened.js(click)
    assert opened.inked("#chart-0 canvas") == before


def test_the_second_chart_has_controls_of_its_own(opened):
    first, second = opened.inked("#chart-0 canvas"), opened.inked("#chart-1 canvas")
    opened.choose("#chart-1 select", "update/norm")
    changed = opened.inked("#chart-1 canvas")
    opened.js("document.querySelector('#chart-1 input').click()")  # log y
    assert len({second, changed, opened.inked("#chart-1 canvas")}) == 3
    assert opened.inked("#chart-0 canvas") == first


def test_groups_can_be_split_by_a_second_key(opened):
    opened.choose("#group", "algorithm")
    assert opened.count(".line") == 3
    opened.choose("#then", "algorithm.eta")
    assert opened.count(".line") > 3


def test_the_legend_shows_all_lines_or_the_best(opened):
    opened.js("document.getElementById('show-all').click()")
    assert opened.count(".line.on") == 21
    opened.js("document.getElementById('show-best').click()")
    assert opened.count(".line.on") == 3


def test_the_raw_line_stays_under_a_smoothed_one(opened):
    opened.js("document.getElementById('show-none').click(); document.querySelector('.line').click()")
    opened.js("document.getElementById('others').click()")
    opened.choose("#band", "none")

    def inks() -> int:
        blue = "(n, _, i, d) => n + (i % 4 === 0 && d[i + 3] > 60 && d[i + 2] - d[i] > 40)"
        return opened.js(f"{PIXELS % '#chart-0 canvas'}.reduce({blue}, 0)")

    plain = inks()
    opened.choose("#smooth", "0.9", "input")
    assert inks() > 1.2 * plain


@pytest.mark.parametrize(
    "back",
    [
        "document.getElementById('unzoom').click()",
        "document.querySelector('#chart-0 .over').dispatchEvent(new MouseEvent('dblclick'))",
    ],
)
def test_zoom_and_back(opened, back):
    before = opened.inked("#chart-0 canvas")
    x, y, width, height = opened.box("#chart-0 .over")
    opened.mouse("mouseMoved", x + 0.4 * width, y + height / 2)
    assert "FedGM" in opened.text("#tip")
    assert "round" in opened.text("#tip")
    opened.mouse("mousePressed", x + 0.3 * width, y + height / 2)
    opened.mouse("mouseMoved", x + 0.6 * width, y + height / 2)
    opened.mouse("mouseReleased", x + 0.6 * width, y + height / 2)
    assert opened.inked("#chart-0 canvas") != before
    opened.js(back)
    assert opened.inked("#chart-0 canvas") == before


def test_the_filter_narrows_everything(opened):
    for words, runs in (
        ("fedavgm", 24),
        ("algorithm=fedavg", 12),
        ("eta>1.4 status!=diverged", 28),
        ("status=diverged", 3),
    ):
        opened.choose("#filter", words, "input")
        opened.until(f"document.querySelector('#table-count').innerText === '{runs} of 61 runs'")
    opened.choose("#filter", "nothing-like-it", "input")
    opened.until("!document.getElementById('empty').hidden")
    assert opened.text("#empty") == 'No run matches the filter "nothing-like-it".'
    assert opened.js("document.getElementById('curves').hidden")


def test_virtual_time_where_runs_have_a_clock(opened):
    opened.choose("#filter", "autonomous", "input")
    opened.until("document.querySelector('#table-count').innerText === '1 of 61 runs'")
    before = opened.inked("#chart-0 canvas")
    opened.choose("#x", "clock/time")
    assert opened.inked("#chart-0 canvas") != before
    assert opened.js("document.getElementById('chart-0').dataset.lines") == "1"


def test_rows_are_sorted_grouped_and_picked(opened):
    click = "document.querySelector('[data-sort=\"algorithm.eta\"]').click()"
    column = (
        "[...document.querySelectorAll('.runs tbody tr td:nth-child(3)')].map((td) => Number(td.innerText))"
    )
    opened.js(click)
    assert opened.js(column) == sorted(opened.js(column), reverse=True)
    opened.js(click)
    assert opened.js(column) == sorted(opened.js(column))
    opened.choose("#table-group", "algorithm")
    assert opened.count(".runs tr.group") == 3
    opened.js("document.querySelector('.runs tr.group button').click()")
    assert opened.count(".runs tbody tr") == 3 + 12
    for _ in range(2):
        opened.js("[...document.querySelectorAll('.runs input:not(:checked)')][0].click()")
    assert "the 2 runs picked" in opened.text("#compare-how")
    assert opened.count(".line") == 2
    opened.js("document.getElementById('unpick').click()")
    assert "of 21 lines" in opened.text("#legend")


def test_means_of_groups_are_those_of_python(opened, grid):
    """The page adds up the scores of the runs that it groups; a diverged run of unknown classes has none."""
    scores: dict[str, list[float]] = {}
    for run in below(Path(grid.removeprefix("file://")).parent / "runs"):
        if (score := run.score("test/acc")) is not None:
            scores.setdefault(run.label.split(",")[0], []).append(100 * score)
    opened.choose("#table-group", "algorithm")
    rows = opened.js("[...document.querySelectorAll('.runs tr.group')].map((tr) => tr.innerText)")
    shown = {re.split(r"[▸▾]\s*", row)[1].split()[0]: re.search(r"([\d.]+) ± ([\d.]+)", row) for row in rows}
    assert shown.keys() == scores.keys()
    for name, match in shown.items():
        assert match is not None
        expected = mean(scores[name]), stdev(scores[name])
        assert tuple(map(float, match.groups())) == pytest.approx(expected, abs=0.0501)


def test_two_settings_are_compared_key_by_key(opened):
    names = opened.js(
        "[...document.querySelectorAll('#compare-a option')].map((o) => [o.innerText, o.value])"
    )
    values = dict(names)
    opened.choose("#compare-a", values["FedGM, stages, η 2 → 1, β 0.9"])
    opened.choose("#compare-b", values["FedGM, η 1, β 0.7"])
    rows = opened.js(
        "[...document.querySelectorAll('.diff tbody tr')]"
        ".map((tr) => [...tr.children].map((td) => td.innerText))"
    )
    assert ["algorithm.eta", "2", "1"] in rows
    assert ["algorithm.beta", "0.9", "0.7"] in rows
    assert not [row for row in rows if row[0] == "algorithm.nu"]


def test_maps_change_their_axes(opened):
    titles = "[...document.querySelectorAll('.heat table')].map((t) => t.innerText)"
    before = opened.js(titles)
    across, up = opened.js("['heat-x', 'heat-y'].map((id) => document.getElementById(id).value)")
    opened.choose("#heat-x", up)
    opened.choose("#heat-y", across)
    assert opened.js(titles) != before


def test_maps_follow_their_keys_and_cells_show_lines(opened):
    opened.choose("#heat-z", "algorithm.beta")
    assert opened.js("[...document.querySelectorAll('.heat figcaption')].map((f) => f.innerText)") == [
        "β 0",
        "β 0.7",
        "β 0.9",
    ]
    lines = opened.count(".line.on")
    opened.js("document.querySelector('.heat td button').click()")
    assert opened.count(".line.on") == lines + 1
    before = opened.inked("#parallel canvas")
    opened.js("document.querySelector('#parallel canvas').scrollIntoView({block: 'center'})")
    x, y, _, height = opened.box("#parallel canvas")
    opened.mouse("mousePressed", x + 64, y + 0.1 * height)
    opened.mouse("mouseMoved", x + 64, y + 0.3 * height)
    opened.mouse("mouseReleased", x + 64, y + 0.3 * height)
    assert opened.inked("#parallel canvas") != before
    assert "settings selected" in opened.text("#parallel .caption")


def test_light_dark_wide_and_narrow(browser, grid, tmp_path):
    pictures = set()
    for dark in (False, True):
        for width in (1500, 400):
            browser.size(width, 900, dark)
            browser.open(grid)
            assert browser.js("document.documentElement.scrollWidth <= innerWidth"), width
            pictures.add(browser.picture(tmp_path / "page.png", whole=False))
            ground = browser.js("getComputedStyle(document.body).backgroundColor")
            browser.js("document.getElementById('theme').click()")
            assert browser.js("getComputedStyle(document.body).backgroundColor") != ground
            assert browser.problems() == []
    assert len(pictures) == 4
    browser.size(1500, 1000)


def test_a_view_can_be_sent_with_the_address(opened, grid):
    opened.choose("#metric", "test/loss")
    opened.js("document.getElementById('logx').click()")
    address = opened.js("location.href")
    opened.call("Page.navigate", url="about:blank")
    opened.open(address)
    assert opened.js(
        "[document.getElementById('metric').value, document.getElementById('logx').checked]"
    ) == ["test/loss", True]
