"""Importing fedgm, and federating with it from one's own program, leaves the process as it was."""

import subprocess
import sys

from tests.waiting import PATIENCE

PROGRAM = """
import builtins, signal, sys, warnings

def state():
    return {
        "sys.meta_path": list(sys.meta_path),
        "sys.path_hooks": list(sys.path_hooks),
        "__import__": builtins.__import__,
        "warnings.filters": list(warnings.filters),
        "hooks": (sys.excepthook, sys.displayhook, sys.unraisablehook),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
    }

def changed(before):
    return [name for name, value in state().items() if value != before[name]]

def stand_ins():
    # Modules of other packages whose class or loader is ours.
    return [
        name for name, module in sys.modules.items()
        if name.split(".")[0] != "fedgm"
        and "fedgm" in (type(module).__module__ + type(getattr(module, "__loader__", None)).__module__)
    ]

before = state()
import fedgm
assert not changed(before) and not stand_ins(), ("import fedgm", changed(before), stand_ins())

from fedgm.operators import declare_torchvision_operators
declare_torchvision_operators()  # else Lightning cannot be imported beside a CPU-only torch
import torch
import pytorch_lightning as pl
from fedgm.server import GeneralMomentum
from torch.utils.data import DataLoader, TensorDataset

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 2)
    def training_step(self, batch, batch_idx):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def trainer(*callbacks):
    return pl.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, callbacks=[*callbacks],
        enable_progress_bar=False, enable_model_summary=False,
    )

clients = [TensorDataset(torch.ones(4, 3), torch.zeros(4, dtype=torch.int64)) for _ in range(2)]
trainer().fit(Net(), DataLoader(clients[0]))  # what Lightning and torch change is theirs
before = state()
federated = trainer(fedgm.FedGM(GeneralMomentum(eta=1.0, beta=0.9, nu=0.9)))
fedgm.federate(federated, clients)
federated.fit(Net())
assert not changed(before) and not stand_ins(), ("fedgm.federate", changed(before), stand_ins())
print("unchanged")
"""


def test_import_and_federate_leave_the_process_as_it_was():
    done = subprocess.run(
        [sys.executable, "-W", "ignore::FutureWarning", "-c", PROGRAM],
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "unchanged\n"
