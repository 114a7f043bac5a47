"""Packages that a run does not need: not loaded by a run, and whole when somebody asks for them."""

import os
import subprocess
import sys

import pytest


def answer(program: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True, text=True, timeout=300, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


STEP = """
import sys, torch
from fedgm.lightning import pl
p = torch.nn.Parameter(torch.ones(2))
sgd = torch.optim.SGD([p], lr=0.5)
(3 * p).sum().backward(); sgd.step(); sgd.zero_grad(); sgd.state_dict()
"""
LOADED = "print([name for name in ('sympy', 'torchvision', 'matplotlib') if name in sys.modules], p.tolist())"


def test_a_step_loads_neither_compiler_nor_pictures():
    assert answer(STEP + LOADED) == "[] [-0.5, -0.5]"


def test_the_environment_switches_it_off():
    assert answer(STEP + LOADED, FEDGM_EAGER_IMPORTS="1") == (
        "['sympy', 'torchvision', 'matplotlib'] [-0.5, -0.5]"
    )


def test_the_compiler_is_whole_when_it_is_asked_for():
    # A part of it first: it must not be loaded twice. Then a compiled module, which Lightning must recognise,
    # and the functions that the optimiser keeps from being compiled.
    program = (
        STEP
        + """
import torch._dynamo.config
assert torch._dynamo.config is sys.modules["torch._dynamo.config"] is torch._dynamo.utils.config
from pytorch_lightning.utilities.compile import OptimizedModule, _maybe_unwrap_optimized
class Own(pl.LightningModule):
    def forward(self, x):
        return 2 * x
own = Own()
assert not isinstance(own, OptimizedModule)
compiled = torch.compile(own, backend="eager")
assert isinstance(compiled, OptimizedModule) and isinstance(compiled, torch._dynamo.OptimizedModule)
assert _maybe_unwrap_optimized(compiled) is own
(3 * p).sum().backward(); sgd.step(); sgd.zero_grad()
print(compiled(torch.tensor(4.0)).item(), p.tolist())
"""
    )
    assert answer(program) == "8.0 [-2.0, -2.0]"


def test_metrics_that_need_the_packages_still_work():
    program = """
import torch
from fedgm.lightning import pl
import torchmetrics
from torchmetrics.functional.detection import intersection_over_union
boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0]]), torch.tensor([[0.0, 0.0, 2.0, 1.0]])
accuracy = torchmetrics.classification.BinaryAccuracy()
accuracy.update(torch.tensor([1, 0]), torch.tensor([1, 1]))
import matplotlib
matplotlib.use("agg")
figure, axes = accuracy.plot()
print(intersection_over_union(*boxes).item(), accuracy.compute().item(), type(figure).__name__)
"""
    assert answer(program) == "0.5 0.5 Figure"


@pytest.mark.parametrize("name", ["torchvision", "matplotlib"])
def test_the_packages_import_as_ever_afterwards(name):
    program = (
        f"from fedgm.lightning import pl\nimport {name} as it\nprint(bool(it.__file__), it.__version__ > '0')"
    )
    assert answer(program) == "True True"
