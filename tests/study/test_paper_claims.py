"""Claims C1-C9 of the paper, each with the parts that docs/claims.md gives it, on constructed curves."""

import pytest

from fedgm.study import claims
from fedgm.tasks.metric import TRAIN
from tests.study.made_curves import evidence, flat, made, wobbling

THREE = (1, 2, 3)


def wobbles(amplitude, **more):
    return [wobbling(seed, amplitude, **more) for seed in THREE]


def died(seed):
    return flat(seed, 0.5, n=4, status="diverged", rounds=125)


def judged(name, seeds=THREE, **lines):
    return [claim.judge(evidence(seeds, **lines))[0] for claim in claims.CLAIMS[name]]


def near(level, n=25):
    """Three seeds a little apart, so that differences have a deviation."""
    return [made(seed, [level + 0.001 * seed] * n) for seed in THREE]


LINES = [
    "fedgm", "fedavgm", "fedavg", "multistage", "eta_2", "eta_1", "eta_05", "eta_5", "fedgm_start", "ideal",
    "fedavg_start", "fedgm_current", "fedavg_current", "fedgm_literal", "fedavg_literal",
    "fedgm_03", "fedavg_03", "fedgm_05", "fedavg_05",
    "fedavg_eta__eta_3", "fedgm_eta__eta_5", "fedavg_eta__eta_1", "fedavg_eta__eta_2",
]  # fmt: skip


@pytest.mark.parametrize("name", claims.CLAIMS)
def test_a_whole_claim_is_undecided_on_one_seed(name):
    """However the lines lie: rising by their place in the list, or falling."""
    for step in (0.02, -0.02):
        lines = {
            line: [made(1, [0.5 + step * i + 0.001 * i * (-1) ** t for t in range(50)], ends=(50, 125, 250))]
            for i, line in enumerate(LINES)
        }
        assert set(judged(name, (1,), **lines)) == {"undecided"}


def test_c1_needs_training_and_test_over_both():
    good, middle, poor = near(0.6), near(0.5), near(0.4)
    assert judged("C1", fedgm=good, fedavgm=middle, fedavg=poor) == ["holds"]
    assert judged("C1", fedgm=middle, fedavgm=good, fedavg=poor) == ["does not hold"]
    worse_in_training = [made(run.seed, run.curve("test/acc")[1], train=[0.3] * 25) for run in good]
    assert judged("C1", fedgm=worse_in_training, fedavgm=middle, fedavg=poor) == ["does not hold"]


def test_c2_is_faster_and_the_margin_is_a_claim_of_its_own():
    slow = [made(seed, [0.5] * 25, train=[0.3] * 25) for seed in THREE]
    fast = [made(seed, [0.505 + 0.001 * seed] * 25, train=[0.4 + 0.001 * seed] * 25) for seed in THREE]
    assert judged("C2", fedavgm=fast, fedavg=slow) == ["holds", "holds"]
    assert judged("C2", fedavgm=slow, fedavg=fast) == ["does not hold", "does not hold"]  # below 0
    better = [made(seed, [0.6 + 0.001 * seed] * 25, train=[0.4 + 0.001 * seed] * 25) for seed in THREE]
    assert judged("C2", fedavgm=better, fedavg=slow) == ["holds", "does not hold"]  # more than 3 points


def staged(seed, sizes):
    values = [
        0.5 + (-1) ** i * sizes[0 if i < 10 else 1 if i < 25 else 2] * (1 + seed / 50) for i in range(50)
    ]
    return made(seed, values, ends=(50, 125, 250))


def test_c3_has_a_verdict_in_training_in_test_and_on_its_stages():
    constant = {f"eta_{eta}": near(0.3) for eta in ("2", "1", "05")}
    steadier, wilder = ([staged(s, sizes) for s in THREE] for sizes in ((0.1, 0.01, 0.01), (0.01, 0.1, 0.1)))
    assert judged("C3", multistage=steadier, **constant) == ["holds", "holds", "holds"]
    assert judged("C3", multistage=wilder, **constant) == ["holds", "holds", "does not hold"]
    by_heart = {**constant, "eta_2": [made(s, [0.3] * 50, train=[0.9 + 0.001 * s] * 50) for s in THREE]}
    assert judged("C3", multistage=steadier, **by_heart) == ["does not hold", "holds", "holds"]


