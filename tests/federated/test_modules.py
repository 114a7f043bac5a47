"""Modules as they are: parameters and buffers of every type are trained as a plain loop trains them."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import fedgm
from fedgm.draws import generator
from fedgm.errors import FedGMError
from fedgm.lightning import pl
from fedgm.participation import Autonomous, Uniform
from fedgm.server import GeneralMomentum

LARGE = 2**60 + 1  # no float64 is equal to it
pytestmark = pytest.mark.filterwarnings(
    "ignore:The '(train|val|test)_dataloader' does not have many workers",
    "ignore:Checkpoint directory .* exists and is not empty",
    "ignore:.*os.fork\\(\\) was called",
)
SIZES = (8, 16, 24, 8)


def clients():
    x = torch.randn(sum(SIZES), 3, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] > 0).float()
    return [TensorDataset(a, b) for a, b in zip(x.split(SIZES), y.split(SIZES), strict=True)]


class Module(pl.LightningModule):
    """A linear layer and whatever a test adds; one batch a client, so that a plain loop is easily written."""

    def __init__(self, *types: torch.dtype):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 1).to(dtype) for dtype in types or (torch.float32,))
        for number, layer in enumerate(self.layers):
            nn.init.constant_(layer.weight, 0.1 + number)
            nn.init.constant_(layer.bias, 0.3)

    def forward(self, x):
        return sum(layer(x.to(layer.weight.dtype)).double() for layer in self.layers)[:, 0]

    def training_step(self, batch, batch_idx):
        self.see(batch[0])
        return nn.functional.binary_cross_entropy_with_logits(self(batch[0]), batch[1].double()).float()

    def see(self, x):
        """What a client does to its buffers."""

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)


def fit(module, rounds=3, folder=None, workers=1, checkpoint=None, rule=None, **federated):
    module = deepcopy(module)
    trainer = pl.Trainer(
        max_epochs=rounds,
        accelerator="cpu",
        devices=workers,
        strategy=fedgm.FederatedDDP() if workers > 1 else "auto",
        callbacks=[fedgm.FedGM(rule or GeneralMomentum(1.0, 0.5, 0.5))],
        default_root_dir=folder,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        logger=False,
    )
    loop = fedgm.federate(trainer, clients(), **{"batch_size": 32, **federated})
    trainer.fit(module, ckpt_path=checkpoint)
    assert loop.diverged is None
    assert loop.row["round"] == rounds
    return trainer, module


def plain(module, rounds=3):
    """All clients in every round, with the momentum of ``fit``; sums in float64, the largest client first."""
    module, d = deepcopy(module), [0.0] * len(list(module.parameters()))
    x = list(module.parameters())
    wide = torch.float64 if any(p.dtype == torch.float64 for p in x) else torch.float32
    for t in range(1, rounds + 1):
        cohort = sorted(Uniform(4, 4, seed=0).cohort(t), key=lambda client: -SIZES[client])
        trained = [step(module, client, t) for client in cohort]
        with torch.no_grad():
            for i, ends in enumerate(zip(*(client.parameters() for client in trained), strict=True)):
                delta = (sum((x[i].to(wide) - end.to(wide)).double() for end in ends) / 4).to(wide)
                d[i] = 0.5 * delta + 0.5 * d[i]
                x[i].copy_(x[i].to(wide) - (0.5 * delta + 0.5 * d[i]))
            for name, buffer in module.named_buffers():
                values = [client.get_buffer(name) for client in trained]
                if buffer.is_floating_point() or buffer.is_complex():
                    buffer.copy_(
                        sum(value.to(torch.promote_types(value.dtype, torch.float64)) for value in values) / 4
                    )
                else:
                    buffer.copy_(sum(values) // 4)
    return module


def step(module, client, t):
    """One batch of all that a client has."""
    module, (x, y) = deepcopy(module), clients()[client].tensors
    order = generator(0, "shuffle", t, client).permutation(len(x))
    sgd = module.configure_optimizers()
    module.training_step((x[order], y[order]), 0).backward()
    sgd.step()
    return module


def same(a, b):
    """Every tensor of both, bit by bit."""
    a, b = ({**dict(module.named_parameters()), **dict(module.named_buffers())} for module in (a, b))
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype, name
        assert memory(a[name]) == memory(b[name]), name


def memory(tensor):
    tensor = tensor.detach().resolve_conj()
    return (
        (torch.view_as_real(tensor) if tensor.is_complex() else tensor)
        .contiguous()
        .view(torch.uint8)
        .tolist()
    )


class Tables(Module):
    """Buffers that nobody changes, one of each kind."""

    def __init__(self):
        super().__init__()
        turn = torch.polar(torch.ones(2, 3), torch.arange(6.0).view(2, 3))
        self.register_buffer("rotary", turn)
        self.register_buffer("rotary128", turn.to(torch.complex128) / 3)
        self.register_buffer("conjugate", turn.conj())
        self.register_buffer("mask", torch.full((4, 4), float("-inf")).triu(1))
        self.register_buffer("hole", torch.tensor([float("nan"), -0.0]))
        self.register_buffer("third", torch.tensor([1.0], dtype=torch.float64) / 3)
        self.register_buffer("short", torch.tensor([1 / 3], dtype=torch.bfloat16))
        self.register_buffer("large", torch.tensor([LARGE, -LARGE, 2**63 - 1]))
        self.register_buffer("flags", torch.tensor([True, False]))
        self.register_buffer("octets", torch.tensor([255, 1], dtype=torch.uint8))
        self.register_buffer("unsaved", torch.tensor([1j / 3]), persistent=False)


@pytest.mark.parametrize("weights", ["uniform", "samples"])
def test_buffers_that_no_client_changes_pass_through_untouched(weights):
    module = Tables()
    _, trained = fit(module, weights=weights)
    assert not torch.equal(trained.layers[0].weight, module.layers[0].weight)
    trained.layers = module.layers
    same(trained, module)


def test_a_buffer_whose_entries_share_memory_is_kept():
    module = Module()
    module.register_buffer("wide", torch.tensor([7.0]).expand(3))
    _, trained = fit(module)
    assert trained.wide.tolist() == [7.0] * 3


def test_the_same_with_stale_clients_and_two_workers():
    module = Tables()
    stale = Autonomous(Uniform(4, 3, seed=0), delay=2, epochs=(1, 1), reference=1, seed=0)
    _, one = fit(module, rounds=4, participation=stale)
    _, two = fit(module, rounds=4, participation=stale, workers=2)
    same(one, two)
    one.layers = module.layers
    same(one, module)


class Changing(Module):
    """Clients change every kind of buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([1 / 3], dtype=torch.float64))
        self.register_buffer("phase", torch.tensor([1 + 1j]))
        self.register_buffer("low", torch.tensor([float("inf"), 0.0]))
        self.register_buffer("seen", torch.tensor([LARGE, -LARGE]))
        self.register_buffer("unsaved", torch.zeros(2), persistent=False)

    def see(self, x):
        self.mean.mul_(0.5).add_(x.double().mean())
        self.phase.mul_(1j).add_(len(x))
        self.low[1] = x.min()  # the first entry stays infinite
        self.seen.add_(len(x))
        self.unsaved = self.unsaved / 2 + len(x)  # not in place: a new tensor


