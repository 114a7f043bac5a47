"""The rules of docs/claims.md on constructed curves: each kind of part, each rule for divergent runs."""

import math

import numpy as np
import pytest

from fedgm.results.run import Run, whole
from fedgm.study.claim_parts import Better, Lost, MoreStable, SmallGap, Stretch
from fedgm.study.verdict import shown, together
from tests.study.made_curves import evidence, flat, made, noisy, wobbling

THREE = (1, 2, 3)


def runs(values, **more):
    return [flat(seed, value, **more) for seed, value in zip(THREE, values, strict=True)]


def there_as(status):
    return Run({"hash": "x", "seed": 3, "status": status, "rounds": 125}, {}, [])


def test_area_counts_chance_after_the_end_of_a_run_that_diverged():
    run = made(0, [0.5, 0.5], status="diverged", rounds=20)  # evaluations after 5 and 10, chance after 15, 20
    # trapezoids: 5*.5 + 5*.3 + 5*.1 over 15 rounds
    assert Better("a", "b", over=whole).value(run, evidence([0])) == pytest.approx(100 * 4.5 / 15)


# Better, small gap ---------------------------------------------------------------------------------------


def test_a_planted_effect_is_found_with_its_interval():
    # differences 2, 3, 4 points: mean 3, s 1, half width 4.3027 / sqrt(3) = 2.4841
    part = Better("a", "b").judge(evidence(THREE, a=runs([0.52, 0.53, 0.54]), b=runs([0.5] * 3)))
    assert part.verdict == "holds"
    ends = {"mean": 3, "low": 0.51586, "high": 5.48414}
    assert shown(part.interval, "points") == pytest.approx(ends, abs=1e-4)
    assert part.interval.effect == pytest.approx(3)
    turned = Better("b", "a").judge(evidence(THREE, a=runs([0.52, 0.53, 0.54]), b=runs([0.5] * 3)))
    assert turned.verdict == "does not hold"


def test_an_interval_that_touches_zero_decides_nothing():
    same = evidence(THREE, a=runs([0.5] * 3), b=runs([0.5] * 3))
    assert Better("a", "b").judge(same).verdict == "undecided"


def test_a_null_effect_is_undecided_as_often_as_the_level_says():
    rng = np.random.default_rng(7)
    verdicts = []
    for _ in range(1000):
        a = [noisy(rng, 0.5, 0.01, seed) for seed in THREE]
        b = [noisy(rng, 0.5, 0.01, seed) for seed in THREE]
        verdicts.append(Better("a", "b").judge(evidence(THREE, a=a, b=b)).verdict)
    for wrong in ("holds", "does not hold"):
        share = verdicts.count(wrong) / 1000
        assert share <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 1000)
        assert share > 0  # a rule that never decides would pass, too


def test_a_large_planted_effect_is_nearly_always_found():
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(200):
        a = [noisy(rng, 0.6, 0.01, seed) for seed in THREE]
        b = [noisy(rng, 0.5, 0.01, seed) for seed in THREE]
        held += Better("a", "b").judge(evidence(THREE, a=a, b=b)).verdict == "holds"
    assert held > 190


@pytest.mark.parametrize(
    ("differences", "not_worse", "verdict"),
    [
        ([0.4, 0.5, 0.6], False, "holds"),
        ([-0.6, -0.5, -0.4], False, "holds"),
        ([-0.6, -0.5, -0.4], True, "does not hold"),  # worse is not marginally better
        ([5.0, 5.1, 5.2], False, "does not hold"),
        ([-5.0, -5.1, -5.2], False, "does not hold"),
        ([2.0, 3.0, 4.0], False, "undecided"),
        ([-4.0, 0.0, 4.0], False, "undecided"),
    ],
)
def test_a_small_gap_lies_within_three_points(differences, not_worse, verdict):
    a = runs([0.5 + d / 100 for d in differences])
    assert (
        SmallGap("a", "b", not_worse=not_worse).judge(evidence(THREE, a=a, b=runs([0.5] * 3))).verdict
        == verdict
    )


