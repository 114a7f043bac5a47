"""Parts that are fine by themselves but not together: combinations whose formulas would silently be wrong."""

import torch
from torch.optim import Optimizer

from fedgm.client.optimizers import effective, is_plain_sgd
from fedgm.client.rules import ClientRule
from fedgm.config import RunConfig
from fedgm.config.parts import build
from fedgm.errors import ClashError, RefusedError, require, require_fits
from fedgm.federated.fitting import (
    every_hyper,
    is_whole,
    require_deltas,
    require_guarantee,
    require_mean,
    require_sending,
    steps_plainly,
)
from fedgm.participation import Participation
from fedgm.running.modelled import require_ideal
from fedgm.server import GeneralMomentum, ServerRule
from fedgm.server.engine import Engine
from fedgm.server.plan import Decided
from fedgm.server.rule import Averages, SeesNorms
from fedgm.server.sketched import FetchSGD
from fedgm.theory.auto import Searching
from fedgm.upload import UploadRule
from fedgm.upload.message import Plain as WholeDelta
from fedgm.upload.message import Sketch
from fedgm.upload.privacy import Privacy
from fedgm.upload.sending import Optimal, SendRule


def require_fitting(
    config: RunConfig,
    engine: Engine,
    scheme: Participation,
    client: ClientRule,
    upload: UploadRule,
    sending: SendRule | None = None,
    privacy: Privacy | None = None,
) -> None:
    """Refuse them; the parts say what they need."""
    rule = engine.rule
    _require_point(config, rule)
    _require_norms(config, rule, client)
    _require_server(config, engine, client)
    require_deltas("participation", config.participation["name"], scheme, client)
    _require_local(config, client)
    _require_fednova(config)
    require_mean("clients.weights", config.clients.weights, config.participation.get("normalize"), client)
    allowed = f"client={config.client['name']} needs whole updates, which no upload rule shortens"
    require_fits(is_whole(upload, client), "upload", config.upload["name"], allowed, "upload=plain")
    _require_sketch(config, rule, upload)
    require_sending(sending, client, upload)
    _require_unbiased(config, rule, sending)
    require_guarantee(privacy, client, upload, scheme, config.clients.weights)
    _require_private(config, engine, sending, privacy)
    if isinstance(engine.plan, Searching):
        require_ideal(config)


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


def _require_sketch(config: RunConfig, rule: ServerRule, upload: UploadRule) -> None:
    """A sketch is made and read by FetchSGD alone, and is a compression already."""
    fetch, sketch = isinstance(rule, FetchSGD), isinstance(upload, Sketch)
    reason = "only algorithm=fetchsgd steps with a sketch"
    require_fits(fetch or not sketch, "upload", config.upload["name"], reason, "upload=plain")
    reason = "algorithm=fetchsgd compresses by its sketch; two compressions are not defined"
    whole = sketch or isinstance(upload, WholeDelta)
    require_fits(whole or not fetch, "upload", config.upload["name"], reason, "upload=sketch")
    if isinstance(rule, FetchSGD) and isinstance(upload, Sketch):
        same = (upload.rows, upload.columns) == (rule.rows, rule.columns)
        reason = f"the algorithm's sketch has {rule.rows} rows of {rule.columns}"
        hint = f"upload.rows={rule.rows} upload.columns={rule.columns}"
        require_fits(same, "upload.columns", upload.columns, reason, hint)


def _require_unbiased(config: RunConfig, rule: ServerRule, sending: SendRule | None) -> None:
    """What compares D with the norms of all clients needs a D of all clients."""
    ok = sending is None or not isinstance(rule, SeesNorms)
    reason = "this algorithm compares D with the norms of all clients, of which only some send"
    require_fits(ok, "sending", config.sending["name"], reason, "sending=all")
    most = config.clients.per_round
    ok = not isinstance(sending, Optimal) or sending.m <= most
    allowed = f"at most clients.per_round={most}, of which it chooses"
    require(ok, "sending.m", config.sending.get("m"), allowed, f"sending.m={min(2, most)}")


def _require_private(
    config: RunConfig, engine: Engine, sending: SendRule | None, privacy: Privacy | None
) -> None:
    """Whatever else looks at the updates or the data would need a budget of its own."""
    if privacy is None:
        return
    name, hint = config.privacy["name"], "privacy=none"
    reason = "this algorithm sees the norms of updates without noise"
    require_fits(
        not isinstance(engine.rule, SeesNorms), "privacy", name, reason, f"algorithm=fedgm, or {hint}"
    )
    reason = "sending= chooses by the norms of updates without noise"
    require_fits(sending is None, "privacy", name, reason, f"sending=all, or {hint}")
    watch = config.schedule.get("watch")  # of plateau; auto has no such key
    decides = isinstance(engine.plan, Decided) and watch != "test/loss"
    way = "schedule.watch=test/loss" if watch else "schedule=constant"
    reason = f"schedule={config.schedule['name']} decides by losses on the clients' data, without noise"
    require_fits(not decides, "privacy", name, reason, f"{way}, or {hint}")
    reason = "epsilon is counted for exactly m updates in every round"
    ok = config.clients.nonfinite == "stop"
    require_fits(ok, "clients.nonfinite", config.clients.nonfinite, reason, "clients.nonfinite=stop")
    ok = config.participation.get("staleness", "none") == "none"
    reason = "weights by age would change an update after it was clipped"
    require_fits(ok, "participation.staleness", config.participation.get("staleness"), reason, hint)


def _require_server(config: RunConfig, engine: Engine, client: ClientRule) -> None:
    """Rules whose server step is part of the method: a momentum on top of it would be another one."""
    if not client.needs_plain_server or steps_plainly(engine):
        return
    reason, name = f"client={config.client['name']} has its own server step, x -= D", config.schedule["name"]
    first, *others = every_hyper(engine)
    constant = not isinstance(engine.plan, Decided) and all(hyper == first for hyper in others)
    require_fits(constant, "schedule", name, f"{reason}, at a constant eta", "schedule=constant")
    alone = isinstance(engine.rule, GeneralMomentum) and 0 in (first["beta"], first["nu"])
    require_fits(alone, "algorithm", config.algorithm["name"], reason, "algorithm=fedavg, or client=plain")
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
