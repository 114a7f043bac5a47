"""Combinations whose formulas would silently be wrong are refused before anything is loaded."""

import pytest
from torch import nn

from fedgm import config
from fedgm.config import checks
from fedgm.errors import ConfigError
from fedgm.running.parts import build_parts, task_class
from fedgm.running.trainer import build_module


@pytest.mark.parametrize(
    ("overrides", "key", "hint"),
    [
        (["client=scaffold", "local.optimizer=adamw"], "client=scaffold", "local.optimizer=sgd"),
        (["client=scaffold", "local.momentum=0.9"], "client=scaffold", "client=plain"),
        (["client=scaffold", "local.clip=1"], "client=scaffold", "client=plain"),
        (["client=fedprox", "trainer.precision=16-mixed"], "client=fedprox", "trainer.precision=bf16-mixed"),
        (["client=mifa", "clients.weights=samples"], "clients.weights=samples", "clients.weights=uniform"),
        (
            ["participation=fednova", "clients.weights=samples"],
            "clients.weights=samples",
            "clients.weights=uniform",
        ),
        (["algorithm=fednag", "algorithm.nu=0.5"], "algorithm.nu=0.5", "algorithm=fedgm"),
    ],
)
def test_what_does_not_fit_together_is_refused(overrides, key, hint):
    run = config.validate(config.compose(["profile=tiny", *overrides]))
    with pytest.raises(ConfigError) as error:
        build_parts(run)
    assert str(error.value).startswith(f"{key}: ")
    assert hint in str(error.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["local.optimizers.sgd.momentum=-1"], "Invalid momentum value: -1"),
        (["+local.optimizers.sgd.nesterov=true"], "Nesterov momentum requires a momentum"),
        (["local.optimizer=adamw", "+local.optimizers.adamw.betas=[0.9]"], "list index out of range"),
    ],
)
def test_what_the_local_optimiser_itself_refuses_is_refused_before_data_are_loaded(words, said):
    run = config.validate(config.compose(["profile=tiny", *words]))
    with pytest.raises(ConfigError, match=rf"^local\.optimizers\.(sgd|adamw)=.*{said}.* Try other values"):
        build_parts(run)


def test_what_fits_is_built():
    for overrides in (
        ["client=scaffold"],
        ["client=fedprox", "local.momentum=0.9"],
        ["participation=fednova"],
    ):
        build_parts(config.validate(config.compose(["profile=tiny", *overrides])))


def test_a_task_without_its_two_methods_is_refused():
    run = config.validate(config.compose(["profile=tiny", "task._target_=fedgm.tasks.TaskModule"]))
    with pytest.raises(ConfigError, match=r"task\._target_=fedgm\.tasks\.TaskModule: .* and sums"):
        task_class(run)


@pytest.mark.parametrize("word", ["+model.width_mult=100000", "+model.width_mult=1e9"])
def test_a_library_model_that_fits_nowhere_is_refused_before_it_is_built(word):
    run = config.validate(config.compose(["profile=tiny", "model=mobilenet", word]))
    with pytest.raises(ConfigError, match="model"):
        build_module(run, {"num_classes": 10})


def test_our_own_model_that_does_not_fit_is_not_built(monkeypatch):
    run = config.validate(config.compose(["profile=tiny"]))
    monkeypatch.setattr(checks, "memory", lambda: 10**5)
    with pytest.raises(ConfigError, match=r"a model of .* parameters take"):
        build_parts(run)


def elsewhere(num_classes: int) -> nn.Module:
    return nn.Linear(1000, num_classes)


def test_a_model_from_elsewhere_is_counted_once_it_is_built(monkeypatch):
    word = f"model._target_={__name__}.elsewhere"
    cfg = config.compose(["profile=tiny", word, "~model.depth", "~model.width", "~model.norm"])
    run = config.validate(cfg)
    assert build_module(run, {"num_classes": 10}).net.out_features == 10
    monkeypatch.setattr(checks, "memory", lambda: 10**5)
    with pytest.raises(ConfigError, match="a model of 10,010 parameters take"):
        build_module(run, {"num_classes": 10})
