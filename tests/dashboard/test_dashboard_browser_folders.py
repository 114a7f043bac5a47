"""Odd, served and large folders in a real browser."""

import pytest

from tests.dashboard.chromium import BINARY
from tests.dashboard.dashboard_runs import store_page, write_run
from tests.dashboard.served import served

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BINARY is None, reason="needs Chromium")]
MARK = "document.querySelector('#live').innerText"


def test_names_with_markup_stay_text(browser, tmp_path):
    write_run(tmp_path / "a", "<img src=x onerror=alert(1)>", name="</script><script>window.hit = 1</script>")
    write_run(tmp_path / "b", "<b>bold</b>", name="<i>x</i>", metrics=("test/<u>odd</u>",))
    browser.open(store_page(tmp_path, tmp_path / "page.html"))
    assert browser.js("window.hit === undefined && !document.querySelector('main img, main b > b, main u')")
    assert "<b>bold</b>" in browser.text("#table")
    assert browser.problems() == []


@pytest.mark.parametrize("kind", ["empty", "one round", "no evaluation", "diverged", "other metrics", "gaps"])
def test_odd_folders_open(browser, tmp_path, kind):
    if kind == "one round":
        write_run(tmp_path / "a", rounds=1, every=1)
    if kind == "no evaluation":
        write_run(tmp_path / "a", done=2, status="killed")
    if kind == "diverged":
        write_run(tmp_path / "a", done=12, status="diverged")
    if kind == "other metrics":
        write_run(tmp_path / "a", metrics=("test/perplexity",))
    if kind == "gaps":
        folder = write_run(tmp_path / "a", rounds=20)
        with (folder / "metrics.jsonl").open("a") as stream:
            stream.write('{"round": 21, "test/acc": NaN, "test/loss": 1}\n')
    browser.open(store_page(tmp_path, tmp_path / "page.html"))
    assert browser.problems() == []
    assert ("no runs here yet" in browser.text("body")) == (kind == "empty")
    if kind != "empty":
        assert browser.count(".runs tbody tr") == 1
    if kind == "other metrics":
        assert "test/perplexity" in browser.text("#chart-0 select")


def test_a_served_page_follows_a_run_without_reload(browser, tmp_path):
    write_run(tmp_path / "a", rounds=100, done=20, status="paused")
    with served(tmp_path) as (server, _):
        browser.open(server.address(server.access.token))
        browser.js("window.same = 1; document.getElementById('logx').click()")
        assert "20 / 100" in browser.text("#table")
        write_run(tmp_path / "a", rounds=100, done=60, status="paused")
        write_run(tmp_path / "b", eta=3.0)
        browser.until("document.querySelector('#table').innerText.includes('60 / 100')")
        assert browser.count(".runs tbody tr") == 2
        assert browser.js("window.same === 1 && document.getElementById('logx').checked")
        assert browser.problems() == []


def test_the_address_in_the_browser_has_no_token_and_works_again(browser, tmp_path):
    write_run(tmp_path / "a")
    with served(tmp_path) as (server, _):
        home = f"http://127.0.0.1:{server.port}/"
        browser.open(server.address(server.access.token) + "#smooth=0.5")
        address, _, view = browser.js("location.href").partition("#")
        assert (address, "smooth=0.5" in view) == (home, True)  # the view survives the redirect
        assert browser.js("document.cookie") == ""  # no script can read it
        assert server.access.token not in browser.js("document.documentElement.outerHTML")
        steps = browser.call("Page.getNavigationHistory")["entries"]
        assert not [step for step in steps if server.access.token in step["url"]]
        browser.open(home)
        assert browser.count(".runs tbody tr") == 1
        browser.call("Network.clearBrowserCookies")
        browser.call("Page.navigate", url=home)
        browser.until("document.body?.innerText.includes('it has the token')")


def test_a_page_says_that_its_server_has_stopped_or_has_a_new_address(browser, tmp_path):
    write_run(tmp_path / "a")
    with served(tmp_path) as (server, _):
        browser.open(server.address(server.access.token))
        browser.until(f"{MARK}.includes('nothing is running')")
    browser.until(f"{MARK} === 'server stopped'")
    with served(tmp_path, server.port):
        browser.until(f"{MARK} === 'server restarted: open the address that it printed'")


def test_500_runs_of_1000_rounds_open_with_two_seconds_of_work(browser, tmp_path):
    number = 0
    for algorithm, nu in (("fedavg", 0.0), ("fedavgm", 1.0), ("fedgm", 0.7), ("fednag", 0.9)):
        for eta in (0.5, 1.0, 2.0, 3.0, 4.0):
            for beta in (0.5, 0.7, 0.8, 0.9, 0.95):
                for seed in range(5):
                    number += 1
                    place = tmp_path / "runs" / str(number)
                    write_run(place, algorithm, seed, eta=eta, beta=beta, nu=nu, rounds=1000, every=1)
    address = store_page(tmp_path / "runs", tmp_path / "page.html")
    browser.call("Performance.enable", timeDomain="threadTicks")
    browser.open(address)
    thread = {m["name"]: m["value"] for m in browser.call("Performance.getMetrics")["metrics"]}["ThreadTime"]
    assert browser.js("JSON.parse(document.getElementById('data').textContent).runs.length") == number == 500
    assert thread < 2  # of the page's own thread: the clock on the wall would measure the machine
    browser.choose("#smooth", "0.5", "input")
    frame = (
        "(() => { const at = performance.now(); const n = document.getElementById('smooth'); n.value = 0.6;"
    )
    frame += " n.dispatchEvent(new Event('input')); return performance.now() - at; })()"
    assert min(browser.js(frame.replace("0.6", str(value))) for value in (0.55, 0.6, 0.65, 0.7, 0.75)) < 200
    assert browser.problems() == []
