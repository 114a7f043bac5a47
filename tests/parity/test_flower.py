"""Our server rules against Flower's own strategies, fed the same client models.

Where the conventions differ, Flower
- sums FedAvgM's momentum: its server_learning_rate is our eta (1 - beta);
- starts the adaptive rules at v_0 = 0, not tau^2: here our state is started at 0, too;
- multiplies FedAdam's rate by sqrt(1 - beta2^(t+1)) / (1 - beta1^(t+1)), a bias correction that Reddi 2021
  leaves out: here it goes into the eta of each round. FedYogi and FedAdagrad have none;
- gives FedAdagrad no momentum: beta1 = 0.
"""

import numpy as np
import pytest
import torch

from fedgm.server.adaptive import FedAdagrad, FedAdam, FedYogi
from fedgm.server.momentum import GeneralMomentum
from fedgm.server.schemes import fedavgm_summed

pytest.importorskip("flwr")

from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import strategy as flower

pytestmark = pytest.mark.parity

ROUNDS, CLIENTS, SIZE = 12, 3, 40
ETA, B1, B2, TAU = 0.02, 0.9, 0.99, 1e-3


def start():
    return np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)


def client_deltas(t):
    """Old minus new, one row for each client."""
    return 0.1 * np.random.default_rng([1, t]).standard_normal((CLIENTS, SIZE)).astype(np.float32)


def flower_path(make):
    """The global models after each round of a Flower strategy, with equally large clients."""
    x = start()
    strategy = make(
        initial_parameters=ndarrays_to_parameters([x]), fit_metrics_aggregation_fn=lambda metrics: {}
    )
    path = []
    for t in range(1, ROUNDS + 1):
        models = [ndarrays_to_parameters([x - delta]) for delta in client_deltas(t)]
        results = [(None, FitRes(Status(Code.OK, ""), model, 10, {})) for model in models]
        parameters, _ = strategy.aggregate_fit(t, results, [])
        x = parameters_to_ndarrays(parameters)[0].astype(np.float32)
        path.append(x)
    return np.stack(path)


def our_path(rule, eta_at=None, v_0=None):
    """The same with our rule; ``eta_at`` and ``v_0`` take over Flower's conventions."""
    x = torch.from_numpy(start())
    state = rule.init(x)
    if v_0 is not None:
        state = {**state, "v": torch.full_like(x, v_0)}
    path = []
    for t in range(1, ROUNDS + 1):
        delta = torch.from_numpy(client_deltas(t)).mean(0)
        hyper = {**rule.hyper, "eta": eta_at(t)} if eta_at else rule.hyper
        x, state = rule.step(x, state, delta, hyper)
        path.append(x.numpy())
    return np.stack(path)


def assert_same(ours, theirs, atol=5e-6):
    # Flower rebuilds D from models, x - (x - D): it carries a few float32 units of x, divided by sqrt(v).
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


@pytest.mark.parametrize(("lr", "beta"), [(1.0, 0.9), (0.5, 0.7), (0.3, 0.0)])
def test_fedavgm_is_ours_at_eta_lr_over_one_minus_beta(lr, beta):
    theirs = flower_path(
        lambda **kwargs: flower.FedAvgM(server_learning_rate=lr, server_momentum=beta, **kwargs)
    )
    assert_same(our_path(GeneralMomentum(lr / (1 - beta), beta, 1.0)), theirs)
    assert_same(our_path(fedavgm_summed(lr, beta)), theirs)
    if beta:  # their lr typed as our eta is another algorithm
        assert np.abs(our_path(GeneralMomentum(lr, beta, 1.0)) - theirs).max() > 0.05


def test_fedadagrad_from_v_0():
    theirs = flower_path(lambda **kwargs: flower.FedAdagrad(eta=ETA, tau=TAU, **kwargs))
    rule = FedAdagrad(ETA, 0.0, TAU)
    assert_same(our_path(rule, v_0=0.0), theirs)
    assert np.abs(our_path(rule) - theirs).max() > 5e-4


def test_fedyogi_from_v_0():
    theirs = flower_path(lambda **kwargs: flower.FedYogi(eta=ETA, beta_1=B1, beta_2=B2, tau=TAU, **kwargs))
    rule = FedYogi(ETA, B1, TAU, B2)
    assert_same(our_path(rule, v_0=0.0), theirs)
    assert np.abs(our_path(rule) - theirs).max() > 1e-3


def test_fedadam_from_v_0_with_the_bias_correction_in_eta():
    def corrected(t):
        return ETA * (1 - B2 ** (t + 1)) ** 0.5 / (1 - B1 ** (t + 1))

    theirs = flower_path(lambda **kwargs: flower.FedAdam(eta=ETA, beta_1=B1, beta_2=B2, tau=TAU, **kwargs))
    rule = FedAdam(ETA, B1, TAU, B2)
    assert_same(our_path(rule, eta_at=corrected, v_0=0.0), theirs)
    assert np.abs(our_path(rule, v_0=0.0) - theirs).max() > 1e-3
