"""Every momentum scheme of Section 3 and since, in its own parameters: FedGM at some (eta, beta, nu).

Each function is the ``_target_`` of a yaml in conf/algorithm; :mod:`fedgm.server.family` lists them all.

Momentum that *sums* its updates (Flower, TFF, ``torch.optim.SGD``) and momentum that *averages* them
(the paper, Eq. 2) go by one name. ``lr=1 beta=0.9`` of the first is ``eta=10 beta=0.9`` of the second:

>>> fedavgm_summed(lr=1.0, beta=0.75)
GeneralMomentum(eta=4.0, beta=0.75, nu=1.0, nu_is_beta=False)
"""

from dataclasses import dataclass
from math import inf, isfinite, sqrt

from fedgm.errors import require
from fedgm.server.momentum import GeneralMomentum, PrimalAveraging


def fedavg() -> GeneralMomentum:
    """Plain averaging; beta is without effect while nu = 0.

    >>> fedavg().hyper
    {'eta': 1.0, 'beta': 0.0, 'nu': 0.0}
    """
    return GeneralMomentum(1.0, 0.0, 0.0)


def fedsgd(eta: float) -> GeneralMomentum:
    """FedAvg with a server rate.

    >>> fedsgd(eta=0.5).hyper
    {'eta': 0.5, 'beta': 0.0, 'nu': 0.0}
    """
    return GeneralMomentum(_positive("eta", eta), 0.0, 0.0)


def fedavgm(eta: float, beta: float) -> GeneralMomentum:
    """Heavy ball in the paper's damped form.

    >>> fedavgm(eta=1.0, beta=0.9).hyper
    {'eta': 1.0, 'beta': 0.9, 'nu': 1.0}
    """
    return GeneralMomentum(_positive("eta", eta), _factor("beta", beta), 1.0)


def fedavgm_summed(lr: float, beta: float) -> GeneralMomentum:
    """Heavy ball of Hsu 2019, Flower, TFF and SlowMo: ``v = beta v + D; x -= lr v``; v is d/(1-beta).

    >>> fedavgm_summed(lr=0.5, beta=0.5).hyper
    {'eta': 1.0, 'beta': 0.5, 'nu': 1.0}
    """
    return GeneralMomentum(_positive("lr", lr) / (1 - _factor("beta", beta)), beta, 1.0)


def fednag(eta: float, beta: float) -> GeneralMomentum:
    """Nesterov in the paper's damped form.

    >>> fednag(eta=1.0, beta=0.9).hyper
    {'eta': 1.0, 'beta': 0.9, 'nu': 0.9}
    """
    return GeneralMomentum(_positive("eta", eta), _factor("beta", beta), beta, nu_is_beta=True)


def nesterov_summed(lr: float, beta: float) -> GeneralMomentum:
    """Nesterov of ``torch.optim.SGD``, FedMom and DiLoCo: ``v = beta v + D; x -= lr (D + beta v)``.

    >>> nesterov_summed(lr=0.5, beta=0.5).hyper
    {'eta': 1.0, 'beta': 0.5, 'nu': 0.5}
    """
    return GeneralMomentum(_positive("lr", lr) / (1 - _factor("beta", beta)), beta, beta, nu_is_beta=True)


def snoo(lr: float, mu: float) -> GeneralMomentum:
    """SNOO's outer step: ``b = mu b + D; x -= lr (D + mu b)``, summed Nesterov as DiLoCo's.

    >>> snoo(lr=0.7, mu=0.5).hyper
    {'eta': 1.4, 'beta': 0.5, 'nu': 0.5}
    """
    return GeneralMomentum(_positive("lr", lr) / (1 - _factor("mu", mu)), mu, mu, nu_is_beta=True)


def fedgm(eta: float, beta: float, nu: float) -> GeneralMomentum:
    """Eq. 2 itself; nu outside [0, 1] is legal.

    >>> fedgm(eta=1.0, beta=0.9, nu=0.7).hyper
    {'eta': 1.0, 'beta': 0.9, 'nu': 0.7}
    """
    require(isfinite(nu), "algorithm.nu", nu, "a finite number, usually in [0, 1]", "algorithm.nu=0.9")
    return GeneralMomentum(_positive("eta", eta), _factor("beta", beta), nu)


