"""Random modules under ``fedgm.federate`` against a plain loop: dtypes, buffers, groups, tied weights.

What the loop does to a module is compared entry by entry with Algorithm 3 written out: every tensor keeps its
dtype, a buffer that no client changes keeps its bits, and what cannot be averaged is refused with a sentence.
"""

import random
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import fedgm
from fedgm.client.rules import ClientRule, FedProx, Plain, Scaffold
from fedgm.data.clients import as_clients
from fedgm.errors import FedGMError
from fedgm.federated.aggregate import shares
from fedgm.lightning import pl
from fedgm.participation import ideal
from fedgm.server import GeneralMomentum
from tests.fuzz.runs import FindingError, Runs

Named = dict[str, Tensor]
ROUNDS = 2
DTYPES = (torch.float32,) * 4 + (torch.float64, torch.bfloat16, torch.float16)
SHAPES = ((), (1,), (3,), (2, 3), (2, 1, 2, 2), (0,))
# Relative to the greatest entry: a few roundings of the dtype, none of a coarser one.
CLOSE = {torch.float32: 2e-6, torch.float64: 1e-11, torch.bfloat16: 0.03, torch.float16: 4e-3}
FIXED = (  # buffers that no client changes
    lambda: torch.full((2, 2), float("-inf")).triu(1),
    lambda: torch.tensor([float("nan"), 1.0]),
    lambda: torch.polar(torch.ones(3), torch.arange(3.0)),
    lambda: torch.tensor([2**53 + 1, -(2**62) - 1]),
    lambda: torch.tensor([True, False]),
    lambda: torch.tensor([0.1, 1e-300], dtype=torch.float64),
    lambda: torch.tensor([255, 3], dtype=torch.uint8),
    lambda: torch.tensor([0.3], dtype=torch.bfloat16),
    lambda: torch.empty(0),
)
MOVING = (  # buffers that every local step changes
    lambda: torch.zeros(()),
    lambda: torch.tensor([1.0, 1 / 3], dtype=torch.float64),
    lambda: torch.zeros(2, dtype=torch.int64),
    lambda: torch.tensor(2**53 + 1),
    lambda: torch.zeros((), dtype=torch.int32),
    lambda: torch.tensor(0.5, dtype=torch.float16),
)
REFUSED = ("none", "frozen", "complex", "lazy")  # parameters that cannot be federated


class Settings(NamedTuple):
    """What a case has besides its module."""

    sizes: list[int]
    per_round: int
    epochs: int
    batch_size: int
    weights: str
    momentum: tuple[float, float, float]
    rule: ClientRule
    seed: int


class Net(pl.LightningModule):
    """Parameters and buffers as they are drawn; equal seeds make equal modules."""

    def __init__(self, seed: int, odd: str | None, optimizer: str):
        super().__init__()
        draw, self.kind = random.Random(seed), optimizer
        numbers = torch.Generator().manual_seed(seed)
        self.used: list[str] = []
        for place in range(0 if odd == "none" else draw.choice((1, 2, 3, 4))):
            shape, dtype = draw.choice(SHAPES), draw.choice(DTYPES)
            value = torch.randn(shape, generator=numbers).to(dtype)
            if len(shape) > 1 and draw.random() < 0.3:
                value = value.transpose(0, 1).contiguous().transpose(0, 1)
            frozen = odd == "frozen" or (place > 0 and draw.random() < 0.2)
            self.register_parameter(f"p{place}", nn.Parameter(value, requires_grad=not frozen))
            if draw.random() < 0.85:
                self.used.append(f"p{place}")
        if self.used and draw.random() < 0.2:
            self.tied = getattr(self, self.used[0])
        if odd == "complex":
            self.register_parameter("c", nn.Parameter(torch.ones(2, dtype=torch.complex64)))
        if odd == "lazy":
            self.lazy = nn.LazyLinear(2)
        for place in range(draw.choice((0, 1, 2, 3))):
            self.register_buffer(f"fixed{place}", draw.choice(FIXED)(), persistent=draw.random() < 0.7)
        self.moving = [f"moving{place}" for place in range(draw.choice((0, 1, 2)))]
        for name in self.moving:
            self.register_buffer(name, draw.choice(MOVING)())
        self.rates = [draw.choice((0.01, 0.02, 0.05)) for _ in self.parameters()]

    def training_step(self, batch, batch_idx):
        """No parameter's gradient depends on another, so that a coarse one rounds none but itself."""
        x, y = (part.double() for part in batch)
        losses = []
        for p in (getattr(self, name).double() for name in self.used):
            z = (p * torch.linspace(0.1, 1, max(p.numel(), 1))[: p.numel()].view(p.shape)).sum()
            losses.append(((x[:, 0] * z + x[:, 1] - y) ** 2).mean() + 0.01 * (p**2).sum())
        for name in self.moving:
            buffer = getattr(self, name)
            buffer += x.mean() if buffer.is_floating_point() else 1
        return sum(losses) + 0 * self._touch()

    def _touch(self) -> Tensor:
        """A loss that depends on something even where every parameter is frozen or unused."""
        free = [
            p for p in self.parameters() if p.requires_grad and not isinstance(p, nn.UninitializedParameter)
        ]
        return free[0].to(torch.float32).sum() if free and not free[0].is_complex() else torch.zeros(())

    def rate(self, parameter: Tensor) -> float:
        """The rate of the parameter's own group."""
        rates = zip(self.parameters(), self.rates, strict=True)
        return next(rate for p, rate in rates if p is parameter)

    def configure_optimizers(self):
        groups = [{"params": [p], "lr": rate} for p, rate in zip(self.parameters(), self.rates, strict=True)]
        if self.kind == "adam":
            return torch.optim.Adam(groups or [nn.Parameter(torch.zeros(1))], lr=0.01, eps=1e-3)
        options = {"momentum": {"momentum": 0.9}, "decay": {"weight_decay": 0.1}}.get(self.kind, {})
        return torch.optim.SGD(groups or [nn.Parameter(torch.zeros(1))], lr=0.01, **options)


