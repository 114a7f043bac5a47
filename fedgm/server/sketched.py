"""Server rules that move k entries a round: FetchSGD (Rothchild 2020), and true top-k without a sketch.

A count sketch S of a vector has R rows of C columns; entry j goes to column h_r(j) of row r with sign s_r(j),
and the median over rows of what stands there estimates it. S is linear, so the mean of the clients' sketches
is the sketch of their mean D: the server sketches D itself, and ``upload=sketch`` counts a sketch's bytes.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor, zeros, zeros_like

from fedgm.draws import generator
from fedgm.errors import require
from fedgm.server.rule import Hyper, OnlyEta, State


class CountSketch(NamedTuple):
    """Hashes of n entries: ``bucket`` and ``sign`` are R x n."""

    bucket: Tensor
    sign: Tensor
    columns: int

    def of(self, vector: Tensor) -> Tensor:
        """S(vector), R x C.

        >>> sketch = CountSketch(torch.tensor([[0, 1, 1]]), torch.tensor([[1, 1, -1]]), columns=2)
        >>> sketch.of(torch.tensor([5.0, 3.0, 1.0]))
        tensor([[5., 2.]])
        """
        table = zeros(len(self.bucket), self.columns, dtype=vector.dtype, device=vector.device)
        for row, bucket, sign in zip(table, self.bucket, self.sign, strict=True):
            row.index_add_(0, bucket, sign * vector)
        return table

    def estimate(self, table: Tensor) -> Tensor:
        """The median over rows of what each entry finds in its cell."""
        return (self.sign * table.gather(1, self.bucket.long())).median(dim=0).values


@lru_cache(maxsize=2)
def count_sketch(seed: int, rows: int, columns: int, n: int, device: torch.device) -> CountSketch:
    """Hashes from (seed, "sketch", row): the same in every process."""
    bucket = torch.empty(rows, n, dtype=torch.int32)
    sign = torch.empty(rows, n, dtype=torch.int8)
    for row in range(rows):
        rng = generator(seed, "sketch", row)
        bucket[row] = torch.from_numpy(rng.integers(columns, size=n, dtype="int32"))
        sign[row] = torch.from_numpy(2 * rng.integers(2, size=n, dtype="int8") - 1)
    return CountSketch(bucket.to(device), sign.to(device), columns)


def top_k(vector: Tensor, k: int) -> Tensor:
    """``vector`` with all but its k largest magnitudes set to 0; of equal ones the first stay.

    >>> top_k(torch.tensor([1.0, -2.0, 2.0, 2.0]), k=2)
    tensor([ 0., -2.,  2.,  0.])
    """
    if k >= vector.numel():
        return vector.clone()
    size = vector.abs()
    least = size.topk(k, sorted=False).values.min()
    chosen = size > least
    ties = (size == least).nonzero().squeeze(1)[: k - int(chosen.sum())]
    chosen[ties] = True
    return vector.where(chosen, 0.0)


@dataclass(frozen=True)
class TrueTopK(OnlyEta):
    """V = rho V + D;  E += V;  Delta = top_k(E);  V and E become 0 where Delta is not;  x -= eta Delta.

    Top-k of the dense D with error feedback and momentum factor masking: what a sketch can reach at best.

    >>> rule, x = TrueTopK(eta=1.0, rho=0.5, k=1), torch.zeros(2)
    >>> rule.step(x, rule.init(x), torch.tensor([3.0, 1.0]), rule.hyper)[0]
    tensor([-3.,  0.])
    """

    eta: float
    rho: float
    k: int

    def __post_init__(self) -> None:
        _require(self.eta, self.rho, self.k)

    def init(self, x: Tensor) -> State:
        """No momentum, no error."""
        return {"v": zeros_like(x), "e": zeros_like(x)}

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        v = self.rho * state["v"] + delta
        e = state["e"] + v
        step = top_k(e, self.k)
        rest = step == 0
        return x - hyper["eta"] * step, {"v": v * rest, "e": e * rest}


@dataclass(frozen=True)
class FetchSGD(OnlyEta):
    """Su = rho Su + S(D);  Se += eta Su;  Delta = top_k(estimate(Se));  Se -= S(Delta);  x -= Delta.

    ``official`` is the authors' code, which differs in three ways: eta multiplies Delta and not Su; the cells
    of Se that S(Delta) touches become 0; so do those of Su (momentum factor masking). With k = n and a sketch
    without collisions the paper's form is FedAvgM summed, (eta/(1-rho), rho, 1), while masking leaves the
    code's without any momentum.

    >>> rule, x = FetchSGD(eta=1.0, rho=0.9, k=1, rows=5, columns=64, seed=0), torch.zeros(3)
    >>> rule.step(x, rule.init(x), torch.tensor([0.0, 4.0, 0.0]), rule.hyper)[0]
    tensor([ 0., -4.,  0.])
    """

    eta: float
    rho: float
    k: int
    rows: int
    columns: int
    seed: int
    official: bool = False

    def __post_init__(self) -> None:
        _require(self.eta, self.rho, self.k)
        odd = self.rows >= 1 and self.rows % 2 == 1
        allowed = "an odd number: of an even one the median is not defined alike everywhere"
        require(odd, "algorithm.rows", self.rows, allowed, "algorithm.rows=5")
        require(self.columns >= 1, "algorithm.columns", self.columns, "at least 1", "algorithm.columns=10000")
        require(self.seed >= 0, "algorithm.seed", self.seed, "at least 0", "algorithm.seed=0")

    def init(self, x: Tensor) -> State:
        """Two empty sketches."""
        empty = zeros(self.rows, self.columns, dtype=x.dtype, device=x.device)
        return {"su": empty, "se": empty.clone()}

    def sketch(self, x: Tensor) -> CountSketch:
        """The hashes for a model of this size."""
        return count_sketch(self.seed, self.rows, self.columns, x.numel(), x.device)

    def step(self, x: Tensor, state: State, delta: Tensor, hyper: Hyper) -> tuple[Tensor, State]:
        """One server round."""
        sketch, eta = self.sketch(x), hyper["eta"]
        su = self.rho * state["su"] + sketch.of(delta)
        se = state["se"] + (su if self.official else eta * su)
        step = top_k(sketch.estimate(se), self.k)
        sent = sketch.of(step)
        if not self.official:
            return x - step, {"su": su, "se": se - sent}
        rest = sent == 0
        return x - eta * step, {"su": su * rest, "se": se * rest}


def _require(eta: float, rho: float, k: int) -> None:
    require(0 < eta < inf, "algorithm.eta", eta, "a positive number", "algorithm.eta=1.0")
    require(0 <= rho < 1, "algorithm.rho", rho, "0 <= rho < 1", "algorithm.rho=0.9")
    require(k >= 1, "algorithm.k", k, "at least 1", "algorithm.k=1000")
