"""Hostile files of stored results, sweeps and data: every reader reads them or refuses with a sentence."""

import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fedgm.config import conf_dir
from fedgm.results import archive
from fedgm.results.find import below
from tests.fuzz.damage import WAYS
from tests.fuzz.readers import typed
from tests.fuzz.runs import Runs, any_mode

LARGE = 10**400
# Values that a writer never writes.
HOSTILE = (
    None, True, 0, -1, 3, 1.5, -0.0, 1e308, float("nan"), float("inf"), LARGE, "", "words", "1e999", "\u0000",
    "\x1b]52;c;eA==\x07", "[/b]", "[bold]", "\ud800", "x" * 100_000, [], {}, [[]], [None], {"a": {"b": []}},
    ["x"] * 1000, {"": 1}, "../../etc/passwd", "${seed}", "{_target_: os.getcwd}",
    {"_target_": "os.getcwd"}, 2**64, "<script>", "=cmd()", "\u202e", "9" * 5000,
)  # fmt: skip


def case(runs: Runs, draw: random.Random, place: Path) -> str:
    """One hostile file, and those who read its kind."""
    return draw.choice((results, results, sweeps, arrays))(runs, draw, place)


def results(runs: Runs, draw: random.Random, place: Path) -> str:
    """A file of many runs."""
    mode, _ = any_mode(draw)
    path = place / "results.jsonl"
    archive.write(path, [*below(runs.template(mode, True)), *below(runs.template("one worker", True, 1))])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    if draw.random() < 0.25:
        what = f"{mode}: {spoiled_bytes(draw, path)}"
    else:
        what = f"{mode}: {' and '.join(spoil(draw, lines) for _ in range(draw.choice((1, 1, 2))))}"
        path.write_text(
            "".join(deepened(draw, json.dumps(line)) + "\n" for line in lines), errors="surrogatepass"
        )
    out, page = str(place / "compare.png"), str(place / "page.html")
    for words in (
        ["list", str(path)], ["list", str(place)], ["show", str(path)], ["compare", str(path), "--out", out],
        ["dashboard", str(path), "--out", page],
        ["reproduce", "fig5", "profile=tiny", "--stored", str(path), "--out", str(place / "figures")],
    ):  # fmt: skip
        typed(words, what)
    return "results read"


def spoil(draw: random.Random, node: Any) -> str:
    """Replace, remove or add one value at a random depth; says where."""
    way = []
    while isinstance(node, dict | list) and node:
        key = draw.choice(sorted(node, key=str) if isinstance(node, dict) else range(len(node)))
        way.append(str(key))
        inner = node[key]
        if isinstance(inner, dict | list) and inner and draw.random() < 0.75:
            node = inner
            continue
        value = draw.choice(HOSTILE)
        kind = draw.choice(("set", "set", "set", "removed", "renamed"))
        if kind == "set":
            node[key] = value
        elif kind == "removed":
            del node[key]
        elif isinstance(node, dict):
            node[draw.choice(("", "x", "\x1b[2J", "a.b", "9" * 50))] = node.pop(key)
        return f"{'.'.join(way)[:200]} {kind} {str(value)[:40]!r}"
    return "nothing"


def deepened(draw: random.Random, line: str) -> str:
    """Seldom a value that is nested deeper than any reader can follow."""
    if draw.random() < 0.05:
        depth = draw.choice((900, 100_000))
        return (
            line.replace("[", "[" * depth, 1) if draw.random() < 0.5 else line[:-1] + ', "x": ' + "[" * depth
        )
    return line


def spoiled_bytes(draw: random.Random, path: Path) -> str:
    """What befalls any file: see damage.py."""
    way = draw.choice(WAYS)
    way(draw, path, [path])
    return way.__name__


def sweeps(runs: Runs, draw: random.Random, place: Path) -> str:
    """A sweep file."""
    file = draw.choice(sorted((conf_dir().parent / "sweeps").glob("*grid.yaml")))
    path, content = place / "sweep.yaml", yaml.safe_load(file.read_text())
    what = f"{file.name}: {' and '.join(spoil(draw, content) for _ in range(draw.choice((1, 1, 2))))}"
    parameters = content.get("parameters")
    for node in parameters.values() if isinstance(parameters, dict) else ():  # three points, not ninety
        if isinstance(node, dict) and isinstance(node.get("values"), list):
            node["values"] = node["values"][:2]
    path.write_text(yaml.safe_dump(content, sort_keys=False), errors="surrogatepass")
    if draw.random() < 0.2:
        what += f" and {spoiled_bytes(draw, path)}"
    home = str(place / "out")
    for words in (["--status"], ["--best"]):
        typed(["sweep", str(path), "profile=tiny", "--output-dir", home, *words], what)
    return "sweep read"


def arrays(runs: Runs, draw: random.Random, place: Path) -> str:
    """A data file of one's own."""
    path = place / "own.npz"
    parts: dict[str, Any] = {
        "x_train": np.zeros((40, 8, 8, 3), np.uint8), "y_train": np.arange(40) % 10,
        "x_test": np.zeros((10, 8, 8, 3), np.uint8), "y_test": np.arange(10),
    }  # fmt: skip
    name = draw.choice(sorted(parts))
    odd = draw.choice(
        (
            np.zeros((0, 8, 8, 3), np.uint8), np.zeros((40, 8, 8), np.uint8), np.array(5),
            np.array(["a"] * 40), np.full(40, -1), np.full(40, 2**40), np.full(40, np.nan),
            np.zeros((40, 8, 8, 3), np.complex64),
            np.zeros(40, bool), np.array([object()] * 3, dtype=object), np.zeros(40, "datetime64[s]"), None,
            np.zeros((40, 1, 1, 1), np.uint8), np.arange(40), np.zeros((40, 8, 8, 3), np.float64),
        )
    )  # fmt: skip
    parts[name] = odd
    shown = "no array" if odd is None else f"{odd.dtype} {odd.shape}"
    what = f"{name}: {shown}"
    with zipfile.ZipFile(path, "w") as file:
        for part, value in parts.items():
            content = io.BytesIO()
            np.save(content, value, allow_pickle=True) if value is not None else content.write(b"hello")
            file.writestr(f"{part}{draw.choice(('.npy', '.npy', '.npy', '.npy', ''))}", content.getvalue())
    if draw.random() < 0.3:
        what += f" and {spoiled_bytes(draw, path)}"
    words = ["profile=tiny", "data=npz", f"data.path={path}", "clients.count=4", "clients.per_round=2"]
    typed(["data", "show", *words, "--out", str(place / "split.png")], what)
    return "data read"
