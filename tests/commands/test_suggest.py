"""`fedgm suggest` as a user types it: a range test, values, commands; refusals before any training."""

import shlex
from math import inf
from pathlib import Path

import pytest
from click.testing import CliRunner

import fedgm
from fedgm.commands import main
from fedgm.config import compose, validate
from fedgm.errors import RefusedError
from fedgm.results import rows
from fedgm.running.modelled import reading_of
from fedgm.running.parts import build_engine, build_parts
from fedgm.server import Momentum
from fedgm.study.suggest import Advice, advise, commands, range_test
from fedgm.theory.suggestion import Step, Suggestion, suggest
from tests.federated.federated_run import configured

TINY = ["profile=tiny", "track=none", "data.source.noise=0.3", "data.source.distractor=0", "data.alpha=10"]
FEW = [*TINY, "data.train_samples=400", "clients.count=20", "trainer.workers=1"]


def test_a_test_gives_values_and_commands_and_is_read_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    advice = fedgm.suggest([*FEW, "local.lr=0.3", "rounds=30"])
    shown = " ".join(capsys.readouterr().out.split())
    eta, beta, nu = advice.suggestion.momentum
    assert "round 1/48 " in shown  # not of the 96 that leave it its half
    assert "stage 1 ends" in shown
    assert f"stage {len(advice.steps)} ends" not in shown  # there the plan takes values for those 96
    assert f"eta {eta:g}, beta {beta:g}, nu {nu:g} for 30 rounds" in shown
    assert f"algorithm=fedgm algorithm.eta={eta:g} algorithm.beta={beta:g} algorithm.nu={nu:g}" in shown
    kept = rows.read(advice.test / "metrics.jsonl")
    assert len(kept) <= 4 * len(advice.steps)  # it stops where the edge is found
    losses = {step.eta: step.loss for step in advice.steps}
    assert advice.suggestion == suggest(min(losses, key=lambda eta: losses[eta]), 30)
    assert fedgm.suggest([*FEW, "local.lr=0.3", "rounds=30"]) == advice
    assert "already done" in capsys.readouterr().out


STEPS = (Step(0.5, 2.0), Step(0.7, 1.5), Step(1.0, inf))
FOUND = Suggestion(edge=0.7, momentum=Momentum(6.0, 0.95, 0.7), fedavg=0.5)


def planned(command):
    """The stages of a command as `python run.py` would build them."""
    python, run, *words = shlex.split(command)
    assert (python, run) == ("python", "run.py")
    return build_engine(validate(compose(words)), words).plan.stages


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["+experiment=multistage"],
        ["+experiment=multistage_fedavg", "rounds=60"],
        ["+experiment=fedgm"],
        ["participation=autonomous", "participation.epochs=[1,4]"],
    ],
    ids=" ".join,
)
def test_what_is_printed_runs_what_was_suggested(words):
    constant, staged = commands(["profile=tiny", *words], FOUND, 80)
    (stage,) = planned(constant)
    assert stage.hyper == {"eta": 6.0, "beta": 0.95, "nu": 0.7}
    first, *later = planned(staged)
    assert first.hyper == {"eta": 6.0, "beta": 0.95, "nu": 0.7}
    assert [stage.hyper["eta"] for stage in later] == [3.0, 1.5]


def test_files_of_the_users_own_are_in_what_is_printed(monkeypatch):
    given: list[str] = []
    monkeypatch.setattr("fedgm.api.suggest", lambda words, test_rounds: given.extend(words))
    mine = str(Path(__file__).parents[1] / "contributor" / "my_conf")
    typed = ["suggest", "--config-dir", mine, "profile=tiny", "upload=one_bit"]
    assert CliRunner().invoke(main, typed).exit_code == 0
    assert given[1:] == typed[3:]
    for command in commands(given, FOUND, 80):
        assert mine in command
        assert planned(command)[0].hyper["eta"] == 6.0


