"""Random damage to a run folder: flipped, cut, gone, swapped, of another kind."""

import os
import random
import stat
from pathlib import Path

JSON = (
    b"", b"\n", b"null", b"3", b"true", b'"words"', b"[]", b"{}", b"[1, 2]", b'{"status": "finished"}',
    b'{"status": []}', b'{"round": true}', b'{"round": 1}\n{"round": 3}\n', b'{"rounds_done": "many"}',
    b'{"hash": 3, "status": "paused"}', b"[" * 100_000, b'{"a":' * 100_000, b"NaN", b"1e999", b"\xff\xfe\x00",
    b"!!python/object/apply:os.system ['id']", b'{"round": 1, "time/round": "x"}\n',
    b'{"status": "finished", "hash": "0", "seed": 0}',
)  # fmt: skip


def hurt(draw: random.Random, folder: Path) -> str:
    """Damage one thing below a run folder; says what."""
    links = {path for path in folder.rglob("*") if path.is_symlink()}  # a write would go to the victim
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "lock" and p not in links)
    path = draw.choice(files)
    if draw.random() < 0.3:  # those that are read first are few among many checkpoints
        path = draw.choice([p for p in files if p.parent == folder] or files)
    way = draw.choice(WAYS)
    way(draw, path, files)
    return f"{way.__name__} {path.relative_to(folder)}"


def flip(draw: random.Random, path: Path, files: list[Path]) -> None:
    data = bytearray(path.read_bytes()) or bytearray(1)
    for _ in range(draw.choice((1, 1, 8))):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def cut(draw: random.Random, path: Path, files: list[Path]) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data) + 1)])


def remove(draw: random.Random, path: Path, files: list[Path]) -> None:
    path.unlink()


def empty(draw: random.Random, path: Path, files: list[Path]) -> None:
    path.write_bytes(b"")


def swap(draw: random.Random, path: Path, files: list[Path]) -> None:
    other = draw.choice(files)
    first = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(first)


def another(draw: random.Random, path: Path, files: list[Path]) -> None:
    path.write_bytes(draw.choice(JSON))


def folder_instead(draw: random.Random, path: Path, files: list[Path]) -> None:
    path.unlink()
    path.mkdir()
    if draw.random() < 0.5:
        (path / "inside").write_text("x")


def link(draw: random.Random, path: Path, files: list[Path]) -> None:
    """To a file of the user, which must stay as it is, or to nowhere."""
    path.unlink()
    path.symlink_to(draw.choice((victim(path), Path("/nowhere"), path)))


def victim(path: Path) -> Path:
    """Beside the output folder: see fuzzer.py."""
    return next(place / "victim" for place in path.parents if (place / "victim").exists())


def grown(draw: random.Random, path: Path, files: list[Path]) -> None:
    with path.open("ab") as file:
        file.write(draw.choice((b"\0" * 100, b"\n", b"{}\n", os.urandom(0) + b"x" * 10, path.read_bytes())))


def noise(draw: random.Random, path: Path, files: list[Path]) -> None:
    path.write_bytes(draw.randbytes(draw.choice((1, 100, 5000))))


def pipe(draw: random.Random, path: Path, files: list[Path]) -> None:
    """Whoever opens it waits."""
    path.unlink()
    os.mkfifo(path)


def sparse(draw: random.Random, path: Path, files: list[Path]) -> None:
    """It claims to be huge."""
    with path.open("ab") as file:
        file.truncate(40 * 2**30)


def unreadable(draw: random.Random, path: Path, files: list[Path]) -> None:
    """Cases run without the rights of root, so that this means something."""
    path.chmod(0)


def socket_instead(draw: random.Random, path: Path, files: list[Path]) -> None:
    path.unlink()
    os.mknod(path, stat.S_IFSOCK | 0o600)


WAYS = (
    flip, flip, flip, cut, remove, empty, swap, another, another, folder_instead, link, grown, noise, pipe,
    sparse, unreadable, socket_instead,
)  # fmt: skip
