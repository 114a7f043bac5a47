"""The site: python blocks run as they stand, commands exist and compose, every page is in the menu."""

import re
import shlex
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import fedgm
from fedgm.commands import main as fedgm_command
from fedgm.config import compose
from fedgm.figures.style import BLUE, RED

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
README = ROOT / "README.md"
WRITTEN = [ROOT / "docs" / f"{name}.md" for name in ("index", "tutorial", "howto", "options", "faq")]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pytorch_lightning")


def blocks(page, language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [block for name, block in fenced if name == language]


@pytest.mark.parametrize(
    "page", [page for page in (README, *WRITTEN) if blocks(page, "python")], ids=lambda page: page.stem
)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")  # stored results are named from the top of the repository
    mpl.use("Agg")
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        if page == README and "import" not in block:
            continue  # Eq. 2, to be read
        exec(compile(block, page.name, "exec"), names)
    for picture in tmp_path.glob("tutorial_*.png"):
        assert (ROOT / "docs" / picture.name).exists(), f"docs/{picture.name} is missing"


def test_the_tutorials_pictures_have_the_projects_colours_and_say_what_diverged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    names, drawn = dict[str, Any](), list[Any]()
    page = "\n".join(blocks(ROOT / "docs/tutorial.md", "python"))
    monkeypatch.setattr("matplotlib.pyplot.close", drawn.append)
    exec(compile(page, "tutorial", "exec"), names)
    lines = [{line.get_label(): line for line in figure.axes[0].get_lines()} for figure in drawn]
    assert lines[0]["FedAvg, eta 1"].get_color() == RED
    assert lines[0]["FedGM, eta 5, beta 0.95, nu 0.9"].get_color() == BLUE
    assert "FedAvg, eta 2.2: diverges at round 9" in lines[0]
    assert "FedGM, eta 5, beta 0.95, nu 0.9: diverges at round 22" in lines[2]
    monkeypatch.undo()
    plt.close("all")


def commands():
    for page in (README, *WRITTEN):
        lines = [line for block in blocks(page, "") for line in block.splitlines()]
        shown = [line for line in lines if page != README or line.startswith(("python run.py", "fedgm "))]
        yield from ((page.stem, line) for line in shown)


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_a_command_of_a_page_exists_and_its_words_compose(page, line):
    words = shlex.split(line, comments=True)
    if words[:2] == ["python", "run.py"]:
        many = "-m" in words  # of several values the first; the launcher is Hydra's own
        kept = [word for word in words[2:] if word != "-m" and not word.startswith("hydra/")]
        compose([word.partition(",")[0] if many else word for word in kept])
    elif words and words[0] == "fedgm":
        context = fedgm_command.make_context("fedgm", words[1:2])
        found = fedgm_command.get_command(context, words[1])
        assert found is not None
        files = [word for word in words[2:] if word.startswith(("docs/", "sweeps/"))]
        assert all((ROOT / file).exists() for file in files)
        if "my_conf" not in words:
            found.make_context(words[1], words[2:], parent=context)
    else:
        assert words[0] in ("git", "make", "wandb"), line


# Values with which a command of a page is done in a second; what was typed otherwise counts.
SIZES = [
    "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20", "clients.count=10",
    "clients.per_round=2", "local.unit=steps", "local.epochs=1", "local.batch_size=10",
]  # fmt: skip
TRAIN = ["trainer.workers=1", "track=none"]
LEFT_OUT = (
    "profile=",
    "trainer=",
    "hydra/",
    "data=",
    "data.path=",
    "clients.count=",
    "clients.per_round=",
    "-m",
)


def typed(start):
    lines = dict.fromkeys(line.partition("#")[0].strip() for _, line in commands() if line.startswith(start))
    # One fetches Shakespeare, the other needs an extra.
    return [line for line in lines if "experiment=outer" not in line and "privacy=" not in line]


@pytest.mark.slow
@pytest.mark.parametrize("line", typed("python run.py"))
def test_a_run_of_a_page_runs_at_small_values(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [word.partition(",")[0] if " -m " in line else word for word in shlex.split(line)[2:]]
    source = next((word.removeprefix("data=") for word in words if word.startswith("data=")), "synthetic")
    kept = [word for word in words if not word.startswith(LEFT_OUT)]
    sizes = [word for word in SIZES if source != "text" or word.startswith(("clients", "local"))]
    if source == "npz":
        images, labels = np.zeros((50, 8, 8), np.uint8), np.arange(50) % 10
        np.savez("my.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
        kept, sizes = [*kept, "data.path=my.npz"], [word for word in sizes if "_samples" not in word]
    if source == "text":
        Path("letters").mkdir()
        for number in range(10):
            Path(f"letters/{number}.txt").write_text("What is said once is said again. " * 20)
        kept.append("data.path=letters/")
    rounds = [] if "debug=" in line or "rounds=" in line else ["rounds=7" if source != "text" else "rounds=1"]
    if "participation=event" in line:
        kept = [word.replace("concurrency=20", "concurrency=5") for word in kept]
    if "model=cnn" in line:  # of images with 32 pixels a side
        kept.append("data.resolution=32")
    result = fedgm.run(["profile=tiny", f"data={source}", *sizes, *rounds, *TRAIN, *kept])
    assert result.status == "finished"


# How much of a command is left to do where nothing is trained twice, and what stands for RUN.
SMALL_COMMANDS = {
    "versus": ["profile=tiny", "rounds=1", *SIZES, *TRAIN], "theory": ["profile=tiny", *SIZES],
    "data": ["profile=tiny", *SIZES], "suggest": ["profile=tiny", *TRAIN],
}  # fmt: skip
DONE_ELSEWHERE = ("sweep", "reproduce", "timeline", "deploy", "eval")  # tests of their own, with small files


@pytest.mark.slow
@pytest.mark.parametrize("line", typed("fedgm "))
def test_a_command_of_a_page_does_what_it_says_at_small_values(line, tmp_path, monkeypatch):
    words = shlex.split(line)[1:]
    if words[0] in DONE_ELSEWHERE or {"--serve", "shakespeare", "my_conf"} & set(words):
        pytest.skip("a test of its own runs it")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    if "outputs" in words:
        fedgm.run(["profile=tiny", "rounds=1", *SIZES, *TRAIN])
    more = [] if "--known" in words else SMALL_COMMANDS.get(words[0], [])
    kept = [word for word in words if word != "--open"]
    seeds = (
        ["--seeds", "2", "--workers", "1"] if words[0] == "versus" and not {"--known"} & set(words) else []
    )
    result = CliRunner().invoke(fedgm_command, [*kept, *more, *seeds])
    assert result.exit_code == 0, result.output


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text()
    assert yaml.safe_load(menu)["strict"] is True
    assert [page.name for page in PAGES if f": {page.name}" not in menu] == []


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.stem)
def test_relative_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert missing == []
