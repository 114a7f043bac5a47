"""What a round takes besides its clients' steps, by the size of the model and the number of clients.

    python -m benchmarks.overhead

CPU seconds = fixed + a x weights x clients + b x weights: a client's weights are written, read, subtracted
and added up; the server's are stepped, checked and saved once. Fitted to runs in one process whose clients
take one step each, which is then subtracted; with several workers, the clients are those of the busiest.
"""

import statistics
import tempfile
from typing import NamedTuple

import numpy as np

from benchmarks.cost_model import fit
from benchmarks.server_share import Parts
from fedgm.client.local import Client
from fedgm.config import compose
from fedgm.models.convolutional import resnet
from fedgm.running.start import execute
from fedgm.screen import Screen

POINTS = [(width, clients) for width in (8, 48, 96) for clients in (2, 8)]
ROUNDS = 14  # the first two warm up
STEPS = "steps of clients"


class Terms(NamedTuple):
    """What the time outside of steps grows with."""

    fixed: float
    weights_clients: float
    weights: float


def terms(weights: int, clients: int) -> Terms:
    """Of a round in which the busiest worker has so many clients."""
    return Terms(1, weights * clients, weights)


def size(depth: int, width: int) -> int:
    """Weights of a ResNet."""
    return sum(p.numel() for p in resnet(depth, width, "group").parameters())


def outside(width: int, clients: int) -> float:
    """CPU seconds of a round of tiny steps, without them."""
    parts, train = Parts(), Client.train
    try:
        Client.train = parts.around(STEPS, train)
        with tempfile.TemporaryDirectory() as home:
            words = [
                "profile=tiny", "track=none", "trainer.workers=1", "local.unit=steps", "local.epochs=1",
                "local.batch_size=1", "model.depth=8", f"model.width={width}", f"rounds={ROUNDS}",
                f"eval.every={ROUNDS}", f"clients.per_round={clients}", "checkpoint.sync=false",
                f"output_dir={home}",
            ]  # fmt: skip
            execute(compose(words), words, Screen(quiet=True), callbacks=[parts])
    finally:
        Client.train = train
    return statistics.median(one["round"] - one[STEPS] for one in parts.rounds[2:])


def fitted() -> np.ndarray:
    """Seconds for each of the terms."""
    times = [outside(*point) for point in POINTS]
    return fit([terms(size(8, width), clients) for width, clients in POINTS], times)


def main() -> None:
    coefficients = fitted()
    each, once = 1e9 * coefficients[1], 1e9 * coefficients[2]
    print(f"{1e3 * coefficients[0]:.1f} ms, {each:.2f} ns a weight and client, {once:.2f} ns a weight")


if __name__ == "__main__":
    main()
