"""A sweep of six points with rungs after rounds 6 and 18 of 30, planned in a folder of its own."""

from collections.abc import Sequence
from pathlib import Path

from fedgm.study import points, sweep_file

FILE = """
method: grid
metric: {name: test/acc, goal: maximize}
parameters:
  algorithm.eta: {values: [0.5, 1.0, 2.0]}
  algorithm.beta: {values: [0.7, 0.9]}
early_terminate: {type: hyperband, min_iter: 2, eta: 3}
command: ["${program}", +experiment=fedgm, profile=tiny, rounds=30, eval.every=3, "${args_no_hyphens}"]
"""
WHOLE = FILE.replace("early_terminate", "# ")  # without rungs


def plan(
    folder: Path, text: str = FILE, seeds: Sequence[int] = (0,), words: Sequence[str] = ()
) -> points.SweepPlan:
    """Nothing is run; results would go to ``o`` in the folder."""
    (folder / "s.yaml").write_text(text)
    return points.make(sweep_file.read(folder / "s.yaml"), words, seeds, str(folder / "o"))
