"""Flower and pfl-research beside ours and the bare loop, on the same clients; `make bench-peers` runs it.

    python -m benchmarks.beside_peers [--works W1 W2 small] [--rounds 5] [--repeats 3] [--page]

Every turn is a process of its own, from its start over ROUNDS rounds to its end; the variants take turns.
Shown are medians over turns, with ranges: the throughput of a turn without its first round, the most memory
that its processes were seen with after a round (PSS), and the seconds to its first finished round.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from benchmarks.page import put
from benchmarks.peers.given import write
from benchmarks.processes import descendants, pss
from benchmarks.workload import BATCH, EPOCHS, LR, work

VARIANTS = ("bare", "ours, 2 workers", "Flower", "pfl")
PATIENCE = 900  # seconds of a turn
COLUMNS = ("per_second", "pss", "first")


def command(variant: str, name: str, path: str, rounds: int) -> list[str]:
    """What starts a turn of the variant."""
    flower, pfl = (os.environ.get(key, f".venv-{key.lower()}") for key in ("FLOWER", "PFL"))
    told = [path, str(rounds)]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return {
        "bare": [sys.executable, "-m", "benchmarks.peers.bare", *told],
        "ours, 2 workers": [sys.executable, "-m", "benchmarks.own_rounds", name, str(rounds), "2"],
        "Flower": [f"{flower}/bin/python", "-m", "benchmarks.peers.flower", *told],
        "pfl": [f"{pfl}/bin/python", *torchrun, "-m", "benchmarks.peers.pfl_research", *told],
    }[variant]


def prepare(name: str, rounds: int, path: Path) -> None:
    """The images, the split and the cohorts of our own loop, for the others."""
    found = work(name)
    parts = [found.data.partition.indices(client) for client in range(found.data.count)]
    arrays = {
        "images": found.data.images.train_images.numpy(),
        "labels": found.data.images.train_labels.numpy(),
        "order": np.concatenate(parts),
        "ends": np.cumsum([len(part) for part in parts]),
        "cohorts": np.array([found.cohort(t) for t in range(1, rounds + 1)]),
    }
    write(path, arrays, {"name": name, "epochs": EPOCHS, "batch": BATCH, "lr": LR})


def turn(words: list[str], rounds: int) -> dict[str, float]:
    """One process from its start to its last round; whatever it started ends with it."""
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    here = {"PYTHONPATH": str(Path.cwd()), "PYTHONWARNINGS": "ignore"}
    most, told = 0.0, list[dict[str, float]]()
    with tempfile.TemporaryFile("w+") as errors:
        started = time.time()
        process = subprocess.Popen(
            words, env=os.environ | quiet | here, stdout=subprocess.PIPE, stderr=errors, text=True,
            start_new_session=True,
        )  # fmt: skip
        timer = Timer(PATIENCE, killed, (process.pid,))
        timer.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith('{"round"'):
                    told.append(json.loads(line))
                    most = max(most, sum(map(pss, descendants(process.pid))))
                if len(told) == rounds:
                    break
        finally:
            timer.cancel()
            ended(process)
        errors.seek(0)
        assert len(told) == rounds, f"{' '.join(words)}:\n{errors.read()[-3000:]}"
    samples = sum(row["samples"] for row in told[1:])
    return {
        "per_second": samples / (told[-1]["at"] - told[0]["at"]),
        "pss": most,
        "first": told[0]["at"] - started,
    }


def ended(process: subprocess.Popen[str]) -> None:
    """It may stop by itself; what is left of it is killed, Ray's daemons too."""
    left = descendants(process.pid)
    with suppress(subprocess.TimeoutExpired):
        process.wait(20)
    killed(*left)
    process.wait()


def killed(*pids: int) -> None:
    """With all that they have started."""
    for pid in [child for parent in pids for child in descendants(parent)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def sit(name: str, rounds: int, repeats: int) -> dict[str, Any]:
    """Turns of all variants, one after another, again and again."""
    found: dict[str, list[dict[str, float]]] = {variant: [] for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "work.npz"
        prepare(name, rounds, path)
        for _ in range(repeats):
            for variant in VARIANTS:
                found[variant].append(turn(command(variant, name, str(path), rounds), rounds))
                print(name, variant, {k: round(v, 1) for k, v in found[variant][-1].items()}, flush=True)
    return {v: {c: [one[c] for one in turns] for c in COLUMNS} for v, turns in found.items()}


def table(results: dict[str, Any]) -> str:
    """Medians and ranges; ours against each."""
    lines = [
        "| work | variant | samples per second | ours against it | PSS, MB | start to first round, s |",
        "|---|---|---|---|---|---|",
    ]
    for name, variants in results.items():
        own = statistics.median(variants["ours, 2 workers"]["per_second"])
        for variant, v in variants.items():
            rate = statistics.median(v["per_second"])
            cells = [
                _range(v["per_second"], 0),
                f"{own / rate:.2f}",
                _range(v["pss"], 0),
                _range(v["first"], 1),
            ]
            lines.append(f"| {name} | {variant} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _range(values: list[float], digits: int) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f} - {high:,.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--works", nargs="+", default=["W1", "W2", "small"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, default=Path("docs/results/benchmarks_peers.json"))
    parser.add_argument("--page", action="store_true", help="put the table into docs/benchmarks.md")
    given = parser.parse_args()
    assert given.rounds > 1, "the first round of a turn does not count"
    results = json.loads(given.json.read_text()) if given.json.exists() else {}
    for name in given.works:
        results[name] = sit(name, given.rounds, given.repeats)
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    if given.page:
        put("peers", table(results))


if __name__ == "__main__":
    main()
