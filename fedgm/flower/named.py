"""The server of a Flower app that has clients of its own: named arrays in, the next named arrays out.

Parameters are stepped by the engine, float buffers averaged, counters get an integer mean, as in the loop.
Its folder is a run folder: rows, a summary, and the state that a killed server continues from.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load, save
from torch import Tensor

from fedgm.client.weights import Snapshot, is_finite
from fedgm.errors import FedGMError
from fedgm.federated.aggregate import CohortMean, scaled, shares
from fedgm.files import write_atomically
from fedgm.flower.parcel import BadParcelError
from fedgm.results import rows
from fedgm.seals import name_of, read_sealed, sealed, write_json
from fedgm.server.engine import Engine, RoundFacts

Arrays = dict[str, Tensor]
STATISTICS = ("running_mean", "running_var")  # of BatchNorm: averaged, never stepped with momentum
STATE = "state.safetensors"


class Reply(NamedTuple):
    """What one node returned."""

    arrays: Arrays
    samples: int


@dataclass
class NamedServer:
    """Engine and record; ``parameters`` are the names that it steps, by default all that are no buffers."""

    engine: Engine
    parameters: Collection[str] | None = None
    weights: str = "uniform"  # or samples
    seed: int = 0
    folder: Path | None = None
    name: str = "flower"
    done: int = 0  # rounds behind the current arrays
    dropped: dict[str, str] = field(default_factory=dict[str, str])  # of the last round, by node
    row: rows.Row = field(default_factory=dict[str, float | int | None])

    def step(self, arrays: Arrays, replies: Mapping[str, Reply | str], least: int = 1) -> Arrays:
        """The arrays after one more round; ``replies`` are by node, or why there is none."""
        t, before = self.done + 1, self._snapshot(arrays)
        good = self._good(arrays, replies)
        if len(good) < max(1, least):
            raise FedGMError(
                f"round {t}: {len(good)} replies count, {max(1, least)} are needed ({self.without()})"
            )
        parts = shares([reply.samples for reply in good.values()], self.weights)
        mean, squared = CohortMean(before, len(good)), 0.0
        for reply, share in zip(good.values(), parts, strict=True):
            after = self._snapshot(reply.arrays)
            delta = before.x - after.x
            mean.add(delta, after, 1.0, share)
            squared += share * scaled(delta, 1.0).double().square().sum().item()
        result = mean.mean()
        x = self.engine.step(t, before.x, result.delta, RoundFacts(squared / sum(parts)))
        if not is_finite(x):
            raise FedGMError(f"the model became non-finite in round {t}. Try a smaller eta")
        self.done = t
        self.row = {
            "round": t, **self.engine.row, "update/norm": result.delta.norm().item(),
            "cohort/clients": len(good), "cohort/dropped": len(self.dropped),
        }  # fmt: skip
        return self._named(arrays, result.over(x))

    def without(self) -> str:
        """Who did not count in the last round, and why."""
        return "; ".join(f"{node}: {reason}" for node, reason in self.dropped.items())

    def _good(self, arrays: Arrays, replies: Mapping[str, Reply | str]) -> dict[str, Reply]:
        """Replies that fit the model and are finite, in order of nodes; ``dropped`` has the others."""
        self.dropped, good = {}, dict[str, Reply]()
        for node in sorted(replies):
            reply = replies[node]
            try:
                if isinstance(reply, str):
                    raise BadParcelError(reply)
                _require_fits(arrays, reply)
            except BadParcelError as error:
                self.dropped[node] = str(error)
            else:
                good[node] = reply
        return good

    def _kind(self, name: str, tensor: Tensor) -> int:
        """0 for parameters, 1 for float buffers, 2 for counters."""
        if not tensor.is_floating_point():
            return 2
        if self.parameters is None:
            return int(name.rpartition(".")[2] in STATISTICS)
        return int(name not in self.parameters)

    def _snapshot(self, arrays: Arrays) -> Snapshot:
        kinds = [[t for n, t in arrays.items() if self._kind(n, t) == kind] for kind in range(3)]
        if not kinds[0]:
            raise FedGMError(f"no array is a parameter: {', '.join(arrays)}. Set parameters")
        wide = kinds[0][0].dtype
        for tensor in (*kinds[0], *kinds[1]):
            wide = torch.promote_types(wide, tensor.dtype)
        types = (wide, wide, torch.int64)
        flat = [
            torch.cat([t.reshape(-1).to(dtype) for t in group]) if group else torch.empty(0, dtype=dtype)
            for group, dtype in zip(kinds, types, strict=True)
        ]
        return Snapshot(*flat)

    def _named(self, arrays: Arrays, snapshot: Snapshot) -> Arrays:
        """The flat vectors as arrays, each of its own shape and type."""
        places, named = [0, 0, 0], dict[str, Tensor]()
        for name, tensor in arrays.items():
            kind = self._kind(name, tensor)
            start = places[kind]
            places[kind] = start + tensor.numel()
            named[name] = snapshot[kind][start : places[kind]].to(tensor.dtype).view(tensor.shape).clone()
        return named

    # The record --------------------------------------------------------------------------------------------

    def save(self, arrays: Arrays, row: rows.Row | None = None) -> None:
        """After a round: its row, then the state, then the summary; each is whole or absent."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "metrics.jsonl"
        stored = [*rows.read(path)[: self.done - 1], {**self.row, **(row or {})}]
        write_atomically(path, "".join(rows.dump(each) for each in stored), sync=True)
        tensors = {f"x.{name}": tensor.contiguous() for name, tensor in arrays.items()}
        tensors |= {f"state.{name}": value.contiguous() for name, value in self.engine.state.items()}
        tensors["round"] = torch.tensor(self.done)
        write_atomically(self.folder / STATE, sealed(save(tensors), STATE, self._run()), sync=True)
        self._summarise(stored)

    def resume(self, arrays: Arrays) -> Arrays:
        """The arrays to continue with: those of the folder, or ``arrays`` where nothing is stored."""
        if self.folder is None or not (self.folder / STATE).exists():
            return arrays
        try:
            stored = load(read_sealed(self.folder / STATE, STATE, self._run()))
        except ValueError as error:  # of another rule, plan or seed, too
            raise FedGMError(
                f"{self.folder / STATE} is not of this run ({error}). Try another folder"
            ) from None
        self.done = int(stored.pop("round"))
        known = {name.removeprefix("x."): t for name, t in stored.items() if name.startswith("x.")}
        self.engine.state = {n.removeprefix("state."): t for n, t in stored.items() if n.startswith("state.")}
        _require_fits(arrays, Reply(known, 1))
        return {name: known[name] for name in arrays}

    def _run(self) -> str:
        return name_of(self._mark(), self.seed)

    def _mark(self) -> str:
        """What two runs of this server have in common: rule, plan and seed."""
        rule: Any = self.engine.rule
        values = asdict(rule) if is_dataclass(rule) and not isinstance(rule, type) else str(rule)
        plan = [[stage.rounds, stage.hyper] for stage in self.engine.plan.stages]
        text = json.dumps([type(rule).__name__, values, plan, self.seed], default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def _summarise(self, stored: list[rows.Row]) -> None:
        from fedgm.running.facts import versions
        from fedgm.tasks.metric import LOSS, Scoreboard

        assert self.folder is not None
        plan, board = self.engine.plan, Scoreboard((LOSS,), "test/loss")
        rounds = plan.ends[-1]
        facts: dict[str, Any] = {
            "status": "finished" if self.done >= rounds else "running", "name": self.name,
            "algorithm": type(self.engine.rule).__name__, "participation": "flower", "seed": self.seed,
            "rounds": rounds, "hash": self._mark(), "versions": versions(), **board.describe(),
            "stages": [{"rounds": stage.rounds, **stage.hyper} for stage in plan.stages],
        }  # fmt: skip
        write_json(self.folder / "summary.json", facts | rows.summarise(stored, board), sync=True)


def _require_fits(arrays: Arrays, reply: Reply) -> None:
    """Names, shapes and types of ``arrays``, and nothing that is not finite."""
    if reply.arrays.keys() != arrays.keys():
        other = sorted(reply.arrays.keys() ^ arrays.keys())
        raise BadParcelError(f"other arrays than were sent ({', '.join(other)[:200]})")
    if reply.samples < 1:
        raise BadParcelError(f"num-examples={reply.samples}")
    for name, tensor in arrays.items():
        came = reply.arrays[name]
        if came.shape != tensor.shape or came.dtype != tensor.dtype:
            raise BadParcelError(f"{name} is {came.dtype} of shape {list(came.shape)}")
        if came.is_floating_point() and not is_finite(came.reshape(-1)):
            raise BadParcelError(f"{name} is not finite")
