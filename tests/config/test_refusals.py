"""Every refusal: the whole key, the value, what is expected, what to type, and the near name."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedgm.commands import main
from fedgm.config import RunConfig, checks, compose, require_sound
from fedgm.errors import ConfigError, RefusedError, near
from fedgm.running.main import require_options
from fedgm.running.parts import build_parts
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]

# what is typed: (the key that is named, a part of what is expected, what to type instead)
WRONG = {
    "algorithm=fedavgg": ("algorithm", "fedavg, fedavgm", "algorithm=fedavg"),
    "algorithm.bta=.9": ("algorithm.bta", "beta, eta", "algorithm.beta=.9"),
    "algoritm=fedavg": ("algoritm", "a key of the configuration (algorithm", "algorithm=fedavg"),
    "+experiment=multistag": ("+experiment", "long, multistage, ", "+experiment=multistage"),
    "+experiment=fig2": ("+experiment", "long, multistage, ", "+experiment=multistage"),
    "+experiment=figure9": ("+experiment", "long, multistage, ", "+experiment=autonomous_delay10"),
    "+experiment=fig1": ("+experiment", "long, multistage, ", "+experiment=fedgm"),
    "experiment=multistage": ("experiment", "a + before it", "+experiment=multistage"),
    "schedule=multstage": ("schedule", "multistage", "schedule=multistage"),
    "+foo=1": ("foo", "a key of the configuration", "--cfg job, which prints all keys"),
    "+local.epoch=3": ("local.epoch", "epochs, lr", "local.epochs=3"),
    "++track.mod=offline": ("track.mod", "mode", "track.mode=offline"),
    "+callbacks.x=3": ("callbacks.x", "from which a callback is built", "~callbacks.x"),
    "beta=.9": ("beta", "a key of the configuration", "algorithm.beta=.9"),
    "+rounds=3": ("+rounds", "there already", "rounds=3"),
    "+algorithm=fedavg": ("+algorithm", "there already", "algorithm=fedavg"),
    "~rounds": ("rounds", "a whole number", "rounds=1"),
    "~nothing": ("nothing", "a key of the configuration", "--cfg job, which prints all keys"),
    "rounds=abc": ("rounds", "a whole number", "rounds=1"),
    "rounds=null": ("rounds", "a whole number", "rounds=1"),
    "local.lr=quick": ("local.lr", "a number", "local.lr=0.5"),
    "local.clip=hard": ("local.clip", "a number or null", "local.clip=0.5"),
    "rerun=perhaps": ("rerun", "true or false", "rerun=true"),
    "seed=1,2": ("seed", "one value", "one of them, python run.py -m for each, or seed=[1,2] for a list"),
    "participation=full": ("participation", "anarchic", "participation=ideal"),
    "algorithm.tune=auto": ("algorithm.tune", "a key of algorithm", "schedule=auto"),
    "rounds==3": ("rounds==3", "key=value", "quotes around the whole word"),
    "algorithm=1": ("algorithm", "the name of an option", "--help"),
    "hydra.foo=3": ("hydra.foo", "one of Hydra's keys", "--cfg hydra, which prints all of them"),
    "rounds=${nothing}": ("rounds", "'nothing' not found", "another rounds"),
    "algorithm.beta=high": ("algorithm.beta", "a number", "algorithm.beta=0.9"),
    "+algorithm.bta=0.9": ("algorithm.bta", "takes eta, beta", "algorithm.beta=0.9"),
    "+algorithm.zzz=3": ("algorithm.zzz", "takes eta, beta", "~algorithm.zzz"),
    "+track.loggers.x=3": ("track.loggers.x", "from which a logger is built", "track=csv"),
    "+figure.x=1": ("figure.x", "a key of figure (added, claims", "--cfg job, which prints all keys"),
    "+figure.titel=a": ("figure.titel", "a key of figure (added, claims", "figure.title=a"),
    "local.optimizers.sgd=0": ("local.optimizers.sgd", "keys with a _target_", "local.optimizer=sgd"),
    "participation.count=101": (
        "participation.count",
        "1 to 100, which is clients.count",
        "participation.count=100",
    ),
    "participation.sampler.count=-1": (
        "participation.sampler.count",
        "1 to 100",
        "participation.sampler.count=100",
    ),
    "participation.per_round=0": ("participation.per_round", "1 to 100", "participation.per_round=100"),
    "participation.sampler.per_round=0": (
        "participation.sampler.per_round",
        "1 to",
        "participation.sampler.per_round=100",
    ),
    "algorithm._target_=fedgm.server.fedadam.FedAdam": (
        "algorithm._target_",
        "algorithm.name=fedgm is fedgm.server.GeneralMomentum",
        "algorithm.name=NAME beside it",
    ),
    "figure=3": ("figure", "null or keys such as title", "figure=null"),
    "data.source=3": ("data.source", "keys with a _target_", "data=synthetic"),
    "model.channels_last=3": ("model.channels_last", "true or false", "model.channels_last=true"),
    "+best.x=1": ("best.x", "the winner of each algorithm", "~best.x"),
    "model=null": ("model", "the name of an option", "--help"),
}


def checked(cfg) -> RunConfig:
    """Refuse as a run does, before data are loaded."""
    config = require_sound(cfg)
    build_parts(config)
    return config


@pytest.mark.parametrize("typed", WRONG)
def test_a_wrong_word_is_answered_with_what_to_type(typed):
    with pytest.raises(ConfigError) as caught:
        checked(compose(["profile=tiny", typed]))
    key, expected, hint = WRONG[typed]
    assert (caught.value.key, caught.value.hint) == (key, hint)
    assert expected in caught.value.allowed
    value = typed.partition("=")[2]
    assert not value or str(caught.value.value) in (value, "(unreadable)")


# what never ends or never fits: (the key that is named, the estimate)
ENDLESS = {
    ("local.epochs=1000000000",): ("local.epochs", "12.7 years or more"),
    ("rounds=1000000000000",): ("rounds", "years or more"),
    ("participation=autonomous", "participation.epochs=[1,10000000000]"): (
        "participation.epochs", "years or more",
    ),
    ("participation=event", "participation.dropout=.9999999"): ("participation.dropout", "4.69 days"),
    ("participation=autonomous", "participation/sampler=biased", "participation.sampler.bias=.9999999999"): (
        "participation.sampler.bias", "years",
    ),
    ("participation=event", "clients.count=1000000000", "participation.concurrency=1000000000",
     "data.partition=virtual"): ("participation.concurrency", "draws take 1.16 days"),
    ("data.resolution=1000000",): ("data.resolution", "TiB or more"),
    ("data.train_samples=1000000000000",): ("data.train_samples", "years or more"),
    ("data.train_samples=500000000",): ("data.train_samples", "GiB or more"),
    ("data.source.classes=1000000",): ("data.source.classes", "2 to 300"),
    ("data.source.classes=1000000", "data.train_samples=1000000", "data.test_samples=1000000",
     "model=vgg11", "model.width=512"): ("data.source.classes", "a model of 4,"),
    ("model.width=1000000",): ("model.width", "parameters take"),
    ("model.depth=6000000002",): ("model.depth", "1202"),
    ("participation=autonomous", "participation.delay=10000000", "rounds=10000000", "clients.per_round=1",
     "local.unit=steps", "local.epochs=1", "participation.epochs=[1,1]"): (
        "participation.delay", "10,000,000 past models"),
}  # fmt: skip


@pytest.mark.parametrize("typed", ENDLESS, ids=" ".join)
def test_what_never_ends_or_never_fits_is_refused_with_the_estimate(typed, monkeypatch):
    monkeypatch.setattr(checks, "memory", lambda: 24 * 2**30)
    with pytest.raises(ConfigError) as caught:
        checked(compose(["profile=tiny", *typed]))
    key, estimate = ENDLESS[typed]
    assert caught.value.key == key
    assert estimate in caught.value.allowed
    assert caught.value.hint.startswith(f"{key}=")


@pytest.mark.parametrize(
    "words", [["profile=paper", "data=synthetic", "+experiment=multistage_long"], ["participation=fedbuff"]]
)
def test_what_people_run_is_not_refused(words):
    assert checked(compose(words)).rounds > 0


def test_near_names():
    known = ["algorithm", "algorithm.beta", "local.lr", "clients.count"]
    assert near("algoritm", known) == "algorithm"
    assert near("algorithm.bta", known) == "algorithm.beta"
    assert near("lr", known) == "local.lr"
    assert near("quite_another", known) is None


def test_a_misspelt_command_has_a_near_name():
    done = CliRunner().invoke(main, ["swep", "x.yaml"])
    assert done.exit_code == 2
    assert "Try fedgm sweep" in done.output


LATE = ("torch", "pytorch_lightning", "matplotlib", "pandas", "wandb")
PROBE = """
import sys
sys.argv = ["run.py", {words}]
from fedgm.running.main import main
try:
    main()
