"""What the loop cannot do is refused before the first round."""

import pytest
import torch

from fedgm.errors import FedGMError
from fedgm.federated.loop import FederatedLoop
from fedgm.lightning import pl
from fedgm.tasks.cross_entropy import Classification
from tests.federated.federated_run import configured, fit, flat, module_of


class Manual(Classification):
    def __init__(self, *args):
        super().__init__(*args)
        self.automatic_optimization = False


class TwoOptimisers(Classification):
    def configure_optimizers(self):
        return [torch.optim.SGD(self.parameters(), lr=0.1), torch.optim.SGD(self.parameters(), lr=0.2)]


class TwoOptimisersByHand(TwoOptimisers, Manual):
    pass


class NoOptimiser(Classification):
    def configure_optimizers(self):
        return []


@pytest.mark.parametrize(
    ("kind", "error", "says"),
    [
        (Manual, FedGMError, "automatic_optimization=False is not supported.*Return the loss"),
        (TwoOptimisers, RuntimeError, "multiple optimizers is only supported with manual"),  # Lightning's own
        (TwoOptimisersByHand, FedGMError, "automatic_optimization=False is not supported.*one optimiser"),
        (
            NoOptimiser,
            FedGMError,
            "configure_optimizers gave 0 optimisers, but a client trains with exactly one",
        ),
    ],
)
def test_what_the_loop_cannot_do_is_refused(kind, error, says):
    run = configured()
    plain = module_of(run)
    before = flat(plain)
    with pytest.raises(error, match=says):
        fit(run, kind(plain.net, plain._optimizer))
    assert torch.equal(flat(plain), before)


def test_gradient_accumulation_is_refused():
    run = configured()
    fitted = fit(configured("rounds=1"))
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, accumulate_grad_batches=4, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )  # fmt: skip
    trainer.fit_loop = FederatedLoop(trainer, fitted.clients, fitted.loop.participation, fitted.loop.settings)
    with pytest.raises(FedGMError, match=r"accumulate_grad_batches=4 is not supported.*local\.batch_size"):
        trainer.fit(module_of(run), val_dataloaders=range(3))
