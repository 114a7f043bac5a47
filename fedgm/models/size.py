"""How large a model is, before there is memory for it; configurations are refused without importing torch."""

from collections.abc import Mapping
from typing import Any

from fedgm.config.parts import build
from fedgm.errors import ConfigError, FedGMError


def parameters(node: Mapping[str, Any], given: Mapping[str, Any]) -> int:
    """The number of weights, counted without memory for them and without loading any."""
    import torch

    plain = {**node, "weights": None} if "weights" in node else node
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            net: Any = build(plain, "model", **given)
            return sum(p.numel() for p in net.parameters())
    except FedGMError:
        raise
    except (RuntimeError, OverflowError, MemoryError) as error:  # sizes beyond what a tensor can have
        reason = str(error).splitlines()[0]
        raise ConfigError(
            "model", node["name"], f"sizes that a tensor can have ({reason})", "model.width=16"
        ) from None
