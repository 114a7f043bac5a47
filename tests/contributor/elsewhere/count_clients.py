"""A callback: how often each client has taken part."""

import json
from collections import Counter
from pathlib import Path

from fedgm.federated.events import ClientEnd, FederatedCallback
from fedgm.lightning import pl


class CountClients(FederatedCallback):
    """A JSON file of client and count."""

    def __init__(self, path: str) -> None:
        self.path, self.counts = Path(path), Counter[int]()

    def on_client_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, end: ClientEnd) -> None:
        self.counts[end.task.client] += 1

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.path.write_text(json.dumps(self.counts))
