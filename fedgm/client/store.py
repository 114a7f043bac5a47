"""States of clients that have taken part: on disk, one file per client and round, whole or absent.

Every worker reads and writes the same folder. A state is looked up as the newest *before* a round, so a run
that continues from an older checkpoint finds the states of that time. The inner optimiser's state is kept as
named tensors (``local.state=keep``).
"""

import shutil
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from fedgm.client.rules import State
from fedgm.errors import FedGMError, RefusedError
from fedgm.files import make_folder, write_atomically
from fedgm.seals import UNNAMED, DamagedError, read_sealed, sealed


class Kept(NamedTuple):
    """Everything that a client keeps from one time to the next, each for its own part of the run."""

    rule: State  # of the client rule
    upload: State  # of the upload rule
    optimizer: State  # of the inner optimiser

    @classmethod
    def split(cls, state: State) -> "Kept":
        """From one flat dictionary, in which the rule's names have no prefix."""
        rule = {name: value for name, value in state.items() if "/" not in name}
        return cls(rule, _below(state, "upload/"), _below(state, "optimizer/"))

    def joined(self) -> State:
        """As one flat dictionary."""
        upload = {f"upload/{name}": value for name, value in self.upload.items()}
        return self.rule | upload | {f"optimizer/{name}": value for name, value in self.optimizer.items()}


class Store(Protocol):
    """Where clients keep their states between rounds."""

    def load(self, client: int, before: int) -> State:
        """The client's state as round ``before`` finds it; empty if it has not taken part."""
        ...

    def save(self, client: int, t: int, state: State) -> None:
        """Keep the state after round ``t``."""
        ...


class MemoryStore:
    """For runs without a folder: the newest state of each client, part of the loop's own checkpoint."""

    def __init__(self) -> None:
        self.states: dict[int, State] = {}

    def load(self, client: int, before: int) -> State:
        """The client's newest state."""
        return self.states.get(client, {})

    def save(self, client: int, t: int, state: State) -> None:
        """Replace the client's state; an empty one is not worth keeping."""
        if state:
            self.states[client] = state


class ClientStore:
    """Kept until no checkpoint can ask for it: ``keep`` checkpoints, each ``every`` rounds."""

    def __init__(
        self, folder: Path, every: int = 1, keep: int = 2, sync: bool = False, run: str = UNNAMED
    ) -> None:
        self.folder, self.sync, self.run = folder, sync, run  # the run's name in its seals
        self._span = every * keep

    def load(self, client: int, before: int) -> State:
        """The client's state as round ``before`` finds it; empty if it has not taken part."""
        older = [t for t in self._rounds(client) if t < before]
        if not older:
            return {}
        try:
            return self.read(client, older[0])
        except (OSError, DamagedError, SafetensorError) as error:
            raise FedGMError(
                f"the state of client {client} cannot be read ({self._path(client, older[0])}: {error}). "
                "The same command continues from a checkpoint whose states are whole"
            ) from None

    def read(self, client: int, t: int) -> State:
        """The state that a client kept after round ``t``, verified."""
        path = self._path(client, t)
        return load(read_sealed(path, _name(client, t), self.run))

    def save(self, client: int, t: int, state: State) -> None:
        """Keep the state after round ``t``; drop what no checkpoint that may still be read asks for."""
        path = self._path(client, t)
        make_folder(path.parent, self.sync)
        write_atomically(path, sealed(save(state), _name(client, t), self.run), self.sync)
        for old in [past for past in self._rounds(client) if past <= t - 1 - self._span][1:]:
            self._path(client, old).unlink(missing_ok=True)

    def has(self, client: int, t: int) -> bool:
        """Whether the client kept something after round ``t``."""
        return self._path(client, t).exists()

    def newest(self, until: int) -> dict[int, int]:
        """For every client that has a state: the last round up to ``until`` after which it kept one."""
        rounds_of = {client: [t for t in self._rounds(client) if t <= until] for client in self._clients()}
        return {client: rounds[0] for client, rounds in sorted(rounds_of.items()) if rounds}

    def forget_beyond(self, newest: Mapping[int, int]) -> None:
        """Remove what is newer than each client's state in a checkpoint: rounds that are run again write it.

        Files of another run may be among them, which nobody has verified.
        """
        for client in self._clients():
            for t in self._rounds(client):
                if t > newest.get(client, -1):
                    self._path(client, t).unlink(missing_ok=True)

    def _path(self, client: int, t: int) -> Path:
        return self.folder / _name(client, t)

    def _clients(self) -> list[int]:
        return [int(path.name) for path in self.folder.glob("*") if path.name.isdecimal()]

    def _rounds(self, client: int) -> list[int]:
        """Newest first."""
        names = [path.stem for path in (self.folder / f"{client:08d}").glob("*.safetensors")]
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)


def require_room(folder: Path, clients: int, bytes_each: int, versions: int) -> str:
    """What the states of all clients that may take part will cost; an error where that cannot fit."""
    need, free = versions * clients * bytes_each, shutil.disk_usage(folder).free
    text = f"{clients:,} client states of {bytes_each / 2**20:.1f} MiB, up to {need / 2**30:.2f} GiB on disk"
    if need > free:
        raise RefusedError(
            f"client: {text}, but {folder} has {free / 2**30:.2f} GiB free. "
            "Try fewer clients.count or rounds, a smaller model, or output_dir on a larger disk"
        )
    return text


def _below(state: State, prefix: str) -> State:
    return {name.removeprefix(prefix): v for name, v in state.items() if name.startswith(prefix)}


def _name(client: int, t: int) -> str:
    return f"{client:08d}/{t:06d}.safetensors"


NUMBER = "#"  # ends the name of what is a plain number in the optimiser


def read_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Copies of everything that the optimiser remembers, named ``<parameter>.<entry>``."""
    tensors: dict[str, Tensor] = {}
    for number, parameter in enumerate(_parameters(optimizer)):
        for name, value in optimizer.state.get(parameter, {}).items():
            key = f"{number}.{name}"
            if isinstance(value, Tensor):
                tensors[key] = value.detach().clone(memory_format=torch.contiguous_format)
            elif isinstance(value, int | float):
                tensors[key + NUMBER] = torch.tensor(value)
            elif value is not None:
                raise FedGMError(
                    f"local.state=keep: {type(optimizer).__name__} remembers {name}, which cannot be stored "
                    f"({type(value).__name__}). Try local.state=reset"
                )
    return tensors


def write_state(optimizer: torch.optim.Optimizer, kept: dict[str, Tensor]) -> None:
    """Let the optimiser remember ``kept`` and nothing else; an empty one is a fresh start."""
    optimizer.state.clear()
    parameters = _parameters(optimizer)
    entries: dict[int, dict[str, Any]] = defaultdict(dict)
    for key, value in kept.items():
        number, name = key.split(".", 1)
        like = parameters[int(number)]
        if name.endswith(NUMBER):
            entries[int(number)][name.removesuffix(NUMBER)] = value.item()
        elif value.shape == like.shape:  # in the parameter's own layout and place
            entries[int(number)][name] = torch.empty_like(like).to(value.dtype).copy_(value)
        else:
            entries[int(number)][name] = value.clone()
    for number, entry in entries.items():
        optimizer.state[parameters[number]] = entry


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
