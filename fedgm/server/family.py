"""The momentum family as one table: what ``fedgm convert``, labels and the table of docs/momentum.md show.

A new member is an entry here (with its formula in :mod:`fedgm.server.schemes` and the way back in
:mod:`fedgm.server.inverses`), a yaml in conf/algorithm and its recursion in tests/paper.

    python -m fedgm.server.family      # the table of docs/momentum.md
"""

import warnings
from collections.abc import Callable, Mapping
from typing import NamedTuple

from fedgm.errors import ClashError, ConfigError, near
from fedgm.server import inverses as back
from fedgm.server import schemes as to
from fedgm.server.momentum import GeneralMomentum, Momentum


class Scheme(NamedTuple):
    """One way to write server momentum. D is the cohort's mean update, x the model."""

    name: str  # in `fedgm convert`
    label: str  # as papers print it
    example: Mapping[str, float]  # its parameters, each with a usual value
    rule: Callable[..., GeneralMomentum]
    inverse: Callable[[Momentum], back.Parameters] | None  # raises where the scheme cannot express it
    recursion: str
    note: str
    formulas: tuple[str, str, str]  # eta, beta and nu in its parameters
    remark: str = ""  # in the table of docs/momentum.md
    yaml: str = ""  # its file in conf/algorithm, where that has another name
    beside: str = ""  # what to choose with it
    optional: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names, in the order of its paper."""
        return tuple(self.example)

    @property
    def algorithm(self) -> str:
        """Its yaml in conf/algorithm."""
        return self.yaml or self.name.replace("-", "_")

    def from_momentum(self, m: Momentum) -> back.Parameters:
        """``m`` in the scheme's own parameters; :class:`ConfigError` where it cannot express ``m``.

        >>> SCHEMES["gpa"].from_momentum(Momentum(1.0, 0.9, 0.7))
        {'a': 1.0, 'mu_x': 0.9, 'mu_y': 0.7}
        """
        if self.inverse is None:
            raise ClashError(
                "scheme", self.name, "its beta changes every round", f"algorithm={self.algorithm}"
            )
        return self.inverse(m)


_SUMMED = {"lr": 0.1, "beta": 0.9}
_SUMS = "v = beta v + D;  x -= lr v"
_SUMS_NESTEROV = "v = beta v + D;  x -= lr (D + beta v)"
_SNV = "s' = s - a D + b1 (s - s_prev);  x = s' + b2 (s' - s)"
_HEAVY_BALL = ("lr/(1-beta)", "beta", "1")
_NESTEROV = ("lr/(1-beta)", "beta", "beta")

FAMILY = (
    Scheme(
        "fedavg", "FedAvg", {}, to.fedavg, back.as_fedavg, "x -= D", "plain averaging", ("1", "any", "0"),
    ),
    Scheme(
        "fedsgd", "FedSGD", {"eta": 1.0}, to.fedsgd, back.as_fedsgd, "x -= eta D", "two-sided FedAvg",
        ("eta", "any", "0"),
    ),
    Scheme(
        "fedavgm", "FedAvgM", {"eta": 1.0, "beta": 0.9}, to.fedavgm, back.as_fedavgm,
        "d = (1-beta) D + beta d;  x -= eta d", "damped; FedSHB in the paper", ("eta", "beta", "1"), "damped",
    ),
    Scheme(
        "flower-fedavgm", "FedAvgM (summed)", _SUMMED, to.fedavgm_summed, back.as_fedavgm_summed, _SUMS,
        "summed; Hsu 2019, Flower, TFF", _HEAVY_BALL, "summed", yaml="fedavgm_summed",
    ),
    Scheme(
        "fednag", "FedNAG", {"eta": 1.0, "beta": 0.9}, to.fednag, back.as_fednag,
        "d = (1-beta) D + beta d;  x -= eta ((1-beta) D + beta d)", "damped Nesterov",
        ("eta", "beta", "beta"), "damped",
    ),
    Scheme(
        "torch-nesterov", "FedMom", _SUMMED, to.nesterov_summed, back.as_nesterov_summed, _SUMS_NESTEROV,
        "summed Nesterov; also FedMom", _NESTEROV, "summed", yaml="fedmom",
    ),
    Scheme(
        "snv", "SNV", {"a": 0.1, "b1": 0.9, "b2": 0.9}, to.snv, back.as_snv, _SNV, "Synthesised Nesterov",
        ("a/(1-b1)", "b1", "1-(1-b1) b2/b1"),
    ),
    Scheme(
        "triple", "Triple Momentum", {"L": 7.2, "kappa": 100.0}, to.triple, back.as_triple, _SNV,
        "SNV; r = 1-1/sqrt(kappa), a = (1+r)/L, b1 = r^2/(2-r), b2 = b1/(1+r)",
        ("SNV with r = 1-1/sqrt(kappa),", "a = (1+r)/L, b1 = r²/(2-r),", "b2 = b1/(1+r)"),
    ),
    Scheme(
        "robust", "Robust Momentum", {"L": 5.8, "kappa": 100.0, "r": 0.92}, to.robust, back.as_robust, _SNV,
        "SNV; q = (1-r)^2 (1+r), a = kappa q/L, b1 = kappa r^3/(kappa-1), b2 = r^3/(q (kappa-1))",
        ("SNV with a = kappa q/L,", "b1 = kappa r³/(kappa-1),", "b2 = r³/(q(kappa-1)), q = (1-r)²(1+r)"),
    ),
    Scheme(
        "pid", "PID", {"kP": -8.1, "kI": 1.0, "kD": 72.9}, to.pid, back.as_pid,
        "V = beta V - (1-beta) (D - D_prev);  x = x_0 - kP D - kI sum(D) + kD V",
        "controller form; beta = kD/(kD-kP)", ("kI", "kD/(kD-kP)", "kP²/(kI kD)"),
    ),
    Scheme(
        "pid-opt", "PID optimiser", {"a": 0.9, "r": 0.1, "Kd": -0.9}, to.pid_opt, back.as_pid_opt,
        "V = a V - r D;  W = a W + (1-a) (D - D_prev);  x += V + Kd W", "optimiser form",
        ("r/(1-a)", "a", "1 + Kd (1-a)²/(r a)"),
    ),
    Scheme(
        "accsgd", "AccSGD", {"delta": 0.22, "kappa": 100.0, "xi": 10.0, "eps": 0.7}, to.accsgd,
        back.as_accsgd,
        "w = (1-g) w + g (x - kappa delta D/eps);  x = (eps (x - delta D) + g w)/(eps + g)",
        "ASGD; g = eps^2 xi/kappa; its authors take kappa >= 1, xi <= sqrt(kappa)",
        ("delta eps (1+xi)/(1+eps)", "(kappa-eps² xi)/(kappa+eps xi)", "(eps xi-1)/(eps(1+xi))"),
        optional=("eps",),
    ),
    Scheme(
        "slowmo", "SlowMo", {"lr": 1.0, "beta": 0.5}, to.fedavgm_summed, back.as_fedavgm_summed, _SUMS,
        "summed; lr is its slow rate", _HEAVY_BALL, "summed",
    ),
    Scheme(
        "diloco", "DiLoCo", {"lr": 0.7, "beta": 0.9}, to.nesterov_summed, back.as_nesterov_summed,
        _SUMS_NESTEROV, "outer step; clients run AdamW", _NESTEROV, "summed",
    ),
    Scheme(
        "snoo", "SNOO", {"lr": 0.7, "mu": 0.5}, to.snoo, back.as_snoo, "b = mu b + D;  x -= lr (D + mu b)",
        "outer step; clients keep AdamW's state", ("lr/(1-mu)", "mu", "mu"), "summed",
    ),
    Scheme(
        "gpa", "GPA", {"a": 1.0, "mu_x": 0.9, "mu_y": 0.8}, to.gpa, back.as_gpa,
        "z -= a D;  x = mu_x x + (1-mu_x) z;  y = mu_y x + (1-mu_y) z",
        "primal averaging; y is sent, x evaluated (eval.point=average)", ("a", "mu_x", "mu_y"), "y is sent",
    ),
    Scheme(
        "schedule-free", "Schedule-Free", {"a": 1.0, "b": 0.9}, to.schedule_free, None,
        "z -= a D;  x = mean of all z;  y = (1-b) z + b x", "y is sent, x evaluated (eval.point=average)",
        ("a (1-b/2)", "(t-1)/(t+1) in round t", "b/(2-b)"), "y is sent", beside="schedule=schedule_free",
    ),
    Scheme(
        "ema-nesterov", "EMA-Nesterov", {"b": 0.5, "g": 0.8}, to.ema_nesterov, back.as_ema_nesterov,
        "x' = x + b m - D;  m = g m + (1-g) (x' - x)", "x + b m is sent", ("1/(1-b)", "g + (1-g) b", "b"),
        "x + b m is sent",
    ),
    Scheme(
        "fedacg", "FedACG", {"lam": 0.85}, to.fedacg, back.as_fedacg, "m = lam m + D;  x -= m",
        "x - lam m is sent; clients run FedProx", ("1/(1-lam)", "lam", "lam"), "x - lam m is sent",
        beside="client=fedprox",
    ),
    Scheme(
        "fedgm", "FedGM", {"eta": 1.0, "beta": 0.9, "nu": 0.7}, to.fedgm, back.as_fedgm,
        "d = (1-beta) D + beta d;  x -= eta ((1-nu) D + nu d)", "the paper, Eq. 2", ("eta", "beta", "nu"),
    ),
)  # fmt: skip

SCHEMES = {scheme.name: scheme for scheme in FAMILY if scheme.inverse}  # what `fedgm convert` converts
LABELS = {scheme.algorithm: scheme.label for scheme in FAMILY}  # by the yaml in conf/algorithm

ALIASES = {
    "fedmom": "torch-nesterov",
    "fedshb": "fedavgm",
    "fedavgm-summed": "flower-fedavgm",
    "asgd": "accsgd",
}


def scheme(name: str) -> Scheme:
    """The scheme of that name, however it is hyphenated.

    >>> scheme("PID_opt").label
    'PID optimiser'
    """
    key = name.lower().replace("_", "-")
    key = ALIASES.get(key, key)
    if key not in SCHEMES:
        hint = near(key, SCHEMES) or "fedgm convert --list"
        raise ConfigError("scheme", name, f"one of {', '.join(SCHEMES)}", hint)
    return SCHEMES[key]


def momentum_of(name: str, parameters: back.Parameters) -> Momentum:
    """(eta, beta, nu) of a scheme in its own parameters.

    >>> momentum_of("torch-nesterov", {"lr": 0.5, "beta": 0.75})
    Momentum(eta=2.0, beta=0.75, nu=0.75)
    """
    member = scheme(name)
    for key in parameters:
        if key not in member.parameters:
            hint = near(key, member.parameters) or typed(member.example) or "no parameter at all"
            allowed = f"{member.name} takes {', '.join(member.parameters) or 'no parameter'}"
            raise ClashError(f"algorithm.{key}", parameters[key], allowed, hint)
    missing = [key for key in member.parameters if key not in parameters and key not in member.optional]
    if missing:
        raise ClashError(f"algorithm.{missing[0]}", "?", f"{member.name} needs it", typed(member.example))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rule warns of nu outside [0, 1]; here it is only converted
        return Momentum(**member.rule(**parameters).hyper)


def typed(parameters: back.Parameters, prefix: str = "") -> str:
    """Parameters as one types them.

    >>> typed({"lr": 1.0, "beta": 0.9}, prefix="algorithm.")
    'algorithm.lr=1 algorithm.beta=0.9'
    """
    return " ".join(f"{prefix}{key}={value:.6g}" for key, value in parameters.items())


def table() -> list[str]:
    """The lines of docs/momentum.md's table."""
    lines = ["| scheme (`fedgm convert`) | `algorithm=` | η | β | ν |", "|---|---|---|---|---|"]
    for member in FAMILY:
        name = member.name if member.inverse else member.label
        parameters = f" ({', '.join(member.parameters)})" if member.parameters else ""
        remark = f", {member.remark}" if member.remark else ""
        chosen = f"{member.algorithm}, with `{member.beside}`" if member.beside else member.algorithm
        lines.append(f"| {name}{parameters}{remark} | {chosen} | {' | '.join(member.formulas)} |")
    return lines


if __name__ == "__main__":
    print(*table(), sep="\n")
