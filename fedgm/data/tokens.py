"""Text of all clients as one array of tokens: characters or bytes, each client a range of it (CSR)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedgm.draws import generator
from fedgm.errors import DataError, require

Ids = NDArray[np.uint8 | np.int32]
Unit = Literal["characters", "bytes"]


class Vocabulary(NamedTuple):
    """Token i stands for ``symbols[i]``; under ``bytes`` it is the byte i of the text in UTF-8."""

    unit: Unit
    symbols: tuple[str, ...]

    def encode(self, text: str) -> Ids:
        """The text as tokens; one byte each as long as the vocabulary allows it."""
        if self.unit == "bytes":
            return np.frombuffer(text.encode(), np.uint8)
        points, symbols = _code_points(text), _code_points("".join(self.symbols))
        tokens = np.searchsorted(symbols, points)
        lost = symbols[np.minimum(tokens, len(symbols) - 1)] != points
        if lost.any():
            raise DataError(f"the character {chr(points[lost.argmax()])!r} is not in the vocabulary")
        return tokens.astype(np.uint8 if len(symbols) <= 256 else np.int32)

    def decode(self, tokens: NDArray[Any]) -> str:
        """The text again; bytes that are not UTF-8 become replacement characters."""
        if self.unit == "bytes":
            return tokens.astype(np.uint8).tobytes().decode(errors="replace")
        return "".join(self.symbols[int(token)] for token in tokens)


class Ranges(NamedTuple):
    """Client i has ``tokens[offsets[i] : offsets[i + 1]]``."""

    tokens: Ids
    offsets: NDArray[np.int64]

    def of(self, client: int) -> Ids:
        """A view, not a copy."""
        return self.tokens[self.offsets[client] : self.offsets[client + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each client."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class TokenSet:
    """The text of a federation: the same clients in ``train`` and ``test``, in the order of ``names``."""

    vocabulary: Vocabulary
    names: tuple[str, ...]
    train: Ranges
    test: Ranges

    @property
    def count(self) -> int:
        """Number of clients."""
        return len(self.names)

    def encoded(self, vocabulary: Vocabulary) -> "TokenSet":
        """The same text in the tokens of another vocabulary, which must have all of its characters.

        >>> tokenize({"ann": "baba"}).encoded(Vocabulary("characters", ("a", "b", "c"))).train.of(0)
        array([1, 0, 1, 0], dtype=uint8)
        """
        if vocabulary.unit != self.vocabulary.unit:
            raise DataError(f"its tokens are {self.vocabulary.unit}, not {vocabulary.unit}")
        if vocabulary == self.vocabulary:  # so it is with bytes
            return self
        table = vocabulary.encode("".join(self.vocabulary.symbols))
        train, test = (part._replace(tokens=table[part.tokens]) for part in (self.train, self.test))
        return replace(self, vocabulary=vocabulary, train=train, test=test)


def tokenize(texts: Mapping[str, str], unit: str = "characters", test_share: float = 0.1) -> TokenSet:
    """One client for each text. The last ``test_share`` of each client's tokens is its test text.

    The end and not a random part: windows overlap, so a random part would leak into training.

    >>> texts = tokenize({"ann": "abab", "bob": "cccc"}, test_share=0.5)
    >>> texts.names, texts.vocabulary.symbols, texts.train.of(0)
    (('ann', 'bob'), ('a', 'b', 'c'), array([0, 1], dtype=uint8))
    """
    require(
        unit in ("characters", "bytes"),
        "data.source.unit",
        unit,
        "characters or bytes",
        "data.source.unit=characters",
    )
    require(
        0 <= test_share < 1,
        "data.source.test_share",
        test_share,
        "0 <= share < 1",
        "data.source.test_share=0.1",
    )
    vocabulary = vocabulary_of(texts.values(), unit)
    train, test = list[Ids](), list[Ids]()
    for name, text in texts.items():
        tokens = vocabulary.encode(text)
        cut = len(tokens) - int(test_share * len(tokens))
        if cut < 2:
            raise DataError(f"client {name} has {len(tokens)} tokens; a prediction needs two. Leave it out")
        train.append(tokens[:cut])
        test.append(tokens[cut:])
    return TokenSet(vocabulary, tuple(texts), _ranges(train), _ranges(test))


def vocabulary_of(texts: Any, unit: str) -> Vocabulary:
    """All characters that occur, in the order of their code points; or the 256 bytes."""
    if unit == "bytes":
        return Vocabulary("bytes", tuple(chr(byte) for byte in range(256)))
    return Vocabulary("characters", tuple(sorted(set[str]().union(*texts))))


def choose(texts: TokenSet, clients: int | None, seed: int, hint: str = "clients.count") -> TokenSet:
    """``clients`` of the clients, drawn without replacement, in their old order; ``None`` keeps all."""
    if clients is None or clients == texts.count:
        return texts
    require(1 <= clients <= texts.count, hint, clients, f"1..{texts.count}", f"{hint}={texts.count}")
    kept = np.sort(generator(seed, "text-clients").choice(texts.count, clients, replace=False))
    names = tuple(texts.names[client] for client in kept)
    return replace(
        texts,
        names=names,
        train=_ranges([texts.train.of(int(client)) for client in kept]),
        test=_ranges([texts.test.of(int(client)) for client in kept]),
    )


def unigram_entropy(tokens: Ids) -> float:
    """Nats per token of the best guess that looks at no context: what a model must beat."""
    counts = np.bincount(tokens)
    shares = counts[counts > 0] / len(tokens)
    return float(-(shares * np.log(shares)).sum())


def _ranges(parts: list[Ids]) -> Ranges:
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return Ranges(np.concatenate(parts), offsets)


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)
