"""Stored runs are found by their hash: these may never change, whatever a later version adds or moves."""

import pytest

from fedgm import config
from fedgm.config import identity
from fedgm.errors import ConfigError

HASHES: dict[str, str] = {
    "": "d62039c8e90eab87",
    "+experiment=fedgm algorithm.eta=2 algorithm.beta=0.9 algorithm.nu=0.9": "b8f891afc2da88b7",
    "+experiment=fedgm algorithm=fedavg algorithm.eta=1": "fda6cec86408d652",
    "+experiment=fedgm algorithm=fedavgm algorithm.eta=0.5 algorithm.beta=0.7": "3bb61bab4e8d394d",
    "+experiment=autonomous algorithm.eta=0.25 algorithm.beta=0.7 algorithm.nu=0.7": "f369313391c6ac46",
    "+experiment=autonomous participation=autonomous_current algorithm.eta=2 algorithm.beta=0.9"
    " algorithm.nu=0.9": "97e288800ec0fa08",
    "+experiment=autonomous_delay10 algorithm=fedavg algorithm.eta=0.1": "b02ba6b305048f02",
    "+experiment=multistage": "235b7632d2b10dbc",
    "+experiment=multistage_long schedule.etas=[2.0]": "68679a12f5641cba",
    "+experiment=fedavg_eta algorithm.eta=3": "97542c8b3ac40f04",
    "+experiment=fedgm_eta": "3b57c70a129033c7",
    "+experiment=early_late algorithm.eta=1": "280a0b49205787e1",
    "+experiment=vgg algorithm.eta=2 algorithm.beta=0.9 algorithm.nu=0.9": "c38c567a364cd4dc",
    "+experiment=heterogeneity data.alpha=0.3 algorithm=fedavg algorithm.eta=1": "75487d22e4bcef5b",
    "participation=event profile=tiny": "cbf1eb6fd5fde001",
    "participation=fedasync algorithm=fedavg": "bfb40cfb1f1ec1ff",
    "client=scaffold": "bfc41991be1f769d",
    "client=mifa clients.count=50": "6dff66db6d770f29",
    "algorithm=fedadam profile=paper": "ad3475e4859528fa",
    "data=synthetic schedule=cosine local.optimizer=adamw": "54db11b7981ba911",
}  # fmt: skip


@pytest.mark.parametrize("command", HASHES)
def test_the_hash_of_a_stored_run_stays(command):
    assert identity.identity(config.compose(command.split()))[:16] == HASHES[command]


def test_a_key_added_at_its_implied_value_leaves_the_hash_and_another_value_does_not(monkeypatch):
    before = identity.identity(config.compose([]))
    added = config.compose(["+algorithm.extra=7"])
    assert identity.identity(added) != before
    monkeypatch.setitem(identity.ADDED, "algorithm.extra", 7)
    assert identity.identity(added) == before
    assert identity.identity(config.compose(["+algorithm.extra=8"])) != before


def test_a_renamed_key_and_a_moved_target_leave_the_hash(monkeypatch):
    before = identity.identity(config.compose([]))
    target = "algorithm._target_=fedgm.new.GeneralMomentum"
    renamed = config.compose(["~algorithm.eta", "+algorithm.rate=1.0", target])
    assert identity.identity(renamed) != before
    monkeypatch.setitem(identity.RENAMED, "algorithm.rate", "algorithm.eta")
    monkeypatch.setitem(identity.MOVED, "fedgm.new.GeneralMomentum", "fedgm.server.GeneralMomentum")
    assert identity.identity(renamed) == before


def test_a_rule_with_new_arithmetic_has_a_version_of_its_own():
    assert identity.identity(config.compose(["+algorithm.version=2"])) != identity.identity(
        config.compose([])
    )


def test_a_fixed_split_seed_is_not_taken_for_the_runs_own():
    follows, fixed = config.compose(["seed=3"]), config.compose(["seed=3", "data.seed=3"])
    assert identity.identity(follows) != identity.identity(fixed)


SEEDS = ("data.seed", "data.source.seed", "participation.seed", "participation.sampler.seed")


@pytest.mark.parametrize("key", SEEDS)
def test_no_seed_of_a_part_is_negative(key):
    with pytest.raises(ConfigError, match=rf"{key}=-1: expected a number of at least 0"):
        config.validate(config.compose(["data=synthetic", f"{key}=-1"]))


@pytest.mark.parametrize(
    "word", [f"participation.seed={identity.SEED}", f"algorithm.eta={float(identity.SEED)}"]
)
def test_the_mask_of_the_seed_cannot_be_typed(word):
    with pytest.raises(ConfigError, match="stands for the seed"):
        identity.identity(config.compose(["seed=7", word]))


def mark(*words: str) -> str:
    return identity.identity(config.compose(words))


def test_the_contents_of_a_data_file_are_part_of_the_run(tmp_path):
    path = tmp_path / "own.npz"
    words = ("data=npz", f"data.path={path}")
    absent = mark(*words)
    path.write_bytes(b"one")
    first = mark(*words)
    path.write_bytes(b"two")  # of equal size
    second = mark(*words)
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
