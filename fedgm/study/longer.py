"""A longer run holds the shorter ones: nothing that a round does depends on how many rounds there are.

Figure 8's constant etas for 500 rounds are Figure 2's for 250, bit by bit, so nobody has to train both. It is
so where two configurations differ in ``rounds`` (and in their name) alone, the server has the same
hyperparameters in every round of the shorter one, and all that could look at the number of rounds is ours:
a task, a source of data or a callback of somebody else's might.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from fedgm.config import RunConfig, validate
from fedgm.config.identity import identity
from fedgm.config.parts import build
from fedgm.results.record import RunRecord
from fedgm.results.rows import Row
from fedgm.results.summary import WELL
from fedgm.schedule.plan import Plan, Stage
from fedgm.study.figure_runs import PlannedFigure
from fedgm.study.sweep_progress import Key

OWN = ("rounds", "name")  # what may differ
LABEL = re.compile(r"[\w.-]+")  # a name from somebody else's folder is no interpolation


def parts(one: PlannedFigure, known: Mapping[Key, RunRecord]) -> dict[Key, tuple[RunRecord, RunRecord]]:
    """Runs of the figure that are not done but begin one that is known: (the part, the whole)."""
    found: dict[Key, tuple[RunRecord, RunRecord]] = {}
    usable = {key: run for key, run in known.items() if run.status in WELL}
    for line in one.figure.lines:
        jobs = [one.jobs[line.key, seed] for seed in one.seeds]
        jobs = [job for job in jobs if (run := known.get(job.key)) is None or not run.is_done]
        if not jobs:
            continue
        hashes = _wholes(one.config(line.key), list(usable.values()))
        for job in jobs:
            wholes = [usable[hash, job.seed] for hash in hashes if (hash, job.seed) in usable]
            for whole in sorted(wholes, key=lambda run: (not run.is_done, run.facts["rounds"])):
                if part := _part(one.configs[line.key, job.seed], whole, job.hash):
                    found[job.key] = part, whole
                    break
    return found


def _wholes(cfg: DictConfig, runs: Collection[RunRecord]) -> list[str]:
    """Hashes that the configuration has with more rounds, of those of which runs are known."""
    if cfg.rounds % cfg.eval.every or not _is_ours(cfg):  # its last evaluation is none of a longer run
        return []
    known = {run.key[0] for run in runs}
    lengths = {(int(run.facts["rounds"]), str(run.facts["name"])) for run in runs if _is_named(run)}
    found: dict[str, DictConfig] = {}
    for rounds, name in lengths:
        if rounds > cfg.rounds:
            other = _with(cfg, rounds, name)
            found[identity(other)] = other
    return [hash for hash, other in found.items() if hash in known and _begins_as(cfg, other)]


def _is_ours(cfg: DictConfig) -> bool:
    """Whether no part of another package can look at the number of rounds."""
    targets = [str(part["_target_"]) for part in (cfg.task, cfg.data.source)]
    return list(cfg.callbacks) == ["name"] and all(target.startswith("fedgm.") for target in targets)


def _is_named(run: RunRecord) -> bool:
    """Whether a stored record says what it should: it may come from anybody."""
    rounds, name = run.facts.get("rounds"), run.facts.get("name")
    return type(rounds) is int and type(name) is str and LABEL.fullmatch(name) is not None


def _with(cfg: DictConfig, rounds: int, name: str) -> DictConfig:
    other = deepcopy(cfg)
    OmegaConf.update(other, "rounds", rounds)
    OmegaConf.update(other, "name", name)
    return other


def _begins_as(cfg: DictConfig, other: DictConfig) -> bool:
    """Whether the rounds of the first are those of the second: no value follows from ``rounds``."""
    short, long = (cast(dict[str, Any], OmegaConf.to_container(each, resolve=True)) for each in (cfg, other))
    if any(short[key] != long[key] for key in short if key not in OWN):
        return False
    mine, theirs = _plan(validate(cfg)), _plan(validate(other))
    return all(
        mine.at(t) == theirs.at(t) and mine.after(t) == theirs.after(t) for t in range(1, int(cfg.rounds) + 1)
    )


def _plan(config: RunConfig) -> Plan:
    """The server's hyperparameters in each round."""
    return build(config.schedule, "schedule").plan(config.rounds, build(config.algorithm, "algorithm"))


def _part(cfg: DictConfig, whole: RunRecord, hash: str) -> RunRecord | None:
    """The record that the shorter run would have; None where the longer one is not there yet."""
    rounds, done = int(cfg.rounds), int(whole.facts.get("rounds_done") or 0)
    lost = whole.status == "diverged" and _end(whole, done) <= rounds
    if done < rounds and not lost:
        return None
    stages = _plan(validate(cfg)).stages
    rows = [_row(row, stages) for row in whole.evaluations if (row.get("round") or 0) <= rounds]
    if not rows and not lost:
        return None
    facts = {
        **whole.facts,
        "hash": hash,
        "name": str(cfg.name),
        "rounds": rounds,
        "rounds_done": min(rounds, done),
        "status": "diverged" if lost else "finished",
        "reason": whole.facts.get("reason") if lost else None,
        "local_steps": whole.facts.get("local_steps") if lost else _local_steps(cfg, rows),
        "stages": [{"rounds": stage.rounds, **stage.hyper} for stage in stages],
        "seconds": round(float(whole.facts.get("seconds") or 0.0) * min(1.0, rounds / max(1, done)), 1),
    }
    config = whole.config | {key: cfg[key] for key in (*OWN, "paper_rounds")}
    return replace(whole, facts=facts, config=config, evaluations=rows, folder=None)


def _end(whole: RunRecord, done: int) -> int:
    """The round in which a run diverged: its last row, or the next round if that one was not measured."""
    said = re.search(r"in round (\d+)", str(whole.facts.get("reason")))
    return int(said[1]) if said else done


def _row(row: Row, stages: Sequence[Stage]) -> Row:
    """A row with the W2 of the shorter run: the one column that follows from ``rounds``."""
    stage, eta = row.get("server/stage"), row.get("server/eta")
    if row.get("server/W2") is None or stage is None or eta is None:
        return row
    return {**row, "server/W2": stages[int(stage) - 1].rounds * eta}


def _local_steps(cfg: DictConfig, rows: Sequence[Row]) -> float | None:
    """K, a mean over clients; None where nobody knows how many clients took part between two evaluations."""
    total = rows[-1].get("total/steps") if rows else None
    clients = sum(row.get("cohort/clients") or 0 for row in rows)
    if cfg.eval.every > 1:
        taking_part = cfg.participation.name, cfg.participation.sampler.name, cfg.clients.nonfinite
        fixed = taking_part == ("ideal", "uniform", "stop")
        clients = int(cfg.clients.per_round) * int(cfg.rounds) if fixed else 0
    return total / clients if total is not None and clients else None
