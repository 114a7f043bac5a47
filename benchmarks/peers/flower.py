"""Flower's simulation on Ray: one CPU a client, two clients side by side.

    python -m benchmarks.peers.flower WORK.npz ROUNDS

Flower draws nodes by chance; which client a node plays comes with the message: cohorts are the given ones.
"""

import sys
from collections.abc import Iterable
from typing import Any

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from benchmarks.peers.given import given, tell, train

PATH, ROUNDS = sys.argv[1], int(sys.argv[2])


class SameCohorts(FedAvg):
    """FedAvg with the given clients in each round."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As many messages as FedAvg sends, each with its client."""
        sent = super().configure_train(server_round, arrays, config, grid)
        for client, message in zip(given(PATH).cohorts[server_round - 1], sent, strict=True):
            words = ConfigRecord({"client": client, "round": server_round, "path": PATH})
            content = RecordDict({"arrays": arrays, "config": words})
            yield Message(content, dst_node_id=message.metadata.dst_node_id, message_type="train")

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        """The mean; then the round is done, as nothing is evaluated."""
        replies = list(replies)
        assert not any(reply.has_error() for reply in replies), replies[0].error
        aggregated = super().aggregate_train(server_round, replies)
        tell(server_round, given(PATH).samples(server_round))
        return aggregated


client_app, server_app = ClientApp(), ServerApp()


@client_app.train()
def train_client(message: Message, context: Context) -> Message:
    """The local steps of the client that the message names."""
    words = message.content["config"]
    work = given(words["path"])
    net = work.model()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    samples = train(net, work, words["client"], words["round"])
    metrics = MetricRecord({"num-examples": samples // work.epochs})
    content = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
    return Message(content, reply_to=message)


@server_app.main()
def serve(grid: Grid, context: Context) -> None:
    """FedAvg over the given rounds."""
    work = given(PATH)
    torch.manual_seed(0)
    strategy = SameCohorts(
        fraction_train=0.0001, fraction_evaluate=0.0, min_train_nodes=len(work.cohorts[0]),
        min_available_nodes=len(work.clients),
    )  # fmt: skip
    strategy.start(grid, ArrayRecord(work.model().state_dict()), num_rounds=ROUNDS)


if __name__ == "__main__":
    resources = {"num_cpus": 1, "num_gpus": 0.0}
    run_simulation(
        server_app, client_app, num_supernodes=len(given(PATH).clients),
        backend_config={"client_resources": resources, "init_args": {"num_cpus": 2}},
    )  # fmt: skip
