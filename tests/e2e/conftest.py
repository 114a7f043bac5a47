import pytest

from tests.e2e.commands import Commands


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


@pytest.fixture
def stranger(tmp_path) -> dict[str, str]:
    """The environment of somebody without an account."""
    import matplotlib

    home = tmp_path / "home"
    home.mkdir()
    return {
        "HOME": str(home), "NETRC": str(home / "netrc"), "WANDB_API_KEY": "", "WANDB_CONFIG_DIR": str(home),
        "WANDB_CACHE_DIR": str(home / "cache"), "MPLCONFIGDIR": matplotlib.get_cachedir(),
    }  # fmt: skip
