"""A longer run holds the shorter ones: nothing that a round does depends on how many rounds there are.

Figure 8's constant etas for 500 rounds are Figure 2's for 250, bit by bit, so there is no need to train both.
This holds where two configurations differ in ``rounds`` (and in their name) alone, the server has the same
hyperparameters in every round of the shorter one, and all that could look at the number of rounds is ours:
a task, a data source or a callback from elsewhere might look at it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from fedgm.config import validate
from fedgm.config.identity import identity
from fedgm.config.parts import build
from fedgm.results.rows import Row
from fedgm.results.run import Key, Run, Status
from fedgm.results.summary import WELL
from fedgm.schedule.plan import Plan
from fedgm.server.plan import Decided
from fedgm.study.figure_runs import PlannedFigure

CONSTANT = {"name": "constant", "_target_": "fedgm.schedule.work.Constant"}
MAY_DIFFER = ("rounds", "name")
FOLLOWS = "server/W2"  # a column that depends on the number of rounds: a part does not have it
LABEL = re.compile(r"[\w.-]+")  # a name from a stored run must not act as an interpolation


def parts(one: PlannedFigure, runs: Mapping[Key, Run]) -> dict[Key, tuple[Run, Run]]:
    """Runs of the figure that are not done but begin one that is there: (the part, the whole)."""
    made: dict[Key, tuple[Run, Run]] = {}
    usable = {key: run for key, run in runs.items() if run.status in WELL}
    for line in one.figure.lines:
        jobs = [one.jobs[line.key, seed] for seed in one.seeds]
        jobs = [job for job in jobs if job.key not in runs or not runs[job.key].is_done]
        hashes = _longer(one.config(line.key), usable.values()) if jobs else []
        for job in jobs:
            wholes = [usable[hash, job.seed] for hash in hashes if (hash, job.seed) in usable]
            for whole in sorted(wholes, key=lambda run: (not run.is_done, run.rounds)):
                if part := _part(one.configs[line.key, job.seed], whole, job.hash):
                    made[job.key] = part, whole
                    break
    return made


def _longer(cfg: DictConfig, runs: Iterable[Run]) -> list[str]:
    """Hashes that the configuration has with more rounds, of those of which there are runs."""
    targets = [str(part["_target_"]) for part in (cfg.task, cfg.data.source)]
    ours = list(cfg.callbacks) == ["name"] and all(target.startswith("fedgm.") for target in targets)
    if cfg.rounds % cfg.eval.every or not ours:  # its last evaluation is none of a longer run
        return []
    hashes, lengths = set[str](), set[tuple[int, str]]()
    for run in runs:
        rounds, name = run.facts.get("rounds"), run.facts.get("name")
        if type(rounds) is int and rounds > cfg.rounds and LABEL.fullmatch(str(name)):
            hashes.add(run.key[0])
            lengths.add((rounds, str(name)))
    longer: list[str] = []
    for rounds, name in sorted(lengths):
        other = deepcopy(cfg)
        OmegaConf.update(other, "rounds", rounds)
        OmegaConf.update(other, "name", name)
        if (hash := identity(other)) in hashes and _begins_as(cfg, other):
            longer.append(hash)
    return longer


def _begins_as(cfg: DictConfig, other: DictConfig) -> bool:
    """Whether the rounds of the first are those of the second: no value follows from ``rounds``."""
    short, long = (cast(dict[str, Any], OmegaConf.to_container(each, resolve=True)) for each in (cfg, other))
    if any(short[key] != long[key] for key in short if key not in MAY_DIFFER):
        return False
    if short.get("work", CONSTANT) != CONSTANT:
        return False  # stages of local work may follow from the number of rounds
    a, b = _plan(cfg), _plan(other)
    if isinstance(a, Decided):
        return False  # its stages are decided during the run: nothing is guessed
    return all(a.at(t) == b.at(t) and a.after(t) == b.after(t) for t in range(1, int(cfg.rounds) + 1))


def _plan(cfg: DictConfig) -> Plan:
    """The server's hyperparameters in each round."""
    config = validate(cfg)
    return build(config.schedule, "schedule").plan(config.rounds, build(config.algorithm, "algorithm"))


def _part(cfg: DictConfig, whole: Run, hash: str) -> Run | None:
    """The run that the shorter one would be; None where the longer one has not got that far."""
    rounds, done = int(cfg.rounds), whole.rounds_done
    if whole.is_divergent and done == rounds:
        return None  # in this round or in the next, which has no row then
    lost = whole.is_divergent and done < rounds
    rows = [
        {key: value for key, value in row.items() if key != FOLLOWS}
        for row in whole.evaluations
        if (row.get("round") or 0) <= rounds
    ]
    if not lost and (done < rounds or not rows):
        return None
    steps, clients = rows[-1].get("total/steps") if rows else None, _clients(cfg, rows)
    K = steps / clients if steps is not None and clients else None
    facts = {
        **whole.facts,
        "hash": hash,
        "name": str(cfg.name),
        "rounds": rounds,
        "rounds_done": min(rounds, done),
        "status": Status.DIVERGED if lost else Status.FINISHED,
        "reason": whole.facts.get("reason") if lost else None,
        "local_steps": whole.facts.get("local_steps") if lost else K,
        "stages": [{"rounds": stage.rounds, **stage.hyper} for stage in _plan(cfg).stages],
        "seconds": round(float(whole.facts.get("seconds") or 0.0) * min(1.0, rounds / max(1, done)), 1),
    }
    config = whole.config | {key: cfg[key] for key in (*MAY_DIFFER, "paper_rounds")}
    return replace(whole, facts=facts, config=config, evaluations=rows, folder=None, mark=None)


def _clients(cfg: DictConfig, rows: Sequence[Row]) -> float:
    """How many clients took part; 0 where the rows between two evaluations would be needed."""
    if cfg.eval.every == 1:
        return sum(row.get("cohort/clients") or 0 for row in rows)
    sampler = OmegaConf.select(cfg, "participation.sampler.name")
    taking_part = cfg.participation.name, sampler, cfg.clients.nonfinite
    return int(cfg.clients.per_round) * int(cfg.rounds) if taking_part == ("ideal", "uniform", "stop") else 0
