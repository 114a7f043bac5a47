"""``fedgm convert``."""

import pytest
from click.testing import CliRunner

from fedgm.commands import main
from fedgm.server.family import SCHEMES


def run(*arguments):
    return CliRunner().invoke(main, ["convert", *arguments])


def test_the_flower_example_with_the_trap_in_numbers():
    result = run("--from", "flower-fedavgm", "lr=1", "beta=.9", "--to", "fedgm")
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    assert "fedgm eta=10 beta=0.9 nu=1" in text
    assert "python run.py algorithm=fedgm algorithm.eta=10 algorithm.beta=0.9 algorithm.nu=1" in result.output
    assert "First round: x -= 1 D" in text
    assert "eta=10 here is lr=1 there: that number typed as eta=1 makes steps 10 times too small" in text


def test_the_run_line_names_a_yaml_of_the_target():
    result = run("--from", "fedgm", "eta=1", "beta=.9", "nu=1", "--to", "flower_fedavgm")
    assert "algorithm=fedavgm_summed algorithm.lr=0.1 algorithm.beta=0.9" in result.output


def test_without_to_every_form_that_exists_is_shown():
    result = run("--from", "fedgm", "eta=1", "beta=.9", "nu=.9")
    rows = {line.split()[0] for line in result.output.splitlines() if line.strip()}
    assert {"fednag", "torch-nesterov", "snv", "robust", "pid", "pid-opt", "accsgd", "diloco", "gpa"} <= rows
    assert "No such form" in result.output
    text = " ".join(result.output.split())
    assert "fedavg, fedsgd, fedavgm, flower-fedavgm, triple, slowmo, ema-nesterov, fedacg." in text


def test_without_momentum_there_is_no_trap():
    assert "damped and summed are the same" in " ".join(run("--from", "fedavg").output.split())


def test_the_list_has_every_scheme_within_80_plain_columns():
    result = run("--list")
    assert result.exit_code == 0
    assert {line.split()[0] for line in result.output.splitlines() if line[:1].strip()} >= set(SCHEMES)
    assert max(map(len, result.output.splitlines())) <= 80
    assert result.output.isascii()
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--from is missing"),
        (("--from", "fedavgmm", "eta=1"), "scheme=fedavgmm: expected"),
        (("--from", "fedavgm", "eta=1", "beta=1"), "algorithm.beta=1.0: expected 0 <= beta < 1"),
        (("--from", "fedavgm", "eta=1"), "fedavgm needs it"),
        (("--from", "fedavgm", "eta=one"), "eta=one is not NAME=NUMBER"),
        (("--from", "fedavgm", "eta"), "eta is not NAME=NUMBER"),
        (("--from", "fedavg", "--to", "nothing"), "scheme=nothing: expected"),
        (("--from", "fedgm", "eta=1", "beta=.9", "nu=.7", "--to", "fedavgm"), "misses by -0.3"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
