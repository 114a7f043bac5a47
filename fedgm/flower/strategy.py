"""Strategy: any server rule and schedule of fedgm in a Flower app whose clients are its own."""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false

import logging
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Literal

import torch
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from fedgm.clock import steady
from fedgm.errors import FedGMError
from fedgm.flower.named import NamedServer, Reply
from fedgm.participation import Uniform
from fedgm.results.rows import Row
from fedgm.server.engine import Engine


class Strategy(FedAvg):
    """Flower's FedAvg with fedgm's server: Eq. 2 or another rule, by the plan of the engine.

    ``per_round`` of the nodes that are online train (None: all), drawn from (seed, round) over their names
    and keys. A round with fewer than ``min_replies`` good replies (0: all) ends the run and says why. With a
    ``folder`` every round is stored there as that of a run, and the same folder continues:

        strategy = Strategy(engine, dict(net.named_parameters()), folder="outputs/deployed")
        arrays = strategy.resume(ArrayRecord(net.state_dict()))
        strategy.start(grid, arrays, num_rounds=100 - strategy.done)
    """

    def __init__(
        self,
        engine: Engine,
        parameters: Collection[str] | None = None,
        *,
        per_round: int | None = None,
        weights: Literal["uniform", "samples"] = "uniform",
        seed: int = 0,
        min_replies: int = 0,
        wait: float = 60.0,
        folder: str | Path | None = None,
        **flower: Any,
    ) -> None:
        super().__init__(**flower)
        self.server = NamedServer(engine, parameters, weights, seed, Path(folder) if folder else None)
        self.per_round, self.min_replies, self.wait = per_round, min_replies, wait
        self._sent, self._names = ArrayRecord(), dict[int, str]()
        self._asked: list[str] = []

    @property
    def done(self) -> int:
        """Rounds behind the current arrays."""
        return self.server.done

    def resume(self, arrays: ArrayRecord) -> ArrayRecord:
        """Where a killed server left off; ``arrays`` themselves where nothing is stored."""
        return ArrayRecord(self.server.resume(dict(arrays.to_torch_state_dict())))

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The cohort of the round; ``server-round`` counts on after a resume."""
        t, nodes = self.done + 1, self._nodes(grid)
        chosen = Uniform(len(nodes), self.per_round or len(nodes), self.server.seed).cohort(t)
        self._sent, self._asked = arrays, [self._names[nodes[i]] for i in chosen]
        config["server-round"] = t
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        return [
            Message(content=record, message_type=MessageType.TRAIN, dst_node_id=nodes[i])
            for i in sorted(chosen)
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """One server step; replies that cannot count are named, too few of them end the run."""
        content: dict[str, RecordDict] = {}
        came: dict[str, Reply | str] = {name: "no answer" for name in self._asked}  # noqa: C420
        for message in replies:
            node = self._names.get(message.metadata.src_node_id, str(message.metadata.src_node_id))
            try:
                came[node] = self._reply(message)
                content[node] = message.content
            except (FedGMError, ValueError, TypeError) as error:
                came[node] = str(error).splitlines()[0][:200]
        arrays = dict(self._sent.to_torch_state_dict())
        after = self.server.step(arrays, came, min(self.min_replies or len(came), len(came)))
        if self.server.dropped:
            logging.getLogger("flwr").warning("round %s goes on without %s", self.done, self.server.without())
        good = [record for node, record in content.items() if node not in self.server.dropped]
        metrics = self.train_metrics_aggr_fn(good, self.weighted_by_key)
        numbers: Row = {f"local/{k}": v for k, v in metrics.items() if isinstance(v, int | float)}
        self.server.save(after, numbers)
        return ArrayRecord(after), metrics

    def _reply(self, message: Message) -> Reply:
        if message.has_error():
            raise FedGMError(str(message.error.reason))
        arrays, numbers = (
            list(message.content.array_records.values()),
            list(message.content.metric_records.values()),
        )
        if len(arrays) != 1 or len(numbers) != 1 or self.weighted_by_key not in numbers[0]:
            raise FedGMError(f"expected one ArrayRecord, and one MetricRecord with {self.weighted_by_key}")
        tensors = {name: torch.from_numpy(array.numpy().copy()) for name, array in arrays[0].items()}
        return Reply(tensors, int(numbers[0][self.weighted_by_key]))

    def _nodes(self, grid: Grid) -> list[int]:
        """Nodes that are online, by name and key: a node's id is another one after each registration."""
        deadline = steady() + self.wait
        while True:
            found = sorted(grid.get_nodes(), key=lambda node: (node.name, node.public_key, node.node_id))
            least = max(self.per_round or 1, self.min_available_nodes)
            if len(found) >= least:
                self._names = {node.node_id: f"{node.name} {node.node_id}".strip() for node in found}
                return [int(node.node_id) for node in found]
            if steady() > deadline:
                raise FedGMError(f"{len(found)} nodes are online after {self.wait:g} s, {least} are needed")
            time.sleep(0.5)
