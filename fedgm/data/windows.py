"""Clients that train on windows of their own text, drawn afresh in every round."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from fedgm.data.images import Batch
from fedgm.data.tokens import Ranges, TokenSet
from fedgm.draws import generator
from fedgm.errors import DataError, require

if TYPE_CHECKING:
    from fedgm.config import RunConfig

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
        batch_size: int,
        eval_batch_size: int = 100,
        seed: int = 0,
        subset_seed: int = 0,
        test_windows: int | None = None,
        train_windows: int | None = None,
    ) -> None:
        require(block >= 1, "data.source.block", block, "at least 1", "data.source.block=64")
        require(batch_size >= 1, "local.batch_size", batch_size, "at least 1", "local.batch_size=12")
        self.texts, self.block, self.seed = texts, block, seed
        self.batch_size, self.eval_batch_size = batch_size, eval_batch_size
        self._test = _choose(fixed_places(texts.test, block), test_windows, subset_seed, "test")
        self._train = _choose(fixed_places(texts.train, block), train_windows, subset_seed, "train")
        if len(self._test) == 0:
            raise DataError("no client has a test text of two tokens. Try data.source.test_share=0.1")

    @property
    def count(self) -> int:
        """Number of clients."""
        return self.texts.count

    @property
    def facts(self) -> Mapping[str, int]:
        """What the text decides about a model."""
        return {"vocabulary": len(self.texts.vocabulary.symbols), "block": self.block}

    def size(self, client: int) -> int:
        """Windows that cover the client's text once."""
        return math.ceil((int(self.texts.train.lengths[client]) - 1) / self.block)

    def epoch(self, client: int) -> int:
        """Local steps that see as many tokens as the client has."""
        return math.ceil(self.size(client) / self.batch_size)

    def batches(self, client: int, t: int, steps: int) -> Iterator[Batch]:
        """``steps`` batches of windows at places drawn from (seed, t, client)."""
        rng = generator(self.seed, "windows", t, client)
        begin, end = (int(at) for at in self.texts.train.offsets[client : client + 2])
        ends = np.full(self.batch_size, end)
        for _ in range(steps):
            starts = begin + rng.integers(max(1, end - begin - self.block), size=self.batch_size)
            yield cut(self.texts.train, starts, ends, self.block)

    def evaluations(self) -> dict[str, "TextEvaluation"]:
        """Fixed windows side by side: every token of a split is predicted once, or a fixed part is."""
        size = self.eval_batch_size
        return {
            "test": TextEvaluation(self.texts.test, self._test, self.block, size),
            "train": TextEvaluation(self.texts.train, self._train, self.block, size),
        }

    def own_samples(self, client: int) -> "TextEvaluation":
        """A client's training text in windows side by side, for ``eval.clients``."""
        begin, end = (int(at) for at in self.texts.train.offsets[client : client + 2])
        starts = np.arange(begin, end - 1, self.block)
        places = np.stack([starts, np.full(len(starts), end)], axis=1)
        return TextEvaluation(self.texts.train, places, self.block, self.eval_batch_size)


def from_run(texts: TokenSet, block: int, config: "RunConfig") -> TextFederation:
    """The federation of a run, with its batch sizes and its fixed windows for evaluation."""
    return TextFederation(
        texts,
        block,
        batch_size=config.local.batch_size,
        eval_batch_size=config.eval.batch_size,
        seed=config.seed,
        subset_seed=config.data.seed,
        test_windows=config.data.test_samples,
        train_windows=config.eval.train_samples,
    )


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
    key = {"test": "data.test_samples", "train": "eval.train_samples"}[split]
    require(keep >= 1, key, keep, "at least 1, or null", f"{key}=1000")
    return places[np.sort(generator(seed, f"subset-{split}").choice(len(places), keep, replace=False))]
