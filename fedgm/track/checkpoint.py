"""Checkpoints that are whole or absent, and the way back to the newest good one."""

import io
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save

from fedgm.client.rule import State
from fedgm.client.weights import FlatWeights, Snapshot
from fedgm.files import write_atomically
from fedgm.lightning import Checkpoint, TorchCheckpointIO, pl
from fedgm.loop import FederatedLoop, rounds_done

SHARED = "shared."  # before the names of a client rule's vectors in the files of past models


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the target and replaces it; never unpickles more than tensors and plain containers."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        """A kill leaves the old state or the new one."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        torch.save(checkpoint, content)  # to memory: of a full disk torch makes an obscure RuntimeError
        write_atomically(target, content.getbuffer())

    def load_checkpoint(self, path: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Tensors and plain containers only."""
        return torch.load(path, map_location="cpu", weights_only=True)


class RoundCheckpoint(Checkpoint):
    """Saves every ``every`` rounds and after the last; keeps the newest ``keep``.

    As a Checkpoint it comes last, so that it holds what the other callbacks have counted in the round.
    """

    def __init__(self, folder: Path, every: int, keep: int, rounds: int) -> None:
        self.folder, self.every, self.keep, self.rounds = folder, every, keep, rounds

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Bring back the past models of the round that the run continues after, or keep x_0."""
        loop, t = trainer.fit_loop, rounds_done(trainer)
        if not isinstance(loop, FederatedLoop) or loop.history.length == 1:
            return
        for path in past_models(self.folder, t, loop.history.length):
            loop.history.push(*_read_model(path))
        self._keep_model(trainer, FlatWeights(pl_module).read(), loop.shared, t)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Last in the round, when the row is written: the rows of a checkpoint are always there."""
        loop, t = trainer.fit_loop, rounds_done(trainer)
        if isinstance(loop, FederatedLoop) and loop.history.length > 1:
            self._keep_model(trainer, loop.history[0], loop.shared, t)
            oldest = t - self.every * (self.keep + 1) - loop.history.length
            _model_file(self.folder, oldest).unlink(missing_ok=True)
        if t % self.every == 0 or t == self.rounds:
            trainer.save_checkpoint(self.folder / f"round-{t:06d}.ckpt")
            if trainer.is_global_zero:
                for old in checkpoints(self.folder)[self.keep :]:
                    old.unlink(missing_ok=True)

    def _keep_model(self, trainer: pl.Trainer, model: Snapshot, shared: State, t: int) -> None:
        """Write x_t once, with what a client fetches beside it; later checkpoints refer to it."""
        if trainer.is_global_zero:
            self.folder.mkdir(parents=True, exist_ok=True)
            named = {f"{SHARED}{name}": value.contiguous() for name, value in shared.items()}
            write_atomically(_model_file(self.folder, t), save(model._asdict() | named))


def past_models(folder: Path, t: int, history: int) -> list[Path]:
    """Files of the models before x_t that a run which continues after round ``t`` needs, oldest first."""
    return [_model_file(folder, past) for past in range(max(0, t - history + 1), t)]


def _model_file(folder: Path, t: int) -> Path:
    return folder / f"model-{t:06d}.safetensors"


def _read_model(path: Path) -> tuple[Snapshot, State]:
    stored = load_file(path)
    shared = {name.removeprefix(SHARED): stored.pop(name) for name in list(stored) if name.startswith(SHARED)}
    return Snapshot(**stored), shared


def checkpoints(folder: Path) -> list[Path]:
    """All of a run, newest first."""
    return sorted(folder.glob("round-*.ckpt"), reverse=True)


def newest_good(folder: Path, history: int = 1) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that can be read, and what is to be said about damaged ones."""
    notes: list[str] = []
    for path in checkpoints(folder):
        try:
            torch.load(path, map_location="cpu", weights_only=True)
            for past in past_models(folder, int(path.stem.removeprefix("round-")), history):
                _read_model(past)
        except (PermissionError, MemoryError):
            raise  # says nothing about the file
        except Exception as error:
            reason = str(error).splitlines()[0][:80] if str(error) else type(error).__name__
            notes.append(f"checkpoint {path.name} is damaged ({reason}): using the one before")
            path.replace(path.with_suffix(".damaged"))
            continue
        return path, notes
    if notes:
        notes.append("no checkpoint can be read: starting from round 1")
    return None, notes


def discard(folder: Path) -> None:
    """A finished run keeps its model, not its checkpoints."""
    shutil.rmtree(folder, ignore_errors=True)