def test_what_is_said_by_hand():
    """Lag 13.3 of 133 rounds: 0.9 * 6/0.5 = 10.8 beside a steady FedAvg, 6.6 at its edge."""
    said = " ".join(Advice(FOUND, STEPS, 133, Path("test"), "one", "two").lines())
    assert "lowest at eta 0.7 (tried: 0.5 to 1, 3 steps of 4 rounds)" in said
    assert "if the run is unsteady, try eta 4.2" in said
    assert "The second command is the paper's three stages from there. Three stages cost 1 to 33" in said
    assert "for 133 rounds" in said
    assert "FedAvg would need about 4.6 times as many rounds (3.0 to 10.6" in said


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_no_stages_where_one_of_them_would_be_empty(rounds):
    constant, staged = commands(["profile=tiny", f"rounds={rounds}"], FOUND, rounds)
    assert len(planned(constant)) == 1
    assert bool(staged) == (rounds == 4)
    if staged:
        assert [stage.rounds for stage in planned(staged)] == [1, 1, 2]
    said = " ".join(Advice(FOUND, STEPS, rounds, Path("test"), "one", staged).lines())
    assert ("second command" in said) == ("Three stages cost" in said) == bool(staged)
    assert f"for {rounds} {'round' if rounds == 1 else 'rounds'} FedAvg" in said


def test_the_test_has_the_clients_of_the_run_where_they_are_ideal():
    words = ["seed=3", "participation.epochs=5", "rounds=60"]
    kept = range_test(words, ideal=True, rounds=24)
    assert kept[:2] == words[:2]
    stale = ["seed=3", "participation=autonomous", "++participation.delay=7", "participation/sampler=uniform"]
    for rest in (kept[2:], range_test(stale, ideal=False, rounds=24)[1:]):
        assert "rounds=48" in rest  # of which the test has half
        assert not set(rest) & {*words, *stale}
    assert "participation=ideal" in range_test(stale, ideal=False, rounds=24)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["participation=event"], "Try participation=ideal"),
        (["participation=fednova"], "Try participation=ideal"),
        (["participation=autonomous", "participation.anchor=current"], "stale clients pull x back there"),
        (["participation=autonomous_current"], "Try participation=ideal"),
        (["work=batch_growth"], "work=batch_growth. Try work=constant"),
        (["participation.normalize=fednova"], "Try participation.normalize=none"),
        (["algorithm=fedavgm"], "algorithm=fedavgm: the test sets algorithm itself"),
        (["schedule.etas=[1]"], "the test sets schedule itself"),
        (["participation=autonomous", "participation.epochs=[0,6]"], r"Try participation.epochs=\[1,6\]"),
        (["participation=autonomous", "participation.epochs=3"], r"Try participation.epochs=\[1,6\]"),
        (["participation=autonomous", "participation.epochs=[1,2,3]"], "the least and the most"),
        (["participation=autonomous", "participation.epochs=many"], "the least and the most"),
        (["participation=autonomous", "participation.reference=7"], "Try participation.reference=3"),
        (["participation=autonomous", "participation.delay=0"], "Try participation.delay=5"),  # by the run
        (["client=feddyn"], "- client=feddyn: .* not of FedAvg. Try client=plain"),
        (["client=scaffold"], "- client=scaffold: .* not of FedAvg. Try client=plain"),
    ],
)
def test_what_has_no_model_is_refused_before_training(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError, match=said):
        advise([*TINY, *words])
    assert not (tmp_path / "outputs").exists()
    with pytest.raises(RefusedError, match="--rounds=7: expected at least 8"):
        advise(TINY, test_rounds=7)


def test_a_test_without_an_edge_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = r"not risen by a tenth up to eta 0\.49: .*Try a longer test \(--rounds 16\)"
    with pytest.raises(RefusedError, match=said):
        advise([*FEW, "local.lr=0.001"], test_rounds=8)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["participation=event"], "Try participation=ideal, or `fedgm suggest`"),
        (["participation=autonomous"], "Try participation=ideal, or `fedgm suggest`"),
        (["client=scaffold"], "client=scaffold: .* not of FedAvg. Try client=plain"),
        *(
            ([f"algorithm={name}"], "Try algorithm=fedgm")
            for name in ("fedavg", "fedavgm", "fednag", "diloco", "gpa", "fedadam")
        ),
    ],
)
def test_schedule_auto_refuses(words, said):
    base = [*TINY, "schedule=auto", "rounds=60"]
    for allowed in ("client=fedprox", "clients.weights=samples", "upload=topk"):
        build_parts(configured(allowed, base=base))
    with pytest.raises(RefusedError, match=said):
        build_parts(configured(*words, base=base))


def test_a_delay_is_read_from_the_configuration():
    reading = reading_of(
        validate(compose([*TINY, "participation=autonomous_literal", "participation.delay=7"]))
    )
    assert (reading.delay, reading.epochs, reading.normalize, reading.anchor) == (7, (1, 6), "none", "start")
