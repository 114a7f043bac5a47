"""From a model's yaml to a network that fits the data: stored weights, batches it can train on."""

from collections.abc import Mapping
from copy import deepcopy
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from torch import nn

from fedgm.config.parts import build, target_of
from fedgm.data.federation import Federation
from fedgm.data.images import Batch
from fedgm.errors import ConfigError, DataError, near, require, require_fits

WHY = "its BatchNorm has 1x1 pixels left, and one image there has no variance"


def build_net(node: Mapping[str, Any], given: Mapping[str, Any]) -> nn.Module:
    """The model of a configuration; one with ``weights`` keeps them all but the last layer's."""
    weights = node.get("weights")
    if weights is None:
        return build(node, "model", kind=nn.Module, **given)
    stored = require_weights(node)
    try:
        net: nn.Module = build(node, "model", kind=nn.Module)
    except (OSError, EOFError, RuntimeError, UnpicklingError) as error:  # no network, or a damaged file
        file, reason = str(stored.url).rpartition("/")[2], str(error).splitlines()[0]
        raise DataError(
            f"model.weights={weights}: {stored.url} cannot be fetched or read ({reason}). "
            f"Put {file} into the folder hub/checkpoints of $TORCH_HOME (~/.cache/torch), "
            "or type model.weights=null"
        ) from None
    _replace_head(net, len(stored.meta["categories"]), int(given["num_classes"]))
    return net


def require_kind(net: nn.Module, model: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Refuse images for a network over time, and signals (whose data know their ``channels``) for others."""
    first = next((part for part in net.modules() if isinstance(part, nn.Conv1d | nn.Conv2d)), None)
    name, channels = model["name"], facts.get("channels")
    if channels is not None:
        ok = isinstance(first, nn.Conv1d)
        require_fits(ok, "model", name, "it takes images, and these data are signals", "model=cnn1d")
        fits = isinstance(first, nn.Conv1d) and first.in_channels == channels
        asked = model.get("channels")
        require(fits, "model.channels", asked, f"{channels}, as the data have", f"model.channels={channels}")
    elif "resolution" in facts:
        ok = not isinstance(first, nn.Conv1d)
        require_fits(ok, "model", name, "it takes signals, and these data are images", "model=resnet8")


def require_weights(node: Mapping[str, Any]) -> Any:
    """The weights that a model's yaml names, or a refusal with those that there are; None for none."""
    name, target = node.get("weights"), target_of(node, "model")
    if name is None or not target.__module__.startswith("torchvision.models"):
        return None
    from torchvision.models import get_model_weights

    names = {str(member.name): member for member in get_model_weights(target)}
    names |= {"DEFAULT": get_model_weights(target).DEFAULT}  # pyright: ignore[reportAttributeAccessIssue]
    if name not in names:
        meant = near(str(name), names, cutoff=0.75) or "null"
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


def fit_batches(net: nn.Module, data: Federation, norm: object, min_samples: int) -> Federation:
    """The data as it is or, for a model that cannot train on one image, without batches of one.

    BatchNorm over a single value per channel has no variance. So a last batch of one takes an image from the
    batch before it: as many steps, each image once.
    """
    one = data.images.batch(np.array([0]), train=False, channels_last=data.batching.channels_last)
    if not _needs_pairs(net, one):
        return data
    size, sizes = data.batching.batch_size, {data.size(client) for client in range(data.count)}
    other = ", or model.norm=group" if norm is not None else ""
    allowed = f"at least 3 for this model: {WHY}"
    whole = size >= 3 or (size == 2 and not any(samples % 2 for samples in sizes))
    require(whole, "local.batch_size", size, allowed, f"local.batch_size=3{other}")
    allowed = f"at least 2 for this model: {WHY}"
    require(min(sizes) >= 2, "data.min_samples", min_samples, allowed, f"data.min_samples=2{other}")
    return Federation(data.images, data.partition, data.batching._replace(pairs=True))


def _needs_pairs(net: nn.Module, batch: Batch) -> bool:
    """Whether a step on one image raises; tried on a copy, with random draws that change nothing outside."""
    if not any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in net.modules()):
        return False
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            deepcopy(net).train()(batch[0])
        except ValueError as error:
            return "more than 1 value per channel" in str(error)
    return False
