"""The examples in docstrings: each is run."""

import doctest
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import fedgm

ROOMS = (
    "fedgm.api", "fedgm.errors", "fedgm.server", "fedgm.schedule", "fedgm.participation", "fedgm.upload",
    "fedgm.results", "fedgm.theory",
)  # fmt: skip
MODULES = [
    module.name
    for module in walk_packages(fedgm.__path__, "fedgm.")
    if any(module.name == room or module.name.startswith(f"{room}.") for room in ROOMS)
]
# Modules whose public functions and classes must show how they are used.
WITH_EXAMPLES = [
    "fedgm.errors", "fedgm.server.adaptive", "fedgm.server.family", "fedgm.server.fedexp",
    "fedgm.server.inverses", "fedgm.server.momentum", "fedgm.server.schemes", "fedgm.schedule.every_round",
    "fedgm.schedule.plan", "fedgm.schedule.stages", "fedgm.api", "fedgm.results.interval",
    "fedgm.theory.bounds", "fedgm.theory.stability",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])  # examples read stored results of the repository
    result = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    assert result.attempted > 0 or name not in WITH_EXAMPLES


def test_modules_with_examples_exist():
    assert set(WITH_EXAMPLES) <= set(MODULES)
