"""Flower and pfl-research beside ours and the bare loop, on the same clients; `make bench-peers` runs it.

    python -m benchmarks.beside_peers [--works W1 W2 small tiny] [--rounds 5] [--repeats 3] [--page]

Every turn is a process of its own, from its start over ROUNDS rounds to its end; the variants take turns.
Shown are medians over turns, with ranges: the throughput of a turn without its first round, the most memory
that its processes were seen with after a round (PSS), and the seconds to its first finished round. Of the
tiny clients it is the time of a round: what a round costs whatever is trained.
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
from itertools import pairwise
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from benchmarks.page import keep, kept, put, rows, spread, taken, when
from benchmarks.peers.given import write
from benchmarks.processes import descendants, pss
from benchmarks.workload import LR, work

WORKS = ("W1", "W2", "small", "tiny")
VARIANTS = ("bare", "loader", "ours, 1 worker", "ours, 2 workers", "Flower", "pfl")
TINY_ROUNDS = 30  # of a turn with tiny clients, at least
PATIENCE = 900  # seconds of a turn
COLUMNS = ("per_second", "pss", "first", "round")


def command(variant: str, name: str, path: str, rounds: int) -> list[str]:
    """What starts a turn of the variant."""
    flower, pfl = (os.environ.get(key, f".venv-{key.lower()}") for key in ("FLOWER", "PFL"))
    told = [path, str(rounds)]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    ours = [sys.executable, "-m", "benchmarks.own_rounds", name, str(rounds)]
    return {
        "bare": [sys.executable, "-m", "benchmarks.peers.bare", *told],
        "loader": [sys.executable, "-m", "benchmarks.peers.loader", *told],
        "ours, 1 worker": [*ours, "1"],
        "ours, 2 workers": [*ours, "2"],
        "Flower": [f"{flower}/bin/python", "-m", "benchmarks.peers.flower", *told],
        "pfl": [f"{pfl}/bin/python", *torchrun, "-m", "benchmarks.peers.pfl_research", *told],
    }[variant]


def prepare(name: str, rounds: int, path: Path) -> None:
    """The images, the split and the cohorts of our own loop, for the others."""
    workload = work(name)
    parts = [workload.data.partition.indices(client) for client in range(workload.data.count)]
    arrays = {
        "images": workload.data.images.train_images.numpy(),
        "labels": workload.data.images.train_labels.numpy(),
        "order": np.concatenate(parts),
        "ends": np.cumsum([len(part) for part in parts]),
        "cohorts": np.array([workload.cohort(t) for t in range(1, rounds + 1)]),
    }
    write(path, arrays, {"name": name, "epochs": workload.amount, "batch": workload.batch, "lr": LR})


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
        "round": statistics.median(b["at"] - a["at"] for a, b in pairwise(told)),
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
    stamp, what = taken(), work(name).words
    turns: dict[str, list[dict[str, float]]] = {variant: [] for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "work.npz"
        prepare(name, rounds, path)
        for _ in range(repeats):
            for variant in VARIANTS:
                turns[variant].append(turn(command(variant, name, str(path), rounds), rounds))
                print(name, variant, {k: round(v, 3) for k, v in turns[variant][-1].items()}, flush=True)
    results = {v: {c: [one[c] for one in told] for c in COLUMNS} for v, told in turns.items()}
    return {"taken": stamp, "work": f"{what}, {repeats} turns of {rounds} rounds", "variants": results}


def table(results: dict[str, Any]) -> str:
    """Medians and ranges; ours against each."""
    head = (
        "work", "variant", "samples per second", "ours (2 workers) against it", "PSS, MB",
        "start to first round, s",
    )  # fmt: skip
    lines: list[list[str]] = []
    for name, result in results.items():
        rate = statistics.median(result["variants"]["ours, 2 workers"]["per_second"])
        for variant, v in result["variants"].items():
            ratio = f"{rate / statistics.median(v['per_second']):.2f}"
            memory, first = spread(v["pss"]), spread(v["first"], 1)
            lines.append([name, variant, spread(v["per_second"]), ratio, memory, first])
    return rows(head, lines)


def fixed(result: dict[str, Any]) -> str:
    """What a round of five tiny clients takes in each variant."""
    lines = [[name, spread([1e3 * x for x in v["round"]], 1)] for name, v in result["variants"].items()]
    return "\n" + rows(("variant", "a round of 5 tiny clients, ms"), lines)


def page(results: dict[str, Any]) -> str:
    """Both tables, and when each work was measured."""
    text = table({name: result for name, result in results.items() if name != "tiny"})
    text += fixed(results["tiny"]) if "tiny" in results else ""
    notes = [f"- {name}: {result['work']}; {when(result['taken'])}\n" for name, result in results.items()]
    return text + "\n" + "".join(notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--works", nargs="+", default=WORKS, choices=WORKS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--page", action="store_true", help="keep the results, and put them on the page")
    given = parser.parse_args()
    assert given.rounds > 1, "the first round of a turn does not count"
    results = kept("peers")
    for name in given.works:
        rounds = max(given.rounds, TINY_ROUNDS) if name == "tiny" else given.rounds
        results[name] = sit(name, rounds, given.repeats)
        results = {one: results[one] for one in WORKS if one in results}
        if given.page:
            keep("peers", results)
    print(page(results))
    if given.page:
        put("peers", page(results))


if __name__ == "__main__":
    main()
