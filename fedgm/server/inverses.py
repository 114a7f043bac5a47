"""The way back: (eta, beta, nu) in the parameters of each scheme, or why the scheme cannot express them.

>>> as_fedavgm_summed(Momentum(eta=10.0, beta=0.75, nu=1.0))
{'lr': 2.5, 'beta': 0.75}
"""

from collections.abc import Mapping
from math import isclose, sqrt

from fedgm.errors import ClashError, require_fits
from fedgm.server.momentum import Momentum, momentum_constant

Parameters = Mapping[str, float]


def as_fedavg(m: Momentum) -> Parameters:
    """Only where no momentum is left and eta is 1."""
    eta = as_fedsgd(m)["eta"]
    _match("eta", eta, 1.0, "fedavg has eta = 1", f"algorithm=fedsgd algorithm.eta={eta:.6g}")
    return {}


def as_fedsgd(m: Momentum) -> Parameters:
    """Only where no momentum is left: beta nu = 0."""
    if not _plain(m):
        _match("nu", m.nu, 0.0, "without momentum nu = 0", _general(m))
    return {"eta": m.eta}


def as_fedavgm(m: Momentum) -> Parameters:
    """Only nu = 1."""
    return {"eta": m.eta, "beta": _heavy_ball(m)}


def as_fedavgm_summed(m: Momentum) -> Parameters:
    """Only nu = 1."""
    beta = _heavy_ball(m)
    return {"lr": m.eta * (1 - beta), "beta": beta}


def as_fednag(m: Momentum) -> Parameters:
    """Only nu = beta."""
    return {"eta": m.eta, "beta": _nesterov(m)}


def as_nesterov_summed(m: Momentum) -> Parameters:
    """Only nu = beta."""
    beta = _nesterov(m)
    return {"lr": m.eta * (1 - beta), "beta": beta}


def as_snoo(m: Momentum) -> Parameters:
    """Only nu = beta."""
    mu = _nesterov(m)
    return {"lr": m.eta * (1 - mu), "mu": mu}


def as_fedgm(m: Momentum) -> Parameters:
    """Always."""
    return m._asdict()


def as_snv(m: Momentum) -> Parameters:
    """Whenever beta > 0."""
    _needs_beta(m, "snv divides by b1 = beta")
    return {"a": m.eta * (1 - m.beta), "b1": m.beta, "b2": (1 - m.nu) * m.beta / (1 - m.beta)}


def as_triple(m: Momentum) -> Parameters:
    """Only for the nu that triple momentum pairs with this beta."""
    _needs_beta(m, "triple has kappa > 1")
    r = _triple_rate(m.beta)
    nu = 1 - (1 - m.beta) / (1 + r)
    _match("nu", m.nu, nu, f"at beta = {m.beta:.6g} triple has nu = {nu:.6g}", _general(m))
    return {"L": (1 + r) / (m.eta * (1 - m.beta)), "kappa": 1 / (1 - r) ** 2}


def as_robust(m: Momentum) -> Parameters:
    """For nu from 0 (gradient descent) to triple momentum's; r solves one cubic, by bisection."""
    _needs_beta(m, "robust has kappa > 1")
    low, high = sqrt(m.beta), _triple_rate(m.beta)  # where nu is 0, where nu is triple momentum's
    top = 1 - (1 - m.beta) / (1 + high)
    over = max(m.nu - top, -m.nu)
    allowed = f"at beta = {m.beta:.6g} robust has 0 <= nu <= {top:.6g}, which this misses by {over:.6g}"
    require_fits(over < 1e-9, "algorithm.nu", m.nu, allowed, _general(m))
    for _ in range(100):
        r = (low + high) / 2
        above = (1 - m.nu) * m.beta * (1 - r) ** 2 * (1 + r) > (1 - m.beta) * (m.beta - r**3)
        low, high = (low, r) if above else (r, high)
    r = (low + high) / 2
    kappa = m.beta / (m.beta - r**3)
    return {"L": kappa * (1 - r) ** 2 * (1 + r) / (m.eta * (1 - m.beta)), "kappa": kappa, "r": r}


def as_pid(m: Momentum) -> Parameters:
    """Always; the proportional gain is -W1."""
    if _plain(m):
        return {"kP": 0.0, "kI": m.eta, "kD": 0.0}
    W1 = momentum_constant(m)
    return {"kP": -W1, "kI": m.eta, "kD": W1 * m.beta / (1 - m.beta)}


