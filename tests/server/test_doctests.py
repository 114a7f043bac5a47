"""The examples in docstrings of the mathematics: each is run."""

import doctest
from importlib import import_module
from pkgutil import walk_packages

import pytest

import fedgm

ROOMS = (
    "fedgm.errors", "fedgm.optim", "fedgm.server", "fedgm.schedule", "fedgm.participation", "fedgm.upload",
)  # fmt: skip
MODULES = [
    module.name
    for module in walk_packages(fedgm.__path__, "fedgm.")
    if any(module.name == room or module.name.startswith(f"{room}.") for room in ROOMS)
]
# Modules whose public functions and classes must show how they are used.
WITH_EXAMPLES = [
    "fedgm.errors", "fedgm.optim", "fedgm.server.adaptive", "fedgm.server.family", "fedgm.server.fedexp",
    "fedgm.server.inverses", "fedgm.server.momentum", "fedgm.server.schemes", "fedgm.schedule.every_round",
    "fedgm.schedule.plan", "fedgm.schedule.stages",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    result = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    assert result.attempted > 0 or name not in WITH_EXAMPLES


def test_modules_with_examples_exist():
    assert set(WITH_EXAMPLES) <= set(MODULES)
