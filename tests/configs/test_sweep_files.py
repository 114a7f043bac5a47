"""W&B accepts every file in sweeps/, and every point of it is a run of its own that can be built."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from fedgm import config
from fedgm.config.identity import identity
from fedgm.running.parts import build_parts
from tests.configs.json_schema import violations

HERE = Path(__file__).parent
FILES = sorted((HERE.parents[1] / "sweeps").glob("*.yaml"))
SCHEMA = json.loads((HERE / "wandb_sweep_schema.json").read_text())
SIZES = {
    "fedgm_grid": 90, "fedavgm_grid": 30, "fedavg_grid": 10, "autonomous_fedgm_grid": 36,
    "delay10_fedgm_grid": 6, "delay10_fedavg_grid": 6, "autonomous_small_eta": 9, "autonomous_long_memory": 4,
    "autonomous_fedavg_between": 3, "autonomous_fedavg_grid": 12, "vgg_grid": 30,
    "heterogeneity_grid": 60, "multistage": 9, "literal_fedgm_grid": 36, "literal_fedavg_grid": 5,
    "full_fedavg": 3, "full_fedavgm": 3, "full_fedgm": 3,
    "tiny_fedavg": 8, "tiny_fedavgm": 8, "tiny_fedgm": 8, "schedules": 3, "stages": 1, "twelve": 12,
}  # fmt: skip
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())


def points(file: dict[str, Any]) -> list[dict[str, Any]]:
    """All points of a grid; of a search in intervals their ends and three values between."""
    parameters = file["parameters"]
    if file["method"] == "grid":
        choices = [p["values"] if "values" in p else [p["value"]] for p in parameters.values()]
        return [dict(zip(parameters, point, strict=True)) for point in itertools.product(*choices)]
    return [{k: between(p, at) for k, p in parameters.items()} for at in (0.0, 0.25, 0.5, 0.75, 1.0)]


def between(parameter: dict[str, Any], at: float) -> Any:
    if "value" in parameter:
        return parameter["value"]
    return parameter["min"] + at * (parameter["max"] - parameter["min"])


def fixed_words(file: dict[str, Any]) -> list[str]:
    """What the agent's command says besides the point."""
    return [word for word in file["command"] if not word.startswith("${")]


def words(file: dict[str, Any], point: dict[str, Any]) -> list[str]:
    """The arguments of run.py as an agent writes them (``args_no_hyphens``)."""
    return [*fixed_words(file), *(f"{key}={value}" for key, value in point.items())]


def home(fixed: list[str]) -> str:
    """The folder of a file's runs: the name that it gives, else its experiment's, else that of every run."""
    said = dict(word.lstrip("+").split("=", 1) for word in fixed)
    return said.get("name") or said.get("experiment") or "run"


def set_values(composed: DictConfig, point: dict[str, Any]) -> DictConfig:
    """What Hydra does after composing, a tenth of the work: every point sets the same keys."""
    for key, value in point.items():
        if "." in key:
            OmegaConf.update(composed, key, value)
    return composed


@each_file
def test_wandb_accepts_the_file(path):
    file = load(path)
    assert violations(file, SCHEMA) == []
    assert file["name"] == path.stem
    assert file["command"][:3] == ["${env}", "${interpreter}", "${program}"]
    assert file["command"][-1] == "${args_no_hyphens}"  # Hydra has no --key=value
    assert file["metric"] == {"name": "last10/test/acc", "goal": "maximize"}
    for parameter in file["parameters"].values():  # Hydra cannot read how Python prints a dict or a list
        for value in parameter.get("values", [parameter.get("value")]):
            assert not isinstance(value, dict | list)


@pytest.mark.slow
@each_file
def test_every_point_is_built_and_is_a_run_of_its_own(path):
    file, composed, distinct = load(path), dict[tuple[str, ...], DictConfig](), set[str]()
    every = points(file)
    for point in every:
        chosen = tuple(str(value) for key, value in point.items() if "." not in key)
        if chosen not in composed:  # a fifth of a second each
            composed[chosen] = config.compose(words(file, point))
        run = config.validate(set_values(composed[chosen], point))
        build_parts(run)
        distinct.add(repr(run))
    assert len(distinct) == len(every) == SIZES.get(path.stem, len(every))
    last = config.compose(words(file, every[-1]))  # the short way is the long way
    assert identity(last) == identity(composed[chosen])
    assert last.name == home(fixed_words(file))  # the figure finds its runs there


@pytest.mark.slow
@each_file
def test_every_point_composes_from_the_words_of_the_agent(path):
    file = load(path)
    for point in points(file):
        build_parts(config.validate(config.compose(words(file, point))))


def test_every_grid_has_the_size_that_is_promised():
    grids = {path.stem for path in FILES if load(path)["method"] == "grid"}
    assert grids == set(SIZES)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"metod": "grid"}, "file.metod"),
        ({"method": "gird"}, "file.method"),
        ({"parameters": {}}, "file.parameters"),
        ({"parameters": {"algorithm.eta": {"values": []}}}, "file.parameters.algorithm.eta"),
        ({"parameters": {"algorithm.eta": {"value": 1, "values": [1]}}}, "file.parameters.algorithm.eta"),
        ({"parameters": {"algorithm.eta": {"min": 0.5}}}, "file.parameters.algorithm.eta"),
        ({"parameters": {"+seed": {"value": 1}}}, "file.parameters.+seed"),
        ({"metric": {"goal": "maximize"}}, "file.metric"),
        ({"early_terminate": {"type": "hyperband"}}, "file.early_terminate"),
        ({"early_terminate": {"type": "hyperband", "min_iter": 3, "eta": 1}}, "file.early_terminate"),
        ({"command": "python run.py"}, "file.command"),
    ],
)
def test_the_check_against_the_schema_can_fail(change, place):
    file = load(FILES[0])
    assert violations(file, SCHEMA) == []
    assert [line.split()[0].rstrip(":") for line in violations({**file, **change}, SCHEMA)] == [place]


def test_a_file_without_a_method_is_refused():
    file = load(FILES[0])
    del file["method"]
    assert violations(file, SCHEMA)
