"""Like beside like, in a real browser: problems, noise, settings, the seed that chose, labels, colours."""

import re
from pathlib import Path
from statistics import mean, stdev

import pytest
from click.testing import CliRunner

from fedgm import commands
from fedgm.results.find import below
from fedgm.results.labels import NAMES
from tests.dashboard.chromium import BINARY
from tests.dashboard.dashboard_runs import STAGES, store_page, write_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BINARY is None, reason="needs Chromium")]
CARDS = "[...document.querySelectorAll('.card-mini')].map((card) => card.innerText)"
LONG, SHORT, ONE = (f"synthetic, resnet, {rounds} rounds" for rounds in (100, 50, 25))
OLD = {"upload": {"name": "plain"}, "trainer": {"workers": 4}, "task": {"name": "classification"}}
HUES = """Object.fromEntries([...document.querySelectorAll('.card-mini')].map((card) =>
    [card.querySelector('b').innerText.split(' ')[0], card.querySelector('.swatch').style.background]))"""


def write_problems(root: Path) -> Path:
    """A grid on seed 0 whose winners have three more seeds; a noisy problem; one with a single seed."""
    for name, beta, nu in (("fedavg", 0.0, 0.0), ("fedavgm", 0.9, 1.0), ("fedgm", 0.9, 0.7)):
        rates = {"beta": beta, "nu": nu}
        for eta in (0.5, 1.0, 2.0):
            write_run(root / f"{name} {eta} 0", name, eta=eta, shift=0.03, **rates)
        for seed in (1, 2, 3):
            noise = 0.002 * ((seed * 7 + len(name)) % 3)
            young = OLD if seed == 3 else {}
            write_run(root / f"{name} 2 {seed}", name, seed, eta=2.0, shift=noise, config=young, **rates)
            jump = 0.05 * (seed - 2) if name == "fedgm" else 0.0
            write_run(root / f"short {name} {seed}", name, seed, rounds=50, shift=jump, **rates)
        write_run(root / f"one {name}", name, rounds=25, **rates)
    for seed in (1, 2):
        write_run(root / f"staged {seed}", "fedgm", seed, eta=2.0, beta=0.5, stages=STAGES)
    return root


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    place = tmp_path_factory.mktemp("problems")
    return store_page(write_problems(place / "runs"), place / "page.html")


@pytest.fixture
def opened(browser, page):
    browser.size(1500, 1000)
    browser.call("Page.navigate", url="about:blank")
    browser.open(page)
    yield browser
    assert browser.problems() == []


def choose_problem(page, label):
    options = (
        "[...document.querySelectorAll('#problem option')].map((option) => [option.innerText, option.value])"
    )
    (value,) = [value for text, value in page.js(options) if text.startswith(f"{label} (")]
    page.choose("#problem", value)


def scores(page, algorithm, rounds, eta=None):
    """Scores of seeds 1, 2 and 3 by seed, in percent."""
    runs = below(Path(page.removeprefix("file://")).parent / "runs")
    return {
        run.seed: 100 * (run.score("test/acc") or 0)
        for run in runs
        if (run.facts["algorithm"], run.rounds) == (algorithm, rounds)
        and run.config["algorithm.eta"] == (eta or run.config["algorithm.eta"])
        and run.config["schedule.name"] == "constant"
        and run.seed > 0
    }


def test_a_problem_is_chosen_on_top_and_cards_are_of_one(opened):
    options = "[...document.querySelectorAll('#problem option')].map((option) => option.innerText)"
    assert opened.js(options) == [
        f"{LONG} (20 runs)", f"{SHORT} (9 runs)", f"{ONE} (3 runs)", "all 3 problems, not ranked",
    ]  # fmt: skip
    assert opened.text("#table-count") == "20 of 32 runs"
    long = opened.js(CARDS)
    assert [re.match(r"\w+", card)[0] for card in long] == ["FedAvg", "FedAvgM", "FedGM"]
    choose_problem(opened, SHORT)
    assert opened.text("#table-count") == "9 of 32 runs"
    short = opened.js(CARDS)
    assert len(short) == 3
    assert set(short).isdisjoint(long)
    assert opened.count(".line") == 3