def test_the_last_evaluation_has_an_interval_of_its_own_that_is_not_judged():
    a = [made(s, [0.3] * 24 + [0.6 + 0.01 * s]) for s in THREE]
    b = [made(s, [0.5] * 24 + [0.4]) for s in THREE]
    part = Better("a", "b").judge(evidence(THREE, a=a, b=b))
    assert part.verdict == "does not hold"  # last10 is lower, whatever the last round says
    # differences of the last round: 21, 22, 23 points
    assert shown(part.final, "points") == pytest.approx(
        {"mean": 22, "low": 19.51586, "high": 24.48414}, abs=1e-4
    )
    assert part.as_dict()["last round"]["mean"] == pytest.approx(22)
    area = Better("a", "b", over=whole).judge(evidence(THREE, a=a, b=b))
    assert (area.final, area.comparison) == (None, None)


def test_a_comparison_names_its_differences_and_its_runs():
    a, b = runs([0.52, 0.53, 0.54]), runs([0.5] * 3)
    comparison = Better("a", "b").judge(evidence(THREE, a=a, b=b[:2])).comparison
    assert comparison.differences == pytest.approx((2, 3))
    assert comparison.runs == {run.key for run in (*a[:2], *b[:2])}


def test_a_finished_run_near_chance_keeps_its_number_in_a_comparison():
    b = runs([0.19] * 3, loss=[2.3] * 25)
    assert all(run.near_chance for run in b)
    part = Better("a", "b").judge(evidence(THREE, a=runs([0.5] * 3), b=b))
    assert part.values["b"] == pytest.approx({1: 19.0, 2: 19.0, 3: 19.0})


def test_a_divergent_run_counts_with_chance_in_a_comparison():
    a = runs([0.5] * 3)
    b = [flat(seed, 0.9, n=4, status="diverged", rounds=125) for seed in THREE]
    part = Better("a", "b").judge(evidence(THREE, a=a, b=b))
    assert part.values["b"] == {1: 10.0, 2: 10.0, 3: 10.0}
    assert part.verdict == "holds"


@pytest.mark.parametrize("status", ["failed", "paused", "missing", "running", "killed"])
def test_a_run_that_is_not_there_makes_the_part_undecided_and_is_named(status):
    a = [*runs([0.8, 0.81, 0.82])[:2], there_as(status)]
    lines = {"a": a, "b": runs([0.5, 0.5, 0.5])}
    for part in (Better("a", "b"), SmallGap("a", "b"), Lost("a", expected=False)):
        result = part.judge(evidence(THREE, **lines))
        assert result.verdict == "undecided"
        assert f"a, seed 3: {status}" in result.missing
    wobble = {"a": [wobbling(1, 0.01), wobbling(2, 0.01), there_as(status)]}
    wobble["b"] = [wobbling(seed, 0.1) for seed in THREE]
    result = MoreStable(Stretch("a"), Stretch("b")).judge(evidence(THREE, **wobble))
    assert (result.verdict, result.missing[0]) == ("undecided", f"a, seed 3: {status}")


# More stable ---------------------------------------------------------------------------------------------


def steadier(**lines):
    return MoreStable(Stretch("a"), Stretch("b")).judge(evidence(THREE, **lines))


def wobbles(amplitude, **more):
    return [wobbling(seed, amplitude, **more) for seed in THREE]


def died(seed):
    return flat(seed, 0.5, n=4, status="diverged", rounds=125)


def test_a_smaller_fluctuation_is_more_stable():
    part = steadier(a=wobbles(0.01), b=wobbles(0.05))
    assert part.verdict == "holds"
    assert shown(part.interval, "ratio") == pytest.approx({"mean": 0.2, "low": 0.2, "high": 0.2})
    assert steadier(a=wobbles(0.05), b=wobbles(0.01)).verdict == "does not hold"


def test_equal_fluctuations_are_undecided_as_often_as_the_level_says():
    rng = np.random.default_rng(9)
    verdicts = []
    for _ in range(1000):
        curves = rng.normal(0.5, 0.01, (2, 3, 25)).tolist()
        a, b = ([made(seed, values) for seed, values in zip(THREE, three, strict=True)] for three in curves)
        verdicts.append(MoreStable(Stretch("a"), Stretch("b")).judge(evidence(THREE, a=a, b=b)).verdict)
    for wrong in ("holds", "does not hold"):
        share = verdicts.count(wrong) / 1000
        assert 0 < share <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 1000)


