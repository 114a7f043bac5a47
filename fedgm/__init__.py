"""FedGM: server momentum in federated learning.

>>> import fedgm
>>> result = fedgm.run(["profile=tiny", "algorithm=fedavgm"])
>>> frame = fedgm.load_runs("outputs")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedgm.api import evaluate, load_model, load_runs, reproduce, run, suggest, sweep, versus
    from fedgm.federated.callback import FedGM
    from fedgm.federated.events import FederatedCallback
    from fedgm.federated.federate import federate
    from fedgm.federated.workers import FederatedDDP

# name -> where it is
_PUBLIC = {
    "FedGM": "fedgm.federated.callback",
    "FederatedCallback": "fedgm.federated.events",
    "FederatedDDP": "fedgm.federated.workers",
    "evaluate": "fedgm.api",
    "federate": "fedgm.federated.federate",
    "load_model": "fedgm.api",
    "load_runs": "fedgm.api",
    "reproduce": "fedgm.api",
    "run": "fedgm.api",
    "suggest": "fedgm.api",
    "sweep": "fedgm.api",
    "versus": "fedgm.api",
}
__all__ = [
    "FedGM",
    "FederatedCallback",
    "FederatedDDP",
    "evaluate",
    "federate",
    "load_model",
    "load_runs",
    "reproduce",
    "run",
    "suggest",
    "sweep",
    "versus",
]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Import late: torch and Lightning cost seconds that ``fedgm --help`` need not spend."""
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value  # over the module of the same name, whose import has just put itself there
        return value
    raise AttributeError(f"module 'fedgm' has no attribute '{name}'")
