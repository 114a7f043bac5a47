"""Several workers in one run: each trains its share of the cohort, one all-reduce a round."""

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from itertools import product
from typing import Any

import torch

from fedgm.clock import Stopwatch
from fedgm.errors import FedGMError
from fedgm.federated.ranks import is_lost
from fedgm.lightning import DDPStrategy, Launcher, pl
from fedgm.starting import STOPS

PR_SET_PDEATHSIG = 1
LOST = 76  # exit code of a worker that only failed because another one ended
TRIED = 256  # ways to share out a cohort, above which the largest goes first: 8 clients on 2 workers
PATIENCE = 3.0  # seconds in which the end of a worker that broke an exchange must be seen


def share_out(costs: list[int], workers: int) -> list[list[int | None]]:
    """Task numbers of each worker, so that the busiest is done early; padded with None to equal length."""
    tasks = sorted(range(len(costs)), key=lambda i: (-costs[i], i))
    ordered = [costs[task] for task in tasks]
    few = workers > 1 and workers ** len(tasks) <= TRIED
    chosen = _best(ordered, workers) if few else _largest_first(ordered, workers)
    shares: list[list[int | None]] = [[] for _ in range(workers)]
    for task, worker in zip(tasks, chosen, strict=True):
        shares[worker].append(task)
    slots = max(len(share) for share in shares)
    return [share + [None] * (slots - len(share)) for share in shares]


def _largest_first(costs: list[int], workers: int) -> list[int]:
    """The worker of each task: always the least loaded one."""
    loads, chosen = [0] * workers, list[int]()
    for cost in costs:
        chosen.append(loads.index(min(loads)))
        loads[chosen[-1]] += cost
    return chosen


def _best(costs: list[int], workers: int) -> list[int]:
    """The same by trying all ways: five clients on two workers are done 4 % earlier than largest first."""

    def longest(chosen: tuple[int, ...]) -> int:
        loads = [0] * workers
        for cost, worker in zip(costs, chosen, strict=True):
            loads[worker] += cost
        return max(loads)

    return list(min(product(range(workers), repeat=len(costs)), key=longest))


