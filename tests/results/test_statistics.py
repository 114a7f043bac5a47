"""The statistics of docs/claims.md, against numbers worked by hand, tables and simulation."""

import math
from itertools import combinations

import numpy as np
import pytest

from fedgm.draws import generator
from fedgm.errors import ConfigError
from fedgm.results.best_of import best_of, expected_best
from fedgm.results.curve import area, fluctuation, last10, rounds_to
from fedgm.results.interval import LEVEL, Interval, log_ratio, mean_interval, paired, t_cdf, t_quantile

SIMULATIONS = 1000
THREE_ERRORS = 3 * math.sqrt(LEVEL * (1 - LEVEL) / SIMULATIONS)


def test_last10_is_the_mean_of_ten_or_of_all_there_are():
    assert last10([9.0] * 5 + [float(i) for i in range(1, 11)]) == 5.5
    assert last10([0.2, 0.4]) == pytest.approx(0.3)
    assert last10([]) is None
    assert last10([0.1] * 9 + [None]) is None
    assert last10([0.1] * 9 + [math.inf]) is None
    assert last10([None] + [0.25] * 10) == 0.25  # what lies before does not count


def test_area_by_trapezoids():
    """Rounds 0, 10, 30 at 0, 1, 1: 5 + 20 over 30."""
    assert area([0, 10, 30], [0.0, 1.0, 1.0]) == pytest.approx(25 / 30)
    assert area([5], [0.4]) == 0.4
    with pytest.raises(ConfigError, match="increasing"):
        area([5, 5], [0.1, 0.2])


def test_rounds_to_is_the_first_evaluation_that_reaches_it():
    assert rounds_to([5, 10, 15, 20], [0.1, 0.3, 0.2, 0.4], 0.3) == 10
    assert rounds_to([5, 10], [0.1, None], 0.3) is None
    assert rounds_to([5, 10, 15], [2.0, 1.5, 1.0], 1.5, "minimize") == 10


def test_fluctuation_is_what_the_line_leaves():
    """Residuals .03 (1, -1, -1, 1) are orthogonal to any line: sqrt(4 x .0009 / 2)."""
    rounds = [5, 10, 15, 20]
    values = [0.2 + 0.01 * t + 0.03 * r for t, r in zip(rounds, (1, -1, -1, 1), strict=True)]
    assert fluctuation(rounds, values) == pytest.approx(math.sqrt(0.0018))
    assert fluctuation(rounds, [0.5 - 0.002 * t for t in rounds]) == pytest.approx(0.0, abs=1e-15)
    with pytest.raises(ConfigError, match="evaluations=2"):
        fluctuation([5, 10], [0.1, 0.2])
    with pytest.raises(ConfigError, match="finite"):
        fluctuation([5, 10, 15], [0.1, math.nan, 0.2])


@pytest.mark.parametrize(
    ("df", "p", "table"),
    [
        (1, 0.975, 12.706),
        (2, 0.975, 4.303),
        (3, 0.975, 3.182),
        (4, 0.95, 2.132),
        (5, 0.995, 4.032),
        (9, 0.975, 2.262),
        (10, 0.975, 2.228),
        (30, 0.975, 2.042),
        (120, 0.975, 1.980),
        (2, 0.9995, 31.599),
    ],
)
def test_t_quantiles_of_the_printed_tables(df, p, table):
    assert t_quantile(p, df) == pytest.approx(table, abs=0.0006)
    assert t_quantile(1 - p, df) == pytest.approx(-t_quantile(p, df))
    assert t_cdf(t_quantile(p, df), df) == pytest.approx(p, abs=1e-14)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 12])
def test_t_cdf_is_the_integral_of_the_density(df):
    """An independent way: Simpson's rule on the density itself."""
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    grid = np.linspace(0, 2.5, 2001)
    density = scale * (1 + grid**2 / df) ** (-(df + 1) / 2)
    weights = np.ones(2001)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    assert t_cdf(2.5, df) == pytest.approx(0.5 + float(weights @ density) * (2.5 / 2000) / 3, abs=1e-12)
    assert t_cdf(0.0, df) == 0.5


def test_paired_interval_by_hand():
    """Differences 1, 2, 3: mean 2, s 1, half width 4.30265 / sqrt(3) = 2.48414."""
    interval = paired([11.0, 22.0, 33.0], [10.0, 20.0, 30.0])
    assert (interval.mean, interval.deviation, interval.n, interval.effect) == (2.0, 1.0, 3, 2.0)
    assert (interval.low, interval.high) == pytest.approx((2 - 2.48414, 2 + 2.48414), abs=1e-5)
    ninety = paired([11.0, 22.0, 33.0], [10.0, 20.0, 30.0], level=0.1)
    assert ninety.high - 2 == pytest.approx(2.91999 / math.sqrt(3), abs=1e-5)


