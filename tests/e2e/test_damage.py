"""A damaged checkpoint, past model, client state or row is never used: the run falls back and says so."""

import os
import shutil

import pytest
import torch

import fedgm
from fedgm.client.store import ClientStore
from fedgm.errors import FedGMError
from fedgm.running import checkpoint, fallback
from fedgm.seals import DamagedError, digest, name_of, read_sealed, sealed
from tests.conftest import quick
from tests.e2e.commands import TINY, read_summary, result, run_folder

# Few clients, so that each takes part again with what it kept before; stale ones need past models.
RUN = (
    *TINY, "rounds=6", "clients.count=6", "clients.per_round=3", "local.unit=steps", "local.epochs=1",
    "client=scaffold", "participation=autonomous", "participation.delay=3", "participation.epochs=[1,1]",
)  # fmt: skip


@pytest.fixture(scope="module")
def never_stopped(tmp_path_factory):
    home = tmp_path_factory.mktemp("reference")
    fedgm.run([*RUN, f"output_dir={home}"])
    return result(home)


@pytest.fixture(scope="module")
def paused(tmp_path_factory):
    """After round 4, with the checkpoints of rounds 3 and 4; to be copied, not used."""
    home = tmp_path_factory.mktemp("paused")
    fedgm.run([*RUN, "stop_after=4", f"output_dir={home}"])
    return home


@pytest.fixture
def home(paused, tmp_path):
    return shutil.copytree(paused, tmp_path / "out")


def flip(path, place=0.5):
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] ^= 1
    path.write_bytes(data)


def swap(one, other):
    first = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(first)


def newest_state(folder):
    """Kept after round 4, so the checkpoint of round 3 does not need it."""
    return min((folder / "clients").glob("*/000004.safetensors"))


def no_checkpoint(folder):
    path = folder / "round-000004.ckpt"
    torch.save({"state_dict": [1, 2]}, path)  # as files without a seal are still read


DAMAGE = {
    "first byte": lambda folder: flip(folder / "round-000004.ckpt", 0),
    "checksum": lambda folder: flip(folder / "round-000004.ckpt", 0.0002),
    "weights": lambda folder: flip(folder / "round-000004.ckpt", 0.5),
    "last byte": lambda folder: flip(folder / "round-000004.ckpt", 1),
    "other content": no_checkpoint,
    "a past checkpoint": lambda folder: shutil.copy(
        folder / "round-000003.ckpt", folder / "round-000004.ckpt"
    ),
    "past model": lambda folder: flip(folder / "model-000003.safetensors"),
    "client state": lambda folder: flip(newest_state(folder)),
    "client state gone": lambda folder: newest_state(folder).unlink(),
    "client states swapped": lambda folder: swap(
        *sorted((folder / "clients").glob("*/000004.safetensors"))[:2]
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", quick(DAMAGE, "past model", "client state gone", "client states swapped"))
def test_it_falls_back_to_the_checkpoint_before(home, never_stopped, capsys, damage):
    DAMAGE[damage](run_folder(home) / "checkpoints")
    fedgm.run([*RUN, f"output_dir={home}"])
    printed = capsys.readouterr().out
    assert "checkpoint round-000004.ckpt is damaged (" in printed
    assert "continuing after round 3\n" in printed
    assert result(home) == never_stopped


def as_an_older_version_wrote_it(folder, run):
    """Files without seals, and checkpoints that say nothing of rows and client states."""
    for path in [*folder.glob("*.ckpt"), *folder.glob("*.safetensors"), *folder.glob("clients/*/*")]:
        name = path.name if path.parent == folder else f"{path.parent.name}/{path.name}"
        path.write_bytes(read_sealed(path, name, run))
    for path in folder.glob("*.ckpt"):
        content = torch.load(path, weights_only=True)  # plain files again
        content["callbacks"] = {"FedGM": content["callbacks"]["FedGM"]}
        torch.save(content, path)


def cut_row(folder):
    path = folder / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


# damage that no checksum tells -> the round that the run may continue after
OLDER = {
    "none": (lambda folder: None, 4),
    "the last row gone": (cut_row, 3),
    "a past checkpoint": (lambda folder: DAMAGE["a past checkpoint"](folder / "checkpoints"), 3),
}


@pytest.mark.parametrize("damage", OLDER)
def test_files_of_older_versions_are_read_without_a_seal(home, never_stopped, capsys, damage):
    run = name_of(read_summary(home)["hash"], 0)
    as_an_older_version_wrote_it(run_folder(home) / "checkpoints", run)
    change, done = OLDER[damage]
    change(run_folder(home))
    fedgm.run([*RUN, f"output_dir={home}"])
    printed = capsys.readouterr().out
    assert f"continuing after round {done}\n" in printed
    assert f"checkpoint round-{done:06d}.ckpt is of an older version" in printed
    assert result(home) == never_stopped


def test_a_state_that_is_damaged_under_a_run_ends_it_with_the_way_out(tmp_path):
    store = ClientStore(tmp_path)
    store.save(3, 1, {"c": torch.ones(4)})
    flip(tmp_path / "00000003" / "000001.safetensors", 1)
    with pytest.raises(FedGMError, match=r"the state of client 3 cannot be read .* The same command contin"):
        store.load(3, before=2)


def test_a_seal_belongs_to_content_name_and_run(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(sealed(b"content", "a", "run-0"))
    assert read_sealed(path, "a", "run-0") == b"content"
    with pytest.raises(DamagedError, match="the checksum of b is wrong"):
        read_sealed(path, "b", "run-0")
    with pytest.raises(DamagedError, match="a belongs to another run, run-0"):
        read_sealed(path, "a", "run-1")
    path.write_bytes(path.read_bytes().replace(b"run-0", b"run-1"))
    with pytest.raises(DamagedError, match="the checksum of a is wrong"):
        read_sealed(path, "a", "run-1")


def test_a_seal_of_an_older_version_does_not_name_its_run(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"fedgm seal 1 " + digest(b"a", b"content").encode() + b"\ncontent")
    assert read_sealed(path, "a", "run-0") == b"content"
    flip(path, 1)
    with pytest.raises(DamagedError, match="not readable"):
        read_sealed(path, "a", "run-0")


def test_what_is_put_aside_makes_room_and_other_names_are_no_checkpoints(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "round-abc.ckpt").write_text("")
    (folder / "round-000002.ckpt").mkdir()
    (folder / "round-000002.damaged").mkdir()
    (folder / "round-000002.damaged" / "inside").write_text("")
    assert [path.name for path in checkpoint.checkpoints(folder)] == ["round-000002.ckpt"]
    found, notes = fallback.newest_good(tmp_path, "run-0")
    assert found is None
    assert "starting from round 1" in notes[-1]
    assert not checkpoint.checkpoints(folder)


def test_a_sealed_file_that_has_grown_is_not_read(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(sealed(b"content", "a", "run-0"))
    os.truncate(path, 2**40)  # more than memory, on no more disk than before
    with pytest.raises(DamagedError, match="the size of a is wrong"):
        read_sealed(path, "a", "run-0")


def test_seals_without_a_size_are_read(tmp_path):
    (tmp_path / "a").write_bytes(
        b"fedgm seal 2 run-0 " + digest(b"run-0\na\ncontent").encode() + b"\ncontent"
    )
    assert read_sealed(tmp_path / "a", "a", "run-0") == b"content"
    with pytest.raises(DamagedError, match="belongs to another run"):
        read_sealed(tmp_path / "a", "a", "run-1")