def snv(a: float, b1: float, b2: float) -> GeneralMomentum:
    """Synthesised Nesterov Variants (Lessard 2016), seen from the point x where gradients are taken.

    ``s' = s - a D + b1 (s - s_prev); x = s' + b2 (s' - s)``.

    >>> snv(a=0.5, b1=0.5, b2=0.5).hyper
    {'eta': 1.0, 'beta': 0.5, 'nu': 0.5}
    """
    _positive("a", a)
    allowed = "0 < b1 < 1, since nu divides by b1 (without momentum take fedsgd)"
    require(0 < b1 < 1, "algorithm.b1", b1, allowed, "algorithm.b1=0.9")
    require(isfinite(b2), "algorithm.b2", b2, "a finite number", "algorithm.b2=0.9")
    return GeneralMomentum(a / (1 - b1), b1, 1 - (1 - b1) * b2 / b1)


def triple(L: float, kappa: float) -> GeneralMomentum:
    """Triple Momentum (Van Scoy 2018) for an L-smooth function of condition number kappa.

    >>> {name: round(value, 4) for name, value in triple(L=7.2, kappa=100.0).hyper.items()}
    {'eta': 1.001, 'beta': 0.7364, 'nu': 0.8612}
    """
    r = 1 - 1 / sqrt(_condition(kappa))
    return snv((1 + r) / _positive("L", L), r * r / (2 - r), r * r / ((1 + r) * (2 - r)))


def robust(L: float, kappa: float, r: float) -> GeneralMomentum:
    """Robust Momentum (Cyrus 2018); r runs from triple momentum to gradient descent.

    >>> {name: round(value, 4) for name, value in robust(L=5.8, kappa=100.0, r=0.92).hyper.items()}
    {'eta': 0.9926, 'beta': 0.7866, 'nu': 0.8263}
    """
    low, high = 1 - 1 / sqrt(_condition(kappa)), 1 - 1 / kappa
    legal = low - 1e-6 <= r <= high + 1e-6  # six digits, as printed, may lie just outside
    allowed = f"1 - 1/sqrt(kappa) = {low:.6g} <= r <= 1 - 1/kappa = {high:.6g}"
    require(legal, "algorithm.r", r, allowed, f"algorithm.r={(low + high) / 2:.4g}")
    slope = (1 - r) ** 2 * (1 + r)
    return snv(kappa * slope / _positive("L", L), kappa * r**3 / (kappa - 1), r**3 / ((kappa - 1) * slope))


def pid(kP: float, kI: float, kD: float) -> GeneralMomentum:
    """A PID controller whose filtered derivative forgets at the rate beta = kD / (kD - kP).

    >>> pid(kP=-1.0, kI=1.0, kD=1.0).hyper
    {'eta': 1.0, 'beta': 0.5, 'nu': 1.0}
    """
    _positive("kI", kI)
    if kP == 0 and kD == 0:
        return GeneralMomentum(kI, 0.0, 0.0)
    legal = kP * kD < 0 and isfinite(kP * kD)
    require(legal, "algorithm.kD", kD, f"the sign opposite to kP={kP:g}", f"algorithm.kD={-9 * kP or 1:g}")
    return GeneralMomentum(kI, kD / (kD - kP), kP * kP / (kI * kD))


def pid_opt(a: float, r: float, Kd: float) -> GeneralMomentum:
    """The PID optimiser (An 2018): ``V = a V - r D; W = a W + (1-a)(D - D_prev); x += V + Kd W``.

    A summed heavy ball and a derivative term; Kd > 0 makes nu > 1.

    >>> pid_opt(a=0.5, r=0.5, Kd=-0.5).hyper
    {'eta': 1.0, 'beta': 0.5, 'nu': 0.5}
    """
    _positive("r", r)
    _factor("a", a)
    require(isfinite(Kd), "algorithm.Kd", Kd, "a finite number", "algorithm.Kd=0")
    if a == 0:
        require(Kd == 0, "algorithm.Kd", Kd, "0 where a = 0, since nu divides by a", "algorithm.Kd=0")
        return GeneralMomentum(r, 0.0, 0.0)
    return GeneralMomentum(r / (1 - a), a, 1 + Kd * (1 - a) ** 2 / (r * a))