def case(runs: Runs, draw: random.Random, place: Path) -> str:
    """One module; the way it ended, or :class:`FindingError`."""
    seed, odd = draw.randrange(2**31), draw.choice(REFUSED) if draw.random() < 0.1 else None
    optimizer = draw.choice(("sgd", "sgd", "sgd", "momentum", "decay", "adam"))
    sizes = [draw.randint(1, 9) for _ in range(draw.choice((1, 2, 3, 4)))]
    rule = draw.choice((Plain(), Plain(), FedProx(0.1), Scaffold()))
    settings = Settings(
        sizes, draw.randint(1, len(sizes)), draw.choice((1, 2)), draw.choice((2, 4)),
        draw.choice(("uniform", "samples")), draw.choice(((1.0, 0.9, 0.7), (0.5, 0.0, 0.0), (2.0, 0.5, 1.0))),
        rule, draw.randrange(1000),
    )  # fmt: skip
    must_refuse = odd is not None or (isinstance(rule, Scaffold) and optimizer != "sgd")
    what = f"{odd or 'module'} {described(Net(seed, odd, optimizer))}, {optimizer}, {settings}"
    torch.manual_seed(0)
    net = Net(seed, odd, optimizer)
    try:
        federated(net, settings, place)
    except FedGMError as error:
        if not must_refuse:
            raise FindingError(f"{what}: refused: {error}") from None
        return "refused"
    except Exception as error:
        raise FindingError(f"{what}: {type(error).__name__}: {error}") from error
    if must_refuse:
        raise FindingError(f"{what}: was not refused")
    compare(net, plain(Net(seed, odd, optimizer), settings), what)
    return "good"


def described(net: Net) -> str:
    """Names, dtypes and shapes."""
    shapes = {
        name: "lazy" if isinstance(t, nn.UninitializedParameter) else [*t.shape] for name, t in tensors(net)
    }
    return " ".join(f"{name}:{str(t.dtype).removeprefix('torch.')}{shapes[name]}" for name, t in tensors(net))


def datasets(settings: Settings) -> list[TensorDataset]:
    numbers = torch.Generator().manual_seed(settings.seed)
    pairs = [torch.randn(size, 3, generator=numbers) for size in settings.sizes]
    return [TensorDataset(pair[:, :2].contiguous(), pair[:, 2].contiguous()) for pair in pairs]


