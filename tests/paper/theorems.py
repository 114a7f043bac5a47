"""A small setting for the theorems, and what the tests read off their reports."""

from dataclasses import replace
from io import StringIO
from typing import NamedTuple

import numpy as np
from rich.console import Console

from fedgm.draws import generator
from fedgm.schedule import Multistage
from fedgm.server import GeneralMomentum
from fedgm.theory import Problem, Setting, corollary, render, theorem1, theorem2, theorem3, theory_stages
from tests.paper.quadratic import Quadratic, simulate, simulate_autonomous

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
    return theory_stages(Multistage(etas).plan(rounds, GeneralMomentum(etas[0], beta, nu)))


def text_of(report):
    out = StringIO()
    Console(file=out, width=200).print(render(report))
    return out.getvalue()


class Case(NamedTuple):
    """A random quadratic, where it starts, and how it is trained; ``eta_l`` is left to the theorem."""

    quadratic: Quadratic
    x0: np.ndarray
    setting: Setting
    arrival: list[float]  # for the corollary


def random_case(number):
    """Clients that differ by heavy tails, with noise or not, from the minimum (odd numbers) or from afar."""
    rng = generator(number, "random-case")
    n, dim = int(rng.integers(2, 13)), int(rng.integers(1, 5))
    a = np.exp(rng.uniform(-2, 2)) * rng.uniform(0.05, 1, dim)
    b = rng.choice([0.1, 1.0, 10.0]) * rng.standard_t(2, (n, dim))
    quadratic = Quadratic(a, b, float(rng.choice([0.0, 0.3, 3.0])))
    away = 0.0 if number % 2 else 10 ** rng.uniform(-2, 1)
    eta, falls = float(10 ** rng.uniform(-1, 1.5)), [1, 0.5, 0.25][: int(rng.integers(1, 4))]
    beta, nu = float(rng.uniform(0, 0.9)), float(rng.uniform(0, 1))
    law = {int(K): 1.0 for K in rng.integers(1, 9, 3)}
    setting = Setting(
        n, m=int(rng.integers(1, n + 1)), K=int(rng.integers(1, 9)), eta_l=1.0,
        stages=staged(42, [eta * fall for fall in falls], beta, nu),
        tau=int(rng.integers(0, 5)), K_law=[(K, 1 / len(law)) for K in law],
    )  # fmt: skip
    arrival = rng.uniform(0, 1, n) ** 4 + 1e-3
    return Case(quadratic, quadratic.minimum + away * rng.normal(size=dim), setting, arrival.tolist())


def report_at_the_limit(theorem, case, variant="corrected"):
    """The theorem's report at the largest eta_l that it allows, for the part of the case it speaks of."""
    problem, setting = case.quadratic.problem(case.x0), case.setting
    own = {theorem1: {"m": setting.n, "tau": 0, "K_law": ()}, theorem2: {"tau": 0, "K_law": ()}}
    setting = replace(setting, **own.get(theorem, {}))
    if setting.K_law:  # mean K: Alg. 4 divides by K, so this goes as far as Alg. 3
        setting = setting.scaled(sum(K * p for K, p in setting.K_law))
    if theorem is corollary:
        problem = replace(problem, sigma_g=problem.sigma_max)
    return theorem(problem, replace(setting, eta_l=theorem(problem, setting, variant).eta_l_limit), variant)


def one_run(theorem, case, setting, seed=0):
    """Gbar of one run."""
    if theorem in (theorem1, theorem2):
        return simulate(case.quadratic, setting, case.x0, seed)
    arrival = case.arrival if theorem is corollary else None
    return simulate_autonomous(case.quadratic, setting, case.x0, seed, arrival)
