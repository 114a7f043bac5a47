"""The process that e2e tests fork commands from has imported what these need: else each takes longer."""

from tests.e2e.commands import TINY

HEAVY = (
    "torch",
    "torchvision",
    "pytorch_lightning",
    "lightning",
    "hydra",
    "matplotlib",
    "pandas",
    "wandb",
    "fedgm",
)


def test_a_forked_run_imports_nothing_heavy(commands, tmp_path):
    run = commands.run(tmp_path / "o", *TINY, "rounds=1", FEDGM_TEST_IMPORTS=str(tmp_path / "names"))
    assert run.code == 0, run.text
    late = (tmp_path / "names").read_text().split()
    heavy = [name for name in late if name.split(".")[0] in HEAVY]
    assert len(heavy) <= 10, heavy  # small corners of them that nobody can name beforehand
