"""Ranges: a wrong value is refused by the name that the user typed, with the way out."""

import pickle

import pytest
from omegaconf import OmegaConf

from fedgm import config
from fedgm.config import schema
from fedgm.errors import ConfigError

LARGEST = "a number of at most 3.4e+38, the largest of a model"
# override -> what the message says is allowed, what it says to type
RANGES = {
    "data.owners=0": ("a number of at least 1", "data.owners=100"),
    "eval.held_out=-1": ("a number of at least 0", "eval.held_out=10"),
    "trainer.profiler=line": ("null or simple or advanced", "trainer.profiler=null"),
    "rounds=0": ("a number of at least 1", "rounds=70"),
    "rounds=-3": ("a number of at least 1", "rounds=70"),
    "seed=-1": ("a number of at least 0", "seed=0"),
    "clients.count=0": ("a number of at least 1", "clients.count=100"),
    "clients.per_round=0": ("1 to clients.count=100", "clients.per_round=5"),
    "clients.per_round=101": ("1 to clients.count=100", "clients.per_round=5"),
    "clients.weights=size": ("uniform or samples", "clients.weights=uniform"),
    "clients.nonfinite=keep": ("stop or drop", "clients.nonfinite=stop"),
    "local.epochs=0": ("a number of at least 1", "local.epochs=3"),
    "local.unit=rounds": ("epochs or steps", "local.unit=epochs"),
    "local.lr=0": ("a positive number", "local.lr=0.01"),
    "local.lr=-0.1": ("a positive number", "local.lr=0.01"),
    "local.lr=inf": ("a positive number", "local.lr=0.01"),
    "local.lr=nan": ("a positive number", "local.lr=0.01"),
    "local.batch_size=0": ("a number of at least 1", "local.batch_size=20"),
    **{f"{group}.name=-0.5": ("text", f"{group}.name=mine") for group in schema.PARTS},
    "algorithm.name=null": ("text", "algorithm.name=mine"),
    "local.optimizer=lion": ("sgd or qhm or muon or adamw", "local.optimizer=sgd"),
    "local.momentum=1.0": ("0 <= momentum < 1", "local.momentum=0.9"),
    "local.momentum=-0.1": ("0 <= momentum < 1", "local.momentum=0.9"),
    "local.weight_decay=1e300": (LARGEST, "local.weight_decay=0.0001"),
    "local.lr=1e39": (LARGEST, "local.lr=0.01"),
    f"local.optimizers.sgd.lr={10**39}": (LARGEST, "local.optimizers.sgd.lr=0.01"),
    "local.optimizers.sgd.weight_decay=1e300": (LARGEST, "local.optimizers.sgd.weight_decay=0.01"),
    "local.optimizers.sgd.momentum=1e300": (LARGEST, "local.optimizers.sgd.momentum=0.01"),
    "local.weight_decay=-0.1": ("a number of at least 0", "local.weight_decay=0.0001"),
    "local.clip=0": ("a positive number", "local.clip=10"),
    "local.clip=-1": ("a positive number", "local.clip=10"),
    "eval.clients=-1": ("a number of at least 0", "eval.clients=10"),
    "eval.every=0": ("a number of at least 1", "eval.every=5"),
    "eval.loss_limit=0": ("a positive number", "eval.loss_limit=10000"),
    "eval.batch_size=0": ("a number of at least 1", "eval.batch_size=100"),
    "eval.train_samples=0": ("a number of at least 1", "eval.train_samples=1000"),
    "checkpoint.every=0": ("a number of at least 1", "checkpoint.every=1"),
    "checkpoint.keep=0": ("a number of at least 1", "checkpoint.keep=2"),
    "data.alpha=-0.5": ("0 (one class per client), a positive number, or inf (IID)", "data.alpha=0.5"),
    "data.alpha=nan": ("0 (one class per client), a positive number, or inf (IID)", "data.alpha=0.5"),
    "data.partition=iid": (
        "capped or classes or dirichlet or quantity or shards or virtual, or keys with a _target_",
        "data.partition=dirichlet",
    ),
    "data.shards=0": ("a number of at least 1", "data.shards=2"),
    "data.classes_per_client=0": ("a number of at least 1", "data.classes_per_client=2"),
    "eval.point=middle": ("sent or average", "eval.point=sent"),
    "data.augment=rotate": ("none or flip or crop_flip", "data.augment=none"),
    "data.min_samples=0": ("a number of at least 1", "data.min_samples=10"),
    "data.client_samples=0": ("a number of at least 1", "data.client_samples=100"),
    "data.shared=1.5": ("0 (nothing) to 1", "data.shared=0.05"),
    "data.train_samples=0": ("a number of at least 1", "data.train_samples=10000"),
    "data.test_samples=-1": ("a number of at least 1", "data.test_samples=2500"),
    "data.resolution=3": ("a number of at least 4", "data.resolution=16"),
    "trainer.workers=0": ("auto or a number of at least 1", "trainer.workers=1"),
    "trainer.workers=many": ("auto or a number of at least 1", "trainer.workers=1"),
    "trainer.workers=1.5": ("auto or a number of at least 1", "trainer.workers=1"),
    "trainer.workers=true": ("auto or a number of at least 1", "trainer.workers=1"),
    "trainer.threads=0": ("a number of at least 1", "trainer.threads=1"),
    "local.state=freeze": ("reset or keep", "local.state=reset"),
    "name=../escape": ("a folder below output_dir", "name=mine"),
    "data.seed=-1": ("a number of at least 0", "data.seed=0"),
    "participation.seed=-1": ("a number of at least 0", "participation.seed=0"),
    "participation.sampler.seed=-1": ("a number of at least 0", "participation.sampler.seed=0"),
    "stop_after=0": ("a number of at least 1", "stop_after=50"),
    "track.mode=maybe": ("auto or online or offline or disabled", "track.mode=auto"),
}
LEGAL = [
    "rounds=1", "clients.per_round=1", "clients.per_round=100", "clients.weights=samples", "local.unit=steps",
    "local.optimizer=adamw", "local.momentum=0.99", "local.clip=0.5", "local.clip=null", "data.alpha=0",
    "data.alpha=inf", "data.partition=virtual", "data.train_samples=null", "data.resolution=null", "seed=0",
    "trainer.workers=auto", "trainer.workers=3", "track.mode=disabled", "data.client_samples=7",
]  # fmt: skip


