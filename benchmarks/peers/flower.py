"""W1 or W2 in Flower's simulation, one CPU a client: samples per second and per CPU second, memory, start.

    .venv-peers/bin/python benchmarks/peers/flower.py FILE.npz W1|W2 [ROUNDS]

Needs torch, numpy and flwr[simulation], nothing of fedgm. Prints one JSON line.
"""

import json
import os
import sys
import time
from pathlib import Path

STARTED = time.perf_counter()
os.environ |= {"OMP_NUM_THREADS": "1", "RAY_DEDUP_LOGS": "0", "FLWR_TELEMETRY_ENABLED": "0"}

import numpy as np  # noqa: E402
import torch  # noqa: E402
from flwr.client import ClientApp, NumPyClient  # noqa: E402
from flwr.common import ndarrays_to_parameters  # noqa: E402
from flwr.server import ServerApp, ServerAppComponents, ServerConfig  # noqa: E402
from flwr.server.strategy import FedAvg  # noqa: E402
from flwr.simulation import run_simulation  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

BATCH, EPOCHS, LR, CLIENTS, COHORT = 32, 3, 0.01, 100, 5
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
FILE, WORK = sys.argv[1], sys.argv[2]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 6


class Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.GroupNorm(2, after), nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.GroupNorm(2, after),
        )  # fmt: skip
        self.shortcut = nn.Sequential()
        if before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.GroupNorm(2, after)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


def build() -> nn.Module:
    if WORK == "W2":
        return nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2048, 10),
        )  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.GroupNorm(2, 16), nn.ReLU(), Block(16, 16, 1),
        Block(16, 32, 2), Block(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def read(net: nn.Module) -> list[np.ndarray]:
    return [value.numpy() for value in net.state_dict().values()]


class Client(NumPyClient):
    def __init__(self, number: int) -> None:
        stored = np.load(FILE)
        ends = stored["ends"]
        own = stored["order"][ends[number - 1] if number else 0 : ends[number]]
        self.images, self.labels = (
            torch.from_numpy(stored["images"][own]),
            torch.from_numpy(stored["labels"][own]),
        )

    def fit(self, parameters, config):  # noqa: ANN001, ANN201 - as Flower types it
        torch.set_num_threads(1)
        net = build()
        net.load_state_dict(dict(zip(net.state_dict(), map(torch.tensor, parameters), strict=True)))
        optimizer = torch.optim.SGD(net.parameters(), lr=LR)
        mean, std = torch.tensor(MEAN).view(1, 3, 1, 1), torch.tensor(STD).view(1, 3, 1, 1)
        for _ in range(EPOCHS):
            for chosen in torch.randperm(len(self.labels)).split(BATCH):
                x = (
                    self.images[chosen]
                    .permute(0, 3, 1, 2)
                    .float()
                    .div_(255)
                    .sub_(mean)
                    .div_(std)
                    .contiguous()
                )
                optimizer.zero_grad()
                F.cross_entropy(net(x), self.labels[chosen]).backward()
                optimizer.step()
        return read(net), len(self.labels), {}


def family() -> list[int]:
    """This process and all that it has started, directly or not."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def used() -> tuple[float, float]:
    """CPU seconds and megabytes (PSS) of them all."""
    cpu = memory = 0.0
    for pid in family():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        cpu += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        memory += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return cpu, memory


class Timed(FedAvg):
    """FedAvg that notes when rounds begin and end."""

    rounds: list[dict[str, float]] = []  # noqa: RUF012

    def configure_fit(self, *args, **kwargs):  # noqa: ANN002, ANN003, ANN201
        self.wall, self.cpu = time.perf_counter(), used()[0]
        return super().configure_fit(*args, **kwargs)

    def aggregate_fit(self, server_round, results, failures):  # noqa: ANN001, ANN201
        mean = super().aggregate_fit(server_round, results, failures)
        cpu, memory = used()
        samples = EPOCHS * sum(result.num_examples for _, result in results)
        self.rounds.append({
            "samples": samples, "wall": time.perf_counter() - self.wall, "cpu": cpu - self.cpu, "pss": memory,
            "since_start": time.perf_counter() - STARTED,
        })  # fmt: skip
        return mean


def server(context):  # noqa: ANN001, ANN201
    strategy = Timed(
        fraction_fit=COHORT / CLIENTS, min_fit_clients=COHORT, fraction_evaluate=0.0,
        min_available_clients=CLIENTS, initial_parameters=ndarrays_to_parameters(read(build())),
    )  # fmt: skip
    return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=ROUNDS))


def client(context):  # noqa: ANN001, ANN201
    return Client(int(context.node_config["partition-id"])).to_client()


if __name__ == "__main__":
    run_simulation(
        ServerApp(server_fn=server), ClientApp(client_fn=client), num_supernodes=CLIENTS,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )  # fmt: skip
    print(json.dumps(Timed.rounds))
