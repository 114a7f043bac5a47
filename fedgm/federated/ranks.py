"""Processes that torchrun or srun has started: all of them train, the first one alone keeps the record.

The first process decides (skip, continue from which checkpoint, begin) and tells the others through the store
that torch's processes meet in; the run folder is on a disk that all of them see.
"""

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import torch
from torch import distributed

from fedgm.errors import FedGMError, RefusedError
from fedgm.lightning import ClusterEnvironment, SLURMEnvironment, TorchElasticEnvironment

PATIENCE = timedelta(days=1)  # for the first process to load and decide; its launcher notices its death


@dataclass
class World:
    """The processes of one run, and what the first has sent to the others so far."""

    rank: int
    size: int
    nodes: int
    store: Any
    messages: int = 0  # so far, on either side

    def tell(self, word: dict[str, Any]) -> None:
        """From the first process to all."""
        self.store.set(f"fedgm/{self.messages}", json.dumps(word))
        self.messages += 1

    def hear(self) -> dict[str, Any]:
        """The next message of the first process."""
        key = f"fedgm/{self.messages}"
        try:
            self.store.wait([key], PATIENCE)
            word = json.loads(self.store.get(key))
        except RuntimeError as error:
            raise FedGMError(
                f"the first process of the run cannot be reached ({_first_line(error)})"
            ) from None
        self.messages += 1
        return word


@cache
def world() -> World | None:
    """The processes that torchrun or srun has started for this run; None where this one is alone."""
    try:
        environment = _environment()
        if environment is None or environment.world_size() == 1:
            return None
        rank, size = environment.global_rank(), environment.world_size()
    except (KeyError, ValueError) as error:
        variable = f"{type(error).__name__}: {_first_line(error)}"
        raise RefusedError(f"variables of torchrun or srun cannot be read ({variable}). Unset them") from None
    os.environ |= {"MASTER_ADDR": environment.main_address, "MASTER_PORT": str(environment.main_port)}
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size)}
    store, _, _ = next(distributed.rendezvous("env://"))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size)
    return World(rank, size, _nodes(size), distributed.PrefixStore("fedgm", store))


def _environment() -> ClusterEnvironment | None:
    """The launcher that started this process, as Lightning names it; SLURM counts only with several tasks."""
    if TorchElasticEnvironment.detect():
        return TorchElasticEnvironment()
    if int(os.environ.get("SLURM_STEP_NUM_TASKS", 1)) > 1 and SLURMEnvironment.detect():
        return SLURMEnvironment(auto_requeue=False)
    return None


def _nodes(size: int) -> int:
    """How many machines, each with equally many processes."""
    local = os.environ.get("LOCAL_WORLD_SIZE")
    return size // int(local) if local else int(os.environ.get("SLURM_STEP_NUM_NODES", 1))


@contextmanager
def leading(world: World | None) -> Generator[None]:
    """Around the first process's work: however it ends, the others are told, and do not wait forever."""
    try:
        yield
    except BaseException as error:
        if world is not None:
            world.tell({"failed": f"{type(error).__name__}: {_first_line(error)}"})
        raise


@contextmanager
def losing(world: World | None) -> Generator[None]:
    """Say in plain words that another process of the run has ended; torch's own message does not."""
    try:
        yield
    except RuntimeError as error:
        if world is None or not is_lost(error):
            raise
        raise FedGMError(
            f"process {world.rank} of {world.size}: another process of this run has ended "
            f"({_first_line(error)}). Start all of them again: the same command continues"
        ) from None


def is_lost(error: BaseException) -> bool:
    """Whether an exchange failed because another process has ended; gloo has no type of its own for it."""
    words = ("gloo", "connection closed by peer", "connection reset", "broken pipe", "connection refused")
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]
