"""Run folders with made-up curves, for tests of what reads them."""

import json
from collections.abc import Sequence

from fedgm.study.points import Job


def store(job: Job, scores: Sequence[float], status: str = "finished", done: int | None = None) -> None:
    """Write rows whose evaluations are ``scores`` (every ``job.eval_every`` rounds) and a summary."""
    job.folder.mkdir(parents=True, exist_ok=True)
    rounds = done if done is not None else len(scores) * job.eval_every
    lines = []
    for t in range(1, rounds + 1):
        value = scores[t // job.eval_every - 1] if t % job.eval_every == 0 else None
        row = {"round": t, "test/acc": value, "test/loss": value and 2.0, "cohort/steps": 10, "bytes/up": 100}
        lines.append(json.dumps({**row, "time/round": 1.0, "time/eval": None, "samples_per_s": 5.0}))
    (job.folder / "metrics.jsonl").write_text("".join(line + "\n" for line in lines))
    facts = {"hash": job.hash, "seed": job.seed, "status": status, "name": "fedgm", "commit": "abc"}
    facts |= {"classes": 10, "rounds": job.rounds, "seconds": 1.0, "profile": "tiny", "algorithm": "fedgm"}
    (job.folder / "summary.json").write_text(json.dumps(facts))
    words = "".join(f"  {key.split('.')[1]}: {value}\n" for key, value in job.values.items() if "." in key)
    (job.folder / "config.yaml").write_text(f"algorithm:\n{words}seed: {job.seed}\noutput_dir: x\n")
