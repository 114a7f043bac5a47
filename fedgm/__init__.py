"""FedGM: server momentum in federated learning.

>>> import fedgm
>>> result = fedgm.run(["profile=tiny", "algorithm=fedavgm"])
>>> frame = fedgm.load_runs("outputs")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedgm.api import load_model, load_runs, reproduce, run, sweep

__all__ = ["load_model", "load_runs", "reproduce", "run", "sweep"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import late: torch and Lightning cost seconds that ``fedgm --help`` need not spend."""
    if name in __all__:
        from fedgm import api

        return getattr(api, name)
    raise AttributeError(f"module 'fedgm' has no attribute '{name}'")
