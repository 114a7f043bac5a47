"""Parts that are fine by themselves but not together: combinations whose formulas would silently be wrong.

A configuration is refused by ``fedgm/running/fitting.py`` before data are loaded; what module and trainer
decide is refused here, for ``fedgm.federate`` as for a run.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedgm.client.optimizers import described, effective, is_plain_sgd
from fedgm.client.rules import ClientRule
from fedgm.client.weights import Place
from fedgm.errors import FedGMError, require, require_fits
from fedgm.participation import Participation, Uniform
from fedgm.participation.local_work import NEEDS_UNIFORM_MEAN
from fedgm.schedule.work import Work
from fedgm.server import GeneralMomentum
from fedgm.server.engine import Engine
from fedgm.server.plan import Decided
from fedgm.server.rule import Hyper
from fedgm.upload.message import Plain as WholeDelta
from fedgm.upload.message import UploadRule
from fedgm.upload.privacy import Privacy
from fedgm.upload.sending import SendRule

if TYPE_CHECKING:  # a configuration is refused before Lightning is imported
    from fedgm.lightning import pl


DIVIDED = ("steps", "epochs")  # ways to count uneven work after which D is no longer as long as an update


def normalization(scheme: Participation) -> str | None:
    """How a scheme weighs uneven work; None of one that does not say."""
    return getattr(scheme, "normalize", None)


def require_mean(key: str, weights: str, normalize: str | None, client: ClientRule) -> None:
    """FedNova's factors and MIFA's memory are written for the plain mean."""
    ok = weights == "uniform" or not (normalize in NEEDS_UNIFORM_MEAN or client.needs_uniform_mean)
    allowed = "uniform: FedNova, MIFA and others are written for the plain mean"
    require(ok, key, weights, allowed, f"{key}=uniform")


def require_deltas(key: str, name: str, scheme: Participation, client: ClientRule) -> None:
    """Some rules take D for what the cohort's local steps moved."""
    ok = not client.reads_delta or (scheme.anchor == "start" and normalization(scheme) not in DIVIDED)
    reason = "its updates are not what local steps moved (measured from x_t, or divided by the work)"
    require_fits(ok, key, name, f"{reason}, which this client rule takes them for", f"{key}=ideal")


def steps_plainly(engine: Engine) -> bool:
    """Whether every server step is x -= D; of a plan that is decided during the run nobody knows."""
    if isinstance(engine.plan, Decided) or not isinstance(engine.rule, GeneralMomentum):
        return False
    return all(hyper["eta"] == 1 and 0 in (hyper["beta"], hyper["nu"]) for hyper in every_hyper(engine))


def every_hyper(engine: Engine) -> list[Hyper]:
    """The hyperparameters of all rounds, from the first."""
    return [engine.plan.at(t)[1] for t in range(1, engine.plan.ends[-1] + 1)]


def is_whole(upload: UploadRule, client: ClientRule) -> bool:
    """Whether the server gets what it steps with: some rules need more of an update than is sent."""
    return isinstance(upload, WholeDelta) or not client.needs_plain_upload


def require_supported(trainer: "pl.Trainer", client: ClientRule, normalize: str | None, keep: bool) -> None:
    """Refuse what a client's local steps (Alg. 2) would silently leave out, or do in another way."""
    from fedgm.federated.workers import FederatedDDP

    if (every := trainer.accumulate_grad_batches) != 1:
        raise FedGMError(
            f"accumulate_grad_batches={every} is not supported: every local batch is a step. "
            "Leave it at 1, and raise local.batch_size instead."
        )
    if not trainer.lightning_module.automatic_optimization:
        raise FedGMError(
            "automatic_optimization=False is not supported: the loop steps the local optimiser. "
            "Return the loss from training_step, and put all parameters into one optimiser "
            "(its parameter groups may differ)."
        )
    if (count := len(trainer.strategy.optimizers)) != 1:  # Lightning has already refused several
        raise FedGMError(
            f"configure_optimizers gave {count} optimisers, but a client trains with exactly one. "
            "Return one optimiser from it."
        )
    if any(config.interval != "epoch" for config in trainer.lr_scheduler_configs):
        raise FedGMError(
            "interval='step' is not supported: a scheduler is stepped once a round for all clients. "
            "Return {'scheduler': ..., 'interval': 'epoch'} from configure_optimizers"
        )
    if trainer.world_size > 1 and not isinstance(trainer.strategy, FederatedDDP):
        raise FedGMError(
            f"strategy {type(trainer.strategy).__name__} waits for equal numbers of steps, which "
            "clients do not have. Use pl.Trainer(strategy=fedgm.FederatedDDP())"
        )
    _require_optimizer(trainer, client, normalize, keep)


def require_sending(sending: SendRule | None, client: ClientRule, upload: UploadRule) -> None:
    """Who does not send must not remember having sent."""
    if sending is None:
        return
    reason = "only some of a cohort send, and its states assume that all do"
    stateless = not (client.sends or client.keeps)
    require_fits(stateless, "client", type(client).__name__, reason, "client=plain, or sending=all")
    require_fits(not upload.keeps, "upload", type(upload).__name__, reason, "upload=plain, or sending=all")


