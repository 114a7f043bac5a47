"""Claims C1-C8 of the paper, each with the parts that docs/claims.md gives it, on constructed curves."""

import pytest

from fedgm.results.judged_run import TRAIN
from fedgm.study import claims
from tests.unit.made_curves import evidence, flat, made, wobbling

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
    "fedavg_start", "fedgm_current", "fedavg_current", "fedgm_03", "fedavg_03", "fedgm_05", "fedavg_05",
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
    worse_in_training = [made(run.seed, run.values["test/acc"], train=[0.3] * 25) for run in good]
    assert judged("C1", fedgm=worse_in_training, fedavgm=middle, fedavg=poor) == ["does not hold"]


def test_c2_is_faster_yet_marginal():
    slow = [made(seed, [0.5] * 25, train=[0.3] * 25) for seed in THREE]
    fast = [made(seed, [0.505 + 0.001 * seed] * 25, train=[0.4 + 0.001 * seed] * 25) for seed in THREE]
    assert judged("C2", fedavgm=fast, fedavg=slow) == ["holds"]
    assert judged("C2", fedavgm=slow, fedavg=fast) == ["does not hold"]


def staged(seed, sizes):
    values = [
        0.5 + (-1) ** i * sizes[0 if i < 10 else 1 if i < 25 else 2] * (1 + seed / 50) for i in range(50)
    ]
    return made(seed, values, ends=(50, 125, 250))


def test_c3_takes_the_stages_of_the_multistage_runs():
    constant = {f"eta_{eta}": near(0.3) for eta in ("2", "1", "05")}
    assert judged("C3", multistage=[staged(s, (0.1, 0.01, 0.01)) for s in THREE], **constant) == ["holds"]
    assert judged("C3", multistage=[staged(s, (0.01, 0.1, 0.1)) for s in THREE], **constant) == [
        "does not hold"
    ]


def test_c3_wants_five_evaluations_in_a_stage():
    few = [made(s, [0.6, 0.5, 0.6, 0.5] + [0.6, 0.61] * 20, ends=(20, 100, 220)) for s in THREE]
    claim = claims.C3.judge(
        evidence(THREE, multistage=few, **{f"eta_{e}": near(0.3) for e in ("2", "1", "05")})
    )
    assert [part.verdict for part in claim[1][3:]] == ["undecided", "undecided"]
    assert "seed 1: fewer than 5 evaluations" in claim[1][3].notes
    assert any(note.startswith("with the first third of stage 1 left out") for note in claim[1][3].notes)


def test_c4_takes_its_lines_from_two_figures():
    dead = [died(seed) for seed in THREE]
    lines = {"fedavg_eta__eta_1": wobbles(0.01), "fedavg_eta__eta_2": wobbles(0.1)}
    lines |= {"fedavg_eta__eta_3": dead, "fedgm_eta__eta_5": near(0.5)}
    assert judged("C4", **lines) == ["holds"]
    assert judged("C4", **{**lines, "fedavg_eta__eta_3": near(0.5)}) == ["does not hold"]
    assert judged("C4", **{**lines, "fedgm_eta__eta_5": dead}) == ["does not hold"]
    everywhere = {**lines, "fedavg_eta__eta_1": dead, "fedavg_eta__eta_2": dead}
    assert judged("C4", **everywhere) == [
        "holds"
    ]  # eta 2 divergent in every seed is unstable, whatever eta 1 is


def test_c5_is_about_the_first_and_the_last_quarter():
    slow = [made(s, [0.3 + 0.001 * s + 0.001 * (-1) ** i for i in range(100)]) for s in THREE]
    fast = [made(s, [0.4 + 0.02 * (1 + s / 50) * (-1) ** i for i in range(100)]) for s in THREE]
    assert judged("C5", eta_5=fast, eta_1=slow) == ["holds"]
    assert judged("C5", eta_5=slow, eta_1=fast) == ["does not hold"]


@pytest.mark.parametrize("name", ["C6", "C7"])
def test_both_readings_have_a_verdict_of_their_own(name):
    lines = {"fedgm_start": near(0.3), "fedavg_start": near(0.35), "ideal": near(0.4)}
    lines |= {"fedgm_current": [flat(s, 0.395 + 0.002 * s) for s in THREE], "fedavg_current": near(0.3)}
    assert judged(name, **lines) == ["does not hold", "holds"]
    assert [claim.name for claim in claims.CLAIMS[name]] == [f"{name} (start)", f"{name} (current)"]


def test_c8_and_what_is_also_said():
    better, poorer = [flat(s, 0.5 + 0.002 * s) for s in THREE], near(0.4)
    lines = {"fedgm_03": better, "fedavg_03": poorer, "fedgm_05": better, "fedavg_05": poorer}
    assert judged("C8", **lines) == ["holds"]
    assert judged("C8", **{**lines, "fedgm_03": poorer, "fedavg_03": better}) == ["does not hold"]
    assert judged("faster", eta_5=better, fedavg=poorer) == ["holds"]
    assert claims.FASTER.parts[0].split == TRAIN
