"""FedGM as the central optimiser of pfl-research: multistage, twenty clients that see parts of a plane.

pip install torch pfl, and fedgm without its dependencies: fedgm.optim needs torch alone.
"""

from itertools import count

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Weighted
from pfl.model.pytorch import PyTorchModel
from torch.nn import functional as F

from fedgm.optim import GeneralMomentum, Multistage

ROUNDS, CLIENTS, PER_ROUND = 30, 20, 5


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(2, 2)

    def loss(self, x, y):
        return F.cross_entropy(self.net(x), y)

    @torch.no_grad()
    def metrics(self, x, y):
        return {"correct": Weighted((self.net(x).argmax(1) == y).sum().item(), len(y))}


class Watched(GeneralMomentum):
    """Keeps every D that pfl hands over as a gradient, for the check at the end."""

    def __init__(self, *arguments, **values):
        super().__init__(*arguments, **values)
        self.seen = []

    def step(self, closure=None):
        self.seen.append(torch.cat([p.grad.flatten() for g in self.param_groups for p in g["params"]]))
        return super().step(closure)


def main():
    torch.manual_seed(0)
    points = torch.randn(CLIENTS, 40, 2) + torch.linspace(-3, 3, CLIENTS).view(CLIENTS, 1, 1)
    labels = (points[:, :, 0] > points[:, :, 1]).long()
    clients = [PyTorchTensorDataset((points[i], labels[i]), user_id=str(i)) for i in range(CLIENTS)]
    order = count()
    data = FederatedDataset(
        clients.__getitem__, lambda: next(order) * 7 % CLIENTS, {i: len(own) for i, own in enumerate(points)}
    )
    net = Line()
    x = torch.cat([p.detach().flatten() for p in net.parameters()])
    server = Watched(net.parameters(), lr=2.0, beta=0.9, nu=0.9)
    schedule = Multistage(server, etas=[2.0, 1.0], rounds=ROUNDS)
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=ROUNDS, evaluation_frequency=ROUNDS + 1, train_cohort_size=PER_ROUND,
            val_cohort_size=None,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        PyTorchModel(net, torch.optim.SGD, server, schedule),
        NNTrainHyperParams(local_num_epochs=2, local_learning_rate=0.1, local_batch_size=10),
        send_metrics_to_platform=False,
    )  # fmt: skip
    check(x, server.seen, torch.cat([p.detach().flatten() for p in net.parameters()]))
    right = (net.net(points).argmax(-1) == labels).float().mean().item()
    print(f"pfl: accuracy {right:.3f} after {ROUNDS} rounds, every server step as in fedgm's engine")
    assert right > 0.9


def check(x, deltas, end):
    """The same D through fedgm's own server come to the same weights, bit for bit."""
    from fedgm.schedule import Multistage as Stages
    from fedgm.server import GeneralMomentum as Rule
    from fedgm.server.engine import Engine

    rule = Rule(2.0, 0.9, 0.9)
    engine = Engine(rule, Stages([2.0, 1.0]).plan(ROUNDS, rule))
    assert len(deltas) == ROUNDS
    for t, delta in enumerate(deltas, start=1):
        x = engine.step(t, x, delta)
    assert torch.equal(x, end)


if __name__ == "__main__":
    main()
