"""Parts that are fine by themselves but not together: combinations whose formulas would silently be wrong."""

from fedgm.client.rules import ClientRule
from fedgm.config import RunConfig
from fedgm.errors import require, require_fits
from fedgm.participation.local_work import NEEDS_UNIFORM_MEAN
from fedgm.server import ServerRule
from fedgm.server.rule import Averages, SeesNorms
from fedgm.upload import UploadRule
from fedgm.upload.message import Plain as WholeDelta


def require_fitting(config: RunConfig, rule: ServerRule, client: ClientRule, upload: UploadRule) -> None:
    """Refuse them; the parts say what they need."""
    _require_point(config, rule)
    _require_norms(config, rule, client)
    _require_local(config, client)
    _require_fednova(config)
    _require_mean(config, client)
    allowed = f"client={config.client['name']} steps with what clients keep, which no upload rule shortens"
    whole = isinstance(upload, WholeDelta) or not client.needs_plain_upload
    require_fits(whole, "upload", config.upload["name"], allowed, "upload=plain")


def _require_point(config: RunConfig, rule: ServerRule) -> None:
    """Not every rule has an averaged point to evaluate."""
    point = config.eval.point
    allowed = "sent: this algorithm has no averaged point"
    require(point == "sent" or isinstance(rule, Averages), "eval.point", point, allowed, "eval.point=sent")


def _require_norms(config: RunConfig, rule: ServerRule, client: ClientRule) -> None:
    """A rule that compares D with the clients' norms needs a D that is their mean."""
    allowed = (
        "a rule whose D is the mean of the cohort: this algorithm compares D with the norms of its clients"
    )
    ok = not (client.needs_plain_upload and isinstance(rule, SeesNorms))
    require(ok, "client", config.client["name"], allowed, "client=plain")


def _require_local(config: RunConfig, client: ClientRule) -> None:
    """Corrections of gradients hold for some local optimisers only."""
    local, name = config.local, config.client["name"]
    plain = local.optimizer == "sgd" and not (local.momentum or local.weight_decay or local.clip)
    allowed = "its control variates are right for plain SGD (momentum, weight decay and clipping off)"
    hint = "local.optimizer=sgd, or client=plain"
    require_fits(plain or not client.needs_plain_sgd, "client", name, allowed, hint)
    scaled = config.trainer.precision == "16-mixed" and (client.changes_gradients or client.sends)
    allowed = "its correction would be added to scaled gradients"
    require_fits(not scaled, "client", name, allowed, "trainer.precision=bf16-mixed")


def _require_fednova(config: RunConfig) -> None:
    """FedNova's formulas give a_i for some local optimisers only."""
    if config.participation.get("normalize") != "fednova":
        return
    name = config.local.optimizer
    options = config.local.optimizers[name]
    has_formula = options["_target_"] == "torch.optim.SGD" and not (
        options.get("nesterov") or options.get("dampening")
    )
    allowed = "sgd, with momentum and client=fedprox at most: FedNova gives no a_i for others"
    hint = "local.optimizer=sgd, or participation.normalize=none"
    require(has_formula, "local.optimizer", name, allowed, hint)
    fresh = config.local.state == "reset" or not options.get("momentum")
    allowed = "reset: FedNova's a_i is that of a momentum which starts at zero"
    require(fresh, "local.state", config.local.state, allowed, "local.state=reset")


def _require_mean(config: RunConfig, client: ClientRule) -> None:
    """FedNova's factors and MIFA's memory are written for the plain mean."""
    weights, normalize = config.clients.weights, config.participation.get("normalize")
    ok = weights == "uniform" or not (normalize in NEEDS_UNIFORM_MEAN or client.needs_uniform_mean)
    allowed = "uniform: FedNova and MIFA are written for the plain mean"
    require(ok, "clients.weights", weights, allowed, "clients.weights=uniform")