def accsgd(delta: float, kappa: float, xi: float, eps: float = 0.7) -> GeneralMomentum:
    """AccSGD (Kidambi 2018): short step delta, long step kappa, advantage xi; its authors fix eps.

    >>> {name: round(value, 4) for name, value in accsgd(delta=0.22, kappa=100.0, xi=10.0).hyper.items()}
    {'eta': 0.9965, 'beta': 0.8888, 'nu': 0.7792}
    """
    _positive("delta", delta)
    _positive("xi", xi)
    _positive("eps", eps)
    allowed = f"eps^2 xi = {eps * eps * xi:.6g} <= kappa, or beta turns negative"
    require(
        eps * eps * xi <= kappa < inf, "algorithm.kappa", kappa, allowed, f"algorithm.kappa={xi * xi + 1:g}"
    )
    beta = (kappa - eps * eps * xi) / (kappa + eps * xi)
    return GeneralMomentum(delta * eps * (1 + xi) / (1 + eps), beta, (eps * xi - 1) / (eps * (1 + xi)))


def gpa(a: float, mu_x: float, mu_y: float) -> GeneralMomentum:
    """Primal averaging: ``z -= a D; x = mu_x x + (1-mu_x) z``; y = mu_y x + (1-mu_y) z is sent.

    With e = x - z, e = a mu_x/(1-mu_x) d, so that y steps as Eq. 2 does.

    >>> gpa(a=1.0, mu_x=0.9, mu_y=0.8).hyper
    {'eta': 1.0, 'beta': 0.9, 'nu': 0.8}
    """
    require(isfinite(mu_y), "algorithm.mu_y", mu_y, "a finite number", "algorithm.mu_y=0.9")
    return PrimalAveraging(_positive("a", a), _factor("mu_x", mu_x), mu_y)


@dataclass(frozen=True)
class ScheduleFree(PrimalAveraging):
    """FedGM whose beta is that of ``schedule=schedule_free``; under another schedule beta would stay 0."""


def schedule_free(a: float, b: float) -> GeneralMomentum:
    """Schedule-Free SGD (Defazio 2024): as GPA, with x the mean of all z, so that beta changes every round.

    Its recursion is z -= a D; x = (1-c) x + c z with c = 1/(t+1); y = (1-b) z + b x is sent. With
    e = x - z = a (t-1)/2 d the steps of y are those of Eq. 2 at eta = a (1 - b/2), nu = b/(2-b) and
    beta_t = (t-1)/(t+1), t from 1: 0 in the first round, later betas come from ``schedule=schedule_free``.
    W1 grows with t, so Eq. 3 does not hold.

    >>> schedule_free(a=1.0, b=0.5).hyper  # of round 1
    {'eta': 0.75, 'beta': 0.0, 'nu': 0.3333333333333333}
    """
    return ScheduleFree(_positive("a", a) * (1 - _factor("b", b) / 2), 0.0, b / (2 - b))


def ema_nesterov(b: float, g: float) -> GeneralMomentum:
    """EMA-Nesterov: ``x' = x + b m - D; m = g m + (1-g)(x' - x)``; x + b m is sent; m is -d/(1-b).

    >>> ema_nesterov(b=0.5, g=0.5).hyper
    {'eta': 2.0, 'beta': 0.75, 'nu': 0.5}
    """
    return GeneralMomentum(1 / (1 - _factor("b", b)), _factor("g", g) + (1 - g) * b, b)


def fedacg(lam: float) -> GeneralMomentum:
    """FedACG's server: ``m = lam m + D; x -= m``, summed Nesterov at rate 1; x - lam m is sent.

    >>> fedacg(lam=0.75).hyper
    {'eta': 4.0, 'beta': 0.75, 'nu': 0.75}
    """
    return PrimalAveraging(1 / (1 - _factor("lam", lam)), lam, lam, nu_is_beta=True)


def _positive(name: str, value: float) -> float:
    """The value, if it is a positive number."""
    require(0 < value < inf, f"algorithm.{name}", value, "a positive number", f"algorithm.{name}=1.0")
    return value


def _factor(name: str, value: float) -> float:
    """The value, if it can be a momentum factor."""
    require(0 <= value < 1, f"algorithm.{name}", value, f"0 <= {name} < 1", f"algorithm.{name}=0.9")
    return value


def _condition(kappa: float) -> float:
    """The value, if it can be a condition number with room for momentum."""
    require(1 < kappa < inf, "algorithm.kappa", kappa, "kappa > 1", "algorithm.kappa=10")
    return kappa
