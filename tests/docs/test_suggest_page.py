"""docs/suggest.md: what `suggest` promises is what stored runs have shown."""

from statistics import median

import pytest

from docs.pages import suggestions
from fedgm.theory.suggestion import SEEN


def test_the_promised_range_is_that_of_all_stored_runs():
    shares = [
        one.measured / one.said
        for problem in suggestions.PROBLEMS
        for one in suggestions.speeds(problem).values()
        if one.measured
    ]
    about, low, high = SEEN
    assert len(shares) == 3 * len(suggestions.PROBLEMS)  # every problem has three seeds that get there
    assert (round(median(shares), 1), round(max(shares), 1)) == (about, high)
    assert 0 < min(shares) - low < 0.05


def test_the_page_has_the_tables_of_today():
    page = suggestions.PAGE.read_text()
    assert suggestions.speed_table() in page
    own = suggestions.fit(suggestions.PROBLEMS[0])
    assert (own.points, own.a[0], own.b[0]) == (
        122,
        pytest.approx(5.6, abs=0.05),
        pytest.approx(5.8, abs=0.05),
    )
    assert own.a[1] < own.a[0] < own.a[2]
    assert [
        line for line in page.splitlines() if line.startswith("| CIFAR-10 `small` | 122 | 5.6 (5.2 to 6.1)")
    ]
    assert own.lost == pytest.approx(0.9, abs=0.05)


def test_d_looks_like_noise_long_before_training_ends():
    """Why schedule=auto does not wait for it: figures of the page, from rows."""
    runs = suggestions.load(["small/figures.jsonl"], lambda run: run.rounds == 500)
    runs = [run for run in runs if (own := suggestions.momentum(run)) and own.eta == 5]
    at = {
        round: [row for run in runs for row in run.evaluations if row["round"] == round]
        for round in (60, 500)
    }
    ratios = {t: [(row["momentum/norm"] / row["update/norm"]) ** 2 for row in rows] for t, rows in at.items()}
    assert ratios[60] == pytest.approx([0.020, 0.013, 0.016], abs=5e-4)
    assert ratios[500] == pytest.approx([0.031, 0.022, 0.017], abs=5e-4)
    accuracy = [sum(row["train/acc"] for row in rows) / 3 for rows in at.values()]
    assert accuracy == pytest.approx([0.38, 0.84], abs=0.005)
