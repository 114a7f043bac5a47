"""pfl-research's simulation, in as many processes as torchrun starts.

    torchrun --nproc-per-node 2 -m benchmarks.peers.pfl_research WORK.npz ROUNDS

The cohorts are the given ones. pfl does not shuffle: each round draws the order of a client's images once. It
evaluates the clients of the first round, before and after they train; that cannot be switched off.
"""

import sys
from collections.abc import Callable
from itertools import chain, cycle
from typing import Any

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.internal.ops.selector import get_default_framework_module as get_ops
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.peers.given import Given, given, tell

PATH, ROUNDS = sys.argv[1], int(sys.argv[2])


class Classifier(nn.Module):
    """A network with the two methods that pfl asks for."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.net(x), y)

    @torch.no_grad()
    def metrics(self, x: Tensor, y: Tensor) -> dict[str, Any]:
        return {"loss": Weighted(F.cross_entropy(self.net(x), y, reduction="sum").item(), len(y))}


class Told(TrainingProcessCallback):
    """Every finished round, from the first process."""

    def __init__(self, work: Given) -> None:
        self.work = work

    def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> Any:
        if get_ops().distributed.global_rank == 0:
            tell(central_iteration + 1, self.work.samples(central_iteration + 1))
        return False, Metrics()


def clients(work: Given) -> FederatedDataset:
    """The given clients in the given order."""

    def dataset(client: int) -> PyTorchTensorDataset:
        samples = work.clients[client]
        samples = samples[torch.randperm(len(samples))]
        return PyTorchTensorDataset((work.pictures(samples), work.labels[samples]), user_id=str(client))

    order: Callable[[], int] = cycle(chain.from_iterable(work.cohorts)).__next__  # pfl looks ahead
    return FederatedDataset(
        dataset, order, {number: len(samples) for number, samples in enumerate(work.clients)}
    )


def main() -> None:
    work = given(PATH)
    torch.manual_seed(0)
    net = Classifier(work.model())
    model = PyTorchModel(net, torch.optim.SGD, torch.optim.SGD(net.parameters(), lr=1.0))
    data = clients(work)
    local = NNTrainHyperParams(
        local_num_epochs=work.epochs, local_learning_rate=work.lr, local_batch_size=work.batch
    )
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=ROUNDS, evaluation_frequency=ROUNDS + 1,
            train_cohort_size=len(work.cohorts[0]), val_cohort_size=None,
        ),
        SimulatedBackend(training_data=data, val_data=data), model, local, callbacks=[Told(work)],
        send_metrics_to_platform=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
