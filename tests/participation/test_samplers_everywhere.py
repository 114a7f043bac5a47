"""A sampler works with every scheme, and the uniform one leaves stored runs where they are."""

import numpy as np
import pytest

from fedgm import config
from fedgm.config.identity import identity
from fedgm.config.parts import build
from fedgm.participation import Bernoulli, Biased, ClientFacts, ClientTask, Uniform

FACTS = ClientFacts(labels=lambda client: np.array([client % 2 * 9]))  # even clients are favoured


def scheme(*words):
    run = config.validate(config.compose(["clients.count=40", "clients.per_round=4", *words]))
    return build(run.participation, "participation", FACTS)


@pytest.mark.parametrize("name", ["ideal", "autonomous", "event", "sync", "fedbuff"])
@pytest.mark.parametrize(
    ("sampler", "kind"), [("uniform", Uniform), ("bernoulli", Bernoulli), ("biased", Biased)]
)
def test_every_scheme_takes_every_sampler(name, sampler, kind):
    made = scheme(f"participation={name}", f"participation/sampler={sampler}")
    assert isinstance(made.sampler, kind)
    clients = [task.client for t in range(1, 61) for task in made.tasks(t)]
    even = sum(client % 2 == 0 for client in clients) / len(clients)
    assert even > 0.6 if sampler == "biased" else 0.35 < even < 0.65
    expected = sampler != "biased" and name in ("ideal", "autonomous", "sync")
    assert made.arrives_uniformly is expected


def test_ideal_draws_from_its_sampler():
    made, alone = scheme("participation/sampler=bernoulli"), Bernoulli(40, 4, 0)
    assert [[task.client for task in made.tasks(t)] for t in range(1, 9)] == [
        alone.cohort(t) for t in range(1, 9)
    ]
    assert made.tasks(1)[0] == ClientTask(alone.cohort(1)[0], 0, 3, 1.0)


def test_a_sampler_other_than_the_implied_one_is_another_run():
    plain = identity(config.compose([]))
    assert identity(config.compose(["participation/sampler=uniform"])) == plain
    assert identity(config.compose(["participation/sampler=bernoulli"])) != plain
    assert identity(config.compose(["participation.sampler.per_round=2"])) != plain


def test_an_offer_goes_by_type_not_by_name():
    part = build({"_target_": f"{__name__}.asks"}, "part", FACTS)
    assert part == (FACTS, None)


def asks(anything: ClientFacts, steps: int | None = None) -> tuple:
    return anything, steps
