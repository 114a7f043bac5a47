"""Checkpoints that are whole or absent; :mod:`fedgm.running.fallback` finds the newest good one."""

import io
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save

from fedgm.client.rules import State
from fedgm.client.store import ClientStore
from fedgm.client.weights import FlatWeights, Snapshot
from fedgm.federated.loop import FederatedLoop, rounds_done
from fedgm.files import make_folder, write_atomically
from fedgm.lightning import Checkpoint, TorchCheckpointIO, pl
from fedgm.seals import UNNAMED, read_sealed, sealed

ROUND = "round-"  # before the number, in the names of a run's own checkpoints
SHARED = "shared."  # before the names of a client rule's vectors in the files of past models


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the target and replaces it; never unpickles more than tensors and plain containers."""

    def __init__(self, sync: bool = False, run: str = UNNAMED) -> None:
        self.sync, self.run = sync, run

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        """A kill leaves the old state or the new one."""
        target = Path(path)
        make_folder(target.parent, self.sync)
        content = io.BytesIO()
        torch.save(checkpoint, content)  # to memory: of a full disk torch makes an obscure RuntimeError
        plain = content.getbuffer()
        written = sealed(plain, target.name, self.run) if target.name.startswith(ROUND) else bytes(plain)
        write_atomically(target, written, self.sync)  # those of other callbacks are for torch.load

    def load_checkpoint(self, path: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Tensors and plain containers only."""
        return read_checkpoint(Path(path), self.run)


class RoundCheckpoint(Checkpoint):
    """Saves every ``every`` rounds and after the last; keeps the newest ``keep``.

    As a Checkpoint it comes last, so that it holds what the other callbacks have counted in the round.
    """

    def __init__(
        self, folder: Path, every: int, keep: int, rounds: int, store: ClientStore | None = None,
        sync: bool = False, run: str = UNNAMED,
    ) -> None:  # fmt: skip
        self.folder, self.every, self.keep, self.rounds = folder, every, keep, rounds
        self.store, self.sync, self.run = store, sync, run  # the run's name in its seals
        self.states: dict[int, int] = {}  # client -> the last round after which it kept a state
        self._saved: list[Path] | None = None  # newest first; None: not looked for yet

    def state_dict(self) -> dict[str, Any]:
        """Which client states belong to the checkpoint: one that is gone must be noticed."""
        return {"states": dict(self.states)}

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Bring back the past models of the round that the run continues after, or keep x_0."""
        loop, t = trainer.fit_loop, rounds_done(trainer)
        self._saved = None
        self.states = self.store.newest(until=t) if self.store else {}
        if not isinstance(loop, FederatedLoop) or loop.history.length == 1:
            return
        for path in past_models(self.folder, t, loop.history.length):
            loop.history.push(*read_model(path, self.run))
        self._keep_model(trainer, FlatWeights(pl_module).read(), loop.shared, t)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Last in the round, when the row is written: the rows of a checkpoint are always there."""
        loop, t = trainer.fit_loop, rounds_done(trainer)
        if isinstance(loop, FederatedLoop) and self.store:
            took_part = (task.client for task in loop.participation.tasks(t))
            self.states |= {client: t for client in took_part if self.store.has(client, t)}
        if isinstance(loop, FederatedLoop) and loop.history.length > 1:
            self._keep_model(trainer, loop.history[0], loop.shared, t)
            oldest = t - self.every * (self.keep + 1) - loop.history.length
            _model_file(self.folder, oldest).unlink(missing_ok=True)
        if t % self.every == 0 or t == self.rounds:
            path = self.folder / f"{ROUND}{t:06d}.ckpt"
            trainer.save_checkpoint(path)
            if trainer.is_global_zero:
                self._remove_old(path)

    def _remove_old(self, path: Path) -> None:
        """Keep the newest; ``path`` was just written. The folder is listed once: it is this run's alone."""
        saved = checkpoints(self.folder) if self._saved is None else [path, *self._saved]
        newest = sorted(set(saved), key=round_of, reverse=True)
        for old in newest[self.keep :]:
            old.unlink(missing_ok=True)
        self._saved = newest[: self.keep]

    def _keep_model(self, trainer: pl.Trainer, model: Snapshot, shared: State, t: int) -> None:
        """Write x_t once, with what a client fetches beside it; later checkpoints refer to it."""
        if trainer.is_global_zero:
            make_folder(self.folder, self.sync)
            named = {f"{SHARED}{name}": value.contiguous() for name, value in shared.items()}
            path = _model_file(self.folder, t)
            write_atomically(path, sealed(save(model._asdict() | named), path.name, self.run), self.sync)


def past_models(folder: Path, t: int, history: int) -> list[Path]:
    """Files of the models before x_t that a run which continues after round ``t`` needs, oldest first."""
    return [_model_file(folder, past) for past in range(max(0, t - history + 1), t)]


def _model_file(folder: Path, t: int) -> Path:
    return folder / f"model-{t:06d}.safetensors"


def read_model(path: Path, run: str) -> tuple[Snapshot, State]:
    """A past model of a run, verified."""
    stored = load(read_sealed(path, path.name, run))
    shared = {name.removeprefix(SHARED): stored.pop(name) for name in list(stored) if name.startswith(SHARED)}
    return Snapshot(**stored), shared


def read_checkpoint(path: Path, run: str) -> dict[str, Any]:
    """A checkpoint of a run, verified; tensors and plain containers only."""
    content = io.BytesIO(read_sealed(path, path.name, run))
    return torch.load(content, map_location="cpu", weights_only=True)


def checkpoints(folder: Path) -> list[Path]:
    """All of a run, newest first."""
    paths = [path for path in folder.glob(f"{ROUND}*.ckpt") if path.stem.removeprefix(ROUND).isdecimal()]
    return sorted(paths, key=round_of, reverse=True)


def round_of(path: Path) -> int:
    """The round after which a checkpoint was written."""
    return int(path.stem.removeprefix(ROUND))


def discard(folder: Path) -> None:
    """A finished run keeps its model, not its checkpoints."""
    shutil.rmtree(folder, ignore_errors=True)
