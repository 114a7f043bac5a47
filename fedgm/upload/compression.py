"""Shorter messages: top-k, QSGD (Alistarh 2017), and both with error feedback, Qsparse (Basu 2019).

Top-k sends the k entries of largest magnitude, each with its index. QSGD rounds every entry at random to one
of s levels of its bucket's norm, without bias.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fedgm.errors import require
from fedgm.upload.message import Sent, State, with_feedback
from fedgm.upload.packing import as_bytes, from_bits, from_bytes, packed_size, to_bits

VALUE_BITS = 32
NORM_BYTES = 4


@dataclass(frozen=True)
class TopK:
    """``upload=topk``: a share of the entries; with feedback, clients keep the rest as ``residual``.

    >>> rule, rng = TopK(share=0.5), np.random.default_rng(0)
    >>> sent = rule.send(torch.tensor([3.0, 1.0]), {}, rng)
    >>> sent.delta, sent.kept
    (tensor([3., 0.]), {'residual': tensor([0., 1.])})
    """

    share: float
    feedback: bool = True
    draws = False

    def __post_init__(self) -> None:
        entries(self.share, 1)  # refuses a wrong share before training

    @property
    def keeps(self) -> bool:
        """The residual."""
        return self.feedback

    def send(self, delta: Tensor, kept: State, rng: np.random.Generator) -> Sent:
        """The largest entries, of the delta alone or with what earlier rounds left out."""
        k = entries(self.share, delta.numel())
        if not self.feedback:
            return Sent(*top_k(delta, k), {})
        return with_feedback(lambda x: top_k(x, k), delta, kept)

    def pack(self, delta: Tensor, kept: State, sent: Sent) -> bytes:
        """All indices, then all values; a zero need not be sent."""
        places = sent.delta.nonzero().view(-1)
        return to_bits(places, index_bits(delta.numel())) + as_bytes(sent.delta[places])

    def unpack(self, message: bytes, like: Tensor) -> Tensor:
        """The values at their places."""
        width = index_bits(like.numel())
        k = 8 * len(message) // (width + 8 * like.element_size())
        cut = packed_size(k, width)
        delta = torch.zeros_like(like)
        delta[from_bits(message[:cut], width, k)] = from_bytes(message[cut:], like.dtype)
        return delta


def top_k(x: Tensor, k: int) -> tuple[Tensor, int]:
    """``x`` with all but its k largest magnitudes set to 0, and its bytes.

    It contracts: ``|x - top_k(x)|^2 <= (1 - k/n) |x|^2``, with equality where all magnitudes are equal.

    >>> top_k(torch.tensor([0.5, -3.0, 1.0, 2.0]), k=2)  # 2 values of 32 bits, 2 indices of 2 bits
    (tensor([ 0., -3.,  0.,  2.]), 9)
    """
    if k >= x.numel():
        return x.clone(), plain_bytes(x.numel())
    places = largest(x, k)
    sparse = torch.zeros_like(x)
    sparse[places] = x[places]
    return sparse, top_k_bytes(x.numel(), k)


def largest(x: Tensor, k: int) -> Tensor:
    """Indices of the k largest magnitudes in rising order; all of them where there are at most k."""
    return x.abs().topk(min(k, x.numel()), sorted=False).indices.sort().values


def entries(share: float, n: int) -> int:
    """k for a share of n entries, rounded up, so that something is always sent."""
    require(0 < share <= 1, "upload.share", share, "0 < share <= 1", "upload.share=0.01")
    return min(n, math.ceil(share * n - 1e-9))  # .1 of 30 is 3, not the 4 of floating point


def top_k_bytes(n: int, k: int) -> int:
    """A 32-bit value and an index of ceil(log2 n) bits for each entry, packed, rounded up to whole bytes.

    Never more than the dense vector, which a client would send instead.
    """
    return min(plain_bytes(n), math.ceil(k * (VALUE_BITS + index_bits(n)) / 8))


def index_bits(n: int) -> int:
    """Bits that number n entries."""
    return max(1, (n - 1).bit_length())


def plain_bytes(n: int) -> int:
    """All n values in 32 bits."""
    return n * VALUE_BITS // 8


@dataclass(frozen=True)
class Qsgd:
    """``upload=qsgd``: all entries, coarsely; the error has mean zero, so nothing is kept.

    >>> sent = Qsgd(levels=1).send(torch.tensor([0.0, 2.0]), {}, np.random.default_rng(0))
    >>> sent.delta, sent.bytes
    (tensor([0., 2.]), 5)
    """

    levels: int
    bucket: int | None = None
    keeps = False

    def __post_init__(self) -> None:
        require_levels(self.levels, self.bucket)

    def send(self, delta: Tensor, kept: State, rng: np.random.Generator) -> Sent:
        """One draw for each entry."""
        return Sent(*quantize(delta, self.levels, self.bucket, rng), {})

    def pack(self, delta: Tensor, kept: State, sent: Sent) -> bytes:
        """The norms of the buckets, then the level of each entry."""
        norm, level = levels_of(delta, sent.delta, self.levels, self.bucket)
        return as_bytes(norm) + to_bits(level, level_bits(self.levels))

    def unpack(self, message: bytes, like: Tensor) -> Tensor:
        """Norms times levels."""
        n = like.numel()
        cut = NORM_BYTES * norms(n, self.bucket)
        level = from_bits(message[cut:], level_bits(self.levels), n)
        return from_levels(message[:cut], level, self.levels, self.bucket, like.dtype)


@dataclass(frozen=True)
class Qsparse:
    """``upload=qsparse``: a share of the entries, coarsely; the rest and the rounding are kept.

    >>> sent = Qsparse(share=0.5, levels=1).send(torch.tensor([0.0, 2.0]), {}, np.random.default_rng(0))
    >>> sent.delta, sent.kept
    (tensor([0., 1.]), {'residual': tensor([0., 1.])})
    """

    share: float
    levels: int
    bucket: int | None = None
    keeps = True

    def __post_init__(self) -> None:
        require_levels(self.levels, self.bucket)
        entries(self.share, 1)

    def send(self, delta: Tensor, kept: State, rng: np.random.Generator) -> Sent:
        """One draw for each entry that is sent."""
        k = entries(self.share, delta.numel())
        return with_feedback(lambda x: qsparse(x, k, self.levels, self.bucket, rng), delta, kept)

    def pack(self, delta: Tensor, kept: State, sent: Sent) -> bytes:
        """The norms of the buckets, then level and index of each entry."""
        n = delta.numel()
        k = entries(self.share, n)
        whole = delta + kept["residual"] if "residual" in kept else delta
        places = largest(whole, k)
        values = sent.delta[places] * (1 + variance_factor(k, self.levels, self.bucket))
        norm, level = levels_of(whole[places], values, self.levels, self.bucket)
        if k == n:
            return as_bytes(norm) + to_bits(level, level_bits(self.levels))
        both = (level << index_bits(n)) + places
        return as_bytes(norm) + to_bits(both, index_bits(n) + level_bits(self.levels))

    def unpack(self, message: bytes, like: Tensor) -> Tensor:
        """Norms times levels, at their places."""
        n = like.numel()
        k = entries(self.share, n)
        cut, shift = NORM_BYTES * norms(k, self.bucket), index_bits(n) if k < n else 0
        both = from_bits(message[cut:], shift + level_bits(self.levels), k)
        values = from_levels(message[:cut], both >> shift, self.levels, self.bucket, like.dtype)
        delta = torch.zeros_like(like)
        places = both & (2**shift - 1) if shift else torch.arange(n)
        delta[places] = values / (1 + variance_factor(k, self.levels, self.bucket))
        return delta


def quantize(x: Tensor, levels: int, bucket: int | None, rng: np.random.Generator) -> tuple[Tensor, int]:
    """``Q(x)_i = |x| sign(x_i) l_i/s`` with ``s|x_i|/|x|`` rounded to l_i, up with probability its fraction.

    So ``E Q(x) = x``. ``bucket`` entries share a norm; ``None`` is one norm for all.

    >>> quantize(torch.tensor([0.0, 3.0]), levels=4, bucket=None, rng=np.random.default_rng(0))
    (tensor([0., 3.]), 5)
    """
    n = x.numel()
    rows = _buckets(x, bucket)
    norm = torch.linalg.vector_norm(rows.double(), dim=1, keepdim=True)
    scaled = rows.double().abs() * (levels / norm.where(norm != 0, 1.0))
    draws = torch.from_numpy(rng.random(n)).to(x.device)  # one for each entry, whatever the buckets are
    up = _buckets(draws, bucket) < scaled - scaled.floor()  # of 0, which fills the last row, none goes up
    level = (scaled.floor() + up).clamp(max=levels)  # rounding may put the largest above s
    # The norm travels as float32, so the server multiplies by the rounded one.
    sent = dequantized(norm.float().double(), rows.sign(), level, levels, n, x.dtype)
    return sent, qsgd_bytes(n, levels, bucket)


def dequantized(norm: Tensor, sign: Tensor, level: Tensor, levels: int, n: int, dtype: torch.dtype) -> Tensor:
    """What the server makes of the norms of the buckets, and of the sign and the level of each entry."""
    return (norm * sign * (level / levels)).view(-1)[:n].to(dtype)


def levels_of(x: Tensor, sent: Tensor, levels: int, bucket: int | None) -> tuple[Tensor, Tensor]:
    """The norms of the buckets of ``x``, as float32, and the levels of ``sent``, counted from 0 for -s."""
    norm = torch.linalg.vector_norm(_buckets(x, bucket).double(), dim=1, keepdim=True).float()
    level = _buckets(sent, bucket).double() * levels / norm.double().where(norm != 0, 1.0)
    return norm, level.round().view(-1)[: x.numel()].to(torch.int64) + levels


def from_levels(norm: bytes, level: Tensor, levels: int, bucket: int | None, dtype: torch.dtype) -> Tensor:
    """What was sent, from its :func:`levels_of`."""
    if level.max() > 2 * levels:
        raise ValueError(f"a level above {levels}")
    rows = _buckets((level - levels).double(), bucket)
    each = from_bytes(norm, torch.float32).view(-1, 1).double()
    return dequantized(each, rows.sign(), rows.abs(), levels, level.numel(), dtype)


def _buckets(x: Tensor, bucket: int | None) -> Tensor:
    """A row for each bucket, the last one filled up with zeros."""
    n = x.numel()
    width = min(bucket or n, n)
    return F.pad(x, (0, -n % width)).view(-1, width)


def norms(n: int, bucket: int | None) -> int:
    """Buckets of n entries."""
    return math.ceil(n / min(bucket or n, n))


def qsparse(
    x: Tensor, k: int, levels: int, bucket: int | None, rng: np.random.Generator
) -> tuple[Tensor, int]:
    """The k largest entries of ``x``, quantised, and their bytes (Qsparse-local-SGD).

    Divided by 1 + omega, because feedback needs a contraction, which an unbiased quantiser is not.
    """
    places = largest(x, k)
    values, _ = quantize(x[places], levels, bucket, rng)
    sent = torch.zeros_like(x)
    sent[places] = values / (1 + variance_factor(k, levels, bucket))
    return sent, qsparse_bytes(x.numel(), k, levels, bucket)


def variance_factor(n: int, levels: int, bucket: int | None = None) -> float:
    """omega in ``E|Q(x) - x|^2 <= omega |x|^2`` (Lemma 3.1): min(d/s^2, sqrt(d)/s) for buckets of d."""
    d = min(bucket or n, n)
    return min(d / levels**2, math.sqrt(d) / levels)


def qsgd_bytes(n: int, levels: int, bucket: int | None = None) -> int:
    """A float32 norm for each bucket, and for each entry one of 2s + 1 signed levels; no entropy coding."""
    return min(plain_bytes(n), NORM_BYTES * norms(n, bucket) + math.ceil(n * level_bits(levels) / 8))


def qsparse_bytes(n: int, k: int, levels: int, bucket: int | None = None) -> int:
    """Norms of the k values' buckets, and for each value its level and its index."""
    if k >= n:
        return qsgd_bytes(n, levels, bucket)
    numbers = k * (level_bits(levels) + index_bits(n))
    return min(plain_bytes(n), NORM_BYTES * norms(k, bucket) + math.ceil(numbers / 8))


def level_bits(levels: int) -> int:
    """Bits for -s, ..., s."""
    return (2 * levels).bit_length()


def require_levels(levels: int, bucket: int | None) -> None:
    """Refuse what cannot be encoded."""
    require(1 <= levels <= 2**15, "upload.levels", levels, "1..32768", "upload.levels=127")
    require(
        bucket is None or bucket >= 1, "upload.bucket", bucket, "at least 1, or null", "upload.bucket=512"
    )
