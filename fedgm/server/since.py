"""Members of the family since the paper, to (eta, beta, nu) and back; the model is the point that is sent."""

from math import isfinite

from fedgm.errors import require, require_fits
from fedgm.server.conversions import Parameters, _factor, _general, _match, _nesterov, _positive
from fedgm.server.momentum import Momentum

# ---- to (eta, beta, nu) ------------------------------------------------------------------------------


def gpa(a: float, mu_x: float, mu_y: float) -> Momentum:
    """Generalised Primal Averaging: with e = x - z, e = a mu_x/(1-mu_x) d, so that y steps as Eq. 2 does."""
    require(isfinite(mu_y), "algorithm.mu_y", mu_y, "a finite number", "algorithm.mu_y=0.9")
    return Momentum(_positive("a", a), _factor("mu_x", mu_x), mu_y)


def schedule_free(a: float, b: float) -> Momentum:
    """Schedule-Free SGD in its first round, beta_1 = 0; ``schedule=schedule_free`` has the later betas."""
    return Momentum(_positive("a", a) * (1 - _factor("b", b) / 2), 0.0, b / (2 - b))


def ema_nesterov(b: float, g: float) -> Momentum:
    """EMA-Nesterov: m = -d/(1-b), an average of the moves of x with b of itself fed back."""
    return Momentum(1 / (1 - _factor("b", b)), _factor("g", g) + (1 - g) * b, b)


def fedacg(lam: float) -> Momentum:
    """FedACG's server: summed Nesterov at rate 1, seen from the look-ahead point that it sends."""
    return Momentum(1 / (1 - _factor("lam", lam)), lam, lam)


# ---- back from (eta, beta, nu) -----------------------------------------------------------------------


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
