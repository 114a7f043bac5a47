"""A stored model on data: those of its run, or new ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from fedgm.config import RunConfig, compose, reopened, require_sound, stored
from fedgm.config.parts import build
from fedgm.data.clients import ClientData, Source
from fedgm.data.dataset import Dataset
from fedgm.data.federation import Federation
from fedgm.data.text import TextFederation
from fedgm.errors import ClashError, ConfigError, DataError, RefusedError, UnfitDataError, require_fits
from fedgm.lightning import pl
from fedgm.models.build import require_kind
from fedgm.models.layout import fit_layout
from fedgm.running.model import NEEDED, load_model
from fedgm.running.parts import load_clients
from fedgm.running.trainer import WorkerShare, without_greetings
from fedgm.starting import without_treespec_warning
from fedgm.tasks import TaskModule

OFF = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
SPLIT = "test"
CLIENTS = "clients.count"  # of data that belong to clients, the test data of all are measured


@without_treespec_warning()
def evaluate(
    run: str | Path, words: Sequence[str] = (), trust: Sequence[str] = (), weights: str | Path | None = None
) -> dict[str, float]:
    """The metrics of a run's model on the test data of ``words``, or on its own where there are none."""
    module = load_model(run, trust)
    if weights is not None:
        _load(module, Path(weights))
    assert isinstance(module, TaskModule)
    config = _with_data(Path(run), words, trust)
    source: Source = build(config.data.source, "data.source", kind=Source)
    if words and isinstance(source, Dataset):  # its test set is no client's, and it may be small
        config.clients.count = 1
    clients = source.federate(config)
    if words:
        clients = _fitting(clients, module, config, reopened(Path(run), trust))
    if isinstance(clients, Federation):
        fit_layout(module.net, clients, "cpu")  # pyright: ignore[reportArgumentType]
    without_greetings()
    trainer = pl.Trainer(accelerator="cpu", devices=1, **dict.fromkeys(OFF, False))
    trainer.validate(module, WorkerShare(trainer, clients.evaluations()[SPLIT], SPLIT), verbose=False)
    return {**module.measured}


def _with_data(run: Path, words: Sequence[str], trust: Sequence[str]) -> RunConfig:
    """The run's configuration with the data of the words; what they leave open is as the run had it."""
    cfg = stored(run, trust)
    count = cfg.clients.count
    typed = [word.lstrip("+").partition("=")[0] for word in words]
    for key, word in zip(typed, words, strict=True):
        if key != CLIENTS and not key.startswith("data"):
            raise RefusedError(
                f"{word}: a stored model is fixed. Allowed: data=..., data.KEY=... and clients.count=..."
            )
    if words:
        size = [f"profile.resolution={cfg.data.get('resolution')}"] if cfg.data.get("resolution") else []
        known = [f"profile={cfg.profile.name}", f"seed={cfg.seed}", *size]
        same = [] if "data" in typed else [f"data={cfg.data.name}"]
        asked = compose([*known, *same, *words])
        if same:
            _keep(cfg, compose([*known, *same]), asked, typed)
        if CLIENTS in typed or asked.data.name != cfg.data.name:
            count = asked.clients.count
        OmegaConf.resolve(asked.data)
        cfg.data = asked.data
    config = require_sound(cfg)
    config.clients.count = count  # afterwards: who took part in the run is as it was
    return config


def _keep(run: DictConfig, usual: DictConfig, asked: DictConfig, typed: Sequence[str]) -> None:
    """What the run had set besides its usual data goes into ``asked``, unless it was typed.

    Keys outside ``data.source`` first: values that are made from them follow.
    """
    source, rest = run.data.source, {key: value for key, value in run.data.items() if key != "source"}
    own = {f"data.{key}": value for key, value in rest.items()}
    for key, value in {**own, **{f"data.source.{key}": value for key, value in source.items()}}.items():
        if OmegaConf.select(usual, key) == value:
            continue
        is_typed = any(word == key or word.startswith(f"{key}.") for word in typed)
        for cfg in (usual,) if is_typed else (usual, asked):
            OmegaConf.update(cfg, key, value, merge=False, force_add=True)


def _fitting(clients: ClientData, module: TaskModule, config: RunConfig, run: RunConfig) -> ClientData:
    """The data as the run's model reads them, or a refusal."""
    name, classes = config.data.name, module.model_needs == (NEEDED,)
    own = None if classes else load_clients(run)
    facts = {NEEDED: _outputs(module)} if own is None else own.facts
    if isinstance(clients, TextFederation) and isinstance(own, TextFederation):
        try:  # a token is a number: the same one must be the same character
            clients = clients.encoded(own.texts.vocabulary)
        except DataError as error:
            raise UnfitDataError(f"data={name}: the run's model cannot read it ({error})") from None
    for fact in module.model_needs:
        ours, theirs = facts.get(fact), clients.facts.get(fact)
        fits = theirs == ours or (fact == NEEDED and theirs is not None and (ours is None or theirs < ours))
        said = f"its {fact} is {'unknown' if theirs is None else theirs}, the model has {ours}"
        require_fits(fits, "data", name, said, f"data={run.data.name}, or data like it")
    try:
        require_kind(module.net, config.model, clients.facts)
    except ConfigError as error:
        said = f"the run's {error.key}={error.value} does not fit it: {error.allowed}"
        raise ClashError("data", name, said, f"data={run.data.name}, or data like it") from None
    return clients


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