def test_one_seed_decides_nothing_and_none_is_refused():
    alone = paired([0.9], [0.1])
    assert (alone.low, alone.high) == (-math.inf, math.inf)
    assert math.isnan(alone.effect)
    with pytest.raises(ConfigError, match="seeds=0"):
        mean_interval([])
    with pytest.raises(ConfigError, match="diverged runs"):
        mean_interval([0.1, math.nan])
    with pytest.raises(ValueError, match="zip"):
        paired([0.1, 0.2], [0.1])


def test_log_ratio_by_hand():
    """Ratios e, e^2, e^3 turn into the differences 1, 2, 3."""
    interval = log_ratio([math.e, 2 * math.e**2, math.e**3], [1.0, 2.0, 1.0])
    assert (interval.mean, interval.low) == pytest.approx((2.0, 2 - 2.48414), abs=1e-5)
    with pytest.raises(ConfigError, match="above 0"):
        log_ratio([0.0], [1.0])


def decided(interval: Interval) -> bool:
    return interval.low > 0 or interval.high < 0


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_false_positives_of_the_paired_interval_keep_the_level(seeds):
    """Seeds move both sides alike, and a true difference does not exist."""
    draw = generator(0, "false-positives", client=seeds)
    hits = 0
    for _ in range(SIMULATIONS):
        seed, a, b = draw.normal(0, 3, seeds), draw.normal(0, 1, seeds), draw.normal(0, 1, seeds)
        hits += decided(paired((40 + seed + a).tolist(), (40 + seed + b).tolist()))
    assert LEVEL - THREE_ERRORS <= hits / SIMULATIONS <= LEVEL + THREE_ERRORS


def test_false_positives_of_the_ratio_of_fluctuations_keep_the_level():
    """Two curves with the same trend and noise, 25 evaluations each, three seeds."""
    draw = generator(0, "false-positives-ratio")
    rounds = list(range(5, 130, 5))

    def curve() -> float:
        return fluctuation(
            rounds, [0.1 + 0.002 * t + e for t, e in zip(rounds, draw.normal(0, 0.01, 25), strict=True)]
        )

    hits = sum(
        decided(log_ratio([curve() for _ in range(3)], [curve() for _ in range(3)]))
        for _ in range(SIMULATIONS)
    )
    assert LEVEL - THREE_ERRORS <= hits / SIMULATIONS <= LEVEL + THREE_ERRORS


def test_a_planted_effect_is_found():
    """Ten deviations of the differences at three seeds: the chance to miss it is below 1 %."""
    draw = generator(0, "planted")
    detected = sum(mean_interval(draw.normal(10, 1, 3).tolist()).low > 0 for _ in range(SIMULATIONS))
    assert detected > 0.98 * SIMULATIONS


def test_best_of_two_of_four_by_hand():
    """Of the 6 pairs of 1 2 3 4 the maximum is 2 once, 3 twice, 4 three times."""
    scores = [3.0, 1.0, 4.0, 2.0]
    assert expected_best(scores, 2) == pytest.approx(20 / 6)
    assert expected_best(scores, 2, "minimize") == pytest.approx(10 / 6)
    assert expected_best(scores, 1) == pytest.approx(2.5)
    assert expected_best(scores, 4) == 4.0
    with pytest.raises(ConfigError, match="k=5"):
        expected_best(scores, 5)


def test_expected_best_is_the_mean_over_all_subsets():
    scores = generator(0, "scores").normal(0.4, 0.05, 9).tolist()
    maxima = [max(chosen) for chosen in combinations(scores, 4)]
    assert expected_best(scores, 4) == pytest.approx(math.fsum(maxima) / len(maxima), abs=1e-15)


def test_band_of_ten_of_ninety_lies_at_the_exact_quantiles():
    """P(max <= i) = C(i, 10) / C(90, 10) for the scores 1 to 90."""
    scores = [float(i) for i in range(1, 91)]
    result = best_of(scores, 10)
    exact = [math.comb(i, 10) / math.comb(90, 10) for i in range(1, 91)]
    for end, p in ((result.low, 0.05), (result.high, 0.95)):
        index = int(end) - 1
        error = 3 * math.sqrt(p * (1 - p) / 10_000)
        assert exact[index] >= p - error
        assert exact[index - 1] < p + error
    assert result.mean == pytest.approx(10 * 91 / 11)  # k (n+1) / (k+1)
    assert (result.k, result.n, result.whole) == (10, 90, 90.0)
    assert result == best_of(scores, 10)
    assert best_of(scores, 10, seed=1).mean == result.mean
    turned = best_of([-s for s in scores], 10, "minimize")
    assert (turned.low, turned.high, turned.whole) == (-result.high, -result.low, -90.0)
