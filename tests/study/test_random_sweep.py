"""A random search becomes runs: planned, it is what Hydra makes of its words."""

import yaml

from fedgm import config
from fedgm.config.identity import identity
from fedgm.running.folder import locate
from fedgm.study import points, sweep_file

FILE = """
method: random
run_cap: 6
metric: {name: test/loss}
parameters:
  schedule: {values: [constant, cosine]}
  algorithm.eta: {values: [1e-1, 5e-1]}   # words to yaml, numbers to Hydra
  algorithm.beta: {min: 0.5, max: 0.9}
  algorithm.nu: {value: 7e-1}
  local.lr: {distribution: log_uniform_values, min: 1.0e-06, max: 0.1}
  clients.per_round: {min: 2, max: 5}
command: ["${program}", profile=tiny, "${args_no_hyphens}"]
"""


def test_a_drawn_point_is_what_hydra_composes_from_its_words(tmp_path):
    assert isinstance(yaml.safe_load(FILE)["parameters"]["algorithm.nu"]["value"], str)
    path = tmp_path / "s.yaml"
    path.write_text(FILE)
    made = points.make(sweep_file.read(path), [], [0, 1], str(tmp_path / "o"))
    assert len(made.jobs) == 12
    assert len({job.key for job in made.jobs}) == 12
    for job in made.jobs[::3]:
        cfg = config.compose(list(job.overrides))
        assert (identity(cfg), locate(cfg, job.overrides)) == (job.hash, job.folder)
        assert (cfg.algorithm.eta, cfg.algorithm.nu) == (job.values["algorithm.eta"], 0.7)
        assert cfg.schedule.name == job.values["schedule"]
        assert cfg.clients.per_round in (2, 3, 4, 5)
