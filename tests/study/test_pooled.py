"""The pooled variance of docs/claims.md: Bartlett's test by hand and by table, and who shares a run."""

import math

import pytest

from fedgm.results.interval import bartlett, chi2_above, pool
from fedgm.study.claim_parts import Better, MoreStable, SmallGap, Stretch
from fedgm.study.judge import JudgedPart, add_pooled
from tests.study.made_curves import evidence, flat, made, wobbling

THREE = (1, 2, 3)


@pytest.mark.parametrize(
    ("df", "x", "above"),
    [
        (1, 3.841, 0.05), (2, 5.991, 0.05), (3, 7.815, 0.05), (4, 9.488, 0.05), (5, 11.070, 0.05),
        (9, 16.919, 0.05), (10, 18.307, 0.05), (19, 30.144, 0.05), (1, 6.635, 0.01), (10, 23.209, 0.01),
        (3, 0.352, 0.95), (10, 3.940, 0.95),
    ],
)  # fmt: skip
def test_chi_squared_is_that_of_the_table(df, x, above):
    assert chi2_above(x, df) == pytest.approx(above, abs=2e-4)
    assert chi2_above(0.0, df) == 1.0


def test_bartlett_by_hand():
    """Variances 1 and 4 of three each: (4 ln 2.5 - 2 ln 4) / (1 + (1/2 + 1/2 - 1/4) / 3) = 0.71406."""
    statistic = (4 * math.log(2.5) - 2 * math.log(4)) / 1.25
    assert statistic == pytest.approx(0.71406, abs=1e-5)
    assert bartlett([1.0, 4.0], [2, 2]) == pytest.approx(0.3981, abs=1e-4)  # a table's 0.40 at 0.708
    assert bartlett([2.0, 2.0, 2.0], [2, 5, 7]) == pytest.approx(1.0)
    assert bartlett([1.0, 10_000.0], [9, 9]) < 1e-6
    assert bartlett([0.0, 1.0], [2, 2]) == 0.0


def test_a_pooled_variance_weighs_by_degrees_of_freedom():
    # variances 1 (df 2) and 3.7 (df 4)
    pooled = pool([[2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 4.0, 4.5], [7.0]])
    assert pooled is not None
    second = sum((x - 2.3) ** 2 for x in (0.0, 1.0, 2.0, 4.0, 4.5)) / 4
    assert pooled.variance == pytest.approx((2 * 1 + 4 * second) / 6)
    assert (pooled.df, pooled.groups) == (6, 2)  # one difference has no variance
    assert pool([[1.0, 2.0]]) is None
    interval = pooled.interval([1.0, 1.0])
    half = 2.447 * math.sqrt(pooled.variance / 2)  # t(0.975, 6) of the table
    assert (interval.low, interval.high) == pytest.approx((1 - half, 1 + half), abs=1e-3)


def runs(values):
    return [flat(seed, value) for seed, value in zip(THREE, values, strict=True)]


def judged(part, lines):
    result = part.judge(lines)
    return JudgedPart(part, result, result.as_dict())


def test_parts_that_share_a_run_count_once_and_all_are_shown():
    lines = evidence(
        THREE, a=runs([0.52, 0.53, 0.54]), b=runs([0.50, 0.5001, 0.5002]), c=runs([0.1, 0.2, 0.3]),
        d=runs([0.41, 0.43, 0.45]), e=runs([0.40, 0.4001, 0.4002]),
    )  # fmt: skip
    parts = [judged(part, lines) for part in (Better("a", "b"), Better("a", "c"), SmallGap("d", "e"))]
    said = add_pooled(parts, lambda key: key)
    # differences 2, 2.99, 3.98 and 1, 2.99, 4.98: variances 0.9801 and 3.9601
    assert said["test"]["deviation"] ** 2 == pytest.approx((0.9801 + 3.9601) / 2, abs=1e-6)
    assert (said["test"]["df"], said["test"]["comparisons"]) == (4, 2)
    assert "train" not in said
    half = 2.776 * math.sqrt(said["test"]["deviation"] ** 2 / 3)  # t(0.975, 4) of the table
    first = parts[0].entry["pooled"]
    assert (first["low"], first["high"]) == pytest.approx((2.99 - half, 2.99 + half), abs=2e-3)
    assert first["verdict"] == "holds"
    assert parts[1].entry["pooled"]["verdict"] == "holds"  # not in the variance, but judged by it
    assert parts[2].entry["pooled"]["verdict"] == "undecided"  # [0.4, 5.6] is neither within 3 nor beyond


def test_a_part_of_a_longer_run_is_that_run():
    lines = evidence(
        THREE, a=runs([0.5, 0.51, 0.53]), b=runs([0.4, 0.42, 0.41]), c=runs([0.6, 0.61, 0.62]),
        d=runs([0.3, 0.32, 0.31]),
    )  # fmt: skip
    parts = [judged(part, lines) for part in (Better("a", "b"), Better("c", "d"))]
    whole_of = {run.key: other.key for run, other in zip(lines.of("c"), lines.of("a"), strict=True)}
    assert add_pooled(parts, lambda key: whole_of.get(key, key)) == {}  # one comparison alone is not pooled
    assert "test" in add_pooled(parts, lambda key: key)


def test_unequal_variances_show_no_pooled_interval_and_other_parts_have_none():
    lines = evidence(
        THREE, a=runs([0.5, 0.50001, 0.50002]), b=runs([0.4, 0.4, 0.4]), c=runs([0.1, 0.5, 0.9]),
        d=runs([0.2, 0.2, 0.2]), e=[wobbling(s, 0.01) for s in THREE], f=[wobbling(s, 0.02) for s in THREE],
    )  # fmt: skip
    chosen = (Better("a", "b"), Better("c", "d"), MoreStable(Stretch("e"), Stretch("f")))
    parts = [judged(part, lines) for part in chosen]
    assert add_pooled(parts, lambda key: key)["test"]["p"] < 0.05
    assert not any("pooled" in part.entry for part in parts)


def test_a_missing_run_leaves_the_pooled_verdict_open():
    lines = evidence(
        THREE, a=runs([0.62, 0.63, 0.64]), b=runs([0.5, 0.5, 0.5])[:2], c=runs([0.41, 0.43, 0.45]),
        d=[made(s, [0.4] * 25) for s in THREE],
    )  # fmt: skip
    parts = [judged(part, lines) for part in (Better("a", "b"), Better("c", "d"))]
    assert "test" in add_pooled(parts, lambda key: key)
    assert parts[0].entry["pooled"]["verdict"] == "undecided"
