"""The examples in docstrings: each is run."""

import doctest
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import fedgm
from fedgm.server.family import FAMILY

ROOMS = (
    *("fedgm.draws", "fedgm.errors", "fedgm.files", "fedgm.server", "fedgm.schedule"),
    *("fedgm.participation", "fedgm.upload"),
    *("fedgm.client", "fedgm.federated", "fedgm.models", "fedgm.data"),
    *("fedgm.api", "fedgm.optim", "fedgm.results", "fedgm.theory"),
)
MODULES = [
    module.name
    for module in walk_packages(fedgm.__path__, "fedgm.")
    if any(module.name == room or module.name.startswith(f"{room}.") for room in ROOMS)
]
# Modules whose public functions and classes must show how they are used.
WITH_EXAMPLES = [
    *("fedgm.draws", "fedgm.errors", "fedgm.files", "fedgm.optim"),
    *(f"fedgm.server.{name}" for name in ("adaptive", "engine", "family", "fedexp", "inverses")),
    *(f"fedgm.server.{name}" for name in ("momentum", "plan", "schemes")),
    *(f"fedgm.schedule.{name}" for name in ("every_round", "plan", "stages")),
    *(f"fedgm.participation.{name}" for name in ("autonomous", "devices", "local_work", "samplers", "task")),
    *(f"fedgm.upload.{name}" for name in ("compression", "message")),
    *(f"fedgm.data.{name}" for name in ("dataset", "partition", "skew", "synthetic", "tokens")),
    *(f"fedgm.models.{name}" for name in ("convolutional", "gpt")),
    *("fedgm.client.momenta", "fedgm.client.muon", "fedgm.data.sharing"),
    *("fedgm.client.rules", "fedgm.federated.callback", "fedgm.federated.federate"),
    *("fedgm.api", "fedgm.results.interval", "fedgm.theory.bounds", "fedgm.theory.stability"),
]
# What people call from a notebook: each name has an example of its own.
CALLED = {
    "fedgm.server.adaptive": [
        "FedAdagrad",
        "FedAdam",
        "FedYogi",
        "FedAMSGrad",
        "FedAMS",
        "QHAdam",
        "NormalizedMomentum",
    ],
    "fedgm.optim": ["Multistage"],
    "fedgm.server.fedexp": ["FedExP"],
    "fedgm.server.momentum": ["server_step", "GeneralMomentum"],
    "fedgm.schedule.plan": ["Constant", "Multistage", "stage_lengths"],
    "fedgm.schedule.stages": ["Stages"],
    "fedgm.schedule.every_round": [
        "Polynomial",
        "Cosine",
        "WarmupStep",
        "Cyclic",
        "Sutskever",
        "UniformAverage",
    ],
    "fedgm.participation.samplers": ["Uniform", "Bernoulli", "Biased"],
    "fedgm.participation.autonomous": ["Autonomous", "ideal"],
    "fedgm.participation.event": ["under_clock"],
    "fedgm.upload.compression": ["TopK", "Qsgd", "Qsparse"],
    "fedgm.data.partition": ["dirichlet", "virtual", "label_counts"],
    "fedgm.data.skew": ["shards", "classes", "quantity", "capped"],
    "fedgm.federated.federate": ["federate"],
    "fedgm.federated.callback": ["FedGM"],
    "fedgm.api": ["load_runs"],
    "fedgm.results.interval": ["t_cdf", "t_quantile", "mean_interval", "paired", "log_ratio", "pool"],
    "fedgm.theory.bounds": ["theorem1", "theorem2", "theorem3", "corollary", "diagnose"],
    "fedgm.theory.stability": ["response", "transition", "radius", "largest_eta", "effective_eta"],
}
CALLED["fedgm.server.schemes"] = [scheme.rule.__name__ for scheme in FAMILY]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])  # examples read stored results of the repository
    result = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    assert result.attempted > 0 or name not in WITH_EXAMPLES


def test_modules_with_examples_exist():
    assert set(WITH_EXAMPLES) <= set(MODULES)


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in CALLED.items() for name in names]
)
def test_what_a_notebook_calls_shows_how(module, name):
    assert ">>>" in getattr(import_module(module), name).__doc__
