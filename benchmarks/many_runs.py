"""CPU seconds and memory of the commands that read thousands of stored runs.

    python -m benchmarks.many_runs FOLDER [--long]

FOLDER gets one tiny run, and copies of it: a sweep of 2,000 points, and 1,000 of them with another seed. The
goals: `list` of 3,000 runs in 3 s (30 s with nothing kept from an earlier call), `sweep --status` in 5 s,
below 400 MB. --long adds a run whose rows have 200 MB.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from fedgm import seals
from fedgm.study import points, sweep_file

POINTS, SEEDS = 2000, 1000
ONE = ["profile=tiny", "rounds=20", "eval.every=2", "track.mode=disabled"]
LONG = 200_000_000  # bytes of rows


def sweep(folder: Path, count: int) -> Path:
    """A grid of so many etas."""
    path = folder / f"{count}.yaml"
    etas = [round(0.5 + n / 1000, 3) for n in range(count)]
    content = {
        "method": "grid",
        "metric": {"name": "test/acc", "goal": "maximize"},
        "parameters": {"algorithm.eta": {"values": etas}},
        "command": ["${program}", *ONE, "${args_no_hyphens}"],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def copies(folder: Path, one: Path) -> None:
    """The run of every point, and of some points with another seed."""
    for count, seed in ((POINTS, 0), (SEEDS, 1)):
        file = sweep_file.read(sweep(folder, count))
        for job in points.make(file, [], [seed], str(folder / "many")).jobs:
            copy(one, job.folder, {"seed": seed, "hash": job.hash}, {"eta": job.values["algorithm.eta"]})


def copy(one: Path, folder: Path, facts: dict[str, Any], algorithm: dict[str, Any]) -> None:
    """A run folder as its own command would have left it."""
    folder.mkdir(parents=True)
    for name in ("metrics.jsonl", "model.safetensors", "curves.png"):
        os.link(one / name, folder / name)
    config = yaml.load((one / "config.yaml").read_text(), yaml.CSafeLoader)
    config |= {"seed": facts["seed"], "algorithm": config["algorithm"] | algorithm}
    (folder / "config.yaml").write_text(yaml.dump(config, Dumper=yaml.CSafeDumper, sort_keys=False))
    summary = json.loads((one / "summary.json").read_text())
    summary["digests"] |= seals.checksums(folder, ["config.yaml"])
    seals.write_json(folder / "summary.json", {**summary, **facts})


def long_run(one: Path, folder: Path) -> None:
    """A run of as many rounds as its rows have room for."""
    copy(one, folder, {"seed": 2, "hash": "0" * 64}, {})
    first = json.loads((one / "metrics.jsonl").read_text().splitlines()[1])
    (folder / "metrics.jsonl").unlink()
    with (folder / "metrics.jsonl").open("w") as file:
        rounds = 0
        while file.tell() < LONG:
            rounds += 1
            file.write(json.dumps({**first, "round": rounds}) + "\n")
    summary = json.loads((folder / "summary.json").read_text())
    summary |= {"rounds": rounds, "rounds_done": rounds}
    summary["digests"] |= seals.checksums(folder, ["metrics.jsonl"])
    seals.write_json(folder / "summary.json", summary)


def measure(title: str, *words: str | Path) -> None:
    """CPU seconds, of user and system, and the largest memory of a command."""
    command = [sys.executable, "-m", "fedgm", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    text = process.stdout.read()
    _, code, used = os.wait4(process.pid, 0)
    assert code == 0, text[-2000:]
    print(f"{title:36} {used.ru_utime + used.ru_stime:6.1f} s {used.ru_maxrss / 1024:6.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args()
    folder: Path = given.folder
    if not folder.exists():
        subprocess.run(
            [sys.executable, "-m", "fedgm", "run", *ONE, f"output_dir={folder / 'one'}"], check=True
        )
        one = next(folder.glob("one/run/*/seed=0"))
        copies(folder, one)
        long_run(one, folder / "long" / "run" / "seed=2")
    measure("nothing (--version)", "--version")
    measure("list, 1 run", "list", folder / "one")
    measure("list, 3,000 runs", "list", folder / "many")
    measure("list, 3,000 runs again", "list", folder / "many")
    status = ("sweep", folder / f"{POINTS}.yaml", "--status", "--output-dir", folder / "many")
    measure("sweep --status, 2,000 points", *status)
    measure("sweep --status, 2,000 points again", *status)
    measure("dashboard, 3,000 runs", "dashboard", folder / "many", "--out", folder / "page.html")
    if given.long:
        measure("list, 200 MB of rows", "list", folder / "long")
        measure("dashboard, 200 MB of rows", "dashboard", folder / "long", "--out", folder / "page.html")


if __name__ == "__main__":
    main()
