"""A small setting for the theorems, and what the tests read off their reports."""

from io import StringIO

from rich.console import Console

from fedgm.server import Plan, multistage
from fedgm.theory import Problem, Setting, corollary, render, theorem1, theorem2, theorem3, theory_stages

THEOREMS = [theorem1, theorem2, theorem3, corollary]
PROBLEM = Problem(L=2, sigma_l=2, sigma_g=3, f0_minus_fstar=17, sigma_max=3)
# W1 = 2 * .5 * .5 / .5 = 1 = 1 * (2/3) * .5 / (1/3);  W2 = 2 * 2 = 4 * 1;  C_b = .5 / (1/3) = 1.5
SETTING = Setting(
    n=10,
    m=4,
    K=3,
    eta_l=0.01,
    stages=[(2, 2.0, 0.5, 0.5), (4, 1.0, 2 / 3, 0.5)],
    tau=3,
    K_law=[(1, 0.5), (3, 0.5)],
)


def terms(report):
    return report.bound.optimisation, report.bound.sigma_l, report.bound.sigma_g


def limits(report):
    return [c.limit for c in report.conditions if c.subject == "eta_l"]


def staged(rounds, etas, beta, nu):
    return theory_stages(Plan(tuple(multistage(rounds, etas, beta, nu))))


def text_of(report):
    out = StringIO()
    Console(file=out, width=200).print(render(report))
    return out.getvalue()
