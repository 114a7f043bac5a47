import pytest
from commands import Commands


@pytest.fixture(scope="session")
def commands():
    starter = Commands()
    yield starter
    starter.close()


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch):
    """No sweep, no key, and narrow output that does not depend on the terminal of the tester."""
    for name in ("WANDB_SWEEP_ID", "WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
