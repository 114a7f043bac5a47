"""`fedgm suggest` as a user types it: a probe, values, a command; refusals before any training."""

import shlex
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

import fedgm
from fedgm.config import compose, validate
from fedgm.errors import RefusedError
from fedgm.running.modelled import reading_of, require_modelled
from fedgm.running.parts import build_engine, build_parts
from fedgm.server import Momentum
from fedgm.study.suggest import Advice, advise, commands, probing
from fedgm.theory.suggestion import Measured, Suggestion
from tests.federated.federated_run import configured

TINY = ["profile=tiny", "track=none", "data.source.noise=0.3", "data.source.distractor=0", "data.alpha=10"]


@pytest.mark.slow
def test_a_probe_gives_values_and_a_command_and_is_read_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    advice = fedgm.suggest([*TINY, "rounds=30"], probe_rounds=8)
    shown = " ".join(capsys.readouterr().out.split())
    eta, beta, nu = advice.suggestion.momentum
    assert f"eta {eta:g}, beta {beta:g}, nu {nu:g} for 30 rounds" in shown
    assert f"algorithm=fedgm algorithm.eta={eta:g} algorithm.beta={beta:g} algorithm.nu={nu:g}" in shown
    again = fedgm.suggest([*TINY, "rounds=30"], probe_rounds=8)
    assert "already done" in capsys.readouterr().out
    assert again == advice


FOUND = Suggestion(
    measured=Measured(0.5, 0.02, range(5, 26)),
    momentum=Momentum(3.5, 0.9, 0.8),
    fedavg=1.5,
    etas=(),
    staged=Momentum(3.5, 0.9, 0.8),
    speedup=(1.6, 2.3, 2.7),
)
STAGED = replace(FOUND, etas=(6.0, 3.0, 1.5), staged=Momentum(6.0, 0.95, 0.7))


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
    command, none = commands(["profile=tiny", *words], FOUND)
    (stage,) = planned(command)
    assert (none, stage.hyper) == (None, {"eta": 3.5, "beta": 0.9, "nu": 0.8})
    command, staged = commands(["profile=tiny", *words], STAGED)
    assert len(planned(command)) == 1
    first, *later = planned(staged)
    assert first.hyper == {"eta": 6.0, "beta": 0.95, "nu": 0.7}
    assert [stage.hyper["eta"] for stage in later] == [3.0, 1.5]


def said(found):
    return " ".join(Advice(found, 30, Path("probe"), "python run.py", None).lines())


def test_what_was_not_looked_at_is_not_claimed():
    assert "FedAvg needs 2.3 times the rounds at its best eta, 1.5 (1.6 to 2.7 over" in said(FOUND)
    assert "a larger eta gains less than 2 %" in said(FOUND)
    assert "no larger eta was tried" in said(replace(FOUND, momentum=Momentum(10.0, 0.9, 0.9)))
    far = said(replace(FOUND, speedup=(5.1, inf, inf)))
    assert "FedAvg needs more than 8 times the rounds (5.1 to more than 8 over" in far


def test_the_probe_has_the_clients_of_the_run_where_they_are_ideal():
    words = ["seed=3", "participation.epochs=5", "rounds=60"]
    kept = probing(words, ideal=True, rounds=25)
    assert kept[:2] == words[:2]
    stale = ["seed=3", "participation=autonomous", "++participation.delay=7", "participation/sampler=uniform"]
    for rest in (kept[2:], probing(stale, ideal=False, rounds=25)[1:]):
        assert "rounds=25" in rest
        assert not set(rest) & {*words, *stale}
    assert "participation=ideal" in probing(stale, ideal=False, rounds=25)


UNKNOWN = [
    (["clients.per_round=1"], "clients.per_round=1: noise is measured by how clients differ"),
    (["clients.per_round=10", "clients.count=10"], "every client takes part.*Try clients.per_round=5"),
    (["clients.weights=samples"], "Try clients.weights=uniform"),
    (["client=scaffold"], "client=scaffold: its updates are corrected"),
    (["upload=topk"], "Try upload=plain"),
    (["sending=optimal"], "Try sending=all"),
    (["participation=event"], "Try participation=ideal"),
    (["participation=fednova"], "Try participation=ideal"),
    (["participation.normalize=fednova"], "Try participation.normalize=none"),
    (["participation/sampler=cyclic"], "Try participation/sampler=uniform"),
]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *UNKNOWN,
        (["algorithm=fedavgm"], "algorithm=fedavgm: the probe sets algorithm itself"),
        (["schedule.etas=[1]"], "the probe sets schedule itself"),
        (["work=post_local", "local.unit=steps"], "Try work=constant"),
        (["participation=autonomous", "participation.epochs=[0,6]"], r"Try participation.epochs=\[1,6\]"),
        (["participation=autonomous", "participation.reference=7"], "Try participation.reference=3"),
        (["participation=autonomous", "participation.delay=0"], "Try participation.delay=5"),  # by the run
    ],
)
def test_what_has_no_model_is_refused_before_training(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError, match=said):
        advise([*TINY, *words])
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *UNKNOWN,
        (
            ["participation=autonomous"],
            "how stale clients will be. Try participation=ideal, or `fedgm suggest`",
        ),
        *(
            ([f"algorithm={name}"], "Try algorithm=fedgm")
            for name in ("fedavg", "fedavgm", "fednag", "diloco", "gpa")
        ),
        (["algorithm=fedadam"], "Try algorithm=fedgm"),
    ],
)
def test_schedule_auto_refuses_the_same(words, said):
    base = [*TINY, "schedule=auto", "rounds=60"]
    build_parts(configured("client=fedprox", base=base))
    with pytest.raises(RefusedError, match=said):
        build_parts(configured(*words, base=base))


def test_what_has_a_model_is_not_refused():
    for words in ([], ["client=fedprox"], ["participation=autonomous"], ["participation=autonomous_current"]):
        require_modelled(configured(*words, base=TINY))


def test_a_delay_is_read_from_the_configuration():
    reading = reading_of(
        validate(compose([*TINY, "participation=autonomous_literal", "participation.delay=7"]))
    )
    assert (reading.delay, reading.epochs, reading.normalize, reading.anchor) == (7, (1, 6), "none", "start")