def federated(net: Net, settings: Settings, folder: Path) -> None:
    """What a user writes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = pl.Trainer(
            max_epochs=ROUNDS, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
            callbacks=[fedgm.FedGM(GeneralMomentum(*settings.momentum))], default_root_dir=folder,
            enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        fedgm.federate(
            trainer, datasets(settings), per_round=settings.per_round, epochs=settings.epochs,
            batch_size=settings.batch_size, seed=settings.seed, weights=settings.weights,
            client=settings.rule,
        )  # fmt: skip
        trainer.fit(net)


def plain(net: Net, settings: Settings) -> Net:
    """Algorithm 3 written out, in float64 and tensor by tensor."""
    data = as_clients(datasets(settings), settings.batch_size, settings.seed)
    scheme = ideal(len(settings.sizes), settings.per_round, settings.epochs, settings.seed)
    d, c, own = Named(), Named(), dict[int, Named]()
    for t in range(1, ROUNDS + 1):
        tasks = scheme.tasks(t)
        after, messages = [], []
        for task in tasks:
            before, steps = own.get(task.client, Named()), settings.epochs * data.epoch(task.client)
            client = deepcopy(net)
            train(client, net, data.batches(task.client, t, steps), settings.rule, difference(c, before))
            after.append(client)
            if isinstance(settings.rule, Scaffold):
                rates = {name: client.rate(p) for name, p in client.named_parameters()}
                moved = {name: delta / (steps * rates[name]) for name, delta in deltas(net, client).items()}
                own[task.client] = summed(difference(before, c), moved)
                messages.append(difference(own[task.client], before))
        for message in messages:
            c = summed(c, {name: value / len(settings.sizes) for name, value in message.items()})
        parts = shares([data.size(task.client) for task in tasks], settings.weights)
        serve(net, after, [part / sum(parts) for part in parts], d, settings.momentum)
    return net


def summed(one: Named, other: Named) -> Named:
    return {name: one.get(name, 0) + other.get(name, 0) for name in one | other}


def difference(one: Named, other: Named) -> Named:
    return summed(one, {name: -value for name, value in other.items()})


def deltas(start: Net, client: Net) -> Named:
    """x - y of every parameter that is trained."""
    ended = dict(client.named_parameters())
    free = {name: p for name, p in start.named_parameters() if p.requires_grad}
    return {name: p.detach().double() - ended[name].detach().double() for name, p in free.items()}


def train(client: Net, start: Net, batches: Iterator, rule: ClientRule, correction: Named) -> None:
    """Local steps, with what the rule adds to gradients."""
    optimizer, began = client.configure_optimizers(), dict(start.named_parameters())
    for batch in batches:
        optimizer.zero_grad()
        client.training_step(batch, 0).backward()
        for name, p in client.named_parameters():
            if p.grad is not None and isinstance(rule, FedProx):
                p.grad += rule.mu * (p.detach() - began[name].detach())
            if p.grad is not None and name in correction:
                p.grad += correction[name].to(p.dtype)
        optimizer.step()


@torch.no_grad()
def serve(
    net: Net, after: list[Net], parts: list[float], d: Named, momentum: tuple[float, float, float]
) -> None:
    """Eq. 2 for parameters; the mean of buffers that have moved, truncated where they are integers."""
    eta, beta, nu = momentum
    moved = [deltas(net, client) for client in after]
    for name, p in net.named_parameters():
        if p.requires_grad:
            mean = torch.stack([part * delta[name] for part, delta in zip(parts, moved, strict=True)]).sum(0)
            d[name] = (1 - beta) * mean + beta * d.get(name, 0)
            p.copy_(p.double() - eta * ((1 - nu) * mean + nu * d[name]))
    for name in net.moving:
        buffer, ended = getattr(net, name), [getattr(client, name) for client in after]
        if buffer.is_floating_point():
            terms = [part * value.double() for part, value in zip(parts, ended, strict=True)]
            buffer.copy_(torch.stack(terms).sum(0))
        else:
            whole = [
                sum(values) // len(after)
                for values in zip(*(v.flatten().tolist() for v in ended), strict=True)
            ]
            buffer.copy_(torch.tensor(whole).view(buffer.shape))


def compare(net: Net, expected: Net, what: str) -> None:
    """Every tensor by name: dtype, shape and values."""
    right = {name: tensor.detach() for name, tensor in tensors(expected)}
    for name, tensor in tensors(net):
        mine, wanted = tensor.detach(), right[name]
        if (mine.dtype, mine.shape) != (wanted.dtype, wanted.shape):
            raise FindingError(f"{what}: {name} became {mine.dtype} {tuple(mine.shape)}")
        moves = tensor.requires_grad or (name in net.moving and tensor.is_floating_point())
        if not moves:
            if not torch.equal(bits(mine), bits(wanted)):
                raise FindingError(f"{what}: {name} is {mine.tolist()}, expected {wanted.tolist()}")
        elif mine.numel():
            off = (mine.double() - wanted.double()).abs().max() / wanted.double().abs().max().clamp(min=1)
            if not off <= CLOSE[mine.dtype]:
                raise FindingError(f"{what}: {name} is off by {off:.1e}: {mine.tolist()}, {wanted.tolist()}")


def tensors(net: Net) -> list[tuple[str, Tensor]]:
    return [*net.named_parameters(), *net.named_buffers()]


def bits(tensor: Tensor) -> Tensor:
    """The bytes, in which a NaN equals itself."""
    plain = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return plain.contiguous().flatten().view(torch.uint8)