def test_a_divergent_where_b_is_not_does_not_hold():
    a = [wobbling(1, 0.01), wobbling(2, 0.01), died(3)]
    assert steadier(a=a, b=wobbles(0.1)).verdict == "does not hold"


def test_b_divergent_in_every_seed_and_a_in_none_holds():
    assert steadier(a=wobbles(0.1), b=[died(seed) for seed in THREE]).verdict == "holds"


def test_seeds_in_which_b_alone_is_divergent_are_left_out_and_named():
    part = steadier(a=wobbles(0.01), b=[wobbling(1, 0.05), wobbling(2, 0.052), died(3)])
    assert part.interval.n == 2
    assert "seed 3 left out: diverged" in part.notes
    part = steadier(a=wobbles(0.01), b=[wobbling(1, 0.05), died(2), died(3)])
    assert (part.verdict, part.interval.n) == ("undecided", 1)  # fewer than two seeds are left


def test_near_chance_has_a_fluctuation_and_decides_only_where_the_claim_says_so():
    low = [wobbling(seed, 0.01, 0.15, loss=[2.3] * 25) for seed in THREE]
    assert all(run.near_chance for run in low)
    assert steadier(a=wobbles(0.05), b=low).verdict == "does not hold"
    lines = evidence(THREE, a=wobbles(0.05), b=low)
    assert MoreStable(Stretch("a"), Stretch("b"), b_lost_holds=True).judge(lines).verdict == "holds"


def test_both_divergent_everywhere_is_undecided():
    both = [died(seed) for seed in THREE]
    assert steadier(a=both, b=both).verdict == "undecided"


def test_a_fluctuation_of_zero_is_undecided():
    part = steadier(a=[flat(1, 0.5), wobbling(2, 0.01), wobbling(3, 0.01)], b=wobbles(0.05))
    assert part.verdict == "undecided"
    assert "seed 1: a fluctuation of 0" in part.notes


# Events, one seed, together ------------------------------------------------------------------------------


def test_an_event_happens_in_every_seed_or_in_none():
    every = [died(seed) for seed in THREE]
    some = [died(1), *runs([0.5] * 3)[1:]]
    assert Lost("a", True).judge(evidence(THREE, a=every)).verdict == "holds"
    assert Lost("a", True).judge(evidence(THREE, a=runs([0.5] * 3))).verdict == "does not hold"
    assert Lost("a", True).judge(evidence(THREE, a=some)).verdict == "undecided"
    low = runs([0.19] * 3, loss=[2.3] * 25)  # finished near chance: the same event
    assert Lost("a", True).judge(evidence(THREE, a=low)).verdict == "holds"
    assert Lost("a", False).judge(evidence(THREE, a=low)).verdict == "does not hold"
    notes = Lost("a", True).judge(evidence(THREE, a=every)).notes
    assert "any probability above 0.29 stays possible (exact binomial, 5 %)" in notes


def test_one_seed_is_never_a_verdict():
    lines = {"a": [wobbling(1, 0.01, 0.9)], "b": [wobbling(1, 0.1)], "dead": [died(1)]}
    for part in (
        Better("a", "b"), Better("b", "a"), Better("a", "dead"), SmallGap("a", "a"), SmallGap("a", "b"),
        Lost("dead", True), Lost("a", True), MoreStable(Stretch("a"), Stretch("b")),
        MoreStable(Stretch("dead"), Stretch("a")), MoreStable(Stretch("a"), Stretch("dead")),
        MoreStable(Stretch("a"), Stretch("dead"), b_lost_holds=True),
    ):  # fmt: skip
        assert part.judge(evidence([1], **lines)).verdict == "undecided", part


def test_all_parts_must_hold_and_one_that_does_not_decides():
    assert together(["holds", "holds"]) == "holds"
    assert together(["holds", "undecided"]) == "undecided"
    assert together(["holds", "undecided", "does not hold"]) == "does not hold"
    assert together([]) == "undecided"
