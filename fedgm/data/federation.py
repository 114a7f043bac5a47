"""All clients as index ranges over one shared set of images, and the batches that training sees."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray

from fedgm.config import RunConfig
from fedgm.config.options import option, options
from fedgm.config.parts import build
from fedgm.data.clients import Evaluation
from fedgm.data.dataset import Dataset, pool, subset
from fedgm.data.images import Batch, Images
from fedgm.data.partition import ClientSplit
from fedgm.data.sharing import Sharing, common_samples
from fedgm.draws import generator
from fedgm.errors import require, require_fits


class Batching(NamedTuple):
    """How a run reads its clients."""

    batch_size: int = 1
    seed: int = 0
    channels_last: bool = False
    eval_batch_size: int = 100
    pairs: bool = False  # a last batch of one takes an image from the batch before it


class Federation:
    """Clients as indices, samples left to ``images``; nothing here grows with the number of clients."""

    def __init__(self, images: Images, partition: ClientSplit, batching: Batching | None = None) -> None:
        self.images, self.partition = images, partition
        self.batching = batching or Batching()

    def move(self, device: torch.device) -> None:
        """The images to where clients train."""
        self.images.move(device)

    @property
    def count(self) -> int:
        """Number of clients."""
        return self.partition.count

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a model must know of the images."""
        return {"num_classes": self.images.classes, "resolution": self.images.resolution}

    def size(self, client: int) -> int:
        """Number of samples of one client."""
        return self.partition.size(client)

    def labels(self, client: int) -> NDArray[np.int64]:
        """The classes of a client's samples."""
        return self.images.train_labels.cpu().numpy()[self.partition.indices(client)]

    def epoch(self, client: int) -> int:
        """Local steps of one pass, the last partial batch counted."""
        return math.ceil(self.size(client) / self.batching.batch_size)

    def batches(self, client: int, t: int, steps: int) -> Iterator[Batch]:
        """A client's batches in round ``t``, read as the run's batching says."""
        b = self.batching
        return self.client_steps(client, b.batch_size, steps, b.seed, t, b.channels_last)

    def rebatched(self, batch_size: int) -> "Federation":
        """The same clients in batches of another size."""
        return Federation(self.images, self.partition, self.batching._replace(batch_size=batch_size))

    def evaluations(self) -> dict[str, Evaluation]:
        """The fixed training subset, and the test set."""
        size, layout = self.batching.eval_batch_size, self.batching.channels_last
        return {split: self.images.evaluation(split, size, layout) for split in ("train", "test")}

    def own_samples(self, client: int) -> Evaluation:
        """A client's training samples, for ``eval.clients``."""
        b = self.batching
        return self.images.evaluation_of(self.partition.indices(client), b.eval_batch_size, b.channels_last)

    def steps_of(self, client: int, batch_size: int, amount: int, unit: str = "epochs") -> int:
        """Local steps K_i of one client that trains for ``amount`` ``unit``."""
        require(unit in ("epochs", "steps"), "local.unit", unit, "epochs or steps", "local.unit=epochs")
        return amount if unit == "steps" else amount * math.ceil(self.size(client) / batch_size)

    def client_steps(
        self, client: int, batch_size: int, steps: int, seed: int, round: int, channels_last: bool = False
    ) -> Iterator[Batch]:
        """Exactly ``steps`` batches, from as many reshuffled passes as that takes."""
        require(batch_size >= 1, "local.batch_size", batch_size, "at least 1", "local.batch_size=20")
        indices = self.partition.indices(client)
        ok, reason = len(indices) > 0 or steps == 0, "this split gives it no samples"
        require_fits(ok, "client", client, reason, "another data.partition, or fewer clients.count")
        augment = generator(seed, "augment", round, client) if self.images.augments else None
        again = steps > math.ceil(len(indices) / batch_size)  # in one pass every image is used once anyway
        prepared = self.images.prepared(indices, channels_last) if again else None
        for places in itertools.islice(self._shuffled(len(indices), client, batch_size, seed, round), steps):
            if prepared is not None:
                yield prepared.batch(places)
            else:
                yield self.images.batch(indices[places], train=True, rng=augment, channels_last=channels_last)

    def _shuffled(
        self, size: int, client: int, batch_size: int, seed: int, round: int
    ) -> Iterator[NDArray[np.int64]]:
        """Places among the client's samples, pass after pass."""
        rng = generator(seed, "shuffle", round, client)
        while True:
            order = rng.permutation(size)
            starts = [*range(0, len(order), batch_size), len(order)]
            if self.batching.pairs and len(order) % batch_size == 1:
                starts[-2] -= 1
            for start, end in itertools.pairwise(starts):
                yield order[start:end]


