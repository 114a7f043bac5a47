"""A stored model on data: those of its run, or new ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from fedgm.config import RunConfig, compose, require_sound, stored
from fedgm.data.federation import Federation
from fedgm.errors import RefusedError, require_fits
from fedgm.lightning import pl
from fedgm.models.layout import fit_layout
from fedgm.running.model import load_model
from fedgm.running.parts import load_clients
from fedgm.running.trainer import WorkerShare
from fedgm.tasks import TaskModule

OFF = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
SPLIT = "test"


def evaluate(
    run: str | Path, words: Sequence[str] = (), trust: Sequence[str] = (), weights: str | Path | None = None
) -> dict[str, float]:
    """The metrics of a run's model on the test data of ``words``, or on its own where there are none."""
    module = load_model(run, trust)
    if weights is not None:
        _load(module, Path(weights))
    config = _with_data(Path(run), words, trust)
    clients = load_clients(config)
    known = _outputs(module)
    given = clients.facts.get("num_classes")
    require_fits(
        known is None or given is None or given <= known,
        "data", config.data.name, f"it has {given} classes, the model {known}", "data with the run's classes",
    )  # fmt: skip
    if isinstance(clients, Federation):
        fit_layout(module.net, clients, "cpu")  # pyright: ignore[reportArgumentType]
    trainer = pl.Trainer(accelerator="cpu", devices=1, **dict.fromkeys(OFF, False))
    trainer.validate(module, WorkerShare(trainer, clients.evaluations()[SPLIT], SPLIT), verbose=False)
    assert isinstance(module, TaskModule)
    return {**module.measured}


def _with_data(run: Path, words: Sequence[str], trust: Sequence[str]) -> RunConfig:
    """The run's configuration, with the data that the words name in the place of its own."""
    cfg = stored(run, trust)
    if others := [word for word in words if not word.lstrip("+").startswith("data")]:
        raise RefusedError(f"{others[0]}: a stored model is fixed. Allowed: data=... and data.KEY=...")
    if words:
        chosen = [] if any(word.startswith("data=") for word in words) else [f"data={cfg.data.name}"]
        size = [f"profile.resolution={cfg.data.get('resolution')}"] if cfg.data.get("resolution") else []
        known = [f"profile={cfg.profile.name}", f"seed={cfg.seed}", *size]
        cfg.data = compose([*known, *chosen, *words]).data
    config = require_sound(cfg)
    if words and "partition" in cfg.data:  # a test set needs no clients, and new data may be too few for all
        config.clients.count = config.clients.per_round = 1
    return config


def _load(module: pl.LightningModule, path: Path) -> None:
    """Weights of a checkpoint that a callback has written; tensors and plain containers only."""
    try:
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
        module.load_state_dict(content["state_dict"])
    except Exception as error:  # torch has its own errors for each kind of damage
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RefusedError(
            f"{path}: not the weights of this run ({reason}). Try RUN/model_checkpoint/best.ckpt"
        ) from None


def _outputs(module: pl.LightningModule) -> int | None:
    """Classes of a classifier: the length of its last layer."""
    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    return layers[-1].out_features if layers else None
