"""A torchvision model, federated: interrupted, continued from its checkpoint, stopped when it is good enough.

    python examples/torchvision_model.py [csv | tensorboard | mlflow]

Seconds, no download: pictures are noise with a tint, and clients see few of the tints.
"""

import sys
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

import fedgm
from fedgm.lightning import (
    pl,
)  # before torchvision: PyPI's wheel does not load beside a CPU-only torch without it
from fedgm.running.mlflow import MlflowLogger

LOGGERS = {
    "csv": pl.loggers.CSVLogger,
    "tensorboard": pl.loggers.TensorBoardLogger,  # pip install 'fedgm[tensorboard]'
    "mlflow": lambda folder: MlflowLogger(f"{folder}/mlruns", "torchvision"),  # pip install 'fedgm[mlflow]'
}


class Tints(pl.LightningModule):
    def __init__(self):
        super().__init__()
        from torchvision.models import VisionTransformer  # here, because it needs the import above

        self.net = VisionTransformer(
            image_size=16, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=3
        )

    def training_step(self, batch, batch_idx):
        return F.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, batch_idx):
        scores = self.net(batch[0])
        self.log("val_loss", F.cross_entropy(scores, batch[1]))
        self.log("val_acc", (scores.argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02)


def clients(count=6, size=16):
    """Client i has tints i and i + 1 of three."""
    rng = torch.Generator().manual_seed(0)
    made = []
    for client in range(count):
        labels = (client + torch.arange(size) % 2) % 3
        images = torch.randn(size, 3, 16, 16, generator=rng) + 2 * F.one_hot(labels, 3).view(size, 3, 1, 1)
        made.append(TensorDataset(images, labels))
    return made


def fit(folder, rounds, checkpoint=None, logger="csv"):
    """Train up to round ``rounds``; with ``checkpoint`` from where it was written."""
    torch.manual_seed(0)  # the first weights
    datasets = clients()
    saver = pl.callbacks.ModelCheckpoint(folder, "best-{epoch}", monitor="val_loss")
    stop = pl.callbacks.EarlyStopping("val_loss", patience=10, stopping_threshold=0.05)
    server = fedgm.FedGM(eta=1.0, beta=0.5, nu=0.5)
    trainer = pl.Trainer(
        max_epochs=rounds, accelerator="cpu", logger=LOGGERS[logger](folder), log_every_n_steps=1,
        callbacks=[server, saver, stop], enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    fedgm.federate(trainer, datasets, per_round=3, batch_size=8, epochs=2)
    loader = DataLoader(ConcatDataset(datasets), batch_size=48)
    trainer.fit(Tints(), val_dataloaders=loader, ckpt_path=checkpoint)
    trainer.save_checkpoint(Path(folder) / "end.ckpt")
    return trainer


def main(folder="outputs/torchvision", logger="csv"):
    """Two rounds, then an interruption, then the rest."""
    fit(folder, 2, logger=logger)
    trainer = fit(folder, 30, Path(folder) / "end.ckpt", logger)
    accuracy = trainer.callback_metrics["val_acc"]
    print(f"val_acc {accuracy:.3f}, stopped after {trainer.current_epoch} of 30 rounds")


if __name__ == "__main__":
    main(logger=(sys.argv[1:] or ["csv"])[0])
