"""The site: python blocks run as they stand, commands exist and compose, every page is in the menu."""

import re
import shlex
from pathlib import Path

import matplotlib as mpl
import pytest
import yaml

from fedgm.commands import main as fedgm_command
from fedgm.config import compose

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
README = ROOT / "README.md"
WRITTEN = [ROOT / "docs" / f"{name}.md" for name in ("index", "tutorial", "howto", "options", "faq")]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pytorch_lightning")


def blocks(page, language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [block for name, block in fenced if name == language]


@pytest.mark.parametrize(
    "page", [page for page in WRITTEN if blocks(page, "python")], ids=lambda page: page.stem
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


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text()
    assert yaml.safe_load(menu)["strict"] is True
    assert [page.name for page in PAGES if f": {page.name}" not in menu] == []


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.stem)
def test_relative_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert missing == []
