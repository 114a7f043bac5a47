"""Whether W&B can log in without asking, found where W&B itself looks for a key."""

import os
from configparser import ConfigParser
from configparser import Error as IniError
from netrc import NetrcParseError, netrc
from pathlib import Path
from urllib.parse import urlsplit

OLD_HOST = (
    "api.wandb.ai"  # keys stored before W&B moved its default server; current clients still accept them
)


def has_key() -> bool:
    """Whether W&B could log in without asking."""
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    try:
        keys = netrc(_netrc_file())
    except (OSError, NetrcParseError):
        return False
    return any(entry is not None and entry[2] for entry in map(keys.authenticators, _hosts()))


def _hosts() -> list[str]:
    """Names under which a key for the server may be stored, the server's own first."""
    import wandb

    default = wandb.Settings().base_url
    chosen = os.environ.get("WANDB_BASE_URL") or _in_settings_file("base_url") or default
    host = urlsplit(chosen).netloc
    # A key for W&B's cloud does not open somebody's own server: W&B would ask there.
    return [host, OLD_HOST] if host == urlsplit(default).netloc else [host]


def _in_settings_file(name: str) -> str | None:
    """A value that `wandb login --host` or `wandb init` has stored; the folder's own file wins."""
    home = Path(os.environ.get("WANDB_CONFIG_DIR") or "~/.config/wandb").expanduser()
    parser = ConfigParser(interpolation=None)
    try:
        parser.read([home / "settings", Path("wandb", "settings")])
    except (OSError, IniError, UnicodeDecodeError):  # W&B warns of such a file and goes on
        return None
    return parser.get("default", name, fallback=None)


def _netrc_file() -> Path:
    """The file that W&B reads, in its order."""
    if named := os.environ.get("NETRC"):
        return Path(named).expanduser()
    usual, windows = Path("~/.netrc").expanduser(), Path("~/_netrc").expanduser()
    return windows if windows.exists() and not usual.exists() else usual
