"""The global model after a step of each client: against a plain loop, and what it leaves alone."""

import json

import pytest
import torch

import fedgm
from fedgm.data.clients import held_out_clients
from fedgm.errors import FedGMError
from fedgm.tasks.cross_entropy import NextToken
from tests.configs.test_every_yaml import SMALL, own_text

WORDS = [*SMALL, "rounds=2", "eval.every=1", "task=next_token", "model=gpt", "data=text", "clients.count=4"]


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def run(tmp_path, name, *words):
    place = tmp_path / name
    place.mkdir()
    told = fedgm.run([*WORDS, f"data.path={own_text(tmp_path)}", f"output_dir={place}", *words])
    return told.folder


def without_times(folder):
    return [
        {k: v for k, v in row.items() if not k.startswith(("time", "samples", "personal"))}
        for row in rows(folder)
    ]


@pytest.mark.slow
def test_no_step_is_the_held_out_evaluation_and_nothing_else_changes(tmp_path):
    measured = ["eval.held_out=4", "callbacks=personal", "callbacks.personal.clients=4"]
    plain = run(tmp_path, "plain", "eval.held_out=4")
    still = run(tmp_path, "still", *measured, "callbacks.personal.steps=0")
    moved = run(tmp_path, "moved", *measured, "callbacks.personal.lr=0.02")
    for row in rows(still):
        for name in ("loss_mean", "loss_std", "acc_mean", "acc_p10"):
            assert row[f"personal/{name}"] == pytest.approx(row[f"held_out/{name}"], rel=1e-5)
    assert rows(moved)[-1]["personal/loss_mean"] < rows(moved)[-1]["held_out/loss_mean"]
    models = {(folder / "model.safetensors").read_bytes() for folder in (plain, still, moved)}
    assert len(models) == 1
    assert without_times(plain) == without_times(still) == without_times(moved)


def test_steps_and_measurements_have_the_precision_of_the_run(tmp_path, monkeypatch):
    plain, seen = NextToken.training_step, set()

    def watched(self, *batch):
        seen.add(torch.is_autocast_enabled("cpu"))
        return plain(self, *batch)

    monkeypatch.setattr(NextToken, "training_step", watched)
    measured = ["eval.held_out=4", "callbacks=personal", "callbacks.personal.clients=4", "rounds=1"]
    small = ["model.layers=1", "model.heads=1", "model.width=16", "trainer.precision=bf16-mixed"]
    (row,) = rows(run(tmp_path, "still", *measured, *small, "callbacks.personal.steps=0"))
    assert row["personal/loss_mean"] == pytest.approx(row["held_out/loss_mean"], rel=1e-6)
    seen.clear()
    run(tmp_path, "moved", *measured, *small, "callbacks.personal.steps=1")
    assert seen == {True}


def test_a_step_is_one_of_gradient_descent_on_the_clients_batch(tmp_path):
    """One client, worked out at the final model."""
    folder = run(
        tmp_path, "run", "callbacks=personal", "callbacks.personal.clients=1", "callbacks.personal.lr=0.3"
    )
    seen = {}

    class Watch(fedgm.FederatedCallback):
        def on_fit_start(self, trainer, pl_module):
            seen["data"] = trainer.fit_loop.data

    again = [f"data.path={own_text(tmp_path)}", f"output_dir={tmp_path / 'again'}"]
    fedgm.run([*WORDS, *again, "rounds=1"], callbacks=[Watch()])
    data, module = seen["data"], fedgm.load_model(folder)
    (client,) = held_out_clients(data, 1, 0, "key")
    (batch,) = data.batches(client, -2, 1)
    module.training_step(batch, 0)["loss"].backward()
    with torch.no_grad():
        for p in module.parameters():
            p -= 0.3 * p.grad
        held = data.held_out(client)
        sums = [module.sums(held.batch(number)) for number in range(len(held))]
    loss = sum(float(s["loss"]) for s in sums) / sum(float(s["count"]) for s in sums)
    assert rows(folder)[-1]["personal/loss_mean"] == pytest.approx(loss, rel=1e-5)


def test_clients_without_held_out_samples_are_refused_before_training(tmp_path):
    with pytest.raises(FedGMError, match=r"callbacks\.personal\.clients.*held-out samples"):
        fedgm.run([*SMALL, "rounds=2", "callbacks=personal", f"output_dir={tmp_path}"])


@pytest.mark.slow
def test_two_workers_measure_the_same(tmp_path):
    words = ["callbacks=personal", "callbacks.personal.clients=3"]
    one, two = run(tmp_path, "one", *words), run(tmp_path, "two", *words, "trainer.workers=2")
    assert (one / "model.safetensors").read_bytes() == (two / "model.safetensors").read_bytes()
    keys = [key for key in rows(one)[0] if key.startswith("personal/")]
    assert [[row[k] for k in keys] for row in rows(one)] == [[row[k] for k in keys] for row in rows(two)]