@pytest.fixture(scope="module")
def composed():
    return config.compose([])


def composed_with(*overrides: str):
    return config.compose(overrides)


@pytest.mark.parametrize("override", RANGES)
def test_a_value_out_of_range_is_refused_with_the_way_out(composed, override):
    allowed, hint = RANGES[override]
    key = override.split("=")[0]
    with pytest.raises(ConfigError) as caught:
        config.validate(OmegaConf.merge(composed, OmegaConf.from_dotlist([override])))
    error = caught.value
    assert (error.key, error.allowed, error.hint) == (key, allowed, hint)
    assert str(error) == f"{key}={error.value}: expected {allowed}. Try {hint}"
    # the way out works
    config.validate(OmegaConf.merge(composed, OmegaConf.from_dotlist([hint])))


@pytest.mark.parametrize("override", LEGAL)
def test_the_ends_of_the_ranges_are_legal(composed, override):
    config.validate(OmegaConf.merge(composed, OmegaConf.from_dotlist([override])))


def test_the_table_above_has_every_range_of_the_schema(composed, monkeypatch):
    guarded = set()

    def watched(check, place):
        def checking(*values):
            guarded.add(values[place])
            return check(*values)

        return checking

    for name, place in {
        "at_least": 0,
        "positive": 0,
        "one_of": 0,
        "named": 0,
        "fits_float32": 0,
        "require": 1,
    }.items():
        monkeypatch.setattr(schema, name, watched(getattr(schema, name), place))
    config.validate(composed)
    assert len(guarded) > 20
    assert guarded == {override.split("=")[0] for override in RANGES}


def test_the_hint_for_few_clients_fits_them():
    with pytest.raises(
        ConfigError,
        match=r"^clients\.per_round=5: expected 1 to clients\.count=3\. Try clients\.per_round=3$",
    ):
        config.validate(composed_with("clients.count=3"))


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("local.lr=high", "local.lr"),
        ("rounds=2.5", "rounds"),
        ("data.resolution=big", "data.resolution"),
        ("local.epoch=3", "epoch"),
        ("algorithm=fedfoo", "fedgm"),  # with what there is
    ],
)
def test_types_and_names_are_refused_while_hydra_composes(override, says):
    with pytest.raises(ConfigError) as caught:
        composed_with(override)
    assert says in str(caught.value)


def test_rounds_follow_the_profile_and_the_users_own_win():
    assert composed_with("paper_rounds=1000").rounds == 250
    assert composed_with("paper_rounds=1000", "profile=paper").rounds == 1000
    assert composed_with("paper_rounds=1000", "profile=tiny").rounds == 160
    assert composed_with("paper_rounds=1000", "rounds=70").rounds == 70


def test_the_split_follows_the_seed_unless_it_is_set():
    assert composed_with("seed=5").data.seed == 5
    assert composed_with("seed=5", "data.seed=1").data.seed == 1


def test_a_config_error_survives_the_way_back_from_a_worker():
    error = ConfigError("a.b", 3, "more", "a.b=4")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.key, again.value) == (str(error), "a.b", 3)
