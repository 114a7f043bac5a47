"""Under stages a typed server rate is refused, whatever the scheme calls it; what nobody typed is not."""

import pytest

import fedgm
from fedgm import config
from fedgm.errors import ConfigError
from fedgm.running.parts import build_parts

ROUNDS = "rounds=70"


def judge(*overrides):
    build_parts(config.validate(config.compose(overrides)), typed=overrides)


@pytest.mark.parametrize("schedule", ["multistage", "multistage_two", "stages"])
@pytest.mark.parametrize(
    ("algorithm", "name", "value"),
    [
        ("fedgm", "eta", 3.0),
        ("fedavg", "eta", 1.0),  # the default's own value: it was typed all the same
        ("fedavgm_summed", "lr", 0.3),
        ("diloco", "lr", 0.7),
        ("snv", "a", 0.2),
        ("triple", "L", 3.0),
        ("accsgd", "delta", 0.1),
    ],
)
def test_a_typed_rate_is_refused_by_its_own_name(schedule, algorithm, name, value):
    words = [f"algorithm={algorithm}", f"schedule={schedule}", f"algorithm.{name}={value}", ROUNDS]
    with pytest.raises(ConfigError, match=rf"algorithm\.{name}={value}.*schedule={schedule}.*schedule\.etas"):
        judge(*words)


@pytest.mark.parametrize(
    "words",
    [
        ["+experiment=multistage"],  # paper_momentum fills algorithm.eta in
        ["+experiment=multistage", "paper_momentum.eta=3"],
        ["schedule=multistage", "algorithm.beta=0.4", "algorithm.nu=0.3"],
        ["schedule=multistage", "algorithm=pid", "algorithm.kI=2.0"],  # nu depends on kI
        ["schedule=constant", "algorithm.eta=3"],
        ["schedule=cosine", "algorithm.eta=3"],
        ["schedule=stages", "algorithm=fedadam", "algorithm.eta=0.02"],  # etas multiply it
    ],
)
def test_what_is_heard_or_was_never_typed_passes(words):
    judge(*words, ROUNDS)


def test_fedgm_run_refuses_it_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigError, match=r"algorithm\.eta=3"):
        fedgm.run(["profile=tiny", "schedule=multistage", "++algorithm.eta=3", f"output_dir={tmp_path}"])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match=r"schedule=multistage.*Eq\. 3"):
        fedgm.run(["profile=tiny", "algorithm=fedadam", "schedule=multistage", f"output_dir={tmp_path}"])
