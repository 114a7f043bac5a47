"""Records of runs with made-up curves, under the hashes that a plan gives them."""

from fedgm.results.run import Run
from fedgm.study.points import Job


def record(job: Job, values, status="finished", algorithm="fedgm", stages=None, config=None) -> Run:
    """Evaluations are ``values``, in training two points higher."""
    done = len(values) * job.eval_every
    rows = [
        {
            "round": job.eval_every * (i + 1),
            "train/loss": 1.0, "train/acc": v + 0.02, "test/loss": 1.1, "test/acc": v,
        }
        for i, v in enumerate(values)
    ]  # fmt: skip
    facts = {
        "hash": job.hash, "name": "made", "algorithm": algorithm, "schedule": "constant", "profile": "tiny",
        "participation": "ideal", "model": "resnet", "data": "synthetic", "seed": job.seed,
        "rounds": job.rounds, "status": status, "reason": None, "rounds_done": done, "local_steps": 30.0,
        "initial": {"test/acc": 0.1, "train/acc": 0.1}, "stages": stages or [{"rounds": job.rounds}],
        "seconds": 1.0, "commit": "abc", "versions": {},
    }  # fmt: skip
    basic = {"algorithm.name": algorithm, "eval.every": job.eval_every, "data.source.classes": 10}
    return Run(facts, {**basic, **(config or {})}, rows)
