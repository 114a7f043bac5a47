"""The wheel, away from the checkout: everything that a run needs is in it."""

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]

# In one process: where the package comes from, what --help imports, and whether every yaml composes.
INSPECT = """
import sys
from pathlib import Path
from click.testing import CliRunner
import fedgm
from fedgm.commands import main

shown = CliRunner().invoke(main, ["--help"])
assert shown.exit_code == 0, shown.output
assert all(name in shown.output for name in main.list_commands(None)), shown.output
heavy = {"torch", "pytorch_lightning", "hydra", "wandb", "numpy"} & set(sys.modules)
assert not heavy, f"fedgm --help imports {heavy}"

import hydra_plugins.fedgm_multirun as sweeper
from fedgm import config
place = Path(sys.argv[1])
for file in (fedgm.__file__, sweeper.__file__, config.conf_dir()):
    assert place in Path(file).parents, file
names = {path.name for path in config.conf_dir().iterdir()}
for path in sorted(config.conf_dir().rglob("*.yaml")):
    group, option = path.parent.name, path.stem
    known = f"- {group}: " in (config.conf_dir() / "config.yaml").read_text()
    if known or group == "experiment":
        needed = ["participation.arrivals=a"] if option == "replay" else []
        config.validate(config.compose([f"{'' if known else '+'}{group}={option}", *needed]))
        print(group, option)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    isolation = ["--no-build-isolation"] if find_spec("hatchling") else []
    subprocess.run(
        [*PIP, "wheel", str(ROOT), "--no-deps", *isolation, "-w", str(folder)], check=True, timeout=PATIENCE
    )
    (built,) = folder.glob("fedgm-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [*PIP, "install", "--no-deps", "--target", str(folder), str(wheel)], check=True, timeout=PATIENCE
    )
    return folder


def python(installed: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run outside the checkout with the installed package first on the path, before the editable one."""
    env = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, *words],
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_the_wheel_holds_code_configuration_sweeps_results_and_the_sweeper(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, kind in (("conf", "*.yaml"), ("sweeps", "*.yaml"), ("docs/results", "*.jsonl")):
        own = {f"fedgm/{folder}/{p.relative_to(ROOT / folder)}" for p in (ROOT / folder).rglob(kind)}
        assert own <= names
    assert {n for n in names if n.startswith("fedgm/conf/")} >= {"fedgm/conf/config.yaml"}
    code = {str(p.relative_to(ROOT)) for p in (ROOT / "fedgm").rglob("*.py")}
    assert code <= names
    assert "hydra_plugins/fedgm_multirun/__init__.py" in names
    assert "hydra_plugins/__init__.py" not in names  # Hydra's namespace belongs to nobody
    assert not any(n.startswith(("tests/", "benchmarks/", "outputs/", "conf/")) for n in names)


@pytest.mark.slow
def test_help_is_light_and_every_yaml_composes_from_the_installed_package(installed, tmp_path):
    done = python(installed, tmp_path, "-c", INSPECT, str(installed))
    assert done.returncode == 0, done.stderr
    composed = set(done.stdout.split("\n")[:-1])
    assert {"algorithm fedgm", "experiment multistage", "profile paper"} <= composed
    expected = {f"{p.parent.name} {p.stem}" for p in (ROOT / "conf" / "algorithm").glob("*.yaml")}
    assert expected <= composed


def test_the_installed_package_runs(installed, tmp_path):
    words = ("-m", "fedgm", "run", "profile=tiny", "rounds=2", "track.mode=disabled", "trainer.workers=1")
    done = python(installed, tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert "finished after 2 of 2 rounds" in done.stdout
    (summary,) = tmp_path.glob("outputs/run/*/seed=0/summary.json")
    assert '"commit": null' in summary.read_text()  # not the checkout's
    assert {p.name for p in tmp_path.iterdir()} == {"outputs"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said", "left"),
    [
        (("sweep", "fedgm_grid", "--stored", "docs/results", "--status"), "90 finished", None),
        (
            ("versus", "--known", "docs/results"),
            "FedGM is 3.5 points ahead of FedAvgM",
            "outputs/versus/*.html",
        ),
        (("dashboard", "docs/results/small"), "dashboard.html: ", "dashboard.html"),
        (("reproduce", "fig5", "--stored"), "fig5", "outputs/figures/small/fig5/*.png"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_sweeps_and_stored_results_are_there_in_an_empty_folder(installed, tmp_path, words, said, left):
    done = python(installed, tmp_path, "-m", "fedgm", *words)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert left is None or list(tmp_path.glob(left))


@pytest.mark.slow
def test_versus_trains_in_an_empty_folder(installed, tmp_path):
    small = ("--profile", "tiny", "rounds=1", "track.mode=disabled", "clients.per_round=1")
    done = python(installed, tmp_path, "-m", "fedgm", "versus", "fedavg", "fedgm", "--seeds", "2", *small)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("outputs/*/*/seed=*/summary.json"))) == 4
    assert list(tmp_path.glob("outputs/versus/*.html"))
