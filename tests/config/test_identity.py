"""Two runs are the same run by their configurations alone: composed now, or read from a stored run."""

from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from fedgm import config
from fedgm.config import identity as identity_module
from fedgm.config.identity import beside_config, dotted, identity, identity_of
from fedgm.errors import ConfigError
from fedgm.results import archive, find
from fedgm.study import points, sweep_file

COMMANDS = [
    "",
    "seed=3",
    "seed=3 data.seed=3",
    "seed=3 data.seed=0 participation.seed=3",
    "data=synthetic seed=2 data.source.seed=2",
    "data.alpha=inf algorithm.eta=1e-5",
    "+experiment=fedgm algorithm.eta=2 algorithm.beta=0.9 algorithm.nu=0.9",
    "+experiment=autonomous participation=autonomous_current algorithm=fedavg seed=1",
    "+experiment=multistage_long schedule.etas=[2.0]",
    "+experiment=heterogeneity data.alpha=0.3",
    "participation=event profile=tiny participation/sampler=biased",
    "participation=fedasync algorithm=fedavg",
    "participation=fednova client=fedprox",
    "client=scaffold upload=topk",
    "client=mifa clients.count=50",
    "algorithm=fedadam profile=paper",
    "algorithm=schedule_free schedule=schedule_free",
    "data=synthetic schedule=cosine local.optimizer=adamw",
    "data=shakespeare",
    "data=npz data.path=no_such_file.npz",
    "data.partition=shards data.shards=3",
    "callbacks=early_stopping track=csv",
    "+algorithm.note=yes +algorithm.more={a:1.0,b:[1,2.5]}",
    "+algorithm.version=2 trainer=gpu",
    "name='0o17' eval.loss_limit=null local.clip=1e3",
]


def mark(*words: str) -> str:
    return identity(config.compose(words))


def stored(cfg) -> tuple[dict, dict]:
    """What a run folder keeps of a configuration: its config.yaml as readers see it, and its summary."""
    values = yaml.safe_load(OmegaConf.to_yaml(cfg, resolve=True))
    return {k: v for k, v in dotted(values).items() if k.split(".")[0] not in find.NOT_STORED}, beside_config(
        cfg
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stored_run_has_the_hash_of_its_command(command):
    cfg = config.compose(command.split())
    values, facts = stored(cfg)
    assert identity_of(values, int(cfg.seed), facts) == identity(cfg)


def test_different_commands_are_different_runs():
    unlike = [command for command in COMMANDS if command != "seed=3"]  # which is the first one again
    assert len({mark(*command.split()) for command in unlike}) == len(unlike)
    assert mark("seed=3") == mark()


ROOT = Path(__file__).parents[2]
RESULTS, SWEEPS = ROOT / "docs" / "results", ROOT / "sweeps"
# File of stored results -> the sweep whose runs it holds, and what was typed besides.
GRIDS: dict[str, list[str]] = {
    "small/fedavg_grid": [],  # of versions without task, upload, sampler, and with targets that have moved
    "small/delay10_fedgm_grid": [],
    "small/delay10_fedavg_grid_current": ["participation=autonomous_current"],
    "why/autonomous_fedavg_between": [],
}


@pytest.mark.parametrize("name", GRIDS)
def test_stored_results_are_found_by_the_commands_of_today(name):
    file = RESULTS / f"{name}.jsonl"
    sweep = SWEEPS / f"{file.stem.removesuffix('_current')}.yaml"
    plan = points.make(sweep_file.read(sweep), GRIDS[name], [0], "outputs")
    runs = {run.key for run in archive.read(file)}
    assert [job.values for job in plan.jobs if job.key not in runs] == []


def test_a_key_added_at_its_implied_value_leaves_the_hash_and_another_value_does_not(monkeypatch):
    added = "+algorithm.extra=7"
    assert mark(added) != mark()
    monkeypatch.setitem(identity_module.IMPLIED, "algorithm.extra", 7)
    assert mark(added) == mark()
    assert mark("+algorithm.extra=8") != mark()


def test_a_moved_file_of_ours_leaves_the_hash_and_a_part_of_another_package_does_not():
    cfg = config.compose(["callbacks=early_stopping"])
    before, nameless = identity(cfg), "callbacks.early_stopping"

    def with_target(key: str, target: str) -> str:
        return identity(OmegaConf.merge(cfg, OmegaConf.from_dotlist([f"{key}._target_={target}"])))

    for key in ("algorithm", "schedule", "participation", "participation.sampler", "client", "data.source"):
        assert with_target(key, "fedgm.elsewhere.Part") == before
        assert with_target(key, "elsewhere.Part") != before
    assert with_target(nameless, "fedgm.one") != with_target(nameless, "fedgm.two")


def test_a_rule_with_new_arithmetic_has_a_version_of_its_own():
    assert mark("+algorithm.version=2") != mark()
    words = ["client=scaffold", "participation=fednova", "schedule=stages", "algorithm=fedams"]
    cfg = config.compose(words)
    for group in (word.split("=")[0] for word in words):
        assert identity(OmegaConf.merge(cfg, {group: {"version": 1}})) != identity(cfg)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("participation=autonomous", "participation=autonomous participation.age=round"),
        ("algorithm=qhadam algorithm.bias_correction=false", "algorithm=qhadam"),
        ("algorithm=gpa", "algorithm=gpa eval.point=average"),
        ("data.partition=shards", "data.partition=shards data.shards=3"),
    ],
)
def test_a_choice_that_was_added_later_is_another_run(one, other):
    assert mark(*one.split()) != mark(*other.split())


