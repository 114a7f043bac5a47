"""All clients over one shared uint8 array: who has which samples, and the batches that training sees."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedgm.data import skew
from fedgm.data.dataset import Dataset
from fedgm.data.partition import Clients, VirtualPartition, dirichlet
from fedgm.draws import generator
from fedgm.errors import require

Batch = tuple[Tensor, Tensor]
AUGMENTATIONS = ("none", "flip", "crop_flip")


class Federation:
    """Clients as index ranges over shared tensors; nothing here grows with the number of clients."""

    def __init__(
        self,
        dataset: Dataset,
        partition: Clients,
        *,
        augment: str = "none",
        eval_train: NDArray[np.int64] | None = None,
    ) -> None:
        require(
            augment in AUGMENTATIONS, "data.augment", augment, " | ".join(AUGMENTATIONS), "data.augment=flip"
        )
        self.partition = partition
        self.class_names = dataset.classes
        self.train_images = torch.from_numpy(dataset.train_images)
        self.train_labels = torch.from_numpy(dataset.train_labels)
        self.test_images = torch.from_numpy(dataset.test_images)
        self.test_labels = torch.from_numpy(dataset.test_labels)
        self._augment = augment
        self._eval_train = torch.from_numpy(
            np.arange(len(dataset.train_labels)) if eval_train is None else eval_train
        )
        # (v / 255 - mean) / std = v * scale + shift, repeated along a row of pixels: one long inner loop.
        std = torch.tensor(dataset.std, dtype=torch.float64)
        mean = torch.tensor(dataset.mean, dtype=torch.float64)
        self._scale = (1 / (255 * std)).float().repeat(self.resolution)
        self._shift = (-mean / std).float().repeat(self.resolution)

    @property
    def count(self) -> int:
        """Number of clients."""
        return self.partition.count

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def channels(self) -> int:
        """Number of colour channels."""
        return self.train_images.shape[3]

    @property
    def resolution(self) -> int:
        """Height and width of an image."""
        return self.train_images.shape[1]

    def size(self, client: int) -> int:
        """Number of samples of one client."""
        return self.partition.size(client)

    def steps_of(self, client: int, batch_size: int, amount: int, unit: str = "epochs") -> int:
        """Local steps K_i of one client that trains for ``amount`` ``unit``."""
        require(unit in ("epochs", "steps"), "local.unit", unit, "epochs | steps", "local.unit=epochs")
        return amount if unit == "steps" else amount * math.ceil(self.size(client) / batch_size)

    def client_batches(
        self, client: int, batch_size: int, epochs: int, seed: int, round: int, channels_last: bool = False
    ) -> Iterator[Batch]:
        """``epochs`` shuffled passes over the client's samples, the last partial batch of each kept."""
        steps = self.steps_of(client, batch_size, epochs)
        return self.client_steps(client, batch_size, steps, seed, round, channels_last)

    def client_steps(
        self, client: int, batch_size: int, steps: int, seed: int, round: int, channels_last: bool = False
    ) -> Iterator[Batch]:
        """Exactly ``steps`` batches, from as many reshuffled passes as that takes."""
        require(batch_size >= 1, "local.batch_size", batch_size, "at least 1", "local.batch_size=20")
        augment = generator(seed, "augment", round, client)
        for chosen in itertools.islice(self._shuffled(client, batch_size, seed, round), steps):
            yield self.batch(chosen, train=True, rng=augment, channels_last=channels_last)

    def batch(
        self,
        indices: NDArray[np.int64] | Tensor,
        *,
        train: bool,
        rng: np.random.Generator | None = None,
        channels_last: bool = False,
    ) -> Batch:
        """Training samples as normalised NCHW floats; augmented if ``train`` and a generator is given."""
        chosen = indices if isinstance(indices, Tensor) else torch.from_numpy(indices)
        images = self.train_images[chosen]
        if train and rng is not None and self._augment != "none":
            images = self._augmented(images, rng)
        return self._normalised(images, channels_last), self.train_labels[chosen]

    def evaluation(
        self, split: Literal["test", "train"], batch_size: int, channels_last: bool = False
    ) -> "Evaluation":
        """Batches of the test set, or of the fixed training subset that ``train/*`` is measured on."""
        return Evaluation(self, split, batch_size, channels_last)

    def _shuffled(self, client: int, batch_size: int, seed: int, round: int) -> Iterator[NDArray[np.int64]]:
        own = self.partition.indices(client)
        rng = generator(seed, "shuffle", round, client)
        while True:
            order = rng.permutation(own)
            for start in range(0, len(order), batch_size):
                yield order[start : start + batch_size]

    def _augmented(self, images: Tensor, rng: np.random.Generator) -> Tensor:
        """Shift by up to resolution // 8 over black borders and mirror, each image by its own draw."""
        count, side = len(images), self.resolution
        pixels = np.arange(side)
        mirrored = rng.integers(2, size=(count, 1)).astype(bool)
        rows, columns = pixels, np.where(mirrored, pixels[::-1], pixels)
        if self._augment == "crop_flip":
            pad = side // 8
            rows = rows + rng.integers(2 * pad + 1, size=(count, 1))
            columns = columns + rng.integers(2 * pad + 1, size=(count, 1))
            images = torch.nn.functional.pad(images, (0, 0, pad, pad, pad, pad))
        # One gather of whole pixels by their place in memory: three times quicker than indexing by axes.
        across = images.shape[2]
        rows = (np.arange(count)[:, None] * images.shape[1] + rows) * across
        place = (rows[:, :, None] + columns[:, None, :]).reshape(-1)
        return (
            images.view(-1, self.channels)
            .index_select(0, torch.from_numpy(place))
            .view(count, side, side, -1)
        )

    def _normalised(self, images: Tensor, channels_last: bool) -> Tensor:
        count, height, width, channels = images.shape
        rows = images.reshape(count, height, width * channels).float()
        rows = torch.addcmul(self._shift, rows, self._scale)
        # NHWC memory seen as NCHW is what torch calls channels_last: no copy.
        batch = rows.view(count, height, width, channels).permute(0, 3, 1, 2)
        return batch if channels_last else batch.contiguous()


