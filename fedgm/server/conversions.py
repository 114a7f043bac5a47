"""Every momentum scheme of Section 3 in its own parameters, to (eta, beta, nu) and back.

Momentum that *sums* its updates (Flower, TFF, ``torch.optim.SGD``) and momentum that *averages* them
(the paper, Eq. 2) go by one name. ``lr=1 beta=0.9`` of the first is ``eta=10 beta=0.9`` of the second.
"""

from collections.abc import Mapping
from math import inf, isclose, isfinite, sqrt

from fedgm.errors import ClashError, require, require_fits
from fedgm.server.momentum import Momentum, momentum_constant

Parameters = Mapping[str, float]

# ---- to (eta, beta, nu) ------------------------------------------------------------------------------


def fedavg() -> Momentum:
    """Plain averaging; beta is without effect while nu = 0."""
    return Momentum(1.0, 0.0, 0.0)


def fedsgd(eta: float) -> Momentum:
    """FedAvg with a server rate."""
    return Momentum(_positive("eta", eta), 0.0, 0.0)


def fedavgm(eta: float, beta: float) -> Momentum:
    """Heavy ball in the paper's damped form."""
    return Momentum(_positive("eta", eta), _factor("beta", beta), 1.0)


def fedavgm_summed(lr: float, beta: float) -> Momentum:
    """Heavy ball as Hsu 2019, Flower, TFF and SlowMo write it; the sum is 1/(1-beta) times the average."""
    return Momentum(_positive("lr", lr) / (1 - _factor("beta", beta)), beta, 1.0)


def fednag(eta: float, beta: float) -> Momentum:
    """Nesterov in the paper's damped form."""
    return Momentum(_positive("eta", eta), _factor("beta", beta), beta)


def nesterov_summed(lr: float, beta: float) -> Momentum:
    """Nesterov as ``torch.optim.SGD``, FedMom and DiLoCo's outer step write it."""
    return Momentum(_positive("lr", lr) / (1 - _factor("beta", beta)), beta, beta)


def snoo(lr: float, mu: float) -> Momentum:
    """SNOO's outer step: summed Nesterov, as DiLoCo's, in its own letters."""
    return Momentum(_positive("lr", lr) / (1 - _factor("mu", mu)), mu, mu)


def fedgm(eta: float, beta: float, nu: float) -> Momentum:
    """Eq. 2 itself; nu outside [0, 1] is legal."""
    require(isfinite(nu), "algorithm.nu", nu, "a finite number, usually in [0, 1]", "algorithm.nu=0.9")
    return Momentum(_positive("eta", eta), _factor("beta", beta), nu)


def snv(a: float, b1: float, b2: float) -> Momentum:
    """Synthesised Nesterov Variants (Lessard 2016); the model is the point y where gradients are taken."""
    _positive("a", a)
    allowed = "0 < b1 < 1, since nu divides by b1 (without momentum take fedsgd)"
    require(0 < b1 < 1, "algorithm.b1", b1, allowed, "algorithm.b1=0.9")
    require(isfinite(b2), "algorithm.b2", b2, "a finite number", "algorithm.b2=0.9")
    return Momentum(a / (1 - b1), b1, 1 - (1 - b1) * b2 / b1)


def triple(L: float, kappa: float) -> Momentum:
    """Triple Momentum (Van Scoy 2018) for an L-smooth function of condition number kappa."""
    r = 1 - 1 / sqrt(_condition(kappa))
    return snv((1 + r) / _positive("L", L), r * r / (2 - r), r * r / ((1 + r) * (2 - r)))


def robust(L: float, kappa: float, r: float) -> Momentum:
    """Robust Momentum (Cyrus 2018); r runs from triple momentum to gradient descent."""
    low, high = 1 - 1 / sqrt(_condition(kappa)), 1 - 1 / kappa
    legal = low - 1e-6 <= r <= high + 1e-6  # six digits, as printed, may lie just outside
    allowed = f"1 - 1/sqrt(kappa) = {low:.6g} <= r <= 1 - 1/kappa = {high:.6g}"
    require(legal, "algorithm.r", r, allowed, f"algorithm.r={(low + high) / 2:.4g}")
    slope = (1 - r) ** 2 * (1 + r)
    return snv(kappa * slope / _positive("L", L), kappa * r**3 / (kappa - 1), r**3 / ((kappa - 1) * slope))


def pid(kP: float, kI: float, kD: float) -> Momentum:
    """A PID controller whose filtered derivative forgets at the rate beta = kD / (kD - kP)."""
    _positive("kI", kI)
    if kP == 0 and kD == 0:
        return Momentum(kI, 0.0, 0.0)
    legal = kP * kD < 0 and isfinite(kP * kD)
    require(legal, "algorithm.kD", kD, f"the sign opposite to kP={kP:g}", f"algorithm.kD={-9 * kP or 1:g}")
    return Momentum(kI, kD / (kD - kP), kP * kP / (kI * kD))


def pid_opt(a: float, r: float, Kd: float) -> Momentum:
    """The PID optimiser (An 2018): a summed heavy ball and a derivative term; Kd > 0 makes nu > 1."""
    _positive("r", r)
    _factor("a", a)
    require(isfinite(Kd), "algorithm.Kd", Kd, "a finite number", "algorithm.Kd=0")
    if a == 0:
        require(Kd == 0, "algorithm.Kd", Kd, "0 where a = 0, since nu divides by a", "algorithm.Kd=0")
        return Momentum(r, 0.0, 0.0)
    return Momentum(r / (1 - a), a, 1 + Kd * (1 - a) ** 2 / (r * a))


def accsgd(delta: float, kappa: float, xi: float, eps: float = 0.7) -> Momentum:
    """AccSGD (Kidambi 2018): short step delta, long step kappa, advantage xi; its authors fix eps."""
    _positive("delta", delta)
    _positive("xi", xi)
    _positive("eps", eps)
    allowed = f"eps^2 xi = {eps * eps * xi:.6g} <= kappa, or beta turns negative"
    require(
        eps * eps * xi <= kappa < inf, "algorithm.kappa", kappa, allowed, f"algorithm.kappa={xi * xi + 1:g}"
    )
    beta = (kappa - eps * eps * xi) / (kappa + eps * xi)
    return Momentum(delta * eps * (1 + xi) / (1 + eps), beta, (eps * xi - 1) / (eps * (1 + xi)))


# ---- back from (eta, beta, nu) -----------------------------------------------------------------------


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


# ---- ranges and matches ------------------------------------------------------------------------------


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
