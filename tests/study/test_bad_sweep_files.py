"""`fedgm sweep` with a file that cannot be run: exit code 2, what to write, and not even a folder."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from fedgm.commands import main
from fedgm.errors import ConfigError, RefusedError
from fedgm.study import points, sweep_file
from fedgm.study.rungs import Halving

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


def changed(old: str, new: str) -> str:
    assert old in FILE
    return FILE.replace(old, new)


RANDOM = FILE.replace("method: grid", "method: random\nrun_cap: 3")
MANY = "".join(f"  key.{name}: {{values: [{', '.join(map(str, range(100)))}]}}\n" for name in "abcdefghij")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (changed('["${program}"', '5\n#["${program}"'), "command=5: expected a list"),
        (changed("command: [", "command: x # ["), "command=x: expected a list"),
        (changed("  algorithm.eta", "  5"), "a key that is not text"),
        (changed("algorithm.eta:", '"a\\0b":'), "expected a key of the configuration"),
        (changed("algorithm.eta:", '"a b":'), "expected a key of the configuration"),
        (changed("[0.5, 1.0]", f"[1{'0' * 400}]"), "a number beyond 1e308"),
        (changed("[0.5, 1.0]", "[2020-01-01]"), "a value of the kind date"),
        (changed("[0.5, 1.0]", "!!set {a}"), "a value of the kind set"),
        (changed("[0.5, 1.0]", "{a: 1}"), "a list of values"),
        (changed("{values: [0.5, 1.0]}", "[1]"), "expected value:, values: or a distribution"),
        (FILE + "early_terminate: 5\n", "expected type: hyperband"),
        (FILE + "early_terminate: {type: hyperband, min_iter: 3, eta: 1.0000001}\n", "a number from 1.01 on"),
        (FILE + "early_terminate: {type: hyperband, min_iter: 3, eta: [3]}\n", "a number from 1.01 on"),
        (FILE + "early_terminate: {type: hyperband, min_iter: true}\n", "min_iter, or max_iter and s"),
        (changed("metric: {name: test/acc, goal: maximize}", "metric: [test/acc]"), "the name of a measured"),
        (changed("goal: maximize", "goal: [maximize]"), "maximize or minimize"),
        (changed("method: grid", "method: [grid]"), "grid or random"),
        (RANDOM.replace("run_cap: 3", "run_cap: true"), "how many points a random search draws"),
        (
            RANDOM.replace("run_cap: 3", "run_cap: 10001"),  # one too many, and soon made
            "10,001 points: expected at most",
        ),
        (RANDOM.replace("values: [0.5, 1.0]", "min: 0.0, max: .inf"), "uniform has no such number"),
        (RANDOM.replace("values: [0.5, 1.0]", "min: 1.0, max: 1e999"), "needs numbers|has no such number"),
        (
            RANDOM.replace("values: [0.5, 1.0]", "distribution: log_uniform, min: 800, max: 900"),
            "log_uniform has no such number",
        ),
        (
            RANDOM.replace("values: [0.5, 1.0]", "distribution: q_uniform, min: 1, max: 2, q: 1.0e-320"),
            "q_uniform has no such number",
        ),
        (
            RANDOM.replace("values: [0.5, 1.0]", f"min: 1, max: {10**30}"),
            "int_uniform has no such number",
        ),
        (changed("  algorithm.eta: {values: [0.5, 1.0]}\n", MANY), "100,000,000,000,000,000,000 points"),
        ("a: [\n" + FILE, "not a sweep file"),
        (
            f"{FILE}early_terminate: {{type: hyperband, max_iter: {10**300}, s: 3, eta: 1.0e+200}}\n",
            "min_iter, or max_iter and s",
        ),
        ("- 1\n", "a W&B sweep file"),
        ("[" * 100_000, "nested more than 40 levels deep"),
        ("{a: " * 900 + "1" + "}" * 900, "nested more than 40 levels deep"),
        ("\x00", "not a sweep file"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (FILE.encode() + b"# \xff\n", "not text in UTF-8"),
    ],
    ids=str,
)
def test_a_file_that_claims_anything_is_refused_with_a_sentence(tmp_path, content, said):
    path = tmp_path / "s.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(RefusedError, match=said) as refusal:
        sweep_file.read(path)
    assert len(str(refusal.value)) < 5000


def test_a_sweep_file_is_a_file_of_a_size_that_people_write(tmp_path):
    with (tmp_path / "s.yaml").open("wb") as file:
        file.truncate(2**40)  # sparse: no disk
    with pytest.raises(RefusedError, match="more than 1,048,576 bytes"):
        sweep_file.read(tmp_path / "s.yaml")
    for path in (Path("/dev/zero"), tmp_path, tmp_path / "nowhere.yaml"):
        with pytest.raises(RefusedError):
            sweep_file.read(path)


def test_points_times_seeds_have_the_same_limit(tmp_path, monkeypatch):
    (tmp_path / "s.yaml").write_text(FILE)
    file = sweep_file.read(tmp_path / "s.yaml")
    assert points.MOST == 10_000
    monkeypatch.setattr(points, "MOST", 5)  # so few that without the limit all would be made, and soon
    assert len(points.make(file, [], range(2), str(tmp_path)).jobs) == 4
    with pytest.raises(ConfigError, match="--seeds=6 runs: expected at most 5"):
        points.make(file, [], range(3), str(tmp_path))


def test_rungs_below_one_evaluation_are_not_counted():
    assert Halving(3.0, max_iter=27, s=10**9).rungs(100) == [1, 3, 9]
