"""Images as one shared uint8 array: a batch is gathered, augmented and normalised when it is asked for."""

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedgm.data.dataset import Dataset
from fedgm.errors import require

Batch = tuple[Tensor, Tensor]  # inputs and targets, of images and of text
AUGMENTATIONS = ("none", "flip", "crop_flip")
PREPARED = 32 * 2**20  # bytes of a client's images up to which they are normalised once a round


class Images:
    """Tensors over a data set's own arrays; nothing is copied but the batch."""

    def __init__(
        self, dataset: Dataset, augment: str = "none", eval_train: NDArray[np.int64] | None = None
    ) -> None:
        require(
            augment in AUGMENTATIONS, "data.augment", augment, " or ".join(AUGMENTATIONS), "data.augment=flip"
        )
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

    def move(self, device: torch.device) -> None:
        """Everything to the device, once: batches are then gathered and normalised there."""
        stored = ("train_images", "train_labels", "test_images", "test_labels")
        for name in (*stored, "_eval_train", "_scale", "_shift"):
            setattr(self, name, getattr(self, name).to(device))

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

    @property
    def augments(self) -> bool:
        """Whether training batches are augmented at random, and so need a generator."""
        return self._augment != "none"

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
        chosen = chosen.to(self.train_images.device)
        images = self.train_images[chosen]
        if train and rng is not None and self.augments:
            images = self._augmented(images, rng)
        return self._normalised(images, channels_last), self.train_labels[chosen]

    def prepared(self, indices: NDArray[np.int64], channels_last: bool = False) -> "PreparedImages | None":
        """These samples, normalised once for many batches; None where that differs, or needs much memory."""
        if self.augments or 4 * self.train_images[0].numel() * len(indices) > PREPARED:
            return None
        return PreparedImages(*self.batch(indices, train=False, channels_last=channels_last))

    def evaluation(
        self, split: Literal["test", "train"], batch_size: int, channels_last: bool = False
    ) -> "ImageEvaluation":
        """Batches of the test set, or of the fixed training subset that ``train/*`` is measured on."""
        if split == "test":
            return ImageEvaluation(self, None, batch_size, channels_last)
        return ImageEvaluation(self, self._eval_train, batch_size, channels_last)

    def evaluation_of(
        self, indices: NDArray[np.int64], batch_size: int, channels_last: bool = False
    ) -> "ImageEvaluation":
        """Batches of chosen training samples."""
        return ImageEvaluation(self, torch.from_numpy(indices), batch_size, channels_last)

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
            .index_select(0, torch.from_numpy(place).to(images.device))
            .view(count, side, side, -1)
        )

    def _normalised(self, images: Tensor, channels_last: bool) -> Tensor:
        count, height, width, channels = images.shape
        rows = images.reshape(count, height, width * channels).float()
        rows = torch.addcmul(self._shift, rows, self._scale)
        # NHWC memory seen as NCHW is what torch calls channels_last: no copy.
        batch = rows.view(count, height, width, channels).permute(0, 3, 1, 2)
        return batch if channels_last else batch.contiguous()


class PreparedImages:
    """A client's normalised samples: a batch is one gather, with the bits of a batch normalised by itself."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self._whole, self._labels = images, labels
        self._pixels_last = images.permute(0, 2, 3, 1) if not images.is_contiguous() else None

    def batch(self, places: NDArray[np.int64]) -> Batch:
        """Samples by their place among the client's own."""
        chosen = torch.from_numpy(places).to(self._labels.device)
        labels = self._labels.index_select(0, chosen)
        if self._pixels_last is None:
            return self._whole.index_select(0, chosen), labels
        return self._pixels_last.index_select(0, chosen).permute(0, 3, 1, 2), labels


class ImageEvaluation:
    """Batches by number, in a fixed order and never augmented, so that workers can share them out."""

    def __init__(self, images: Images, chosen: Tensor | None, batch_size: int, channels_last: bool) -> None:
        self._images, self._chosen = images, chosen  # training samples; None: the test set
        self._batch_size, self._channels_last = batch_size, channels_last
        self.samples = len(images.test_labels if chosen is None else chosen)

    def __len__(self) -> int:
        return math.ceil(self.samples / self._batch_size)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.batch, range(len(self)))

    def batch(self, number: int) -> Batch:
        """Batch ``number``; the last one may be smaller."""
        if not 0 <= number < len(self):
            raise IndexError(f"batch {number} does not exist: batches are 0..{len(self) - 1}")
        part = slice(number * self._batch_size, (number + 1) * self._batch_size)
        images = self._images
        if self._chosen is not None:
            return images.batch(self._chosen[part], train=False, channels_last=self._channels_last)
        return images._normalised(images.test_images[part], self._channels_last), images.test_labels[part]
