"""fedgm.optim: Eq. 2 as a torch optimiser is torch's SGD, our engine, and a well-behaved optimiser."""

import copy
import warnings

import pytest
import torch
from torch import nn

import fedgm
from fedgm.errors import ConfigError
from fedgm.optim import GeneralMomentum, Multistage
from fedgm.schedule import Constant
from fedgm.schedule.every_round import Cosine
from fedgm.schedule.plan import Multistage as Eq3
from fedgm.server import GeneralMomentum as Rule
from fedgm.server.engine import Engine

STEPS = 50
SHAPES = ((3, 4), (5,), ())


def start(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in SHAPES]


def gradients(t, dtype=torch.float64):
    generator = torch.Generator().manual_seed(100 + t)
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in SHAPES]


def take(optimizer, parameters, t):
    for parameter, gradient in zip(parameters, gradients(t, parameters[0].dtype), strict=True):
        parameter.grad = gradient
    optimizer.step()


def path(make, steps=STEPS, dtype=torch.float64, schedule=None):
    """The flat parameters after each step."""
    parameters = start(dtype)
    optimizer = make(parameters)
    scheduler = schedule(optimizer) if schedule else None
    points = []
    for t in range(1, steps + 1):
        take(optimizer, parameters, t)
        if scheduler is not None:
            scheduler.step()
        points.append(torch.cat([p.detach().flatten() for p in parameters]))
    return torch.stack(points)


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize(
    ("lr", "b", "nesterov"),
    [(0.1, 0.9, False), (0.5, 0.5, False), (0.3, 0.0, False), (0.1, 0.9, True), (0.5, 0.5, True)],
)
def test_it_is_torchs_sgd_with_momentum(lr, b, nesterov, foreach):
    theirs = path(lambda p: torch.optim.SGD(p, lr, momentum=b, nesterov=nesterov))
    nu = b if nesterov else 1.0
    ours = path(lambda p: GeneralMomentum(p, lr / (1 - b), b, nu, foreach=foreach))
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    if b:  # their lr typed as ours is another algorithm
        assert (path(lambda p: GeneralMomentum(p, lr, b, nu)) - theirs).abs().max() > 0.1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("foreach", [False, True, None])
@pytest.mark.parametrize(("eta", "beta", "nu"), [(1.0, 0.9, 0.7), (2.0, 0.5, 1.0), (0.5, 0.95, 0.0)])
def test_it_is_our_engine_bit_for_bit(eta, beta, nu, foreach, dtype):
    rule = Rule(eta, beta, nu)
    engine = Engine(rule, Constant().plan(STEPS, rule))
    x, points = torch.cat([p.detach().flatten() for p in start(dtype)]), []
    for t in range(1, STEPS + 1):
        x = engine.step(t, x, torch.cat([g.flatten() for g in gradients(t, dtype)]))
        points.append(x)
    ours = path(lambda p: GeneralMomentum(p, eta, beta, nu, foreach=foreach), dtype=dtype)
    assert torch.equal(ours, torch.stack(points))


@pytest.mark.parametrize("schedule", [Eq3([2.0, 1.0, 0.5]), Cosine(0.1)])
def test_multistage_is_our_engine_over_a_plan_bit_for_bit(schedule):
    rule = Rule(2.0, 0.9, 0.9)
    plan = schedule.plan(STEPS, rule)
    engine = Engine(rule, plan)
    x, points = torch.cat([p.detach().flatten() for p in start()]), []
    for t in range(1, STEPS + 1):
        x = engine.step(t, x, torch.cat([g.flatten() for g in gradients(t)]))
        points.append(x)
    ours = path(lambda p: GeneralMomentum(p, 2.0, 0.9, 0.9), schedule=lambda o: Multistage(o, plan))
    assert torch.equal(ours, torch.stack(points))
    if isinstance(schedule, Eq3):
        by_etas = path(
            lambda p: GeneralMomentum(p, 7.0, 0.9, 0.9),  # lr is the first eta, whatever was typed
            schedule=lambda o: Multistage(o, etas=[2.0, 1.0, 0.5], rounds=STEPS),
        )
        assert torch.equal(by_etas, ours)
        assert not torch.equal(path(lambda p: GeneralMomentum(p, 2.0, 0.9, 0.9)), ours)


def test_after_the_last_round_the_last_values_stay():
    optimizer = GeneralMomentum(start(), 2.0, 0.9, 0.9)
    scheduler = Multistage(optimizer, etas=[2.0, 1.0], rounds=6)
    rates = []
    for _ in range(9):
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert scheduler.get_last_lr() == [1.0]


def test_state_dict_continues_bit_for_bit_and_is_loaded_without_code(tmp_path):
    whole = path(
        lambda p: GeneralMomentum(p, 2.0, 0.9, 0.7), schedule=lambda o: Multistage(o, [2.0, 0.5], STEPS)
    )
    parameters = start()
    optimizer = GeneralMomentum(parameters, 2.0, 0.9, 0.7)
    scheduler = Multistage(optimizer, [2.0, 0.5], STEPS)
    for t in range(1, 31):
        take(optimizer, parameters, t)
        scheduler.step()
    torch.save(
        {"x": [p.detach() for p in parameters], "o": optimizer.state_dict(), "s": scheduler.state_dict()},
        tmp_path / "state.pt",
    )
    stored = torch.load(tmp_path / "state.pt", weights_only=True)
    fresh = [nn.Parameter(x) for x in stored["x"]]
    optimizer = GeneralMomentum(fresh, 2.0, 0.9, 0.7)
    scheduler = Multistage(optimizer, [2.0, 0.5], STEPS)
    optimizer.load_state_dict(stored["o"])
    scheduler.load_state_dict(stored["s"])
    for t in range(31, STEPS + 1):
        take(optimizer, fresh, t)
        scheduler.step()
    assert torch.equal(torch.cat([p.detach().flatten() for p in fresh]), whole[-1])