def test_runs_of_several_problems_are_not_ranked(opened):
    opened.choose("#problem", "(all)")
    assert opened.text("#table-count") == "32 runs"
    assert "best" not in opened.text("#glance")
    assert opened.count(".badge, .gap, .big") == 0
    assert opened.js("document.getElementById('sweep').hidden")
    assert opened.js("document.getElementById('chart-0').dataset.lines") != "0"
    cards = opened.js(CARDS)
    assert [card.split("\n")[0] for card in cards] == [LONG, SHORT, ONE]
    rows = opened.js("[...document.querySelectorAll('.runs tbody tr')].map((row) => row.innerText)")
    assert [next(p for p in (LONG, SHORT, ONE) if p in row) for row in rows] == [LONG] * 20 + [SHORT] * 9 + [
        ONE
    ] * 3
    lines = opened.js(
        "[...document.querySelectorAll('.line .name')].map((name) => name.title || name.innerText)"
    )
    assert all(line.count("rounds") == 1 for line in lines)
    opened.js("document.querySelectorAll('.card-mini')[1].click()")
    assert opened.text("#problem option:checked").startswith(SHORT)
    assert opened.count(".big") == 3


def test_best_is_said_beyond_the_noise_of_seeds_alone(opened, page):
    assert opened.js("[...document.querySelectorAll('.card-mini.best b')].map((b) => b.innerText)") == [
        "FedGM best"
    ]
    note = opened.text("#glance-note")
    assert note.startswith("FedGM is ahead of FedAvgM beyond the noise of seeds (3 common seeds, 95 %: ")
    ours, theirs = scores(page, "fedgm", 100, 2.0), scores(page, "fedavgm", 100, 2.0)
    gaps = [ours[seed] - theirs[seed] for seed in (1, 2, 3)]
    half = 4.30265 * stdev(gaps) / 3**0.5  # Student's t, two degrees of freedom
    low, high = re.search(r"([+−][\d.]+) to ([+−][\d.]+) points", note).groups()
    shown = [float(text.replace("−", "-")) for text in (low, high)]
    assert shown == pytest.approx([mean(gaps) - half, mean(gaps) + half], abs=0.051)
    choose_problem(opened, SHORT)
    assert opened.count(".badge") == opened.count(".card-mini.best") == 0
    assert re.match(
        r"No best: \w+ and \w+ cannot be told apart \(3 common seeds", opened.text("#glance-note")
    )
    assert opened.count(".gap.noise") >= 1
    choose_problem(opened, ONE)
    assert opened.count(".badge") == 0
    assert "have one common seed" in opened.text("#glance-note")


def test_a_best_by_a_loss_is_the_lowest(opened):
    opened.choose("#metric", "test/loss")
    low = [float(re.search(r"\d\.\d+", card)[0]) for card in opened.js(CARDS)]
    best = opened.js(
        "[...document.querySelectorAll('.card-mini')].findIndex((c) => c.classList.contains('best'))"
    )
    assert best == low.index(min(low))


def test_workers_and_younger_keys_make_no_setting(opened):
    lines = opened.js("[...document.querySelectorAll('.line')].map((line) => line.innerText)")
    assert len(lines) == 10  # three times three, and the stages
    assert not [line for line in lines if "workers" in line or "upload" in line]
    (winner,) = [line for line in lines if line.startswith("FedAvgM, η 2")]
    assert "4 runs" in winner
    assert "trainer" not in opened.text("#compare")


def test_the_seed_that_chose_a_winner_is_marked_and_not_in_its_mean(opened, page):
    for name in ("fedavg", "fedavgm"):
        (card,) = [card for card in opened.js(CARDS) if re.match(rf"{NAMES[name]}\s", card)]
        assert "seeds 1, 2, 3; seed 0 chose it" in card
        expected = scores(page, name, 100, 2.0).values()
        big, sd = re.search(r"([\d.]+) % ± ([\d.]+)", card).groups()
        assert (float(big), float(sd)) == pytest.approx((mean(expected), stdev(expected)), abs=0.051)
    assert opened.js("[...document.querySelectorAll('.chose')].map((star) => star.innerText)") == ["★ 0"] * 3
    assert "not in its mean" in opened.text("#curves-caption")
    choose_problem(opened, SHORT)
    assert opened.count(".chose") == 0


def test_the_label_of_a_multistage_run_says_its_stages(opened):
    (label,) = opened.js(
        "[...document.querySelectorAll('.line .name')].map((name) => name.firstChild.data)"
        ".filter((text) => text.includes('stages'))"
    )
    assert label.startswith("FedGM, stages, η 2 → 1")


