"""The schemes as data: what ``fedgm convert`` lists, and the way from any one to any other."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from fedgm.errors import ClashError, ConfigError
from fedgm.server import conversions as c
from fedgm.server import since
from fedgm.server.momentum import Momentum


class Scheme(NamedTuple):
    """One way to write server momentum. D is the cohort's mean update, x the model."""

    name: str
    example: Mapping[str, float]  # its parameters, each with a usual value
    to_momentum: Callable[..., Momentum]
    from_momentum: Callable[[Momentum], c.Parameters]  # raises where the scheme cannot express it
    recursion: str
    note: str
    optional: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names, in the order of its paper."""
        return tuple(self.example)

    @property
    def algorithm(self) -> str:
        """Its yaml in conf/algorithm."""
        return {"flower-fedavgm": "fedavgm_summed", "torch-nesterov": "fedmom"}.get(
            self.name, self.name.replace("-", "_")
        )


_SUMMED = {"lr": 0.1, "beta": 0.9}
_SUMS = "v = beta v + D;  x -= lr v"
_SUMS_NESTEROV = "v = beta v + D;  x -= lr (D + beta v)"
_SNV = "s' = s - a D + b1 (s - s_prev);  x = s' + b2 (s' - s)"

SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("fedavg", {}, c.fedavg, c.as_fedavg, "x -= D", "plain averaging"),
        Scheme("fedsgd", {"eta": 1.0}, c.fedsgd, c.as_fedsgd, "x -= eta D", "two-sided FedAvg"),
        Scheme(
            "fedavgm", {"eta": 1.0, "beta": 0.9}, c.fedavgm, c.as_fedavgm,
            "d = (1-beta) D + beta d;  x -= eta d", "damped; FedSHB in the paper",
        ),
        Scheme(
            "flower-fedavgm", _SUMMED, c.fedavgm_summed, c.as_fedavgm_summed, _SUMS,
            "summed; Hsu 2019, Flower, TFF",
        ),
        Scheme(
            "fednag", {"eta": 1.0, "beta": 0.9}, c.fednag, c.as_fednag,
            "d = (1-beta) D + beta d;  x -= eta ((1-beta) D + beta d)", "damped Nesterov",
        ),
        Scheme(
            "torch-nesterov", _SUMMED, c.nesterov_summed, c.as_nesterov_summed, _SUMS_NESTEROV,
            "summed Nesterov; also FedMom",
        ),
        Scheme("snv", {"a": 0.1, "b1": 0.9, "b2": 0.9}, c.snv, c.as_snv, _SNV, "Synthesised Nesterov"),
        Scheme(
            "triple", {"L": 7.2, "kappa": 100.0}, c.triple, c.as_triple, _SNV,
            "SNV; r = 1-1/sqrt(kappa), a = (1+r)/L, b1 = r^2/(2-r), b2 = b1/(1+r)",
        ),
        Scheme(
            "robust", {"L": 5.8, "kappa": 100.0, "r": 0.92}, c.robust, c.as_robust, _SNV,
            "SNV; q = (1-r)^2 (1+r), a = kappa q/L, b1 = kappa r^3/(kappa-1), b2 = r^3/(q (kappa-1))",
        ),
        Scheme(
            "pid", {"kP": -8.1, "kI": 1.0, "kD": 72.9}, c.pid, c.as_pid,
            "V = beta V - (1-beta) (D - D_prev);  x = x_0 - kP D - kI sum(D) + kD V",
            "controller form; beta = kD/(kD-kP)",
        ),
        Scheme(
            "pid-opt", {"a": 0.9, "r": 0.1, "Kd": -0.9}, c.pid_opt, c.as_pid_opt,
            "V = a V - r D;  W = a W + (1-a) (D - D_prev);  x += V + Kd W", "optimiser form",
        ),
        Scheme(
            "accsgd", {"delta": 0.22, "kappa": 100.0, "xi": 10.0, "eps": 0.7}, c.accsgd, c.as_accsgd,
            "w = (1-g) w + g (x - kappa delta D/eps);  x = (eps (x - delta D) + g w)/(eps + g)",
            "ASGD; g = eps^2 xi/kappa; its authors take kappa >= 1, xi <= sqrt(kappa)", ("eps",),
        ),
        Scheme(
            "slowmo", {"lr": 1.0, "beta": 0.5}, c.fedavgm_summed, c.as_fedavgm_summed, _SUMS,
            "summed; lr is its slow rate",
        ),
        Scheme(
            "diloco", {"lr": 0.7, "beta": 0.9}, c.nesterov_summed, c.as_nesterov_summed, _SUMS_NESTEROV,
            "outer step; clients run AdamW",
        ),
        Scheme(
            "snoo", {"lr": 0.7, "mu": 0.5}, c.snoo, c.as_snoo,
            "b = mu b + D;  x -= lr (D + mu b)", "outer step; clients keep AdamW's state",
        ),
        Scheme(
            "gpa", {"a": 1.0, "mu_x": 0.9, "mu_y": 0.8}, since.gpa, since.as_gpa,
            "z -= a D;  x = mu_x x + (1-mu_x) z;  y = mu_y x + (1-mu_y) z",
            "primal averaging; y is sent, x evaluated (eval.point=average)",
        ),
        Scheme(
            "ema-nesterov", {"b": 0.5, "g": 0.8}, since.ema_nesterov, since.as_ema_nesterov,
            "x' = x + b m - D;  m = g m + (1-g) (x' - x)", "x + b m is sent",
        ),
        Scheme(
            "fedacg", {"lam": 0.85}, since.fedacg, since.as_fedacg, "m = lam m + D;  x -= m",
            "x - lam m is sent; clients run FedProx",
        ),
        Scheme(
            "fedgm", {"eta": 1.0, "beta": 0.9, "nu": 0.7}, c.fedgm, c.as_fedgm,
            "d = (1-beta) D + beta d;  x -= eta ((1-nu) D + nu d)", "the paper, Eq. 2",
        ),
    )
}  # fmt: skip

ALIASES = {
    "fedmom": "torch-nesterov",
    "fedshb": "fedavgm",
    "fedavgm-summed": "flower-fedavgm",
    "asgd": "accsgd",
}


def scheme(name: str) -> Scheme:
    """The scheme of that name, however it is hyphenated."""
    key = name.lower().replace("_", "-")
    key = ALIASES.get(key, key)
    if key not in SCHEMES:
        close = get_close_matches(key, SCHEMES, n=1) or ["fedgm convert --list"]
        raise ConfigError("scheme", name, f"one of {', '.join(SCHEMES)}", close[0])
    return SCHEMES[key]


def momentum_of(name: str, parameters: c.Parameters) -> Momentum:
    """(eta, beta, nu) of a scheme in its own parameters."""
    known = scheme(name)
    for key in parameters:
        if key not in known.parameters:
            close = get_close_matches(key, known.parameters, n=1) or [
                typed(known.example) or "no parameter at all"
            ]
            allowed = f"{known.name} takes {', '.join(known.parameters) or 'no parameter'}"
            raise ClashError(f"algorithm.{key}", parameters[key], allowed, close[0])
    missing = [key for key in known.parameters if key not in parameters and key not in known.optional]
    if missing:
        raise ClashError(f"algorithm.{missing[0]}", "?", f"{known.name} needs it", typed(known.example))
    return known.to_momentum(**parameters)


def typed(parameters: c.Parameters, prefix: str = "") -> str:
    """As one types them."""
    return " ".join(f"{prefix}{key}={value:.6g}" for key, value in parameters.items())
