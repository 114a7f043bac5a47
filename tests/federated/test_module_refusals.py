"""Models whose updates cannot be averaged are refused with a sentence."""

import pytest
import torch
from torch import nn

from fedgm.errors import FedGMError
from tests.federated.test_modules import Module, fit


def no_parameters():
    module = Module()
    module.layers = nn.ModuleList()
    return module


def frozen():
    return Module().requires_grad_(False)


def complex_parameter():
    module = Module()
    module.turn = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    return module


def lazy():
    module = Module()
    module.layers = nn.ModuleList([nn.LazyLinear(1)])
    return module


def sparse():
    module = Module()
    module.register_buffer("graph", torch.eye(3).to_sparse())
    return module


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (no_parameters, "no parameter that requires a gradient: there is nothing to train"),
        (frozen, "no parameter that requires a gradient: there is nothing to train"),
        (complex_parameter, r"parameter turn is complex \(torch.complex64\)"),
        (lazy, r"layers.0.weight has no shape yet \(a lazy layer\). Run one batch"),
        (sparse, "graph is sparse, and clients are averaged as dense tensors"),
    ],
)
def test_what_cannot_be_averaged_is_refused_with_a_sentence(make, said):
    with pytest.raises(FedGMError, match=said):
        fit(make())
