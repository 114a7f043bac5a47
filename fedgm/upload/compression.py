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


def quantize(x: Tensor, levels: int, bucket: int | None, rng: np.random.Generator) -> tuple[Tensor, int]:
    """``Q(x)_i = |x| sign(x_i) l_i/s`` with ``s|x_i|/|x|`` rounded to l_i, up with probability its fraction.

    So ``E Q(x) = x``. ``bucket`` entries share a norm; ``None`` is one norm for all.

    >>> quantize(torch.tensor([0.0, 3.0]), levels=4, bucket=None, rng=np.random.default_rng(0))
    (tensor([0., 3.]), 5)
    """
    n = x.numel()
    width = min(bucket or n, n)
    rows = F.pad(x, (0, -n % width)).view(-1, width)
    norm = torch.linalg.vector_norm(rows.double(), dim=1, keepdim=True)
    scaled = rows.double().abs() * (levels / norm.where(norm != 0, 1.0))
    draws = torch.from_numpy(rng.random(n)).to(x.device)  # one for each entry, whatever the buckets are
    up = F.pad(draws, (0, -n % width), value=1.0).view(-1, width) < scaled - scaled.floor()
    level = (scaled.floor() + up).clamp(max=levels)  # rounding may put the largest above s
    # The norm travels as float32, so the server multiplies by the rounded one.
    sent = norm.float().double() * rows.sign() * (level / levels)
    return sent.view(-1)[:n].to(x.dtype), qsgd_bytes(n, levels, bucket)


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
    norms = math.ceil(n / min(bucket or n, n))
    return min(plain_bytes(n), NORM_BYTES * norms + math.ceil(n * level_bits(levels) / 8))


def qsparse_bytes(n: int, k: int, levels: int, bucket: int | None = None) -> int:
    """Norms of the k values' buckets, and for each value its level and its index."""
    if k >= n:
        return qsgd_bytes(n, levels, bucket)
    norms = math.ceil(k / min(bucket or k, k))
    return min(plain_bytes(n), NORM_BYTES * norms + math.ceil(k * (level_bits(levels) + index_bits(n)) / 8))


def level_bits(levels: int) -> int:
    """Bits for -s, ..., s."""
    return (2 * levels).bit_length()


def require_levels(levels: int, bucket: int | None) -> None:
    """Refuse what cannot be encoded."""
    require(1 <= levels <= 2**15, "upload.levels", levels, "1..32768", "upload.levels=127")
    require(
        bucket is None or bucket >= 1, "upload.bucket", bucket, "at least 1, or null", "upload.bucket=512"
    )
