"""Other people's momentum schemes as server rules in their own parameters: ``_target_`` of a yaml each.

Each is FedGM at the converted (eta, beta, nu); the formulas are in :mod:`fedgm.server.conversions` and
:mod:`fedgm.server.since`.
"""

from fedgm.server import conversions, since
from fedgm.server.momentum import GeneralMomentum
from fedgm.server.schedule_free import ScheduleFree


def fedavgm_summed(lr: float, beta: float) -> GeneralMomentum:
    """FedAvgM of Hsu 2019, Flower and TFF: ``v = beta v + D; x -= lr v``."""
    return GeneralMomentum(*conversions.fedavgm_summed(lr, beta))


def nesterov_summed(lr: float, beta: float) -> GeneralMomentum:
    """FedMom, DiLoCo's outer step: ``v = beta v + D; x -= lr (D + beta v)``; nu stays tied to beta."""
    return GeneralMomentum(*conversions.nesterov_summed(lr, beta), nu_is_beta=True)


def snoo(lr: float, mu: float) -> GeneralMomentum:
    """SNOO's outer step: ``b = mu b + D; x -= lr (D + mu b)``; nu stays tied to beta = mu."""
    return GeneralMomentum(*conversions.snoo(lr, mu), nu_is_beta=True)


def snv(a: float, b1: float, b2: float) -> GeneralMomentum:
    """Synthesised Nesterov Variants: ``s' = s - a D + b1 (s - s_prev); x = s' + b2 (s' - s)``."""
    return GeneralMomentum(*conversions.snv(a, b1, b2))


def triple(L: float, kappa: float) -> GeneralMomentum:
    """Triple Momentum for smoothness L and condition number kappa."""
    return GeneralMomentum(*conversions.triple(L, kappa))


def robust(L: float, kappa: float, r: float) -> GeneralMomentum:
    """Robust Momentum; r trades triple momentum's speed for gradient descent's tolerance of noise."""
    return GeneralMomentum(*conversions.robust(L, kappa, r))


def pid(kP: float, kI: float, kD: float) -> GeneralMomentum:
    """A PID controller on the error -D."""
    return GeneralMomentum(*conversions.pid(kP, kI, kD))


def pid_opt(a: float, r: float, Kd: float) -> GeneralMomentum:
    """The PID optimiser: ``V = a V - r D; W = a W + (1-a)(D - D_prev); x += V + Kd W``."""
    return GeneralMomentum(*conversions.pid_opt(a, r, Kd))


def accsgd(delta: float, kappa: float, xi: float, eps: float = 0.7) -> GeneralMomentum:
    """AccSGD, also called ASGD."""
    return GeneralMomentum(*conversions.accsgd(delta, kappa, xi, eps))


def gpa(a: float, mu_x: float, mu_y: float) -> GeneralMomentum:
    """Primal averaging: ``z -= a D; x = mu_x x + (1-mu_x) z``; y = mu_y x + (1-mu_y) z is sent."""
    return GeneralMomentum(*since.gpa(a, mu_x, mu_y))


def schedule_free(a: float, b: float) -> GeneralMomentum:
    """Schedule-Free SGD: as GPA with x the mean of all z; its beta is that of ``schedule=schedule_free``."""
    return ScheduleFree(*since.schedule_free(a, b))


def ema_nesterov(b: float, g: float) -> GeneralMomentum:
    """EMA-Nesterov: ``x' = x + b m - D; m = g m + (1-g)(x' - x)``; x + b m is sent."""
    return GeneralMomentum(*since.ema_nesterov(b, g))


def fedacg(lam: float) -> GeneralMomentum:
    """FedACG's server: ``m = lam m + D; x -= m``; x - lam m is sent, so nu stays tied to beta."""
    return GeneralMomentum(*since.fedacg(lam), nu_is_beta=True)