class FederatedDDP(DDPStrategy):
    """DDP without the gradient hooks: workers train different clients, and only the cohort's sum is shared.

    Stock DDP all-reduces every gradient, and hangs as soon as two clients take unequal numbers of steps.
    ``threads`` are torch's threads of each worker; a process that has used several must fork none with
    several, whose threads would wait for those of the parent.
    """

    def __init__(self, threads: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.threads = threads

    def configure_ddp(self) -> None:
        """No wrapper; every worker starts from the weights of worker 0."""
        assert self.model is not None
        for tensor in (*self.model.parameters(), *self.model.buffers()):
            torch.distributed.broadcast(tensor.data, src=0)

    def _configure_launcher(self) -> None:
        """Fork locally; processes that a cluster has started need no launcher.

        Lightning's own would set the number of threads from that of the cores, and with it other last bits.
        """
        assert self.cluster_environment is not None
        self._launcher = None if self.cluster_environment.creates_processes_externally else ForkLauncher(self)


class StopOnSigterm(pl.Callback):
    """SIGTERM is what Ctrl-C is, and only the first worker listens: it ends the others.

    Lightning's own handler broadcasts to the workers from inside the handler. That can meet another
    exchange that they wait in, and hang; and the run would end with exit code 0.
    """

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Take the place of Lightning's handler; Lightning restores the one before itself at the end."""
        if threading.current_thread() is threading.main_thread():
            environment = getattr(trainer.strategy, "cluster_environment", None)
            outside = environment is not None and environment.creates_processes_externally
            # torchrun ends each of its processes itself.
            other = signal.SIG_DFL if outside else signal.SIG_IGN
            first = trainer.is_global_zero
            signal.signal(signal.SIGTERM, signal.default_int_handler if first else other)


class ForkLauncher(Launcher):
    """The calling process is worker 0, the others are its forks.

    Lightning's launchers either run the command line again (under ``-m`` the whole sweep) or move every
    worker into a child, from which callbacks' state does not come back.
    """

    def __init__(self, strategy: FederatedDDP) -> None:
        self._strategy = strategy
        self._children: list[int] = []

    @property
    def is_interactive_compatible(self) -> bool:
        """It works in a notebook."""
        return True

    def launch(
        self, function: Callable[..., Any], *args: Any, trainer: pl.Trainer | None = None, **kwargs: Any
    ) -> Any:
        """Run ``function`` in all workers; return what it returns in this one."""
        environment = self._strategy.cluster_environment
        assert environment is not None
        if sys.platform == "linux":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        os.environ |= {"MASTER_ADDR": environment.main_address, "MASTER_PORT": str(environment.main_port)}
        sys.stdout.flush()
        sys.stderr.flush()
        parent, threads = os.getpid(), torch.get_num_threads()
        torch.set_num_threads(self._strategy.threads)
        for rank in range(1, self._strategy.num_processes):
            child = os.fork()
            if child == 0:
                _work(rank, parent, function, args, kwargs)
            self._children.append(child)
        over = threading.Event()
        threading.Thread(target=self._watch, args=(over,), daemon=True).start()
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            if reason := self._lost_worker(error):
                raise FedGMError(reason) from None
            raise
        finally:
            over.set()
            self._reap()
            torch.set_num_threads(threads)

    def kill(self, signum: Any) -> None:
        """End the other workers."""
        for child in self._children:
            os.kill(child, signum)

    def _watch(self, over: threading.Event) -> None:
        """End the process if a worker ends before all have met: the others would wait for it forever.

        The main thread waits inside torch, where no exception reaches it. Once they have met, an exchange
        with a worker that is gone fails by itself.
        """
        watch: Stopwatch | None = None  # since a worker has ended
        while not over.wait(0.1) and not torch.distributed.is_initialized():
            reason = self._ended()
            watch = (watch or Stopwatch()) if reason else None
            if watch is not None and watch.seconds() > PATIENCE:
                print(f"error: {reason}", file=sys.stderr, flush=True)
                os._exit(1)  # the other workers die with it

    def _lost_worker(self, error: RuntimeError) -> str:
        """Which worker's end broke the exchange that failed here, in words; empty if none did."""
        watch = Stopwatch()
        while is_lost(error) and watch.seconds() < PATIENCE:
            if reason := self._ended():
                return reason
            time.sleep(0.02)
        return ""

    def _ended(self) -> str:
        """Which worker has ended by itself, and how; empty if all are at work, or have done theirs."""
        for rank, child in enumerate(self._children, start=1):
            ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or (ended.si_code == os.CLD_EXITED and ended.si_status in (0, LOST)):
                continue
            if ended.si_code == os.CLD_EXITED:
                return f"worker {rank} failed, for the reason above; the same command continues"
            memory = " (out of memory?)" if ended.si_status == signal.SIGKILL else ""
            return f"worker {rank} was killed{memory}; the same command continues"
        return ""

    def _reap(self) -> None:
        """Leave no worker behind; after a success they have ended or are about to."""
        failed = sys.exc_info()[0] is not None
        for child in self._children:
            if failed:
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self._children.clear()
        for name in ("MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE"):
            os.environ.pop(name, None)
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _work(
    rank: int, parent: int, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """The life of a forked worker: it dies with its parent, and never returns into the parent's code."""
    code = 1
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it died before this request
                return
        for signum in STOPS:  # the first worker listens, and ends this one
            signal.signal(signum, signal.SIG_IGN)
        os.environ["LOCAL_RANK"] = str(rank)
        function(*args, **kwargs)
        code = 0
    except FedGMError as error:
        print(f"error: {error}", file=sys.stderr)
    except BaseException as error:
        if is_lost(error):
            code = LOST
        else:
            traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
