"""docs/theorem3.md: every number of the counterexample, by formula, by simulation and by our bounds."""

import re
from pathlib import Path

import numpy as np
import pytest

from fedgm.theory import Problem, Setting, theorem3
from tests.paper.quadratic import Quadratic, simulate_autonomous

PAGE = Path("docs/theorem3.md").read_text(encoding="utf-8")
ROWS = {(2, 1): (1e-3, 12_500), (100, 5): (5e-4, 5_000)}  # (n, m): eta_l, T


def printed_numbers(n, m):
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| n = {n}, m = {m}, ")]
    return [float(cell) for cell in line.split("|")[3:6]]


def exact(n, m, eta_l, rounds):
    """The mean of E x_t^2 over t = 0 .. T-1, for clients at +1 and -1."""
    r, q = (n - m) / (m * (n - 1)), (1 - eta_l) ** 2
    return eta_l * r / (2 - eta_l) * (1 - (1 - q**rounds) / (rounds * (1 - q)))


@pytest.mark.parametrize(("n", "m"), ROWS)
def test_the_table_is_what_formula_and_bounds_give(n, m):
    eta_l, rounds = ROWS[n, m]
    setting = Setting(n, m, 1, eta_l, [(rounds, 1.0, 0.0, 0.0)], tau=0)
    problem = Problem(L=1.0, sigma_l=0.0, sigma_g=1.0, f0_minus_fstar=0.0)
    printed, corrected = theorem3(problem, setting, "printed"), theorem3(problem, setting)
    assert printed.holds
    assert corrected.holds
    numbers = exact(n, m, eta_l, rounds), printed.bound.total, corrected.bound.total
    assert printed_numbers(n, m) == pytest.approx(numbers, rel=5e-3)
    assert numbers[1] < numbers[0] < numbers[2]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), ROWS)
def test_the_formula_is_what_runs_measure(n, m):
    eta_l, rounds = ROWS[n, m]
    clients = Quadratic(np.ones(1), np.array([[1.0], [-1.0]] * (n // 2)), 0.0)
    setting = Setting(n, m, 1, eta_l, [(rounds, 1.0, 0.0, 0.0)], tau=0)
    values = [simulate_autonomous(clients, setting, np.zeros(1), seed) for seed in range(3)]
    assert np.mean(values) == pytest.approx(exact(n, m, eta_l, rounds), rel=0.5)


def test_the_program_on_the_page_prints_what_it_says(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(program, "theorem3.md", "exec"), {})
    assert capsys.readouterr().out == "True\n"


def test_the_slip_by_hand():
    # v = (1, -1): ordered pairs |1 - -1|^2 twice = 8; 2 (n-1) sum v^2 = 4; 2n sum v^2 - 2 (sum v)^2 = 8.
    v = np.array([1.0, -1.0])
    assert ((v[:, None] - v[None, :]) ** 2).sum() == 8 == 2 * 2 * (v**2).sum() - 2 * v.sum() ** 2
    assert 2 * (2 - 1) * (v**2).sum() == 4


def test_the_variance_of_a_draw_is_the_formula_of_the_page():
    # All 10 cohorts of 2 of 5, by hand against |mean|^2 + r/(2 n^2) sum |v_i - v_j|^2.
    v, n, m = np.array([3.0, -1.0, 0.5, 2.0, -4.0]), 5, 2
    cohorts = [(v[i] + v[j]) / 2 for i in range(n) for j in range(i)]
    pairs = ((v[:, None] - v[None, :]) ** 2).sum()
    r = (n - m) / (m * (n - 1))
    assert np.mean(np.square(cohorts)) == pytest.approx(v.mean() ** 2 + r / (2 * n**2) * pairs)