except SystemExit as ended:
    print(ended.code, [name for name in {late} if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("words", "late"),
    [
        (["algoritm=fedavg"], LATE),
        (["rounds=abc"], LATE),
        (["local.epochs=0"], LATE),
        (["model.depth=9"], LATE[1:]),
        (["participation=autonomous", "participation.delay=0"], LATE[1:]),
    ],
)
def test_it_is_answered_before_anything_slow_is_imported(words, late):
    """Which is what takes seconds; and the message is all that is said."""
    text = PROBE.format(words=", ".join(map(repr, ["profile=tiny", *words])), late=late)
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.strip() == "2 []", done.stderr
    assert done.stderr.startswith(f"error: {words[-1].partition('=')[0]}=")
    assert done.stderr.count("\n") == 1


def test_a_number_is_no_part_of_a_part():
    with pytest.raises(ConfigError, match=r"participation\.sampler=1000: expected a Sampler by its _target_"):
        checked(compose(["profile=tiny", "participation.sampler=1_000"]))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mulitrun"], "--mulitrun: expected one of --help, --hydra-help.* Try --multirun"),
        (["--zzz=3"], "--zzz: expected one of .* Try --hydra-help"),
        (["--cfg", "jobs"], "invalid choice: 'jobs'.* Try --hydra-help"),
        (["--config-dir"], "expected one argument.* Try --hydra-help"),
        (["rounds=1", "-m", "seed=1"], "seed=1: expected all key=value words side by side"),
    ],
)
def test_an_option_that_hydra_does_not_have(words, said):
    with pytest.raises(RefusedError, match=said):
        require_options(words)


