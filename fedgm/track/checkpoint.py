"""Checkpoints that are whole or absent, and the way back to the newest good one."""

import io
from pathlib import Path
from typing import Any

from fedgm.lightning import pl  # first: it makes Lightning importable beside a CPU-only torch

# isort: split
import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from fedgm.loop import rounds_done


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the target and replaces it; never unpickles more than tensors and plain containers."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        """A kill leaves the old state or the new one."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.tmp")
        content = io.BytesIO()
        torch.save(checkpoint, content)  # to memory: of a full disk torch makes an obscure RuntimeError
        try:
            temporary.write_bytes(content.getbuffer())
            temporary.replace(target)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def load_checkpoint(self, path: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Tensors and plain containers only."""
        return torch.load(path, map_location="cpu", weights_only=True)


class RoundCheckpoint(pl.Callback):
    """Saves every ``every`` rounds and after the last; keeps the newest ``keep``."""

    def __init__(self, folder: Path, every: int, keep: int, rounds: int) -> None:
        self.folder, self.every, self.keep, self.rounds = folder, every, keep, rounds

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Last in the round, when the row is written: the rows of a checkpoint are always there."""
        t = rounds_done(trainer)
        if t % self.every == 0 or t == self.rounds:
            trainer.save_checkpoint(self.folder / f"round-{t:06d}.ckpt")
            if trainer.is_global_zero:
                for old in checkpoints(self.folder)[self.keep :]:
                    old.unlink(missing_ok=True)


def checkpoints(folder: Path) -> list[Path]:
    """All of a run, newest first."""
    return sorted(folder.glob("round-*.ckpt"), reverse=True)


def newest_good(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that can be read, and what is to be said about damaged ones."""
    notes: list[str] = []
    for path in checkpoints(folder):
        try:
            torch.load(path, map_location="cpu", weights_only=True)
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
    for path in folder.glob("*"):
        path.unlink()
    if folder.exists():
        folder.rmdir()
