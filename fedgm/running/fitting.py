"""Parts that are fine by themselves but not together: combinations whose formulas would silently be wrong."""

import torch
from torch.optim import Optimizer

from fedgm.client.optimizers import effective, is_plain_sgd
from fedgm.client.rules import ClientRule
from fedgm.config import RunConfig
from fedgm.config.parts import build
from fedgm.errors import ClashError, RefusedError, require, require_fits
from fedgm.federated.fitting import every_hyper, is_whole, require_deltas, require_mean, steps_plainly
from fedgm.participation import Participation
from fedgm.server import GeneralMomentum, ServerRule
from fedgm.server.engine import Engine
from fedgm.server.rule import Averages, SeesNorms
from fedgm.upload import UploadRule


def require_fitting(
    config: RunConfig, engine: Engine, scheme: Participation, client: ClientRule, upload: UploadRule
) -> None:
    """Refuse them; the parts say what they need."""
    _require_point(config, engine.rule)
    _require_norms(config, engine.rule, client)
    _require_server(config, engine, client)
    require_deltas("participation", config.participation["name"], scheme, client)
    _require_local(config, client)
    _require_fednova(config)
    require_mean("clients.weights", config.clients.weights, config.participation.get("normalize"), client)
    allowed = f"client={config.client['name']} needs whole updates, which no upload rule shortens"
    require_fits(is_whole(upload, client), "upload", config.upload["name"], allowed, "upload=plain")


def _require_point(config: RunConfig, rule: ServerRule) -> None:
    """An average is evaluated only where the method's authors do so: for others it would be a third point."""
    point = config.eval.point
    allowed = "sent: this algorithm has no averaged point that its authors evaluate"
    require(point == "sent" or isinstance(rule, Averages), "eval.point", point, allowed, "eval.point=sent")


def _require_norms(config: RunConfig, rule: ServerRule, client: ClientRule) -> None:
    """A rule that compares D with the clients' norms needs a D that is their mean."""
    allowed = (
        "a rule whose D is the mean of the cohort: this algorithm compares D with the norms of its clients"
    )
    ok = not (client.needs_plain_upload and isinstance(rule, SeesNorms))
    require(ok, "client", config.client["name"], allowed, "client=plain")


def _require_server(config: RunConfig, engine: Engine, client: ClientRule) -> None:
    """Rules whose server step is part of the method: a momentum on top of it would be another one."""
    if not client.needs_plain_server or steps_plainly(engine):
        return
    reason, name = f"client={config.client['name']} has its own server step, x -= D", config.schedule["name"]
    first, *others = every_hyper(engine)
    constant = all(hyper == first for hyper in others)
    require_fits(constant, "schedule", name, f"{reason}, at a constant eta", "schedule=constant")
    alone = isinstance(engine.rule, GeneralMomentum) and 0 in (first["beta"], first["nu"])
    require_fits(alone, "algorithm", config.algorithm["name"], reason, "algorithm=fedavg")
    require_fits(first["eta"] == 1, "algorithm.eta", first["eta"], reason, "algorithm.eta=1")


def built_optimizer(config: RunConfig) -> Optimizer:
    """The optimiser that clients will have, over a weight of its own: what holds is asked of it."""
    name = config.local.optimizer
    key, node = f"local.optimizers.{name}", config.local.optimizers[name]
    weight = torch.zeros(1, 1, requires_grad=True)
    try:
        return build(node, key, kind=Optimizer, params=[weight])
    except RefusedError:
        raise
    except Exception as error:  # its own checks: a momentum below 0, two options that clash
        values = ", ".join(f"{option}={value}" for option, value in node.items() if option != "_target_")
        reason = f"{node['_target_']} cannot be built from this ({error})"
        raise ClashError(key, values, reason, f"other values of {key}, or local.optimizer=sgd") from None


def _require_local(config: RunConfig, client: ClientRule) -> None:
    """Corrections of gradients hold for some local optimisers only."""
    name = config.client["name"]
    plain = not client.needs_plain_sgd or (is_plain_sgd(built_optimizer(config)) and not config.local.clip)
    allowed = "its formulas are right for plain SGD (momentum, weight decay and clipping off)"
    require_fits(plain, "client", name, allowed, "local.optimizer=sgd, or client=plain")
    scaled = config.trainer.precision == "16-mixed" and (client.changes_gradients or client.sends)
    allowed = "its correction would be added to scaled gradients"
    require_fits(not scaled, "client", name, allowed, "trainer.precision=bf16-mixed")


def _require_fednova(config: RunConfig) -> None:
    """FedNova's formulas give a_i for some local optimisers only."""
    if config.participation.get("normalize") != "fednova":
        return
    terms = effective(built_optimizer(config), config.client.get("mu", 0.0))
    allowed = "sgd, with momentum and client=fedprox at most: FedNova gives no a_i for others"
    hint = "local.optimizer=sgd, or participation.normalize=none"
    require(terms is not None, "local.optimizer", config.local.optimizer, allowed, hint)
    assert terms is not None
    fresh = config.local.state == "reset" or not terms.momentum
    allowed = "reset: FedNova's a_i is that of a momentum which starts at zero"
    require(fresh, "local.state", config.local.state, allowed, "local.state=reset")
