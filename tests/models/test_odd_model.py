"""A model with tied weights, complex tables, a mask, weights of two types: from the command to its file."""

import hashlib

import pytest
import torch

import fedgm
from tests.models.odd_model import Odd

SMALL = [
    *("profile=tiny", "data.train_samples=120", "data.test_samples=30", "eval.train_samples=30"),
    *("clients.count=6", "clients.per_round=3", "local.epochs=1", "rounds=4", "track.mode=disabled"),
    *("participation=autonomous", "participation.delay=2", "model=odd"),
]


def run(folder, *words):
    (folder / "conf" / "model").mkdir(parents=True, exist_ok=True)
    yaml = "name: odd\n_target_: tests.models.odd_model.Odd\nchannels_last: false\n"
    (folder / "conf" / "model" / "odd.yaml").write_text(yaml)
    own = [f"hydra.searchpath=[{folder / 'conf'}]", f"output_dir={folder / 'out'}"]
    words = [*SMALL, *own, *words]
    return fedgm.run(words)


def digest(result):
    return hashlib.sha256((result.folder / "model.safetensors").read_bytes()).hexdigest()


def test_it_trains_resumes_and_is_read_back(tmp_path):
    whole = run(tmp_path)
    assert whole.status == "finished"
    (tmp_path / "again").mkdir()
    run(tmp_path / "again", "stop_after=2")
    assert digest(run(tmp_path / "again")) == digest(whole)

    net = fedgm.load_model(whole.folder, trust=["tests"]).net
    fresh = Odd(10)
    for name in ("rotary", "table", "mask", "large"):
        assert torch.equal(net.get_buffer(name), fresh.get_buffer(name)), name
        assert net.get_buffer(name).dtype == fresh.get_buffer(name).dtype
    assert net.first.weight is net.second.weight
    assert (net.head.weight.dtype, net.mean.dtype) == (torch.bfloat16, torch.float64)
    assert net.mean.abs().min() > 0
    assert not torch.equal(net.mean, net.mean.float().double())


@pytest.mark.slow
def test_two_workers_give_the_same_bytes(tmp_path):
    (tmp_path / "two").mkdir()
    assert digest(run(tmp_path)) == digest(run(tmp_path / "two", "trainer.workers=2"))