def test_options_that_hydra_has_pass():
    for words in (["-m", "seed=1,2"], ["a=1", "b=2", "--cfg", "job"], ["--config-dir", "x", "--multi"], []):
        require_options(words)


def test_a_misspelt_option_ends_as_every_refusal():
    result = CliRunner().invoke(main, ["run", "--mulitrun"])
    assert result.exit_code == 2
    assert result.output.startswith("error: --mulitrun: expected one of")


def test_more_workers_than_a_machine_can_have_are_refused(monkeypatch):
    words = ["profile=tiny", "trainer.workers=100000", "clients.per_round=100"]
    monkeypatch.setattr(checks.os, "cpu_count", lambda: 2)
    with pytest.raises(ConfigError, match=r"trainer\.workers=100000: expected at most 16, with 2 cores"):
        checked(compose(words))
    checked(compose([*words, "clients.per_round=3"]))  # never idle workers
    monkeypatch.setattr(checks.os, "cpu_count", lambda: 1000)
    monkeypatch.setattr(checks, "memory", lambda: 2**32)
    with pytest.raises(ConfigError, match=r"trainer\.workers=100000: .*100 processes take 6.25 GiB"):
        checked(compose(words))


@pytest.mark.parametrize("name", ["TORCHELASTIC_RUN_ID", "SLURM_STEP_NUM_TASKS"])
def test_workers_that_a_cluster_has_started_are_not_counted_as_ours(monkeypatch, name):
    monkeypatch.setattr(checks.os, "cpu_count", lambda: 2)
    monkeypatch.setenv(name, "32")
    checked(compose(["profile=tiny", "trainer.workers=32", "clients.per_round=50"]))


def test_a_model_that_fits_once_need_not_fit_for_every_worker(monkeypatch):
    config = checked(compose(["profile=tiny", "trainer.workers=4", "clients.per_round=5"]))
    monkeypatch.setattr(checks, "memory", lambda: 60 * 10**6)
    checks.require_model_fits(replace(config, trainer=replace(config.trainer, workers=1)), 10**6, 1)
    with pytest.raises(ConfigError, match=r"trainer\.workers=4: .*4 workers with a model of 1,000,000"):
        checks.require_model_fits(config, 10**6, 1)
