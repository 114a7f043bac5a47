"""What most tests compose with makes what Hydra makes, and refuses what Hydra refuses."""

import pytest
from omegaconf import OmegaConf

from fedgm.config import composing
from fedgm.config.identity import identity
from fedgm.errors import ConfigError
from tests.quick_compose import QuickCompose

COMMANDS = [
    [],
    ["seed=3", "data.seed=3"],
    ["+experiment=fedgm", "algorithm=fedavg", "algorithm.eta=2", "name=mine"],
    ["profile=tiny", "data=npz", "data.path=none.npz", "participation=event", "participation/sampler=biased"],
    ["+algorithm.more={a:1.0,b:[1,2.5]}", "~algorithm.nu", "++eval.every=3", "seed=1", "seed=2"],
    ["output_dir=~/a (b)", "data=npz", "data.path=~/own.npz"],
    ["callbacks=early_stopping", "track=csv", "name='a b'", "eval.loss_limit=null"],
    ["hydra.searchpath=[file://conf]", "profile=tiny"],
]
WRONG = [
    "algorithm.etta=1",
    "algorithm=nothing",
    "+seed=1",
    "~nothing",
    "seed=x",
    "seed=1,2",
    "data@x=npz",
    "=",
    "a b",
]


@pytest.fixture(scope="module")
def real():
    current = composing._compose
    return current.compose if isinstance(current, QuickCompose) else current


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_it_makes_what_hydra_makes(real, words):
    quick, expected = QuickCompose(real), real(words)
    for _ in range(2):  # the second is a copy of what the first has left
        made = quick(words)
        assert OmegaConf.to_yaml(made) == OmegaConf.to_yaml(expected)
        assert identity(made) == identity(expected)
        assert OmegaConf.is_struct(made) == OmegaConf.is_struct(expected)
        made.seed = 77


@pytest.mark.parametrize("word", WRONG)
def test_it_refuses_what_hydra_refuses(real, monkeypatch, word):
    said = []
    for compose in (real, QuickCompose(real)):
        monkeypatch.setattr(composing, "_compose", compose)
        with pytest.raises(ConfigError) as refused:
            composing.compose(["profile=tiny", word])
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_tests_compose_with_it():
    assert isinstance(composing._compose, QuickCompose)
