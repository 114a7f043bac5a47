"""``fedgm.federate``: any LightningModule and a stock Trainer, trained by Algorithm 3 or 4."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from torch.utils.data import Dataset

from fedgm.client.optimizers import effective
from fedgm.client.rules import ClientRule, Plain
from fedgm.client.store import ClientStore, MemoryStore
from fedgm.data.clients import ClientData, as_clients, local_steps
from fedgm.errors import require
from fedgm.federated.cohort import ClientParts, RoundSettings
from fedgm.federated.fitting import (
    is_whole,
    normalization,
    require_deltas,
    require_even,
    require_guarantee,
    require_mean,
    require_sending,
)
from fedgm.federated.loop import FederatedLoop
from fedgm.lightning import pl
from fedgm.participation import ClientFacts, Participation, ideal
from fedgm.participation.local_work import effective_steps
from fedgm.participation.task import informed
from fedgm.schedule.work import Work
from fedgm.seals import name_of
from fedgm.upload.message import Plain as WholeDelta
from fedgm.upload.message import UploadRule
from fedgm.upload.privacy import Privacy
from fedgm.upload.sending import SendRule


def federate(
    trainer: pl.Trainer,
    clients: ClientData | Sequence[Dataset[Any]],
    *,
    per_round: int | None = None,
    epochs: int = 1,
    batch_size: int = 32,
    seed: int = 0,
    participation: Participation | None = None,
    client: ClientRule | None = None,
    upload: UploadRule | None = None,
    weights: Literal["uniform", "samples"] = "uniform",
    state: Literal["reset", "keep"] = "reset",
    sending: SendRule | None = None,
    privacy: Privacy | None = None,
    work: Sequence[tuple[int, Work]] = (),
    folder: str | Path | None = None,
) -> FederatedLoop:
    """Give ``trainer`` the federated loop: an epoch is a server round, a batch is a client.

    ``per_round`` of the clients (default: all) train ``epochs`` epochs each; ``participation`` replaces both,
    and gets to know these clients where it was not told of others (steps, labels, FedNova's effective steps).
    ``sending`` chooses who of a cohort sends, ``privacy`` clips and adds noise, ``work`` is the last round of
    each stage with its local work. The trainer needs a callback that moves the global model:
    :class:`fedgm.FedGM`. States of clients are part of every checkpoint, or files in ``folder``, which
    several workers need.

    >>> import torch
    >>> from fedgm import FedGM
    >>> from fedgm.server import GeneralMomentum
    >>> class Line(pl.LightningModule):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = torch.nn.Parameter(torch.zeros(1))
    ...     def training_step(self, batch, batch_idx):
    ...         x, y = batch
    ...         return (self.w * x - y).square().mean()
    ...     def configure_optimizers(self):
    ...         return torch.optim.SGD(self.parameters(), lr=0.1)
    >>> x = torch.ones(8)
    >>> clients = [torch.utils.data.TensorDataset(x, slope * x) for slope in (1.0, 3.0)]
    >>> server, line = FedGM(GeneralMomentum(eta=1.0, beta=0.5, nu=0.5)), Line()
    >>> off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    >>> trainer = pl.Trainer(max_epochs=60, callbacks=[server], **dict.fromkeys(off, False))
    >>> loop = federate(trainer, clients, epochs=1, batch_size=4)
    >>> trainer.fit(line)
    >>> round(line.w.item(), 3)  # between the clients
    2.0
    """
    rounds = trainer.max_epochs or -1
    require(rounds > 0, "max_epochs", trainer.max_epochs, "the number of server rounds", "max_epochs=100")
    data = as_clients(clients, batch_size, seed)
    m = data.count if per_round is None else per_round
    require(1 <= m <= data.count, "per_round", m, f"1 to {data.count} clients", f"per_round={data.count}")
    require(epochs >= 1, "epochs", epochs, "at least 1", "epochs=1")
    settings = RoundSettings(
        rounds=rounds,
        seed=seed,
        weights=weights,
        eval_every=trainer.check_val_every_n_epoch or 1,
        keep=state == "keep",
        work=work,
    )
    store = MemoryStore() if folder is None else ClientStore(Path(folder), run=name_of("federate", seed))
    parts = ClientParts(client or Plain(), upload or WholeDelta(), store, sending, privacy)
    scheme = informed(participation or ideal(data.count, m, epochs, seed), _facts(trainer, data, parts.rule))
    require_mean("weights", weights, normalization(scheme), parts.rule)
    require_deltas("participation", type(scheme).__name__, scheme, parts.rule)
    require_sending(sending, parts.rule, parts.upload)
    require_guarantee(privacy, parts.rule, parts.upload, scheme, weights)
    require_even(work, scheme)
    allowed = "None: this client rule needs whole updates, which upload rules shorten"
    require(is_whole(parts.upload, parts.rule), "upload", type(parts.upload).__name__, allowed, "upload=None")
    loop = FederatedLoop(trainer, data, scheme, settings, parts, whole_checkpoints=True)
    trainer.fit_loop = loop
    return loop


def _facts(trainer: pl.Trainer, data: ClientData, rule: ClientRule) -> ClientFacts:
    """What a scheme may ask about these clients, and about the optimiser that they train with."""

    def effective_of(steps: int) -> float:
        if not trainer.strategy.optimizers:  # asked for the size of a cohort, before there is an optimiser
            return float(steps)
        terms = effective(trainer.strategy.optimizers[0], getattr(rule, "mu", 0.0))
        return effective_steps(steps, *terms) if terms else float(steps)  # the loop refuses others

    return ClientFacts(
        steps=lambda client, epochs: local_steps(data, client, epochs, "epochs"),
        effective=effective_of,
        labels=getattr(data, "labels", None),
        size=data.size,
    )
