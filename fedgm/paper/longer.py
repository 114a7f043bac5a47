"""A longer run holds the shorter ones: no draw depends on how many rounds a run has.

Figure 8's constant etas for 500 rounds are Figure 2's for 250, bit by bit, so nobody has to train both. It is
so where two configurations differ in ``rounds`` (and in their name) alone, and the server has the same
hyperparameters in every round of the shorter one.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from fedgm.config import RunConfig, validate
from fedgm.config.parts import build
from fedgm.paper.plan import PlannedFigure
from fedgm.schedule.plan import Plan, Stage
from fedgm.track.identity import identity
from fedgm.track.record import RunRecord
from fedgm.track.rows import Row

Key = tuple[str, int]
OWN = ("rounds", "name")  # what may differ


def parts(one: PlannedFigure, known: Mapping[Key, RunRecord]) -> dict[Key, tuple[RunRecord, RunRecord]]:
    """Runs of the figure that are not done but begin one that is known: (the part, the whole)."""
    found: dict[Key, tuple[RunRecord, RunRecord]] = {}
    for line in one.figure.lines:
        jobs = [one.jobs[line.key, seed] for seed in one.seeds]
        jobs = [job for job in jobs if (run := known.get(job.key)) is None or not run.is_done]
        if not jobs:
            continue
        wholes = _wholes(one.config(line.key), known.values())
        for job in jobs:
            for hash in wholes:
                whole = known.get((hash, job.seed))
                if whole is not None and (part := _part(one.configs[line.key, job.seed], whole, job.hash)):
                    found[job.key] = part, whole
    return found


def _wholes(cfg: DictConfig, runs: Iterable[RunRecord]) -> list[str]:
    """Hashes that the configuration has with more rounds, among those of which runs are known."""
    if cfg.rounds % cfg.eval.every:  # its last evaluation is none of a longer run
        return []
    lengths = {(int(run.facts["rounds"]), str(run.facts["name"])) for run in runs}
    longer = [_with(cfg, rounds, name) for rounds, name in sorted(lengths) if rounds > cfg.rounds]
    return [identity(other) for other in longer if _begins_as(cfg, other)]


def _with(cfg: DictConfig, rounds: int, name: str) -> DictConfig:
    other = deepcopy(cfg)
    OmegaConf.update(other, "rounds", rounds)
    OmegaConf.update(other, "name", name)
    return other


def _begins_as(cfg: DictConfig, other: DictConfig) -> bool:
    """Whether the rounds of the first are those of the second: nothing follows from ``rounds``."""
    short, long = (
        {**cast(dict[str, Any], OmegaConf.to_container(each, resolve=True))} for each in (cfg, other)
    )
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
    rounds, done = int(cfg.rounds), int(whole.facts["rounds_done"] or 0)
    lost = whole.status == "diverged" and done <= rounds
    if done < rounds and not lost:
        return None
    stages = _plan(validate(cfg)).stages
    rows = [_row(row, stages) for row in whole.evaluations if (row["round"] or 0) <= rounds]
    facts = {
        **whole.facts,
        "hash": hash,
        "name": str(cfg.name),
        "rounds": rounds,
        "rounds_done": min(rounds, done),
        "status": "diverged" if lost else "finished",
        "local_steps": _local_steps(rows) if not lost else whole.facts.get("local_steps"),
        "stages": [{"rounds": stage.rounds, **stage.hyper} for stage in stages],
        "seconds": round(float(whole.facts.get("seconds") or 0.0) * min(1.0, rounds / max(1, done)), 1),
    }
    if not lost:
        facts["reason"] = None
    config = whole.config | {key: cfg[key] for key in (*OWN, "paper_rounds")}
    return replace(whole, facts=facts, config=config, evaluations=rows, folder=None)


def _row(row: Row, stages: Sequence[Stage]) -> Row:
    """A row with the W2 of the shorter run: the one column that follows from ``rounds``."""
    stage, eta = row.get("server/stage"), row.get("server/eta")
    if row.get("server/W2") is None or stage is None or eta is None:
        return row
    return {**row, "server/W2": stages[int(stage) - 1].rounds * eta}


def _local_steps(rows: Sequence[Row]) -> float:
    """K, a mean over clients; rounds between two evaluations had as many clients as the evaluated ones."""
    last = rows[-1]
    clients = sum(row["cohort/clients"] or 0 for row in rows) * (last["round"] or 0) / len(rows)
    return (last["total/steps"] or 0) / clients if clients else 0.0
