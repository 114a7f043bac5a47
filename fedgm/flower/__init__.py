"""A run on machines of several owners, through Flower: the same loop, the same record, clients on nodes.

Only :mod:`fedgm.flower.apps` and :mod:`fedgm.flower.strategy` import flwr (``pip install 'fedgm[flower]'``).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedgm.errors import RefusedError

if TYPE_CHECKING:
    from fedgm.flower.apps import client_app, server_app
    from fedgm.flower.strategy import Strategy

# name -> where it is
_PUBLIC = {
    "Strategy": "fedgm.flower.strategy",
    "client_app": "fedgm.flower.apps",
    "server_app": "fedgm.flower.apps",
}
__all__ = ["Strategy", "client_app", "server_app"]


def __getattr__(name: str) -> Any:
    """Import late: flwr is an extra, and what does not need it works without."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fedgm.flower' has no attribute '{name}'")
    try:
        return getattr(import_module(_PUBLIC[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "flwr":
            raise
        raise RefusedError(
            f"fedgm.flower.{name} needs Flower, which is not installed. "
            "Try pip install -c constraints-deploy.txt 'fedgm[flower]'"
        ) from None