def test_a_fixed_split_seed_is_not_taken_for_the_runs_own():
    assert mark("seed=3") != mark("seed=3", "data.seed=3")


def test_a_setting_with_a_fixed_seed_is_one_setting_for_all_seeds():
    runs = [config.compose([f"seed={seed}", "data.seed=0"]) for seed in range(3)]
    kept = [stored(cfg) for cfg in runs]
    assert [facts["fixed_seeds"] for _, facts in kept] == [["data.seed"]] * 3
    assert len({identity_of(values, seed, facts) for seed, (values, facts) in enumerate(kept)}) == 1


def test_of_a_run_that_says_nothing_of_its_seeds_equal_ones_follow():
    values, _ = stored(config.compose(["seed=2", "data.seed=0"]))
    assert identity_of(values, 2) == mark("data.seed=0")
    values, _ = stored(config.compose(["seed=2"]))
    assert identity_of(values, 2) == mark()


SEEDS = ("data.seed", "data.source.seed", "participation.seed", "participation.sampler.seed")


@pytest.mark.parametrize("key", SEEDS)
def test_no_seed_of_a_part_is_negative(key):
    with pytest.raises(ConfigError, match=rf"{key}=-1: expected a number of at least 0"):
        config.validate(config.compose(["data=synthetic", f"{key}=-1"]))


def test_the_contents_of_a_data_file_are_part_of_the_run(tmp_path):
    path = tmp_path / "own.npz"
    words = ("data=npz", f"data.path={path}")
    absent = mark(*words)
    path.write_bytes(b"one")
    first = mark(*words)
    values, facts = stored(config.compose(words))
    path.write_bytes(b"two")  # of equal size
    second = mark(*words)
    assert identity_of(values, 0, facts) == first  # a stored run is the one of the file that it has read
    path.write_bytes(b"one")
    assert len({absent, first, second}) == 3
    assert mark(*words) == first
    assert mark(*words, f"data.source.path={path}") == first  # what is read, however it was named
    path.unlink()
    assert mark(*words) == absent


def test_the_contents_of_a_file_of_speeds_are_part_of_the_run(tmp_path):
    path = tmp_path / "speeds.txt"
    path.write_text("1\n2\n")
    words = ("participation=event", f"participation.speeds={path}")
    first = mark(*words)
    path.write_text("1\n3\n")
    assert mark(*words) != first


def test_of_a_folder_of_texts_the_files_that_are_read_count(tmp_path):
    (tmp_path / "a.txt").write_text("to be")
    words = ("data=text", f"data.path={tmp_path}")
    first = mark(*words)
    (tmp_path / "notes.md").write_text("not read")
    assert mark(*words) == first
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")  # another order of clients
    second = mark(*words)
    (tmp_path / "b.txt").write_text("or not")
    assert len({first, second, mark(*words)}) == 3
