"""Central differential privacy of clients: clip every update, add Gaussian noise to the mean, count epsilon.

Adjacency: one client is *replaced* by another; a round has exactly m of n clients, uniformly without
replacement. The sum of clipped updates then changes by at most 2C, so noise of deviation z C on the sum is a
Gaussian mechanism whose deviation is z/2 times the sensitivity. What follows the noise is post-processing:
server momentum costs nothing. The guarantee is that of the models which are sent; rows of losses, norms and
accuracies are measured without noise and lie outside it. There is no secure aggregation: the server is
trusted. Noise comes from the run's seed, and whoever knows the seed can subtract it: this is a simulation.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from math import exp, inf, isfinite
from typing import Any, Protocol

import torch
from torch import Tensor

from fedgm.draws import generator
from fedgm.errors import require, require_fits

Columns = dict[str, float | int | None]


class Privacy(Protocol):
    """What happens to updates on their way into the mean, and to the mean."""

    def clipped(self, delta: Tensor) -> tuple[Tensor, float]:
        """A client's update as it enters the mean, and its norm before."""
        ...

    def noised(self, mean: Tensor, t: int, norms: Tensor) -> tuple[Tensor, Columns]:
        """The mean that the server goes on with, and columns of the round's row."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        ...

    def load_state_dict(self, content: dict[str, Any]) -> None:
        """Continue with it."""
        ...


@dataclass(frozen=True)
class Open:
    """``privacy=none``: updates and mean as they are. The loop then asks nobody."""

    def clipped(self, delta: Tensor) -> tuple[Tensor, float]:
        """As it is."""
        return delta, 0.0

    def noised(self, mean: Tensor, t: int, norms: Tensor) -> tuple[Tensor, Columns]:
        """As it is."""
        return mean, {}

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, content: dict[str, Any]) -> None:
        """Nothing."""


def noise_left(z: float, sigma_b: float) -> float:
    """Of a total multiplier z what is left for updates: (z^-2 - (2 sigma_b)^-2)^(-1/2).

    >>> round(noise_left(z=1.0, sigma_b=1.0), 4)
    1.1547
    """
    return (z**-2 - (2 * sigma_b) ** -2) ** -0.5


def next_clip(norms: Tensor, C: float, quantile: float, rate: float, sigma_b: float, normal: float) -> float:
    """Adaptive clipping (Andrew 2021): C follows a quantile of the norms, from noised bits.

    b = (sum_i (1[norm_i <= C] - 1/2) + sigma_b N(0, 1))/m + 1/2, kept in [0, 1]; C exp(-rate (b - quantile)).

    >>> round(next_clip(torch.tensor([1.0, 3.0]), C=2.0, quantile=0.5, rate=0.2, sigma_b=1.0, normal=0.0), 4)
    2.0
    """
    m = norms.numel()
    b = (((norms <= C).double() - 0.5).sum().item() + sigma_b * normal) / m + 0.5
    return C * exp(-rate * (min(1.0, max(0.0, b)) - quantile))


@dataclass
class Central:
    """``privacy=central``: mean of clipped updates + (z C/m) N(0, I), with z = ``noise`` and C = ``clip``.

    With ``adaptive`` C follows the ``quantile`` of the norms; the bits of it are noised, too (``bit_noise``
    sigma_b; null: m/20), and updates get so much more noise that all together costs what z costs.
    """

    count: int
    per_round: int
    seed: int
    clip: float
    noise: float
    delta: float
    adaptive: bool = False
    quantile: float = 0.5
    rate: float = 0.2
    bit_noise: float | None = None
    _clip: float = field(init=False, repr=False)
    _spent: Callable[[int], float] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        require(0 < self.clip < inf, "privacy.clip", self.clip, "a positive number", "privacy.clip=0.1")
        ok = self.noise >= 0 and isfinite(self.noise)
        require(ok, "privacy.noise", self.noise, "a number of at least 0", "privacy.noise=1.0")
        require(0 < self.delta < 1, "privacy.delta", self.delta, "0 < delta < 1", "privacy.delta=1e-5")
        require(0 <= self.quantile <= 1, "privacy.quantile", self.quantile, "0 to 1", "privacy.quantile=0.5")
        ok = 0 <= self.rate < inf
        require(ok, "privacy.rate", self.rate, "a number of at least 0", "privacy.rate=0.2")
        if self.adaptive:
            allowed = f"more than privacy.noise/2 = {self.noise / 2:g}, or nothing is left for the updates"
            hint = f"privacy.bit_noise={max(1.0, self.noise):g}"
            require(self._sigma_b > self.noise / 2, "privacy.bit_noise", self._sigma_b, allowed, hint)
        is_installed = find_spec("dp_accounting") is not None
        reason = "epsilon is counted by the package dp-accounting, which is not installed"
        require_fits(is_installed, "privacy", "central", reason, "pip install 'fedgm[privacy]'")
        self._clip = self.clip

    @property
    def _sigma_b(self) -> float:
        return self.per_round / 20 if self.bit_noise is None else self.bit_noise

    @property
    def _multiplier(self) -> float:
        """Of the noise on updates: all of z, or what the bits leave of it."""
        return noise_left(self.noise, self._sigma_b) if self.adaptive and self.noise else self.noise

    def clipped(self, delta: Tensor) -> tuple[Tensor, float]:
        """The update with a norm of at most C, and its norm before."""
        norm = torch.linalg.vector_norm(delta, dtype=torch.float64).item()
        return (delta if norm <= self._clip else delta * (self._clip / norm)), norm

    def noised(self, mean: Tensor, t: int, norms: Tensor) -> tuple[Tensor, Columns]:
        """The mean with noise of deviation z C/m, and its columns; then C moves, where it is adaptive."""
        C, m = self._clip, norms.numel()
        drawn = generator(self.seed, "privacy", t).standard_normal(mean.numel())
        noise = torch.from_numpy(drawn).to(mean.device) * (self._multiplier * C / m)
        row: Columns = {
            "privacy/epsilon": self.epsilon(t),
            "privacy/delta": self.delta,
            "privacy/clip": C,
            "privacy/clipped": (norms > C).double().mean().item(),
        }
        if self.adaptive:
            normal = float(generator(self.seed, "privacy-bits", t).standard_normal())
            self._clip = next_clip(norms.cpu(), C, self.quantile, self.rate, self._sigma_b, normal)
        return (mean.double() + noise).to(mean.dtype), row

    def epsilon(self, t: int) -> float | None:
        """What ``t`` rounds have cost; None without noise, where it is infinite."""
        if self.noise == 0:
            return None
        if self._spent is None:
            self._spent = accountant(self.count, self.per_round, self.noise, self.delta)
        return self._spent(t)

    def state_dict(self) -> dict[str, Any]:
        """The clip norm of the next round."""
        return {"clip": self._clip}

    def load_state_dict(self, content: dict[str, Any]) -> None:
        """Continue with the clip norm of a checkpoint."""
        self._clip = content["clip"]


def accountant(n: int, m: int, z: float, delta: float) -> Callable[[int], float]:
    """``epsilon(t)`` after t rounds of m of n clients with noise multiplier z, by dp-accounting's bounds.

    The library takes the number of a ``GaussianDpEvent`` as deviation over *sensitivity* here, which is 2C:
    z/2, not z. One round is worked out once (a second); Renyi bounds of rounds add up.
    """
    library: Any = import_module("dp_accounting")  # an extra, which type checkers need not have
    rdp: Any = import_module("dp_accounting.rdp")
    one = rdp.RdpAccountant(neighboring_relation=library.NeighboringRelation.REPLACE_ONE)
    gaussian = library.GaussianDpEvent(z / 2)
    one.compose(library.SampledWithoutReplacementDpEvent(n, m, gaussian))
    orders, bounds = [*one._orders], [*one._rdp]
    return lambda t: float(rdp.compute_epsilon(orders, [t * bound for bound in bounds], delta)[0])