def as_pid_opt(m: Momentum) -> Parameters:
    """Always."""
    Kd = (m.nu - 1) * m.eta * m.beta / (1 - m.beta)
    return {"a": m.beta, "r": m.eta * (1 - m.beta), "Kd": Kd + 0.0}  # never -0.0


def as_accsgd(m: Momentum) -> Parameters:
    """For -1/eps < nu < 1, at the authors' eps = 0.7."""
    eps = 0.7
    allowed = f"accsgd has -1/eps = {-1 / eps:.6g} < nu < 1, reaching nu = 1 only as xi goes to infinity"
    require_fits(-1 / eps < m.nu < 1 - 1e-12, "algorithm.nu", m.nu, allowed, _general(m))
    xi = (1 + m.nu * eps) / (eps * (1 - m.nu))
    kappa = eps * xi * (eps + m.beta) / (1 - m.beta)
    return {"delta": m.eta * (1 + eps) / (eps * (1 + xi)), "kappa": kappa, "xi": xi}


def as_gpa(m: Momentum) -> Parameters:
    """Always."""
    return {"a": m.eta, "mu_x": m.beta, "mu_y": m.nu}


def as_ema_nesterov(m: Momentum) -> Parameters:
    """Only for eta = 1/(1-nu) and 0 <= nu <= beta."""
    legal = -1e-9 <= m.nu <= m.beta + 1e-9
    require_fits(
        legal, "algorithm.nu", f"{m.nu:.6g}", f"ema-nesterov has 0 <= nu <= beta = {m.beta:.6g}", _general(m)
    )
    eta = 1 / (1 - m.nu)
    _match("eta", m.eta, eta, f"at nu = {m.nu:.6g} ema-nesterov has eta = 1/(1-nu) = {eta:.6g}", _general(m))
    return {"b": m.nu, "g": max(0.0, (m.beta - m.nu) / (1 - m.nu))}


def as_fedacg(m: Momentum) -> Parameters:
    """Only for nu = beta and eta = 1/(1-beta)."""
    lam = _nesterov(m)
    eta = 1 / (1 - lam)
    _match("eta", m.eta, eta, f"at beta = {lam:.6g} fedacg has eta = 1/(1-beta) = {eta:.6g}", _general(m))
    return {"lam": lam}


def _plain(m: Momentum) -> bool:
    """Whether Eq. 2 comes down to x -= eta D."""
    return m.beta == 0 or m.nu == 0


def _heavy_ball(m: Momentum) -> float:
    """The beta of a scheme that has nu = 1."""
    if _plain(m):
        return 0.0
    _match("nu", m.nu, 1.0, "FedAvgM has nu = 1: all of the step goes through d", _general(m))
    return m.beta


def _nesterov(m: Momentum) -> float:
    """The beta of a scheme that has nu = beta."""
    if _plain(m):
        return 0.0
    _match("nu", m.nu, m.beta, f"Nesterov has nu = beta = {m.beta:.6g}", _general(m))
    return m.beta


def _triple_rate(beta: float) -> float:
    """Triple momentum's r at this beta: the positive root of r^2 = beta (2 - r)."""
    return (-beta + sqrt(beta * beta + 8 * beta)) / 2


def _needs_beta(m: Momentum, why: str) -> None:
    """Refuse beta = 0."""
    require_fits(
        m.beta > 0,
        "algorithm.beta",
        m.beta,
        f"{why}, so beta > 0",
        f"algorithm=fedsgd algorithm.eta={m.eta:.6g}",
    )


def _match(name: str, value: float, must: float, why: str, hint: str) -> None:
    """Refuse a value that the target scheme cannot have, and say by how much."""
    if not isclose(value, must, rel_tol=1e-9, abs_tol=1e-9):
        raise ClashError(
            f"algorithm.{name}", f"{value:.6g}", f"{why}, which this misses by {value - must:+.6g}", hint
        )


def _general(m: Momentum) -> str:
    """The same step as FedGM, which has every nu."""
    return f"algorithm=fedgm algorithm.eta={m.eta:.6g} algorithm.beta={m.beta:.6g} algorithm.nu={m.nu:.6g}"