def test_buffers_that_clients_change_are_averaged_in_their_own_types():
    module = Changing()
    _, trained = fit(module)
    expected = plain(module)
    for name, buffer in expected.named_buffers():
        ours = trained.get_buffer(name)
        assert ours.dtype == buffer.dtype
        assert torch.allclose(
            ours, buffer, rtol=1e-6 if name in ("low", "unsaved", "phase") else 1e-15, atol=0
        ), name
    assert trained.seen.tolist() == [LARGE + 3 * sum(SIZES) // 4, -LARGE + 3 * sum(SIZES) // 4]


def test_a_buffer_that_a_module_replaces_does_not_leak_into_the_next_client():
    class Replaces(Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def see(self, x):
            self.count = self.count + 1

    _, trained = fit(Replaces(), rounds=1)
    assert trained.count.item() == 1.0  # not 1, 2, 3, 4 and their mean


def test_a_buffer_that_gets_another_shape_is_refused():
    class Grows(Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", torch.zeros(1))

        def see(self, x):
            self.cache = torch.cat([self.cache, self.cache])

    with pytest.raises(FedGMError, match="buffer cache got another shape or type while a client trained"):
        fit(Grows())


@pytest.mark.parametrize(
    "types",
    [
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.bfloat16, torch.float64),
        (torch.float16, torch.bfloat16),
        (torch.float64, torch.float32),
        (torch.float64,),  # sums of float64 numbers depend on their order
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_parameters_of_mixed_types_keep_theirs(types, workers):
    module = Module(*types)
    _, trained = fit(module, workers=workers)
    same(trained, plain(module))


def test_two_workers_equal_one_where_only_a_buffer_is_float64():
    """Parameters alone would not say that the sum depends on its order."""

    class Wide(Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("wide", torch.linspace(0.1, 0.9, 200, dtype=torch.float64))

        def see(self, x):
            self.wide.mul_(x.double().sum())

    (_, one), (_, two) = (fit(Wide(), workers=workers) for workers in (1, 2))
    same(one, two)


def test_a_value_that_bfloat16_cannot_hold_survives_beside_one_that_is():
    module = Module(torch.bfloat16, torch.float32)
    _, trained = fit(module)
    weight = trained.layers[1].weight
    assert not torch.equal(weight, weight.bfloat16().float())


@pytest.mark.parametrize("make", [Changing, Tables, lambda: Module(torch.bfloat16, torch.float32)])
def test_a_run_that_continues_ends_as_one_that_did_not_stop(make, tmp_path):
    module = make()
    stale = Autonomous(Uniform(4, 3, seed=0), delay=2, epochs=(1, 1), reference=1, seed=0)
    _, whole = fit(module, rounds=5, participation=stale)
    trainer, _ = fit(module, rounds=2, participation=stale)
    trainer.save_checkpoint(tmp_path / "two.ckpt")
    _, continued = fit(module, rounds=5, participation=stale, checkpoint=tmp_path / "two.ckpt")
    same(whole, continued)


def test_an_infinite_buffer_that_a_client_made_is_no_finite_update():
    class Overflows(Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor([1.0, float("inf")]))

        def see(self, x):
            self.scale.mul_(1e30)

    module = Overflows()
    with pytest.raises(AssertionError):
        fit(module)