def from_run(dataset: Dataset, config: RunConfig) -> Federation:
    """The data set, reduced to the profile's size and split over the run's clients."""
    data = config.data
    dataset = subset(dataset, data.train_samples, data.test_samples, data.seed)
    if data.resolution is not None:
        dataset = pool(dataset, data.resolution)
    layout = bool(config.model["channels_last"])
    return federation(
        dataset,
        clients=config.clients.count,
        alpha=data.alpha,
        seed=data.seed,
        min_samples=data.min_samples,
        partition=data.partition,
        client_samples=data.client_samples,
        shards=data.shards,
        classes_per_client=data.classes_per_client,
        augment=data.augment,
        shared=data.shared,
        eval_train_samples=config.eval.train_samples,
        batching=Batching(config.local.batch_size, config.seed, layout, config.eval.batch_size),
    )


def partition_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The part that ``data.partition`` names, a word or keys with a ``_target_``, with all its parameters."""
    chosen: Any = data["partition"]
    if isinstance(chosen, Mapping):
        return dict(cast(Mapping[str, Any], chosen))
    names = options("data/partition")
    require(chosen in names, "data.partition", chosen, " or ".join(names), "data.partition=dirichlet")
    return option("data/partition", chosen, {"data": data})


def federation(
    dataset: Dataset,
    *,
    clients: int,
    alpha: float,
    seed: int,
    min_samples: int = 10,
    partition: str | Mapping[str, Any] = "dirichlet",
    client_samples: int | None = None,
    shards: int = 2,
    classes_per_client: int = 2,
    augment: str = "none",
    shared: float = 0.0,
    eval_train_samples: int | None = None,
    batching: Batching | None = None,
) -> Federation:
    """Split ``dataset`` over ``clients``; ``eval_train_samples`` images (None: all) measure ``train/*``.

    ``shared`` is the size of a common set beside the clients' own samples, as a part of these.
    """
    labels = dataset.train_labels
    parameters = {"alpha": alpha, "shards": shards, "classes_per_client": classes_per_client}
    part = partition_of({**parameters, "partition": partition, "client_samples": client_samples})
    require_fits(
        client_samples is None or "client_samples" in part,
        "data.client_samples",
        client_samples,
        f"with data.partition={part.get('name')} the split alone decides how many samples a client has",
        "data.client_samples=null, or data.partition=virtual",
    )
    common = common_samples(labels, shared, seed) if shared else None
    own = None if common is None else np.setdiff1d(np.arange(len(labels)), common)
    labels_of = labels if own is None else labels[own]
    given = {"labels": labels_of, "clients": clients, "seed": seed, "min_samples": min_samples}
    split: ClientSplit = build(part, "data.partition", kind=ClientSplit, **given)
    if own is not None and common is not None:
        split = Sharing(split, own, common)
    chosen = None
    if eval_train_samples is not None and eval_train_samples < len(labels):
        require(
            eval_train_samples >= 1,
            "eval.train_samples",
            eval_train_samples,
            "at least 1",
            "eval.train_samples=2000",
        )
        chosen = np.sort(generator(seed, "eval-train").choice(len(labels), eval_train_samples, replace=False))
    return Federation(Images(dataset, augment, chosen), split, batching)
