"""Student's t, intervals of mean differences that are paired over seeds, and a variance pooled over them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from fedgm.errors import require

LEVEL = 0.05


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its two-sided interval; with one seed it is infinite."""

    mean: float
    low: float
    high: float
    n: int
    deviation: float  # of the single differences; nan with one seed

    @property
    def effect(self) -> float:
        """The mean in standard deviations of the single differences; nan if they do not vary."""
        return self.mean / self.deviation if self.deviation > 0 else math.nan


def t_cdf(t: float, df: int) -> float:
    """P(T <= t) for a whole number of degrees of freedom, as the finite sum in theta = atan(t / sqrt(df)).

    With c = cos(theta), s = sin(theta), the mass between -t and t is
    s (1 + 1/2 c^2 + 1*3/(2*4) c^4 + ... up to c^(df-2)) for even df, and
    2/pi (theta + s c (1 + 2/3 c^2 + 2*4/(3*5) c^4 + ... up to c^(df-3))) for odd df.

    >>> round(t_cdf(2.0, 4), 4)
    0.9419
    """
    require(df >= 1, "df", df, "at least 1", "df=2")
    theta = math.atan2(t, math.sqrt(df))
    c, s = math.cos(theta), math.sin(theta)
    odd = df % 2
    term, total = 1.0, 0.0
    for k in range((df - odd) // 2):
        total += term
        term *= c * c * (2 * k + 1 + odd) / (2 * k + 2 + odd)
    inside = 2 / math.pi * (theta + s * c * total) if odd else s * total
    return (1 + inside) / 2


@cache
def t_quantile(p: float, df: int) -> float:
    """The t with P(T <= t) = p, by bisection to the last bit.

    >>> round(t_quantile(0.975, 2), 3)
    4.303
    """
    require(0 < p < 1, "p", p, "between 0 and 1", "p=0.975")
    if p < 0.5:
        return -t_quantile(1 - p, df)
    low, high = 0.0, 1.0
    while t_cdf(high, df) < p:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
    return high


def mean_interval(differences: Sequence[float], level: float = LEVEL) -> Interval:
    """Mean +- t(1 - level/2, n - 1) s / sqrt(n).

    >>> interval = mean_interval([1.0, 2.0, 3.0])
    >>> f"{interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
    '2.00 [-0.48, 4.48]'
    """
    n = len(differences)
    require(n >= 1, "seeds", n, "at least 1", "--seeds 1,2,3")
    bad = [value for value in differences if not math.isfinite(value)]
    require(not bad, "differences", bad, "finite numbers", "the rule for diverged runs in docs/claims.md")
    mean = math.fsum(differences) / n
    if n == 1:
        return Interval(mean, -math.inf, math.inf, 1, math.nan)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in differences) / (n - 1))
    half = t_quantile(1 - level / 2, n - 1) * deviation / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n, deviation)


def paired(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> Interval:
    """The interval of a - b, where a[i] and b[i] have the same seed.

    >>> difference = paired([52.1, 53.0, 51.8], [50.0, 51.2, 50.5])
    >>> f"{difference.mean:.2f} [{difference.low:.2f}, {difference.high:.2f}]"
    '1.73 [0.73, 2.74]'
    """
    return mean_interval([x - y for x, y in zip(a, b, strict=True)], level)


def log_ratio(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> Interval:
    """The interval of ln(a / b), paired over seeds; below 0 means that a fluctuates less than b.

    >>> ratio = log_ratio([0.5, 0.6, 0.4], [1.0, 1.1, 0.9])
    >>> round(math.exp(ratio.mean), 2), ratio.high < 0
    (0.49, True)
    """
    bad = [value for value in (*a, *b) if not value > 0]
    require(not bad, "fluctuation", bad, "above 0", "a curve that is not constant")
    return paired([math.log(x) for x in a], [math.log(y) for y in b], level)


@dataclass(frozen=True)
class Pooled:
    """One variance for several groups of differences, and Bartlett's p that they have the same."""

    variance: float
    df: int
    groups: int
    p: float

    @property
    def allowed(self) -> bool:
        """Whether Bartlett's test does not reject equal variances at 5 %."""
        return self.p >= LEVEL

    def interval(self, differences: Sequence[float], level: float = LEVEL) -> Interval:
        """Mean +- t(1 - level/2, df) s_p / sqrt(n)."""
        n, mean = len(differences), math.fsum(differences) / len(differences)
        half = t_quantile(1 - level / 2, self.df) * math.sqrt(self.variance / n)
        return Interval(mean, mean - half, mean + half, n, math.sqrt(self.variance))


def pool(groups: Sequence[Sequence[float]]) -> Pooled | None:
    """The mean of the groups' variances, weighted by n - 1; None where fewer than two have a variance.

    >>> pooled = pool([[1.0, 2.0, 3.0], [0.0, 1.0, 5.0]])
    >>> pooled.variance, pooled.df, pooled.allowed
    (4.0, 4, True)
    """
    usable = [group for group in groups if len(group) > 1]
    if len(usable) < 2:
        return None
    freedoms = [len(group) - 1 for group in usable]
    variances = [mean_interval(group).deviation ** 2 for group in usable]
    variance = math.fsum(df * v for df, v in zip(freedoms, variances, strict=True)) / sum(freedoms)
    return Pooled(variance, sum(freedoms), len(usable), bartlett(variances, freedoms))


def bartlett(variances: Sequence[float], freedoms: Sequence[int]) -> float:
    """P of Bartlett's test that k variances are equal: chi-squared with k - 1 degrees of freedom.

    With N = sum(df) and s_p^2 the weighted mean, the statistic is
    (N ln s_p^2 - sum(df ln s^2)) / (1 + (sum(1 / df) - 1 / N) / (3 (k - 1))).

    >>> round(bartlett([1.0, 4.0], [4, 4]), 3)
    0.208
    """
    k, total = len(variances), sum(freedoms)
    if min(variances) <= 0:  # a group without spread has no logarithm
        return 0.0
    pooled = math.fsum(df * v for df, v in zip(freedoms, variances, strict=True)) / total
    spread = total * math.log(pooled) - math.fsum(
        df * math.log(v) for df, v in zip(freedoms, variances, strict=True)
    )
    correction = 1 + (math.fsum(1 / df for df in freedoms) - 1 / total) / (3 * (k - 1))
    return chi2_above(max(0.0, spread / correction), k - 1)


def chi2_above(x: float, df: int) -> float:
    """P(chi-squared > x) for a whole number of degrees of freedom.

    Q(a + 1, z) = Q(a, z) + z^a e^-z / Gamma(a + 1), from Q(1/2, z) = erfc(sqrt(z)) and Q(1, z) = e^-z, with
    a = df / 2 and z = x / 2.

    >>> round(chi2_above(3.841, 1), 3)
    0.05
    """
    require(df >= 1, "df", df, "at least 1", "df=2")
    z, a = x / 2, (0.5 if df % 2 else 1.0)
    total = math.erfc(math.sqrt(z)) if df % 2 else math.exp(-z)
    while a < df / 2:
        total += math.exp(a * math.log(z) - z - math.lgamma(a + 1)) if z > 0 else 0.0
        a += 1
    return min(1.0, total)
