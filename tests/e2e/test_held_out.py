"""``eval.held_out``: what the global model reaches on each client's own held-out samples."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import fedgm
from fedgm.commands import main
from fedgm.config import compose, validate
from fedgm.data.clients import held_out_evaluation
from fedgm.data.signals import Owned, SignalFederation, SignalSet
from fedgm.data.text import TextFederation
from fedgm.data.tokens import tokenize
from fedgm.errors import ConfigError, DataError
from fedgm.results import rows
from fedgm.running.parts import load_clients
from tests.e2e.commands import TINY

RUN = (*TINY, "data=hapt", "model.width=8", "rounds=10", "local.unit=steps", "local.epochs=8", "local.lr=0.1",
       "local.batch_size=32", "eval.every=5", "data.test_samples=500")  # fmt: skip
SPREAD = {f"held_out/{m}_{s}" for m in ("loss", "acc") for s in ("mean", "std", "p10", "p90")}


@pytest.fixture(scope="module")
def config():
    config = validate(compose([*RUN, "eval.held_out=30"]))
    try:
        load_clients(config)
    except DataError as error:
        if "cannot be fetched" in str(error):
            pytest.skip("HAPT cannot be fetched here")
        raise
    return config


def toy() -> SignalFederation:
    """Two owners with one channel; the values of the second are above 100."""
    train = Owned(np.arange(12, dtype=np.float32).reshape(6, 1, 2), np.arange(6), np.array([0, 4, 6]))
    test = Owned(100 + np.arange(6, dtype=np.float32).reshape(3, 1, 2), np.arange(3), np.array([0, 1, 3]))
    return SignalFederation(SignalSet(("a",) * 6, ("x", "y"), train, test), batch_size=3, eval_batch_size=2)


def test_a_pass_reads_every_window_of_the_client_once():
    data = toy()
    assert [data.size(0), data.epoch(0), data.size(1)] == [4, 2, 2]
    labels = torch.cat([y for _, y in data.batches(0, t=1, steps=2)])
    assert sorted(labels.tolist()) == [0, 1, 2, 3]
    again = torch.cat([y for _, y in data.batches(0, t=1, steps=2)])
    assert labels.tolist() == again.tolist()
    assert [len(y) for _, y in data.batches(1, t=1, steps=3)] == [2, 2, 2]
    assert [len(y) for _, y in data.rebatched(1).batches(1, t=1, steps=1)] == [1]


def test_held_out_samples_are_the_clients_own_and_not_those_it_trains_on():
    data = toy()
    assert [len(data.held_out(0)), len(data.held_out(1))] == [1, 1]
    assert data.held_out(1).batch(0)[0].flatten().tolist() == [102, 103, 104, 105]
    assert data.own_samples(1).batch(0)[1].tolist() == [4, 5]
    joined = held_out_evaluation(data, 2, seed=0)
    assert joined.groups == [0, 1]


def test_a_client_without_held_out_text_is_left_out():
    texts = tokenize({"ann": "abababababab", "bob": "ab"}, test_share=0.4)
    data = TextFederation(texts, block=2, batch_size=1)
    assert len(data.held_out(1)) == 0
    assert set(held_out_evaluation(data, 2, seed=0).groups) == {0}
    short = TextFederation(
        tokenize({"ann": "abababababab", "bob": "ab"}, test_share=0.4), block=2, batch_size=1
    )
    short.texts.test.offsets[1:] = short.texts.test.offsets[0]
    with pytest.raises(ConfigError, match="none of these clients has held-out samples"):
        held_out_evaluation(short, 2, seed=0)


@pytest.mark.slow
def test_a_short_run_on_real_people_learns_and_shows_the_spread(config, tmp_path):
    result = fedgm.run([*RUN, "eval.held_out=30", f"output_dir={tmp_path}"])
    measured = [row for row in rows.read(result.folder / "metrics.jsonl") if row.get("test/acc") is not None]
    assert set(measured[-1]) >= SPREAD
    last, summary = measured[-1], json.loads((result.folder / "summary.json").read_text())
    assert last["test/acc"] > 0.3 > 0.2 > summary["initial"]["test/acc"]
    assert last["held_out/acc_p10"] <= last["held_out/acc_mean"] <= last["held_out/acc_p90"]
    assert last["held_out/acc_mean"] == pytest.approx(last["test/acc"], abs=0.06)
    assert summary["final"]["held_out/acc_mean"] == last["held_out/acc_mean"]
    shown = CliRunner().invoke(main, ["show", str(result.folder)])
    assert shown.exit_code == 0, shown.output
    percent = f"{100 * last['held_out/acc_std']:.2f} %"
    assert any("held_out/acc_std" in line and percent in line for line in shown.output.splitlines())
    assert fedgm.run([*RUN, "eval.held_out=30", f"output_dir={tmp_path}"]).folder == result.folder


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("eval.held_out=31", "data=hapt"), r"eval\.held_out=31: expected at most the 30 clients"),
        (("eval.held_out=2",), r"eval\.held_out=2.*no held-out samples of their own.*data=hapt"),
        (("eval.held_out=-1",), r"eval\.held_out=-1"),
        (("data=hapt", "model=resnet8"), r"model=resnet8.*these data are signals.*model=cnn1d"),
        (("data=hapt", "model.channels=3"), r"model\.channels=3: expected 6"),
        (("model=cnn1d",), r"model=cnn1d.*these data are images.*model=resnet8"),
    ],
)
def test_what_cannot_be_measured_is_refused(config, tmp_path, words, part):
    with pytest.raises(ConfigError, match=part):
        fedgm.run([*TINY, "rounds=1", *words, f"output_dir={tmp_path}"])


def test_clients_are_as_many_as_the_data_have_unless_typed(config):
    assert config.clients.count == 30
    assert validate(compose([*TINY])).clients.count == 100
    assert validate(compose([*TINY, "data=hapt", "clients.count=7"])).clients.count == 7
