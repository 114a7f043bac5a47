"""L, sigma_l, sigma_g and f of models whose constants are known."""

import pytest
import torch
from torch import nn

from fedgm.errors import FedGMError
from fedgm.theory import gradient_spread, hessian_norm, measure


class Bowl(nn.Module):
    """``forward(a) = 1/2 sum a w^2``: the Hessian is diag(a), whatever w is."""

    def __init__(self, w):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(w, dtype=torch.float64))

    def forward(self, a):
        return 0.5 * (a * self.w**2).sum()


def first(output, target):
    return output


def slopes(*values):
    """Batches on which the gradient of ``Slope`` is the value itself."""
    return [(torch.as_tensor(v, dtype=torch.float64).reshape(-1), torch.tensor(0.0)) for v in values]


class Slope(nn.Module):
    """``forward(c) = c w``: the gradient is c, the Hessian 0."""

    def __init__(self, dim=1):
        super().__init__()
        self.w = nn.Parameter(torch.ones(dim, dtype=torch.float64))

    def forward(self, c):
        return c @ self.w


def bowl(*diagonals):
    return [
        [(torch.tensor(a, dtype=torch.float64), torch.tensor(0.0)) for a in client] for client in diagonals
    ]


def test_L_is_the_largest_curvature_of_the_mean_of_the_clients_by_size():
    # client 1: mean of (1,-9,0) and (3,-7,0) = (2,-8,0); client 2: (4,-2,1); mean (3,-5,.5)
    clients = bowl([[1.0, -9.0, 0.0], [3.0, -7.0, 0.0]], [[4.0, -2.0, 1.0]])
    measured = hessian_norm(Bowl([1.0, 1.0, 1.0]), first, clients, seed=0, iterations=200, tolerance=1e-6)
    assert abs(measured.L - 5) < 1e-8
    assert measured.residual <= 1e-6
    assert 1 < measured.iterations < 200


def test_L_is_right_where_two_signs_compete_and_the_residual_tells():
    measured = hessian_norm(Bowl([1.0, 1.0]), first, bowl([[2.0, -2.0]]), seed=0, iterations=5)
    assert abs(measured.L - 2) < 1e-12
    assert measured.iterations == 5
    assert measured.residual > 0.1


def test_iterations_are_a_limit_and_the_residual_falls():
    clients = bowl([[3.0, 2.0, 1.0]])
    runs = [hessian_norm(Bowl([1.0, 1.0, 1.0]), first, clients, 0, n, tolerance=0) for n in (2, 10)]
    assert [run.iterations for run in runs] == [2, 10]
    assert runs[0].L <= runs[1].L <= 3 + 1e-12
    assert runs[1].residual < runs[0].residual / 5


def test_L_agrees_with_the_whole_hessian_of_a_small_network():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)).double()
    data, target = torch.randn(8, 3).double(), torch.randint(0, 2, (8,))
    weights = {k: v.detach().clone() for k, v in net.named_parameters()}
    shapes = [w.shape for w in weights.values()]
    net.eval()

    def f(flat):
        parts = flat.split([s.numel() for s in shapes])
        state = {k: p.view(s) for k, p, s in zip(weights, parts, shapes, strict=True)}
        return nn.functional.cross_entropy(torch.func.functional_call(net, state, (data,)), target)

    H = torch.autograd.functional.hessian(f, torch.cat([w.reshape(-1) for w in weights.values()]))
    net.train()
    measured = hessian_norm(net, nn.functional.cross_entropy, [[(data, target)]], 0, 500, 1e-5)
    assert abs(measured.L / float(torch.linalg.eigvalsh(H).abs().max()) - 1) < 1e-6


def test_sigmas_by_hand():
    # client 1: 1, 3, mean 2, variance 2; client 2: -1, -1, mean -1, variance 0: sigma_l^2 = 1
    # spread of 2 and -1: 2.25; they carry (2/2 + 0)/2 = .5 of noise, of which 1 - 1/2 shows: 2.25 - .25
    clients = [slopes(1.0, 3.0), slopes(-1.0, -1.0)]
    measured = gradient_spread(Slope(), first, clients)
    assert (measured.f0, measured.sigma_l, measured.sigma_g**2) == pytest.approx((0.5, 1.0, 2.0))
    assert gradient_spread(Slope(), first, clients, whole=True).sigma_g ** 2 == pytest.approx(2.25)