def test_it_can_be_copied_and_pickled():
    parameters = start()
    optimizer = GeneralMomentum(parameters, 1.0, 0.9, 0.7)
    take(optimizer, parameters, 1)
    twin = copy.deepcopy(optimizer)
    assert twin.param_groups[0]["beta"] == 0.9
    (d,) = {type(entry["d"]) for entry in twin.state.values()}
    assert d is torch.Tensor


def test_groups_have_their_own_values():
    parameters = start()
    optimizer = GeneralMomentum(
        [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.25, "beta": 0.5, "nu": 1.0}],
        1.0,
        0.9,
        0.7,
    )
    alone = start()
    first = GeneralMomentum(alone[:1], 1.0, 0.9, 0.7)
    others = GeneralMomentum(alone[1:], 0.25, 0.5, 1.0)
    for t in range(1, 4):
        take(optimizer, parameters, t)
        for parameter, gradient in zip(alone, gradients(t), strict=True):
            parameter.grad = gradient
        first.step()
        others.step()
    assert all(torch.equal(a, b) for a, b in zip(parameters, alone, strict=True))


def test_each_group_has_a_plan_of_its_own_beta():
    parameters = start()
    optimizer = GeneralMomentum(
        [{"params": parameters[:1]}, {"params": parameters[1:], "beta": 0.5}], 2.0, 0.9, 0.9
    )
    scheduler = Multistage(optimizer, [2.0, 1.0], 3)
    optimizer.step()
    scheduler.step()
    betas = [group["beta"] for group in optimizer.param_groups]
    assert betas == [Rule(2.0, beta, 0.9).follow(1.0, 2.0)["beta"] for beta in (0.9, 0.5)]


def test_a_closure_is_called_with_gradients_and_its_loss_returned():
    x = nn.Parameter(torch.tensor([2.0]))
    optimizer = GeneralMomentum([x], 0.5, 0.0, 0.0)

    def closure():
        optimizer.zero_grad()
        loss = (x**2).sum()
        loss.backward()
        return loss

    with torch.no_grad():  # torch's optimisers enable gradients around a closure
        assert optimizer.step(closure).item() == 4.0
    assert x.item() == 0.0
    assert optimizer.step() is None


@pytest.mark.parametrize("foreach", [False, True])
def test_parameters_without_gradients_stay_and_keep_no_state(foreach):
    parameters = start()
    before = [p.detach().clone() for p in parameters]
    optimizer = GeneralMomentum(parameters, 1.0, 0.9, 0.7, foreach=foreach)
    optimizer.step()
    assert not optimizer.state
    parameters[0].grad = torch.ones_like(parameters[0])
    optimizer.step()
    assert not torch.equal(parameters[0], before[0])
    assert all(torch.equal(p, b) for p, b in zip(parameters[1:], before[1:], strict=True))
    assert list(optimizer.state) == [parameters[0]]


@pytest.mark.parametrize("foreach", [False, True])
def test_sparse_gradients_are_as_dense_ones(foreach):
    def train(sparse):
        torch.manual_seed(0)
        table = nn.Embedding(7, 3, sparse=sparse)
        optimizer = GeneralMomentum(table.parameters(), 0.5, 0.9, 0.7, foreach=foreach)
        for rows in ([1, 1, 4], [0], [4, 5]):  # a row twice: its gradients add up
            optimizer.zero_grad()
            table(torch.tensor(rows)).square().sum().backward()
            assert table.weight.grad.is_sparse is sparse
            optimizer.step()
        return table.weight.detach()

    assert torch.equal(train(sparse=True), train(sparse=False))


def test_it_trains_in_half_precision_and_keeps_dtypes():
    x = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    optimizer = GeneralMomentum([x], 0.5, 0.9, 0.7)
    x.grad = torch.ones_like(x)
    optimizer.step()
    assert optimizer.state[x]["d"].dtype is x.dtype is torch.bfloat16


def test_as_an_inner_optimiser_it_minimises():
    torch.manual_seed(0)
    net, inputs = nn.Linear(4, 1), torch.randn(64, 4)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [0.5], [3.0]])
    optimizer = GeneralMomentum(net.parameters(), lr=0.3, beta=0.9, nu=0.7)
    for _ in range(200):
        optimizer.zero_grad()
        loss = (net(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-6


def test_a_run_trains_with_it(tmp_path):
    words = ["profile=tiny", "rounds=2", "track.mode=disabled", "trainer.workers=1", f"output_dir={tmp_path}"]
    words += ["local.optimizer=qhm", "local.momentum=0.9"]
    assert fedgm.run(words).status == "finished"
    (folder,) = tmp_path.glob("*/*/seed=0")
    assert fedgm.load_model(folder) is not None  # a stored configuration may build it
    with pytest.raises(ConfigError, match=r"^weight_decay=0\.1"):
        fedgm.run([*words, "local.weight_decay=0.1"])


def test_torch_warns_of_the_wrong_order_as_with_its_own_schedulers():
    optimizer = GeneralMomentum(start(), 2.0, 0.9, 0.9)
    scheduler = Multistage(optimizer, [2.0, 1.0], 3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scheduler.step()
    assert any("lr_scheduler.step()" in str(warning.message) for warning in said)
