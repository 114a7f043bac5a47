"""FedCAMS: ``algorithm=fedams upload=topk`` in the real loop against its recursion."""

import numpy as np
import pytest

from fedgm.server.adaptive import FedAMS
from fedgm.upload.compression import TopK
from tests.paper.bowls import ERROR, RATE, error, fit, keys
from tests.paper.recursions_problem import COHORTS, START, N, gradient
from tests.paper.system_recursions import local_sgd, mean

pytestmark = pytest.mark.filterwarnings("ignore:The '(train|val|test)_dataloader' does not have many workers")


def fedcams(eta, beta1, beta2, epsilon):
    """Wang, Lin and Chen (ICML 2022), Algorithm 2, option 1: clients send one entry of three.

    p = D_i + e_i;  sent = top_1(p);  e_i = p - sent;  FedAMS on the mean of what was sent.
    """
    x, e, past = START, np.zeros((N, 3)), [START]
    d, v, largest = np.zeros(3), np.zeros(3), np.full(3, epsilon)
    for t, cohort in enumerate(COHORTS, 1):
        sent = []
        for i in cohort:
            p = x - local_sgd(x, gradient, i, keys()(t, i), RATE) + e[i]
            sent.append(np.where(np.arange(3) == np.abs(p).argmax(), p, 0.0))
            e[i] = p - sent[-1]
        D = mean(sent)
        d, v = beta1 * d + (1 - beta1) * D, beta2 * v + (1 - beta2) * D**2
        largest = np.maximum(largest, v)
        x = x - eta * d / np.sqrt(largest)
        past.append(x)
    return past


def test_fedams_and_topk_are_fedcams():
    rule = FedAMS(eta=0.05, beta1=0.9, beta2=0.99, tau=1e-3)
    got = fit(server=rule, upload=TopK(share=0.33))
    assert error(got.past, fedcams(0.05, 0.9, 0.99, 1e-3)) < ERROR
    assert error(got.past, fit(server=rule).past) > 1e-3