def test_a_colour_belongs_to_an_algorithm_whatever_is_picked(opened):
    hues = opened.js(HUES)
    assert len(set(hues.values())) == 3
    opened.js("document.getElementById('show-none').click()")
    assert opened.js(HUES) == hues
    opened.js("[...document.querySelectorAll('.line')].at(-1).click()")
    opened.js("document.getElementById('show-all').click()")
    assert opened.js(HUES) == hues
    strokes = opened.js(
        "[...document.querySelectorAll('.line.on')].map((l) => [l.innerText.split(',')[0],"
        " l.querySelector('.stroke').style.borderColor, l.querySelector('.stroke').className])"
    )
    assert len({(colour, dash) for _, colour, dash in strokes}) == len(strokes)  # no two lines look alike
    families = {name: {colour for other, colour, _ in strokes if other == name} for name in hues}
    assert all(families[a].isdisjoint(families[b]) for a in hues for b in hues if a < b)
    choose_problem(opened, SHORT)
    assert opened.js(HUES) == hues
    opened.choose("#filter", "algorithm=fedgm", "input")
    opened.until("document.querySelector('#table-count').innerText === '3 of 32 runs'")
    assert opened.js("document.querySelector('.line.on .stroke').style.borderColor") == hues["FedGM"]


def test_no_seeds_in_the_difference_of_settings(opened):
    keys = opened.js("[...document.querySelectorAll('#compare tbody th')].map((th) => th.innerText)")
    assert "algorithm.nu" in keys
    assert not [key for key in keys if "seed" in key]
    for _ in range(2):
        opened.js("[...document.querySelectorAll('.runs input:not(:checked)')][0].click()")
    keys = opened.js("[...document.querySelectorAll('#compare tbody th')].map((th) => th.innerText)")
    assert not [key for key in keys if "seed" in key]


def test_experiment_is_an_alias_of_name(opened):
    opened.choose("#filter", "experiment=fedgm", "input")
    opened.until("document.querySelector('#filter').value === 'experiment=fedgm'")
    opened.until("location.hash.includes('experiment')")
    assert opened.text("#table-count") == "20 of 32 runs"
    opened.choose("#filter", "experiment=other", "input")
    opened.until("!document.getElementById('empty').hidden")


def test_the_problem_of_an_address_is_found_beside_others_that_change_its_name(browser, tmp_path):
    for seed in (0, 1):
        write_run(tmp_path / "runs" / f"long {seed}", seed=seed)
    write_run(tmp_path / "runs" / "short", rounds=50)
    page = store_page(tmp_path / "runs", tmp_path / "page.html")
    browser.call("Page.navigate", url="about:blank")
    browser.open(page)
    choose_problem(browser, SHORT)
    address = browser.js("location.href")
    for seed in range(5):
        write_run(
            tmp_path / "runs" / f"more {seed}", seed=seed, rounds=50, config={"clients": {"per_round": 2}}
        )
    store_page(tmp_path / "runs", tmp_path / "page.html")
    browser.call("Page.navigate", url="about:blank")
    browser.open(address)
    assert browser.text("#problem option:checked") == f"{SHORT}, clients per_round 5 (1 run)"
    assert browser.problems() == []


def test_final_of_a_diverged_run_is_chance_on_the_page_in_the_terminal_and_in_python(browser, tmp_path):
    runs = tmp_path / "runs"
    folder = write_run(runs / "lost", eta=9.0, status="diverged", done=60, classes=4)
    write_run(runs / "other", classes=4)
    (lost,) = [run for run in below(runs) if run.is_divergent]
    assert (lost.final("test/acc"), lost.score("test/acc")) == (0.25, 0.25)
    assert lost.evaluations[-1]["test/acc"] != 0.25
    listed = CliRunner().invoke(commands.main, ["list", str(runs)], terminal_width=200).output
    assert re.search(r"diverged.*25\.00 %.*25\.00 %", listed)
    shown = CliRunner().invoke(commands.main, ["show", str(folder)]).output
    assert re.search(r"test/acc .*25\.00 % .*25\.00 %", shown)
    browser.open(store_page(runs, tmp_path / "page.html"))
    head, row = (
        browser.js(f"[...document.querySelectorAll({cells!r})].map((cell) => cell.innerText)")
        for cells in (".runs thead th", ".runs tbody tr:last-child td")
    )
    assert (row[head.index("status")], row[head.index("final")]) == ("diverged", "25.0")
    assert browser.problems() == []
