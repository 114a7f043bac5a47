"""Text as clients that train on windows of it; ``data=text`` reads people's own files."""

import math
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from fedgm.data.images import Batch
from fedgm.data.tokens import Ranges, TokenSet, Vocabulary, tokenize
from fedgm.draws import generator
from fedgm.errors import ClashError, ConfigError, DataError, UnfitDataError, require, require_fits

if TYPE_CHECKING:
    from fedgm.config import RunConfig

ALLOWED = "a text file, or a folder of text files, each of which is a client"
IGNORE = -100  # a target that does not count: what lies beyond the end of a text; torch's own default


@dataclass(frozen=True)
class Text:
    """``data=text``: ``clients.count`` is the number of files, or of pieces of the one file."""

    path: str | None
    block: int = 64
    unit: str = "characters"
    test_share: float = 0.1
    pattern: str = "*.txt"

    def federate(self, config: "RunConfig") -> "TextFederation":
        """The clients of a run."""
        texts = load(self.path, self.unit, self.test_share, config.clients.count, self.pattern)
        return from_run(texts, self.block, config)


def load(
    path: str | None,
    unit: str = "characters",
    test_share: float = 0.1,
    clients: int | None = None,
    pattern: str = "*.txt",
) -> TokenSet:
    """A folder gives one client per file that matches ``pattern``; a file is cut into ``clients`` pieces.

    The test text is the last ``test_share`` of every client, also where a file is cut.
    """
    if path is None:
        raise ConfigError("data.path", "null", ALLOWED, "data.path=my.txt")
    place = Path(path).expanduser()
    if place.is_dir():
        texts = _folder(place, pattern)
        require_fits(
            clients in (None, len(texts)),
            "clients.count",
            clients,
            f"{place} has {len(texts)} files, and each is a client",
            f"clients.count={len(texts)}",
        )
    elif place.is_file():
        texts = _pieces(_read(place), clients or 1, place.stem)
    else:
        raise ClashError("data.path", path, f"there is no such file or folder; it must be {ALLOWED}", "ls")
    return tokenize(texts, unit, test_share)


def _folder(folder: Path, pattern: str) -> dict[str, str]:
    """Text by path below the folder, sorted; files without text are left out."""
    files = sorted(file for file in folder.rglob(pattern) if file.is_file())
    texts = {file.relative_to(folder).as_posix(): _read(file) for file in files}
    texts = {name: text for name, text in texts.items() if text.strip()}
    if not texts:
        raise UnfitDataError(
            f"data.path={folder}: no file below it matches {pattern}. Try data.source.pattern=*.md"
        )
    return texts


def _pieces(text: str, clients: int, stem: str) -> dict[str, str]:
    """Equal consecutive pieces; sizes differ by one character at most."""
    most = len(text) // 4  # two tokens to train on and two to test on
    require(1 <= clients <= max(most, 1), "clients.count", clients, f"1..{most}", f"clients.count={most}")
    ends = [len(text) * piece // clients for piece in range(clients + 1)]
    return {f"{stem}-{piece}": text[begin:end] for piece, (begin, end) in enumerate(pairwise(ends))}


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnfitDataError(
            f"data.path: {file} is not UTF-8 text ({error.reason} at byte {error.start}).\n"
            f"Convert it: iconv -f latin1 -t utf-8 {file.name} > converted.txt"
        ) from error
    except OSError as error:
        raise DataError(f"data.path: {file} cannot be read: {error.strerror or error}") from error


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

    def rebatched(self, batch_size: int) -> "TextFederation":
        """The same clients in batches of another size."""
        other = copy(self)
        other.batch_size = batch_size
        return other

    def encoded(self, vocabulary: Vocabulary) -> "TextFederation":
        """The same clients in the tokens of another vocabulary."""
        other = copy(self)
        other.texts = self.texts.encoded(vocabulary)
        return other

    def evaluations(self) -> dict[str, "TextEvaluation"]:
        """Fixed windows side by side: every token of a split is predicted once, or a fixed part is."""
        size = self.eval_batch_size
        return {
            "test": TextEvaluation(self.texts.test, self._test, self.block, size),
            "train": TextEvaluation(self.texts.train, self._train, self.block, size),
        }

    def own_samples(self, client: int) -> "TextEvaluation":
        """A client's training text in windows side by side, for ``eval.clients``."""
        return self._whole(self.texts.train, client)

    def held_out(self, client: int) -> "TextEvaluation":
        """A client's test text in windows side by side, for ``eval.held_out``."""
        return self._whole(self.texts.test, client)

    def _whole(self, ranges: Ranges, client: int) -> "TextEvaluation":
        begin, end = (int(at) for at in ranges.offsets[client : client + 2])
        starts = np.arange(begin, end - 1, self.block)
        places = np.stack([starts, np.full(len(starts), end)], axis=1)
        return TextEvaluation(ranges, places, self.block, self.eval_batch_size)


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
