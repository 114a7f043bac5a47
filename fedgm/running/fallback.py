"""The way back: the newest checkpoint that is whole, with everything that belongs to it."""

import shutil
from pathlib import Path
from typing import Any

from fedgm.client.store import ClientStore
from fedgm.results import rows, summary
from fedgm.running.checkpoint import checkpoints, past_models, read_checkpoint, read_model, round_of
from fedgm.seals import DamagedError, changed, digest, is_named


def newest_good(
    folder: Path, run: str, history: int = 1, store: ClientStore | None = None
) -> tuple[Path | None, list[str]]:
    """The newest checkpoint of a run folder that can be used, and what a user must be told about the others.

    It needs its past models, the states of its clients, and the rows of all rounds until then, all of the
    same run.
    """
    notes: list[str] = []
    stored = rows.read(folder / "metrics.jsonl")
    for path in checkpoints(folder / "checkpoints"):
        try:
            content = read_checkpoint(path, run)
            _check_shape(content, round_of(path))
            for past in past_models(path.parent, round_of(path), history):
                read_model(past, run)
            states = _check_states(content, round_of(path), store)
            _check_rows(content, round_of(path), stored)
        except (PermissionError, MemoryError):
            raise  # says nothing about the file
        except Exception as error:
            reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            notes.append(f"checkpoint {path.name} is damaged ({reason}): using the one before")
            _put_aside(path)
            continue
        if store is not None:
            store.forget_beyond(states)
        if not is_named(path):
            notes.append(f"checkpoint {path.name} is of an older version: it does not say which run it is of")
        return path, notes
    if store is not None:
        store.forget_beyond({})
    if notes:
        notes.append("no checkpoint can be read: starting from round 1")
    elif stored:
        notes.append("there is no checkpoint: starting from round 1")
    return None, notes


def is_paused_at(folder: Path, run: str, before: dict[str, Any], last: float) -> bool:
    """Whether a paused run has every round until ``last``, with its rows as they were written."""
    t = before.get("rounds_done") or 0
    if before.get("status") != summary.Status.PAUSED or t < last:
        return False
    stored = rows.read(folder / "metrics.jsonl")
    whole = len(stored) >= t and not rows.has_more(folder / "metrics.jsonl", stored)
    if not whole or changed(folder, before, ["metrics.jsonl"]) or not summary.agrees(before, stored[:t]):
        return False
    try:
        content = read_checkpoint(folder / "checkpoints" / f"round-{t:06d}.ckpt", run)
        _check_shape(content, t)
    except Exception:
        return True  # the rows are the result so far; whoever continues looks for another checkpoint
    try:
        _check_rows(content, t, stored)
    except DamagedError:
        return False
    return True


def _check_shape(content: Any, t: int) -> None:
    """A file that can be read may still not be a checkpoint, or be that of another round."""
    try:
        done = content["loops"]["fit_loop"]["epoch_progress"]["current"]["processed"]
        whole = isinstance(content["state_dict"], dict) and isinstance(content["callbacks"], dict)
    except (TypeError, KeyError, IndexError):
        raise DamagedError("it is not the checkpoint of a run") from None
    if not whole or done != t:
        raise DamagedError(f"it is not the checkpoint of round {t}")


def _check_states(content: dict[str, Any], t: int, store: ClientStore | None) -> dict[int, int]:
    """Client -> round of its last state, each verified; checkpoints of older versions do not say which."""
    if store is None:
        return {}
    stated = content["callbacks"].get("RoundCheckpoint", {}).get("states")
    states: dict[int, int] = store.newest(until=t) if stated is None else stated
    for client, kept in states.items():
        try:
            store.read(client, kept)
        except FileNotFoundError:
            raise DamagedError(f"the state of client {client} after round {kept} is gone") from None
        except Exception as error:
            raise DamagedError(f"the state of client {client} after round {kept}: {error}") from None
    return states


def _check_rows(content: dict[str, Any], t: int, stored: list[rows.Row]) -> None:
    """Rounds 1 to ``t``, as they were when the checkpoint was written."""
    if len(stored) < t:
        raise DamagedError(f"of rounds 1 to {t} metrics.jsonl has {len(stored)} whole rows")
    checksum = content["callbacks"].get("RoundLog", {}).get("rows")
    if checksum is not None and checksum != digest(*(rows.dump(row).encode() for row in stored[:t])):
        raise DamagedError(f"rows 1 to {t} of metrics.jsonl are not those that were written")


def _put_aside(path: Path) -> None:
    """Out of the way of those that will be written, but still there to be looked at."""
    aside = path.with_suffix(".damaged")
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside)
    else:
        aside.unlink(missing_ok=True)
    path.replace(aside)