def test_c3_wants_five_evaluations_in_a_stage():
    few = [made(s, [0.6, 0.5, 0.6, 0.5] + [0.6, 0.61] * 20, ends=(20, 100, 220)) for s in THREE]
    _, parts = claims.C3_STAGES.judge(evidence(THREE, multistage=few))
    assert [part.verdict for part in parts] == ["undecided", "undecided"]
    assert "seed 1: fewer than 5 evaluations" in parts[0].notes
    assert any(note.startswith("with the first third of stage 1 left out") for note in parts[0].notes)


def test_c9_is_the_same_for_fedavg_in_training_and_test():
    constant = {f"eta_{eta}": near(0.3) for eta in ("2", "1", "05")}
    better = [flat(s, 0.5 + 0.002 * s) for s in THREE]
    assert judged("C9", multistage=better, **constant) == ["holds"]
    worse_in_training = [made(s, [0.5 + 0.002 * s] * 25, train=[0.2] * 25) for s in THREE]
    assert judged("C9", multistage=worse_in_training, **constant) == ["does not hold"]
    assert len(claims.C9.parts) == 6


def test_c4_takes_its_lines_from_two_figures():
    dead = [died(seed) for seed in THREE]
    lines = {"fedavg_eta__eta_1": wobbles(0.01), "fedavg_eta__eta_2": wobbles(0.1)}
    lines |= {"fedavg_eta__eta_3": dead, "fedgm_eta__eta_5": near(0.5)}
    assert judged("C4", **lines) == ["holds"]
    assert judged("C4", **{**lines, "fedavg_eta__eta_3": near(0.5)}) == ["does not hold"]
    assert judged("C4", **{**lines, "fedgm_eta__eta_5": dead}) == ["does not hold"]
    everywhere = {**lines, "fedavg_eta__eta_1": dead, "fedavg_eta__eta_2": dead}
    assert judged("C4", **everywhere) == ["holds"]  # eta 2 lost in every seed is unstable, whatever eta 1 is
    low = [flat(seed, 0.19 + 0.001 * seed, loss=[2.3] * 25) for seed in THREE]  # finished, near chance
    assert judged("C4", **{**lines, "fedavg_eta__eta_3": low}) == ["holds"]
    assert judged("C4", **{**lines, "fedgm_eta__eta_5": low}) == ["does not hold"]


def test_c5_is_about_the_first_and_the_last_quarter_in_training_and_in_test():
    slow = [made(s, [0.3 + 0.001 * s + 0.001 * (-1) ** i for i in range(100)]) for s in THREE]
    fast = [made(s, [0.4 + 0.02 * (1 + s / 50) * (-1) ** i for i in range(100)]) for s in THREE]
    assert judged("C5", eta_5=fast, eta_1=slow) == ["holds"] * 3
    assert judged("C5", eta_5=slow, eta_1=fast) == ["does not hold"] * 3
    calm = [0.4 + 0.0001 * (-1) ** i for i in range(100)]
    calm_in_training = [made(run.seed, run.curve("test/acc")[1], train=calm) for run in fast]
    assert judged("C5", eta_5=calm_in_training, eta_1=slow) == ["holds", "does not hold", "holds"]


@pytest.mark.parametrize("name", ["C6 (literal)", "C6 (start)", "C6 (current)", "C7 (start)", "C7 (current)"])
def test_beats_and_small_gap_are_claims_of_their_own_under_each_reading(name):
    reading = name[4:-1]
    lines = {f"fedgm_{reading}": near(0.3), f"fedavg_{reading}": near(0.35), "ideal": near(0.305)}
    lines["ideal"] = [flat(s, 0.305 + 0.002 * s) for s in THREE]
    assert judged(name, **lines) == ["does not hold", "holds"]
    assert [claim.name for claim in claims.CLAIMS[name]] == [name, f"{name[:2]} gap {name[3:]}"]
    lines |= {f"fedavg_{reading}": [flat(s, 0.2 + 0.002 * s) for s in THREE], "ideal": near(0.5)}
    assert judged(name, **lines) == ["holds", "does not hold"]


def test_c8_and_what_is_also_said():
    better, poorer = [flat(s, 0.5 + 0.002 * s) for s in THREE], near(0.4)
    lines = {"fedgm_03": better, "fedavg_03": poorer, "fedgm_05": better, "fedavg_05": poorer}
    assert judged("C8", **lines) == ["holds"]
    assert judged("C8", **{**lines, "fedgm_03": poorer, "fedavg_03": better}) == ["does not hold"]
    assert judged("faster", eta_5=better, fedavg=poorer) == ["holds"]
    assert claims.FASTER.parts[0].split == TRAIN