def test_the_most_different_client_by_hand():
    # means 0, 0, 3 about 1: 1, 1, 4, mean 2.  Client 1's variance 2 puts 1 into its mean, 1/3 on average:
    # off go (1 - 2/3) of a client's own and 1/3 of the average, so 4 - 1/9, and on average 2 - 2/9
    clients = [slopes(-1.0, 1.0), slopes(0.0, 0.0), slopes(3.0, 3.0)]
    measured, whole = (gradient_spread(Slope(), first, clients, whole=w) for w in (False, True))
    assert (whole.sigma_g**2, whole.sigma_max**2) == pytest.approx((2, 4))
    assert (measured.sigma_g**2, measured.sigma_max**2) == pytest.approx((16 / 9, 35 / 9))


def test_progress_is_told_by_client_and_iteration():
    told = []
    clients = bowl([[1.0, 2.0], [2.0, 2.5]], [[1.0, 3.0], [0.0, 1.0]])
    tell = lambda *step: told.append(step)  # noqa: E731
    measure(Bowl([1.0, 1.0]), first, clients, 0, iterations=2, tolerance=0, tell=tell)
    assert told == [*(("sigma", k, 4) for k in range(1, 5)), *(("L", k, 4) for k in range(1, 5))]


def test_sigmas_are_recovered_from_noisy_batches():
    dim, n, B = 5, 8, 4
    draw = torch.Generator().manual_seed(0)
    c = torch.randn(n, dim, generator=draw, dtype=torch.float64)
    sigma_g2 = float(((c - c.mean(0)) ** 2).sum(1).mean())
    noise2, raw, measured = 9.0 * dim, [], []
    for _ in range(60):
        noise = 3 * torch.randn(n, B, dim, generator=draw, dtype=torch.float64)
        clients = [slopes(*(c[i] + noise[i])) for i in range(n)]
        s, r = (gradient_spread(Slope(dim), first, clients, whole=w) for w in (False, True))
        measured.append((s.sigma_l**2, s.sigma_g**2))
        raw.append(r.sigma_g**2)
    sigma_l2, corrected = torch.tensor(measured).mean(0).tolist()
    assert sigma_l2 == pytest.approx(noise2, rel=0.05)
    assert corrected == pytest.approx(sigma_g2, rel=0.2)
    assert sum(raw) / 60 > 2 * sigma_g2  # what the correction is for: 7/8 * 45/4 = 9.8 on top


def test_a_linear_loss_has_no_curvature():
    measured = hessian_norm(Slope(), first, [slopes(1.0, 2.0)], seed=0)
    assert (measured.L, measured.residual, measured.iterations) == (0.0, 0.0, 1)


def test_linear_regression_in_one_call():
    # f = mean of 1/2 (x w - y)^2 over x = (3,0), (0,1), twice: H = diag(9, 1)/2, L = 4.5
    # w = (1,1), y = 0: f = (9 + 1)/4 = 2.5; all batches alike, all clients alike: no spread
    net = nn.Linear(2, 1, bias=False).double()
    nn.init.ones_(net.weight)
    batch = (torch.tensor([[3.0, 0.0], [0.0, 1.0]]).double(), torch.zeros(2, 1).double())
    measured = measure(net, lambda out, y: 0.5 * ((out - y) ** 2).mean(), [[batch, batch]] * 3, seed=1)
    problem = measured.problem
    assert (problem.L, problem.f0_minus_fstar) == pytest.approx((4.5, 2.5), rel=1e-5)
    assert (problem.sigma_l, problem.sigma_g) == pytest.approx((0, 0), abs=1e-6)


def test_iterators_serve_as_clients_and_the_seed_decides():
    def clients():
        return (iter(c) for c in bowl([[1.0, 2.0], [2.0, 2.5]], [[1.0, 3.0], [0.0, 1.0]]))

    runs = [measure(Bowl([1.0, 1.0]), first, clients(), seed, iterations=2) for seed in (3, 3, 4)]
    assert runs[0] == runs[1]
    assert runs[0].curvature != runs[2].curvature


def test_the_module_is_left_as_it_was():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    net.train()
    net[2].eval()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    batch = (torch.ones(4, 3), torch.tensor([0, 1, 0, 1]))
    measure(net, nn.functional.cross_entropy, [[batch, batch]], seed=0, iterations=3)
    assert [part.training for part in net.modules()] == [True, True, True, False, True]
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(FedGMError, match="two or more"):
        gradient_spread(Slope(), first, [slopes(1.0, 2.0), slopes(1.0)])
    with pytest.raises(FedGMError, match="requires a gradient"):
        hessian_norm(Slope().requires_grad_(False), first, [slopes(1.0)], seed=0)
