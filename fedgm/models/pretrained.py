"""torchvision's classifiers with stored weights: a new head for the classes of the data."""

from collections.abc import Mapping
from pickle import UnpicklingError
from typing import Any

from torch import nn

from fedgm.config.parts import build, target_of
from fedgm.errors import ConfigError, DataError, near


def build_net(node: Mapping[str, Any], given: Mapping[str, Any]) -> nn.Module:
    """The model of a configuration; one with ``weights`` keeps them all but the last layer's."""
    weights = node.get("weights")
    if weights is None:
        return build(node, "model", kind=nn.Module, **given)
    known = require_weights(node)
    try:
        net: nn.Module = build(node, "model", kind=nn.Module)
    except (
        OSError,
        EOFError,
        RuntimeError,
        UnpicklingError,
    ) as error:  # no network, half a file, or one that is damaged
        file = str(known.url).rpartition("/")[2]
        raise DataError(
            f"model.weights={weights}: {known.url} cannot be had ({str(error).splitlines()[0]}). "
            f"Put {file} into the folder hub/checkpoints of $TORCH_HOME (~/.cache/torch), "
            "or type model.weights=null"
        ) from None
    _replace_head(net, len(known.meta["categories"]), int(given["num_classes"]))
    return net


def require_weights(node: Mapping[str, Any]) -> Any:
    """The weights that a model's yaml names, or a refusal with those that there are; None for none."""
    name, target = node.get("weights"), target_of(node, "model")
    if name is None or not target.__module__.startswith("torchvision.models"):
        return None
    from torchvision.models import get_model_weights

    names = {str(member.name): member for member in get_model_weights(target)}
    names |= {"DEFAULT": get_model_weights(target).DEFAULT}  # pyright: ignore[reportAttributeAccessIssue]
    if name not in names:
        meant = near(str(name), names) or "null"
        allowed = f"null or one of {', '.join(names)}"
        raise ConfigError("model.weights", name, allowed, f"model.weights={meant}")
    return names[str(name)]


def _replace_head(net: nn.Module, before: int, classes: int) -> None:
    """The last linear layer gets as many outputs as there are classes, with weights of its own."""
    heads = [name for name, m in net.named_modules() if isinstance(m, nn.Linear) and m.out_features == before]
    if not heads:
        allowed = f"null: the model has no linear layer of {before} outputs that could be replaced"
        raise ConfigError("model.weights", type(net).__name__, allowed, "model.weights=null")
    place, _, last = heads[-1].rpartition(".")
    old: Any = net.get_submodule(heads[-1])
    setattr(net.get_submodule(place), last, nn.Linear(old.in_features, classes, old.bias is not None))
