"""The table of the momentum family: what is made from it agrees with it."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from fedgm.errors import ConfigError
from fedgm.results.labels import NAMES
from fedgm.server.family import FAMILY, LABELS, SCHEMES, momentum_of, table
from fedgm.server.momentum import GeneralMomentum, Momentum

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf/algorithm"


def test_the_page_has_the_table():
    assert "\n".join(table()) in (ROOT / "docs/momentum.md").read_text()


@pytest.mark.parametrize("scheme", FAMILY, ids=lambda scheme: scheme.name)
def test_a_member_has_a_yaml_that_builds_its_rule(scheme):
    text = (CONF / f"{scheme.algorithm}.yaml").read_text()
    target = OmegaConf.create(text).get("_target_")
    if target is not None:  # else it is a special case of fedgm.yaml
        assert target in (f"fedgm.server.schemes.{scheme.rule.__name__}", "fedgm.server.GeneralMomentum")
    assert isinstance(scheme.rule(**scheme.example), GeneralMomentum)


def test_labels_are_those_of_tables_and_figures():
    assert LABELS.items() <= NAMES.items()


def test_every_member_but_schedule_free_converts_both_ways():
    assert {scheme.name for scheme in FAMILY} - set(SCHEMES) == {"schedule-free"}
    with pytest.raises(ConfigError, match="its beta changes every round"):
        next(scheme for scheme in FAMILY if scheme.inverse is None).from_momentum(Momentum(1.0, 0.9, 0.9))


@pytest.mark.filterwarnings("error")
def test_converting_does_not_warn_of_a_legal_nu():
    assert momentum_of("pid-opt", {"a": 0.5, "r": 0.5, "Kd": 1.0}).nu > 1
