"""Clients that train on windows of their own text, drawn afresh in every round."""

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedgm.data.tokens import Ranges, TokenSet, Vocabulary
from fedgm.draws import generator
from fedgm.errors import DataError, require

Batch = tuple[Tensor, Tensor]  # tokens, and the token that follows each: both (batch, block), int64
IGNORE = -100  # a target that does not count: what lies beyond the end of a text; torch's own default


class TextFederation:
    """Clients over one shared token array; a sample is a window of ``block`` tokens and their successors.

    An epoch is as many windows as would cover the client's text once, at random places, so that
    ``local.epochs`` and ``clients.weights=samples`` mean what they mean for images.
    """

    def __init__(
        self,
        texts: TokenSet,
        block: int = 64,
        *,
        test_windows: int | None = None,
        eval_train_windows: int | None = None,
        seed: int = 0,
    ) -> None:
        require(block >= 1, "data.block", block, "at least 1", "data.block=64")
        self.texts, self.block = texts, block
        self._places = {
            "test": _choose(fixed_places(texts.test, block), test_windows, seed, "test"),
            "train": _choose(fixed_places(texts.train, block), eval_train_windows, seed, "train"),
        }
        if len(self._places["test"]) == 0:
            raise DataError("no client has a test text of two tokens. Try data.test_share=0.1")

    @property
    def count(self) -> int:
        """Number of clients."""
        return self.texts.count

    @property
    def classes(self) -> int:
        """Size of the vocabulary."""
        return len(self.texts.vocabulary.symbols)

    @property
    def vocabulary(self) -> Vocabulary:
        """What the tokens stand for."""
        return self.texts.vocabulary

    def size(self, client: int) -> int:
        """Windows that cover the client's text once."""
        return math.ceil((int(self.texts.train.lengths[client]) - 1) / self.block)

    def steps_of(self, client: int, batch_size: int, amount: int, unit: str = "epochs") -> int:
        """Local steps K_i of one client that trains for ``amount`` ``unit``."""
        require(unit in ("epochs", "steps"), "local.unit", unit, "epochs | steps", "local.unit=epochs")
        return amount if unit == "steps" else amount * math.ceil(self.size(client) / batch_size)

    def client_steps(
        self, client: int, batch_size: int, steps: int, seed: int, round: int, channels_last: bool = False
    ) -> Iterator[Batch]:
        """``steps`` batches of windows at places drawn from (seed, round, client)."""
        del channels_last  # text has no memory layout
        require(batch_size >= 1, "local.batch_size", batch_size, "at least 1", "local.batch_size=12")
        rng = generator(seed, "windows", round, client)
        begin, end = (int(at) for at in self.texts.train.offsets[client : client + 2])
        for _ in range(steps):
            starts = begin + rng.integers(max(1, end - begin - self.block), size=batch_size)
            yield cut(self.texts.train, starts, np.full(batch_size, end), self.block)

    def evaluation(
        self, split: Literal["test", "train"], batch_size: int, channels_last: bool = False
    ) -> "TextEvaluation":
        """Fixed windows side by side: every token of the split is predicted once, or a fixed part is."""
        del channels_last
        ranges = self.texts.test if split == "test" else self.texts.train
        return TextEvaluation(ranges, self._places[split], self.block, batch_size)


class TextEvaluation:
    """Batches by number, the same in every evaluation."""

    def __init__(self, ranges: Ranges, places: NDArray[np.int64], block: int, batch_size: int) -> None:
        self.ranges, self.places, self.block, self.batch_size = ranges, places, block, batch_size

    def __len__(self) -> int:
        return math.ceil(len(self.places) / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.batch, range(len(self)))

    def batch(self, number: int) -> Batch:
        """Windows ``number * batch_size`` and on."""
        part = self.places[number * self.batch_size : (number + 1) * self.batch_size]
        return cut(self.ranges, part[:, 0], part[:, 1], self.block)


def fixed_places(ranges: Ranges, block: int) -> NDArray[np.int64]:
    """Start of each window and end of its client's text; windows meet and never cross into another client."""
    pairs = zip(ranges.offsets[:-1], ranges.offsets[1:], strict=True)
    rows = [np.arange(begin, end - 1, block) for begin, end in pairs]
    ends = np.repeat(ranges.offsets[1:], [len(row) for row in rows])
    return np.stack([np.concatenate(rows), ends], axis=1).astype(np.int64)


def cut(ranges: Ranges, starts: NDArray[np.int64], ends: NDArray[np.int64], block: int) -> Batch:
    """Windows of ``block`` tokens and the tokens that follow; targets at or beyond ``ends`` are ``IGNORE``.

    Beyond the end the inputs repeat the last token: in a causal model no counted target sees them.
    """
    index = starts[:, None] + np.arange(block + 1)
    beyond = index >= ends[:, None]
    tokens = ranges.tokens[np.where(beyond, ends[:, None] - 1, index)].astype(np.int64)
    targets = np.where(beyond[:, 1:], IGNORE, tokens[:, 1:])
    return torch.from_numpy(np.ascontiguousarray(tokens[:, :-1])), torch.from_numpy(targets)


def _choose(places: NDArray[np.int64], keep: int | None, seed: int, split: str) -> NDArray[np.int64]:
    if keep is None or keep >= len(places):
        return places
    require(keep >= 1, f"data.{split}_samples", keep, "at least 1, or null", f"data.{split}_samples=1000")
    return places[np.sort(generator(seed, f"subset-{split}").choice(len(places), keep, replace=False))]
