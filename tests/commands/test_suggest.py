"""`fedgm suggest` as a user types it: a probe, values, a command; refusals before any training."""

import pytest

import fedgm
from fedgm.config import compose, validate
from fedgm.errors import RefusedError
from fedgm.study.suggest import advise, reading_of

TINY = ["profile=tiny", "track=none", "data.source.noise=0.3", "data.source.distractor=0", "data.alpha=10"]


@pytest.mark.slow
def test_a_probe_gives_values_and_a_command_and_is_read_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    advice = fedgm.suggest([*TINY, "rounds=30"], probe_rounds=8)
    shown = " ".join(capsys.readouterr().out.split())
    eta, beta, nu = advice.suggestion.momentum
    assert f"eta {eta:g}, beta {beta:g}, nu {nu:g} for 30 rounds" in shown
    assert f"algorithm=fedgm algorithm.eta={eta:g} algorithm.beta={beta:g} algorithm.nu={nu:g}" in shown
    assert validate(compose(advice.command.split()[2:])).algorithm["eta"] == eta
    again = fedgm.suggest([*TINY, "rounds=30"], probe_rounds=8)
    assert "already done" in capsys.readouterr().out
    assert again == advice


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["algorithm=fedavgm"], "algorithm=fedavgm: the probe sets algorithm itself"),
        (["clients.per_round=1"], "clients.per_round=1: noise is measured by how clients differ"),
        (["clients.per_round=10", "clients.count=10"], "every client takes part"),
        (["client=scaffold"], "client=scaffold: its updates are corrected"),
        (["upload=topk"], "Try upload=plain"),
        (["participation=event"], "Try participation=ideal"),
    ],
)
def test_what_has_no_model_is_refused_before_training(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError, match=said):
        advise([*TINY, *words])
    assert not (tmp_path / "outputs").exists()


def test_a_delay_is_read_from_the_configuration():
    reading = reading_of(
        validate(compose([*TINY, "participation=autonomous_literal", "participation.delay=7"]))
    )
    assert (reading.delay, reading.epochs, reading.normalize, reading.anchor) == (7, (1, 6), "none", "start")