def require_guarantee(
    privacy: Privacy | None, client: ClientRule, upload: UploadRule, scheme: Participation, weights: str
) -> None:
    """What the accounting assumes: the plain mean of m clipped updates of m of n clients, drawn uniformly."""
    if privacy is None:
        return
    reason, hint = (
        "the sensitivity 2C/m is that of the uniform mean",
        "clients.weights=uniform, or privacy=none",
    )
    require_fits(weights == "uniform", "clients.weights", weights, reason, hint)
    reason = "what it sends or keeps would see updates that are not clipped"
    stateless = not (client.sends or client.keeps)
    require_fits(stateless, "client", type(client).__name__, reason, "client=plain, or privacy=none")
    reason, name = "a clipped update must reach the mean as it is", type(upload).__name__
    whole = isinstance(upload, WholeDelta) or bool(getattr(upload, "passes_on", False))
    require_fits(whole, "upload", name, reason, "upload=plain, or privacy=none")
    sampler = getattr(scheme, "sampler", None)
    uniform = isinstance(sampler, Uniform) and bool(getattr(scheme, "arrives_uniformly", False))
    reason = "epsilon is counted for cohorts of exactly m of n clients, drawn uniformly"
    hint = "participation=ideal participation/sampler=uniform, or privacy=none"
    require_fits(uniform, "participation", type(sampler or scheme).__name__, reason, hint)
    bare = normalization(scheme) in (None, "none") and getattr(scheme, "epochs", (1,))[0] > 0
    reason = "weights of uneven work, or idle clients, would change the mean of m clipped updates"
    hint = "participation.normalize=none, or privacy=none"
    require_fits(bare, "participation.normalize", normalization(scheme), reason, hint)


def require_even(work: Sequence[tuple[int, Work]], scheme: Participation) -> None:
    """Staged work replaces what every client does: weights of uneven work, or a clock, would not know."""
    if not work:
        return
    drawn = getattr(scheme, "epochs", None)
    even = not hasattr(scheme, "devices") and (drawn is None or drawn[0] == drawn[1])
    even = even and normalization(scheme) in (None, "none")
    reason = "work= sets the same local work for all clients, which this scheme draws, weighs or times itself"
    require_fits(
        even, "participation", type(scheme).__name__, reason, "participation=ideal, or work=constant"
    )


def require_private(privacy: Privacy | None, buffers: Sequence[Place]) -> None:
    """Statistics of a client's data that are averaged without noise would break the guarantee."""
    if privacy is not None and buffers:
        raise FedGMError(
            f"privacy=central: the model has buffers ({buffers[0].name}) that clients would send without "
            "clipping or noise. Use a model without BatchNorm, e.g. model.norm=group"
        )


def _require_optimizer(trainer: "pl.Trainer", client: ClientRule, normalize: str | None, keep: bool) -> None:
    """Refuse a local optimiser for which a formula does not hold, whatever its settings were called."""
    optimizer, name = trainer.strategy.optimizers[0], type(client).__name__
    if client.needs_plain_sgd and not (is_plain_sgd(optimizer) and not trainer.gradient_clip_val):
        clipped = f", clipped at {trainer.gradient_clip_val}" if trainer.gradient_clip_val else ""
        raise FedGMError(
            f"{name}: its formulas hold for plain SGD (momentum, weight decay and clipping off), but the "
            f"local optimiser is {described(optimizer)}{clipped}. Use torch.optim.SGD, or another client rule"
        )
    if trainer.precision == "16-mixed" and (client.changes_gradients or client.sends):
        raise FedGMError(
            f"{name}: its correction would be added to scaled gradients. Use precision='bf16-mixed'"
        )
    engine = next((c.engine for c in _callbacks(trainer) if hasattr(c, "engine")), None)
    if client.needs_plain_server and isinstance(engine, Engine) and not steps_plainly(engine):
        raise FedGMError(
            f"{name}: its formulas hold where the server does x -= D. "
            "Use fedgm.FedGM(GeneralMomentum(eta=1.0, beta=0.0, nu=0.0)), or another client rule"
        )
    if normalize != "fednova":
        return
    terms = effective(optimizer, getattr(client, "mu", 0.0))
    if terms is None:
        raise FedGMError(
            "normalize=fednova: a_i is known for SGD (momentum and FedProx at most, alike in all groups), "
            f"but the local optimiser is {described(optimizer)}. Use torch.optim.SGD, or normalize='none'"
        )
    if keep and terms.momentum:
        raise FedGMError(
            "normalize=fednova: a_i is that of a momentum which starts at zero. Use state='reset'"
        )


def _callbacks(trainer: "pl.Trainer") -> list[Any]:
    return trainer.callbacks  # pyright: ignore[reportAttributeAccessIssue]
