"""What the optimisers refuse, and what importing them imports."""

import subprocess
import sys

import pytest

from fedgm.errors import ConfigError
from fedgm.optim import GeneralMomentum, Multistage
from fedgm.schedule import Constant
from fedgm.server.adaptive import FedAdam
from tests.server.test_optim import start


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"lr": -1.0}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"beta": 1.0}, "beta"),
        ({"nu": float("inf")}, "nu"),
        ({"weight_decay": 0.1}, "weight_decay"),
    ],
)
def test_wrong_values_are_refused(values, key):
    with pytest.raises(ConfigError, match=f"^{key}="):
        GeneralMomentum(start(), **{"lr": 1.0, "beta": 0.9, "nu": 0.7, **values})


@pytest.mark.parametrize("name", ["weight_decay", "momentum", "nesterov"])
def test_what_eq_2_does_not_have_is_refused_in_a_group_too(name):
    with pytest.raises(ConfigError, match=f"^{name}="):
        GeneralMomentum([{"params": start(), name: 0.5}], 1.0, 0.9, 0.7)


def test_a_plan_of_another_family_and_missing_rounds_are_refused():
    optimizer = GeneralMomentum(start(), 1.0, 0.9, 0.7)
    adam = FedAdam(0.1, 0.9, 1e-3, 0.99)
    with pytest.raises(ConfigError, match="eta, beta and nu"):
        Multistage(optimizer, Constant().plan(3, adam))
    with pytest.raises(ConfigError, match=r"^rounds="):
        Multistage(optimizer, [2.0, 1.0])


def test_importing_it_imports_neither_lightning_nor_hydra():
    others = ("pytorch_lightning", "hydra", "omegaconf", "wandb", "pandas")
    code = f"import sys, fedgm.optim; print([n for n in {others} if n in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
