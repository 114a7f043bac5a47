"""A model in Hugging Face's style, which computes its own loss; interrupted, continued, stopped early.

    python examples/huggingface_style.py [csv | tensorboard | mlflow]

Seconds, no download, no transformers: ``TinyModel`` has the shape of its models (keyword arguments, tied
embeddings, an output that is a dict with attributes). A model of theirs goes into ``Wrapped`` in its place.
"""

import sys
from collections import OrderedDict
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.utils.data import ConcatDataset, DataLoader

import fedgm
from fedgm.lightning import pl
from fedgm.running.mlflow import MlflowLogger

TOKENS, LENGTH = 12, 8
LOGGERS = {
    "csv": pl.loggers.CSVLogger,
    "tensorboard": pl.loggers.TensorBoardLogger,  # pip install 'fedgm[tensorboard]'
    "mlflow": lambda folder: MlflowLogger(f"{folder}/mlruns", "huggingface"),  # pip install 'fedgm[mlflow]'
}


class ModelOutput(OrderedDict):
    """A dict whose entries are attributes, too."""

    __getattr__ = OrderedDict.__getitem__


class TinyModel(torch.nn.Module):
    """Next-token prediction; with ``labels`` the output has a loss."""

    def __init__(self, width=16):
        super().__init__()
        self.embedding = torch.nn.Embedding(TOKENS, width)
        self.body = torch.nn.Linear(width, width)
        self.head = torch.nn.Linear(width, TOKENS, bias=False)
        self.head.weight = self.embedding.weight  # tied

    def forward(self, input_ids, labels=None):
        logits = self.head(torch.tanh(self.body(self.embedding(input_ids))))
        output = ModelOutput(logits=logits)
        if labels is not None:
            output["loss"] = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return output


class Wrapped(pl.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def training_step(self, batch, batch_idx):
        return self.model(**batch)  # its "loss" is what is trained

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.model(**batch).loss)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.005)


def clients(count=6, size=16):
    """Each text counts upwards modulo 12; each client starts from numbers of its own."""
    made = []
    for client in range(count):
        starts = (torch.arange(size) % 3 + 2 * client) % TOKENS
        texts = [(start + torch.arange(LENGTH)) % TOKENS for start in starts]
        made.append([{"input_ids": text, "labels": text} for text in texts])
    return made


def fit(folder, rounds, checkpoint=None, logger="csv"):
    """Train up to round ``rounds``; with ``checkpoint`` from where it was written."""
    torch.manual_seed(0)  # the first weights
    datasets = clients()
    saver = pl.callbacks.ModelCheckpoint(folder, "best-{epoch}", monitor="val_loss")
    stop = pl.callbacks.EarlyStopping("val_loss", patience=5, stopping_threshold=0.2)
    server = fedgm.FedGM(eta=1.0, beta=0.5, nu=0.5)
    trainer = pl.Trainer(
        max_epochs=rounds, accelerator="cpu", logger=LOGGERS[logger](folder), log_every_n_steps=1,
        callbacks=[server, saver, stop], enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    # The state of AdamW stays with each client, and is part of the checkpoint.
    fedgm.federate(trainer, datasets, per_round=3, batch_size=8, epochs=2, state="keep")
    loader = DataLoader(ConcatDataset(datasets), batch_size=48)
    trainer.fit(Wrapped(TinyModel()), val_dataloaders=loader, ckpt_path=checkpoint)
    trainer.save_checkpoint(Path(folder) / "end.ckpt")
    return trainer


def main(folder="outputs/huggingface", logger="csv"):
    """Two rounds, then an interruption, then the rest."""
    fit(folder, 2, logger=logger)
    trainer = fit(folder, 60, Path(folder) / "end.ckpt", logger)
    loss = trainer.callback_metrics["val_loss"]
    print(f"val_loss {loss:.3f}, stopped after {trainer.current_epoch} of 60 rounds")


if __name__ == "__main__":
    main(logger=(sys.argv[1:] or ["csv"])[0])
