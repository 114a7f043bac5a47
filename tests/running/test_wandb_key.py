"""A key is found where W&B stores it, and only where W&B would take it from."""

from pathlib import Path

import pytest
import wandb
from wandb.sdk.lib import wbauth

from fedgm.errors import ConfigError
from fedgm.running.wandb_key import has_key
from fedgm.running.wandb_run import resolve_mode

KEY = "f" * 40


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of somebody who has not logged in, as the current folder."""
    names = ("API_KEY", "IDENTITY_TOKEN_FILE", "BASE_URL", "CONFIG_DIR", "MODE", "SWEEP_ID")
    for name in ("NETRC", *(f"WANDB_{n}" for n in names)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nobody_is_logged_in_on_a_fresh_machine():
    assert not has_key()
    assert resolve_mode("auto") == "offline"


def test_a_key_that_wandb_stores_for_its_default_server_is_found():
    wbauth.write_netrc_auth(host=wandb.Settings().base_url, api_key=KEY)  # as `wandb login` does
    assert has_key()
    assert resolve_mode("auto") == "online"


def test_a_key_from_before_the_server_moved_is_found():
    wbauth.write_netrc_auth(host="https://api.wandb.ai", api_key=KEY)
    assert has_key()
    assert wbauth.read_netrc_auth(host=wandb.Settings().base_url) == KEY  # W&B takes it, too


@pytest.mark.parametrize("told", ["environment", "wandb login --host", "wandb init"])
def test_the_key_of_ones_own_server_is_found_where_wandb_keeps_the_address(home, monkeypatch, told):
    url = "http://localhost:8080"
    wbauth.write_netrc_auth(host=url, api_key=KEY)
    assert not has_key()  # not a key for the default server
    if told == "environment":
        monkeypatch.setenv("WANDB_BASE_URL", url)
    else:
        folder = home / (".config/wandb" if told == "wandb login --host" else "wandb")
        folder.mkdir(parents=True)
        (folder / "settings").write_text(f"[default]\nbase_url = {url}\n")
    assert has_key()


def test_a_key_for_the_cloud_is_none_for_ones_own_server(monkeypatch):
    """W&B would ask for the other one, and nothing here may ask."""
    wbauth.write_netrc_auth(host="https://api.wandb.ai", api_key=KEY)
    monkeypatch.setenv("WANDB_BASE_URL", "http://localhost:8080")
    assert not has_key()
    assert wbauth.read_netrc_auth(host="http://localhost:8080") is None


@pytest.mark.parametrize("text", ["machine", 'machine api.wandb.ai password ""', "\0"])
def test_a_netrc_without_a_readable_key_has_none(home, text):
    (home / ".netrc").write_text(text)
    assert not has_key()


def test_a_broken_settings_file_does_not_hide_the_key(home):
    wbauth.write_netrc_auth(host=wandb.Settings().base_url, api_key=KEY)
    (home / "wandb").mkdir()
    (home / "wandb/settings").write_text("base_url without a section\n")
    assert has_key()


def test_the_environment_counts_first(monkeypatch):
    monkeypatch.setenv("WANDB_IDENTITY_TOKEN_FILE", "token")
    assert has_key()
    monkeypatch.delenv("WANDB_IDENTITY_TOKEN_FILE")
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    assert has_key()


def test_online_without_a_key_is_offline_and_refused_inside_an_agent(monkeypatch):
    assert resolve_mode("online") == "offline"
    monkeypatch.setenv("WANDB_MODE", "online")
    assert resolve_mode("auto") == "offline"
    monkeypatch.setenv("WANDB_SWEEP_ID", "abc")
    with pytest.raises(ConfigError, match="inside a sweep agent"):
        resolve_mode("online")


@pytest.mark.parametrize("mode", ["auto", "online", "offline"])
def test_a_mode_that_wandb_does_not_have_is_refused(monkeypatch, mode):
    monkeypatch.setenv("WANDB_MODE", "banana")
    with pytest.raises(ConfigError, match="WANDB_MODE=banana: expected one of online, offline, disabled"):
        resolve_mode(mode)
    assert resolve_mode("disabled") == "disabled"


@pytest.mark.parametrize(
    ("variable", "mode"), [("dryrun", "offline"), ("run", "online"), ("shared", "online"), ("", "online")]
)
def test_other_names_of_modes_that_wandb_takes(monkeypatch, variable, mode):
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.setenv("WANDB_MODE", variable)
    assert resolve_mode("auto") == mode