class Evaluation:
    """Batches by number, in a fixed order and never augmented, so that workers can share them out."""

    def __init__(self, federation: Federation, split: str, batch_size: int, channels_last: bool) -> None:
        self._federation, self._split = federation, split
        self._batch_size, self._channels_last = batch_size, channels_last
        self.samples = len(federation.test_labels) if split == "test" else len(federation._eval_train)

    def __len__(self) -> int:
        return math.ceil(self.samples / self._batch_size)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.batch, range(len(self)))

    def batch(self, number: int) -> Batch:
        """Batch ``number``; the last one may be smaller."""
        if not 0 <= number < len(self):
            raise IndexError(f"batch {number} does not exist: batches are 0..{len(self) - 1}")
        part = slice(number * self._batch_size, (number + 1) * self._batch_size)
        own = self._federation
        if self._split == "train":
            return own.batch(own._eval_train[part], train=False, channels_last=self._channels_last)
        return own._normalised(own.test_images[part], self._channels_last), own.test_labels[part]


class Split(NamedTuple):
    """What a partition may ask for, named as below ``data`` in the configuration."""

    clients: int
    alpha: float
    seed: int
    min_samples: int
    client_samples: int | None
    shards: int
    classes_per_client: int


def _virtual(labels: NDArray[np.int64], s: Split) -> Clients:
    samples = s.client_samples or max(s.min_samples, len(labels) // s.clients)
    return VirtualPartition(labels, s.clients, s.alpha, s.seed, samples)


PARTITIONS: dict[str, Callable[[NDArray[np.int64], Split], Clients]] = {
    "dirichlet": lambda labels, s: dirichlet(labels, s.clients, s.alpha, s.seed, s.min_samples),
    "virtual": _virtual,
    "shards": lambda labels, s: skew.shards(labels, s.clients, s.shards, s.seed, s.min_samples),
    "classes": lambda labels, s: skew.classes(labels, s.clients, s.classes_per_client, s.seed, s.min_samples),
    "quantity": lambda labels, s: skew.quantity(labels, s.clients, s.alpha, s.seed, s.min_samples),
    "capped": lambda labels, s: skew.capped(labels, s.clients, s.alpha, s.seed, s.min_samples),
}


def federation(
    dataset: Dataset,
    *,
    clients: int,
    alpha: float,
    seed: int,
    min_samples: int = 10,
    partition: str = "dirichlet",
    client_samples: int | None = None,
    shards: int = 2,
    classes_per_client: int = 2,
    augment: str = "none",
    eval_train_samples: int | None = None,
) -> Federation:
    """Split ``dataset`` over ``clients``; ``eval_train_samples`` images (None: all) measure ``train/*``."""
    labels = dataset.train_labels
    known = partition in PARTITIONS
    require(known, "data.partition", partition, " | ".join(PARTITIONS), "data.partition=dirichlet")
    require(
        client_samples is None or partition == "virtual",
        "data.client_samples",
        client_samples,
        f"with data.partition={partition} the split alone decides how many samples a client has",
        "data.client_samples=null, or data.partition=virtual",
    )
    wanted = Split(clients, alpha, seed, min_samples, client_samples, shards, classes_per_client)
    split = PARTITIONS[partition](labels, wanted)
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
    return Federation(dataset, split, augment=augment, eval_train=chosen)
