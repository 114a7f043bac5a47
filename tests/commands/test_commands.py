"""`fedgm theory` and `fedgm timeline` as a user types them."""

import signal

import pytest
from click.testing import CliRunner

import fedgm
from fedgm import commands as cli
from fedgm import config
from fedgm.errors import RefusedError
from fedgm.running import diagnosis as diagnosis

TINY = ["profile=tiny", "rounds=2", "track.mode=disabled", "trainer.workers=1", "clients.count=20"]


def call(*arguments):
    return CliRunner().invoke(cli.main, [str(a) for a in arguments])


def setting(*overrides):
    return diagnosis.setting_of(config.validate(config.compose(overrides)))


def test_a_configuration_that_has_not_run_gets_its_theorem():
    result = call("theory", "+experiment=multistage", "data=synthetic")
    assert result.exit_code == 0
    assert "Theorem 2" in result.output
    assert "times above what Theorem 2 allows" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    autonomous = ["theory", "+experiment=autonomous", "data=synthetic"]
    assert "Theorem 3" in call(*autonomous).output
    assert "Corollary" in call(*autonomous, "participation/sampler=biased").output


def test_the_setting_in_symbols_by_hand():
    equal = ["data=synthetic", "data.alpha=inf"]  # 10,000 images, 100 for each client
    s = setting("+experiment=multistage", *equal)
    assert (s.n, s.m, s.K, s.eta_l, s.tau) == (100, 5, 30, 0.01, 0)  # 100 images, batch 10, 3 epochs
    assert [stage.T for stage in s.stages] == [36, 71, 143]
    # K_ref/K for 1/K: etas 30 times as large.
    s = setting("+experiment=autonomous", "algorithm.eta=2", *equal)
    assert (s.tau, s.stages[0].eta) == (4, pytest.approx(2.0 * 30))
    assert [K for K, _ in s.K_law] == [10, 20, 30, 40, 50, 60]
    one = setting("participation=autonomous", "participation.normalize=steps", *equal).stages[0].eta
    assert one == pytest.approx(1)
    assert setting("participation=sync", *equal).K_law == ()
    assert setting("data=synthetic", "data.partition=virtual", "data.client_samples=50").K == 15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["theory", "algorithm=fedadam"], "the theorems cover FedGM"),
        (["theory", "algorithm=fedexp"], "the theorems cover FedGM"),
        (["theory", "schedule=cosine"], "changes them every round"),
        (["theory", "algorithm=fedgn"], "Try algorithm=fedgm"),
        (["theory", "--gap", "-1"], "--gap=-1.0: expected a number from 0 on. Try --gap 1.0"),
        (["theory", "--sigma-max", "0.5"], "--sigma-max=0.5: expected at least sigma_g=1"),
        (["theory", "--estimate", "nowhere"], "there is no config.yaml"),
        (["timeline", "nowhere"], "nowhere is not a run folder"),
    ],
)
def test_what_cannot_be_answered_is_said_in_a_line(arguments, message):
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_ctrl_c_is_an_exception_again_once_theory_has_imported(monkeypatch):
    seen = []

    def at_work(run):
        seen.append(signal.getsignal(signal.SIGINT))
        raise RefusedError("seen")

    monkeypatch.setattr(diagnosis, "covered_setting", at_work)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert call("theory", *TINY).exit_code == 2
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.default_int_handler]


@pytest.mark.slow
def test_constants_are_measured_on_a_run(tmp_path):
    sizes = ["data.train_samples=300", "data.min_samples=1", "local.batch_size=5"]  # some have two batches
    run = fedgm.run([*TINY, *sizes, f"output_dir={tmp_path}"])
    result = call("theory", "--estimate", run.folder, "--clients", 3)
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    assert "on 3 clients: L = " in words
    assert "measuring sigma: 6/6" in words
    assert f"f(x_0) = {run.summary['initial']['train/loss']:.3g}" in words
    refused = call("timeline", run.folder)
    assert refused.exit_code == 2
    assert "participation=ideal has no clock" in refused.output


def test_the_timeline_of_a_run_is_drawn(tmp_path):
    run = fedgm.run([*TINY, "participation=event", "participation.concurrency=8", f"output_dir={tmp_path}"])
    result = call("timeline", run.folder)
    assert result.exit_code == 0, result.output
    assert (run.folder / "timeline.png").read_bytes().startswith(b"\x89PNG")
