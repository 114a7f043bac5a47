"""``eval.clients``: what the global model reaches on each client's own samples."""

import numpy as np
import pytest
import torch

import fedgm
from fedgm.config import compose, validate
from fedgm.data.clients import ClientEvaluation, client_evaluation
from fedgm.errors import ConfigError
from fedgm.results import rows
from fedgm.running.parts import load_clients
from fedgm.tasks.module import spread
from tests.e2e.commands import TINY

RUN = (*TINY, "rounds=2", "clients.count=6", "local.unit=steps", "local.epochs=1", "eval.every=1")


def test_clients_count_alike_however_many_samples_they_have():
    # Client 0: 3 of 4 right in two batches; client 1: 1 of 10. Columns: right, count.
    cells = torch.tensor([[1.0, 2.0], [2.0, 2.0], [1.0, 10.0]], dtype=torch.float64)
    found = spread("clients", ["acc"], cells, [0, 0, 1])
    assert found == pytest.approx(
        {
            "clients/acc_mean": 0.425,  # (.75 + .1) / 2
            "clients/acc_std": 0.325,
            "clients/acc_p10": 0.165,  # .1 + .1 x .65
            "clients/acc_p90": 0.685,
        }
    )


def test_no_batch_holds_samples_of_two_clients():
    class Part(list):
        def batch(self, number):
            return self[number]

    joined = ClientEvaluation([Part("ab"), Part("c"), Part("de")])
    assert [joined.batch(n) for n in range(len(joined))] == list("abcde")
    assert joined.groups == [0, 0, 1, 2, 2]


def test_a_client_is_measured_on_its_own_samples():
    cfg = compose([*RUN, "eval.clients=6"])
    data = load_clients(validate(cfg))
    found = client_evaluation(data, 6, seed=0)
    for client in range(6):
        own = [found.batch(n)[1] for n, group in enumerate(found.groups) if group == client]
        assert np.array_equal(torch.cat(own).numpy(), data.labels(client))


@pytest.mark.slow
def test_the_spread_is_in_the_rows_and_changes_nothing_else(tmp_path):
    plain = fedgm.run([*RUN, f"output_dir={tmp_path / 'plain'}"])
    spread_ = [
        fedgm.run([*RUN, "eval.clients=4", f"trainer.workers={n}", f"output_dir={tmp_path / str(n)}"])
        for n in (1, 2)
    ]
    model = plain.folder / "model.safetensors"
    for result in spread_:
        assert (result.folder / "model.safetensors").read_bytes() == model.read_bytes()
    one, two = (rows.read(result.folder / "metrics.jsonl") for result in spread_)
    own = {key for key in one[0] if key.startswith("clients/")}
    assert own == {f"clients/{m}_{s}" for m in ("loss", "acc") for s in ("mean", "std", "p10", "p90")}
    assert [{k: row[k] for k in own} for row in one] == [{k: row[k] for k in own} for row in two]
    assert all(row["clients/acc_p10"] <= row["clients/acc_mean"] <= row["clients/acc_p90"] for row in one)


def test_more_clients_than_there_are_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"eval\.clients=7"):
        fedgm.run([*RUN, "eval.clients=7", f"output_dir={tmp_path}"])
