"""`fedgm sweep` with a file that cannot be run: exit code 2, what to write, and not even a folder."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from fedgm.commands import main

FILE = """
method: grid
metric: {name: test/acc, goal: maximize}
parameters:
  algorithm.eta: {values: [0.5, 1.0]}
command: ["${program}", +experiment=fedgm, profile=tiny, track.mode=disabled, "${args_no_hyphens}"]
"""
BAYES = Path(__file__).parents[2] / "sweeps" / "fedgm_bayes.yaml"


def refused(path: Path, folder: Path) -> str:
    """What is said, in one line."""
    done = CliRunner().invoke(main, ["sweep", str(path), "--output-dir", str(folder / "o")])
    assert done.exit_code == 2, done.output
    assert not (folder / "o").exists()
    return " ".join(done.output.split())


@pytest.mark.parametrize(
    ("old", "new", "key", "hint"),
    [
        ("method:", "metod:", "s.yaml: metod=", "Try method: as the key"),
        ("method: grid", "method: gird", "s.yaml: method=gird", "Try method: grid"),
        ("metric: {", "# {", "s.yaml: metric=None", "metric: {name: test/loss, goal: minimize}"),
        ("goal:", "gaol:", "s.yaml: metric.gaol=", "Try goal: as the key"),
        ("test/acc", "test/accuracy", "s.yaml: metric.name=test/accuracy", "metric: {name: test/acc,"),
        ("values:", "valus:", "parameters.algorithm.eta.valus=", "Try values: as the key"),
        ("[0.5, 1.0]", "[]", "s.yaml: parameters.algorithm.eta.values=[]", "{values: [0.5, 1.0]}"),
        (
            "{values: [0.5, 1.0]}",
            "{values: [{a: 1}]}",
            "s.yaml: parameters.algorithm.eta=",
            "a file in conf/",
        ),
        ("[0.5, 1.0]", "[1, 1.0]", "points 0 and 1", "remove one"),
        ("[0.5, 1.0]", "[0.5, -1.0]", "algorithm.eta=-1.0", "Try"),
        ("algorithm.eta", "algorithm.etta", "s.yaml: parameters.algorithm.etta=", "Try algorithm.eta"),
        ("+experiment=fedgm", "+experiment=fedgn", "s.yaml: point 0=", "fedgn"),
    ],
)
def test_a_bad_file_is_refused_before_the_first_run(tmp_path, old, new, key, hint):
    assert old in FILE
    (tmp_path / "s.yaml").write_text(FILE.replace(old, new))
    said = refused(tmp_path / "s.yaml", tmp_path)
    assert key in said
    assert hint in said


def test_a_bayesian_search_is_refused_with_the_program_that_can(tmp_path):
    said = refused(BAYES, tmp_path)
    assert "fedgm_bayes.yaml: method=bayes" in said
    assert f"Try wandb sweep {BAYES}, then wandb agent" in said
