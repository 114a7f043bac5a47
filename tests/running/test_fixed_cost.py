"""What makes a round cheap does what the slow way did."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from fedgm.client.weights import Snapshot
from fedgm.data.partition import VirtualPartition, _choose
from fedgm.draws import generator
from fedgm.federated import cohort
from fedgm.federated.aggregate import CohortMean
from fedgm.files import make_folder
from fedgm.lightning import FitLoop
from fedgm.running import checkpoint
from fedgm.running.checkpoint import RoundCheckpoint, checkpoints
from fedgm.upload.message import Plain
from tests.federated.federated_run import configured, fit


def keys(found: dict) -> list:
    return [(k, keys(v) if isinstance(v, dict) else v) for k, v in found.items()]


def test_a_loops_state_is_lightnings_own_in_the_same_order():
    loop = fit(configured("rounds=2")).loop
    assert keys(loop.state_dict()) == keys(FitLoop.state_dict(loop))
    before = loop.state_dict()
    loop.epoch_progress.increment_ready()
    assert keys(before) != keys(loop.state_dict())  # a copy, not the counters themselves


@dataclass(frozen=True)
class Draws(Plain):
    draws = True

    def send(self, delta, own, rng):
        rng.random()
        return super().send(delta, own, rng)


@pytest.mark.parametrize(("rule", "made"), [("fedgm.upload.message.Plain", 0), (f"{__name__}.Draws", 6)])
def test_a_generator_is_made_only_for_a_rule_that_draws(monkeypatch, rule, made):
    purposes = []

    def counted(seed, purpose, *rest):
        purposes.append(purpose)
        return generator(seed, purpose, *rest)

    monkeypatch.setattr(cohort, "generator", counted)
    fit(configured("rounds=2", f"upload._target_={rule}"))
    assert purposes.count("upload") == made


def test_a_folder_that_is_there_is_not_asked_for_its_parents(tmp_path, monkeypatch):
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    monkeypatch.setattr("pathlib.Path.mkdir", lambda *args, **kwargs: pytest.fail("made again"))
    make_folder(tmp_path / "a" / "b", sync=True)


def test_old_checkpoints_go_and_the_folder_is_listed_once(tmp_path, monkeypatch):
    listed = []
    monkeypatch.setattr(checkpoint, "checkpoints", lambda folder: listed.append(1) or checkpoints(folder))
    keeper = RoundCheckpoint(tmp_path, every=1, keep=2, rounds=9)
    (tmp_path / "round-000005.ckpt").touch()  # of the run before: newer, and written again below
    for t in (3, 4, 5, 6):
        path = tmp_path / f"round-{t:06d}.ckpt"
        path.touch()
        keeper._remove_old(path)
    assert [path.name for path in checkpoints(tmp_path)] == ["round-000006.ckpt", "round-000005.ckpt"]
    assert len(listed) == 1


@pytest.mark.parametrize("population", [2, 3, 10, 1000])
def test_one_of_many_is_the_same_draw(population):
    rng, again = np.random.default_rng(7), np.random.default_rng(7)
    got = _choose(rng, population, 1)
    by_unique = np.unique(again.integers(population, size=1))
    assert got.dtype == by_unique.dtype
    assert got.tolist() == by_unique.tolist()
    assert rng.bit_generator.state == again.bit_generator.state


def test_a_virtual_client_mixes_classes_as_before():
    """Drawn by the version that computed the concentration for every client."""
    labels = np.arange(100) % 10
    split = VirtualPartition(labels, 50, alpha=0.5, seed=3, samples=6)
    rng = generator(3, "virtual-client", client=11)
    mix = rng.dirichlet(0.5 * 10 * np.full(10, 0.1))
    wanted = rng.multinomial(6, mix)
    assert np.bincount(labels[split.indices(11)], minlength=10).tolist() == wanted.tolist()


def test_the_mean_of_one_client_is_the_client():
    like = Snapshot(torch.zeros(3), torch.zeros(0), torch.zeros(0, dtype=torch.int64))
    mean = CohortMean(like, 1)
    delta = torch.tensor([0.1, -0.2, 3.0])
    mean.add(delta, like, 1.0, 1.0)
    found = mean.mean()
    assert torch.equal(found.delta, delta)
    assert [part.numel() for part in found[1:]] == [0, 0, 0]
    assert found.counters.dtype == torch.int64
