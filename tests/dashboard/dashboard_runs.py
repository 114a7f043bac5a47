"""Run folders with made-up curves: three algorithms, a grid, seeds, every ending."""

import hashlib
import json
import math
from pathlib import Path

import yaml

from fedgm.dashboard import payload, render
from fedgm.dashboard.collect import Collector

STAGES = [{"rounds": 40, "eta": 2.0}, {"rounds": 60, "eta": 1.0}]


def write_run(folder: Path, algorithm: str = "fedgm", seed: int = 0, **more) -> Path:
    """One run; ``more`` may set eta, beta, nu, rounds, every, done, status, stale, name, metrics, stages.

    ``config`` changes groups of its configuration, ``shift`` its scores; ``classes`` give a chance level.
    """
    eta, beta, nu = more.get("eta", 1.0), more.get("beta", 0.9), more.get("nu", 0.7)
    rounds, every = more.get("rounds", 100), more.get("every", 5)
    done, status = more.get("done", rounds), more.get("status", "finished")
    names = more.get("metrics", ("test/acc", "test/loss", "train/acc", "train/loss"))
    folder.mkdir(parents=True, exist_ok=True)
    rows = [_row(t, every, seed, eta, beta, nu, names, more.get("stale", 0.0)) for t in range(1, done + 1)]
    for row in rows:
        row |= {name: row[name] + more.get("shift", 0.0) for name in names if row[name] is not None}
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    name = more.get("name", "fedgm")
    mark = hashlib.sha256(json.dumps([algorithm, eta, beta, nu, rounds, name]).encode()).hexdigest()
    facts = {
        "hash": mark, "seed": seed, "status": status, "name": name, "algorithm": algorithm, "rounds": rounds,
        "schedule": "stages" if more.get("stages") else "constant", "participation": "ideal",
        "profile": "tiny", "model": "resnet", "data": "synthetic", "seconds": 1.5 * done,
        "stages": more.get("stages"), "reason": more.get("reason"),
        "initial": {name: 2.2 if "loss" in name else 0.1 for name in names},
    }  # fmt: skip
    if more.get("classes"):
        facts["classes"] = more["classes"]
    (folder / "summary.json").write_text(json.dumps(facts))
    config = {"seed": seed, "rounds": rounds, "name": name, "output_dir": "x",
              "data": {"name": "synthetic", "alpha": math.inf, "seed": seed}, "model": {"name": "resnet"},
              "clients": {"count": 10, "per_round": 5}, "local": {"epochs": 3}, "eval": {"every": every},
              "participation": {"name": "ideal"}, "schedule": {"name": "constant"},
              "algorithm": {"name": algorithm, "eta": eta, "beta": beta, "nu": nu}}  # fmt: skip
    for group, values in more.get("config", {}).items():
        config[group] = {**config.get(group, {}), **values}
    if more.get("stages"):
        config["schedule"] = {"name": "stages", "etas": [stage["eta"] for stage in more["stages"]]}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder


def _row(t: int, every: int, seed: int, eta: float, beta: float, nu: float, names, stale: float) -> dict:
    """Curves that rise quickly for an eta near 2, with a wave that differs between seeds."""
    measured = t % every == 0
    level = 0.1 + (0.5 - 0.06 * abs(eta - 2) + 0.1 * beta - 0.05 * nu) * (1 - math.exp(-t * 4 / 100))
    value = level + 0.015 * math.sin(t * 0.7 + 2 * seed) + 0.01 * seed
    row: dict = {"round": t}
    for name in names:
        row[name] = (2.5 - 3 * value if "loss" in name else value) if measured else None
    row |= {"server/eta": eta, "update/norm": 1 / t, "cohort/steps": 100 + t % 7, "bytes/up": 1_000_000}
    row["cohort/staleness"] = stale * (1 + math.sin(t)) if stale else 0.0
    if stale:
        row["clock/time"] = t * 3.5
    return {**row, "time/round": 1.0, "time/eval": 0.5 if measured else None, "samples_per_s": 9.0}


def write_grid(root: Path) -> Path:
    """FedAvg, FedAvgM and FedGM over eta and beta, three seeds; large steps diverge; one run is stale."""
    for seed in range(3):
        for eta in (0.5, 1.0, 2.0, 4.0):
            lost = {"status": "diverged", "done": 30 + 5 * seed, "reason": "loss is not finite"}
            ends = lost if eta == 4.0 else {}
            write_run(
                root / f"fedavg-{eta}" / f"seed={seed}", "fedavg", seed, eta=eta, beta=0.0, nu=0.0, **ends
            )
            for beta in (0.7, 0.9):
                place = f"{eta}-{beta}/seed={seed}"
                write_run(root / f"fedavgm-{place}", "fedavgm", seed, eta=eta, beta=beta, nu=1.0)
                stages = STAGES if eta == 2.0 else None
                write_run(root / f"fedgm-{place}", "fedgm", seed, eta=eta, beta=beta, stages=stages)
    write_run(root / "stale" / "seed=0", "fedgm", name="autonomous", stale=2.0, eta=1.5)
    return root


def store_page(root: Path, out: Path, splits=()) -> str:
    """The page of all runs below ``root`` as a file; its address."""
    collection = Collector([root]).collect()
    out.write_text(render.render(payload.build(collection, "a grid", lambda run: "runs/", splits)))
    return out.as_uri()
