"""What of a W1 round is the server's: reduction, server step, row and checkpoint, in CPU time.

    python -m benchmarks.server_share [--rounds 6] [--sync] [--page]

A real run in one process, with clocks around the parts from here, not in the program: the mean over
clients, the step of the rule, the row's numbers and its file, the checkpoint. The line of the clients
contains the mean. Evaluation is off but for the last round, which is left out, as is the first.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.page import rows, show, taken
from fedgm.config import compose
from fedgm.federated.aggregate import CohortMean
from fedgm.federated.callback import FedGM
from fedgm.federated.cohort import CohortTrainer
from fedgm.federated.loop import FederatedLoop
from fedgm.lightning import pl
from fedgm.running.checkpoint import RoundCheckpoint
from fedgm.running.roundlog import RoundLog
from fedgm.running.start import execute
from fedgm.screen import Screen

RUN = [
    "model=resnet8", "data.resolution=32", "data.train_samples=10000", "data.test_samples=1000",
    "data.augment=none", "data.alpha=0.5", "clients.count=100", "clients.per_round=5", "local.epochs=3",
    "local.batch_size=32", "local.lr=0.01", "eval.every=1000", "eval.train_samples=1000",
    "track.mode=disabled", "trainer.workers=1",
]  # fmt: skip
PARTS: dict[str, tuple[type, str]] = {
    "mean over clients: add": (CohortMean, "add"),
    "mean over clients: divide": (CohortMean, "mean"),
    "server step": (FedGM, "on_server_update"),
    "row: numbers": (FederatedLoop, "_row"),
    "row: loggers": (FederatedLoop, "_publish"),
    "row: file": (RoundLog, "on_train_epoch_end"),
    "checkpoint": (RoundCheckpoint, "on_train_epoch_end"),
}
CLIENTS = "clients, with their share of the loop"


class Parts(pl.Callback):
    """CPU seconds of each part, round by round."""

    def __init__(self) -> None:
        self.now: dict[str, float] = {}
        self.rounds: list[dict[str, float]] = []
        self.began = 0.0

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, with its time added to the part."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                self.now[name] = self.now.get(name, 0.0) + time.process_time() - started

        return timed

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.now:
            self.rounds.append(self.now | {"round": time.process_time() - self.began})
        self.now, self.began = {}, time.process_time()


def measure(rounds: int, sync: bool) -> list[dict[str, float]]:
    """Parts of every round but the first and the last."""
    parts = Parts()
    before = {name: getattr(owner, method) for name, (owner, method) in PARTS.items()}
    train = CohortTrainer.train
    try:
        for name, (owner, method) in PARTS.items():
            setattr(owner, method, parts.around(name, before[name]))
        CohortTrainer.train = parts.around(CLIENTS, train)
        with tempfile.TemporaryDirectory() as home:
            words = [*RUN, f"rounds={rounds}", f"checkpoint.sync={str(sync).lower()}", f"output_dir={home}"]
            execute(compose(words), words, Screen(quiet=True), callbacks=[parts])
    finally:
        CohortTrainer.train = train
        for name, (owner, method) in PARTS.items():
            setattr(owner, method, before[name])
    return parts.rounds[1:]


def table(parts: dict[str, float], whole: float) -> str:
    """Each part in milliseconds and as a share of the round."""
    lines = [[name, f"{1e3 * x:.2f}", f"{100 * x / whole:.2f} %"] for name, x in parts.items()]
    lines.append(["**the server's together**", *server(parts, whole)])
    return rows(
        ("part", "CPU, ms a round", "of a round"), [*lines, ["whole round", f"{1e3 * whole:.1f}", ""]]
    )


def server(parts: dict[str, float], whole: float) -> tuple[str, str]:
    """Reduction, server step, rows and checkpoint: what is measured besides the clients."""
    server = sum(parts[name] for name in PARTS)
    return f"{1e3 * server:.2f}", f"{100 * server / whole:.2f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--sync", action="store_true", help="checkpoint.sync=true, the default of a run")
    parser.add_argument("--page", action="store_true", help="keep the results, and put them on the page")
    given = parser.parse_args()
    stamp = taken()
    rounds = measure(given.rounds, given.sync)
    middle = {name: statistics.median(one[name] for one in rounds) for name in (*PARTS, CLIENTS, "round")}
    whole = middle.pop("round")
    print(table(middle, whole))
    if given.page:
        share = sum(middle[name] for name in PARTS) / whole
        kept = {"taken": stamp, "sync": given.sync, "parts": middle, "round": whole, "share": share}
        show("server", kept, table(middle, whole))


if __name__ == "__main__":
    main()
