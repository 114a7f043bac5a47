"""Language models in the loop against plain loops: no outer step, SNOO's outer step, and top-k uploads."""

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

import fedgm
from fedgm import config
from fedgm.results import rows
from fedgm.running.parts import load_clients
from fedgm.running.trainer import build_module
from tests.conftest import quick

STEPS = 6
TEXT = "".join(
    f"{a} and {b} make {a + b}, while {a} times {b} is {a * b}.\n" for a in range(30) for b in range(9)
)
SMALL = [
    "profile=tiny", "data=text", "data.source.block=16", "data.test_samples=50", "model.layers=1",
    "model.heads=2", "model.width=16", "clients.count=1", "clients.per_round=1", "local.unit=steps",
    f"local.epochs={STEPS}", "local.batch_size=8", "local.optimizer=adamw", "local.lr=0.01", "rounds=5",
    "track.mode=disabled", "trainer.workers=1",
]  # fmt: skip


@pytest.fixture
def words(tmp_path):
    """A run on one client that has all of the text."""
    (tmp_path / "own.txt").write_text(TEXT)
    return [*SMALL, f"data.path={tmp_path / 'own.txt'}", f"output_dir={tmp_path / 'out'}"]


def next_token_loss(scores, targets):
    """Mean over the targets that are not padding."""
    counted = targets != -100
    return F.cross_entropy(scores[counted], targets[counted])


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def final_model(result, like):
    """The stored model as one vector, in the order of the network's parameters."""
    stored = load_file(result.folder / "model.safetensors")
    by_name = {name.removeprefix("net."): value for name, value in stored.items()}
    return flat([by_name[name] for name, _ in like.named_parameters()])


class Plain:
    """The same network, batches and AdamW in a plain loop; rounds only number the batches."""

    def __init__(self, words, keep=True):
        run = config.validate(config.compose(words))
        self.data, self.keep, self.rounds = load_clients(run), keep, run.rounds
        self.net = build_module(run, self.data.facts).net
        self.optimizer = self._adamw()

    def _adamw(self):
        return torch.optim.AdamW(self.net.parameters(), lr=0.01, weight_decay=0.0)

    def train(self, t):
        """A round's local steps."""
        if not self.keep:
            self.optimizer = self._adamw()
        for x, y in self.data.batches(0, t, STEPS):
            self.optimizer.zero_grad()
            next_token_loss(self.net(x), y).backward()
            self.optimizer.step()

    def test_loss(self):
        total, count = 0.0, 0
        test = self.data.evaluations()["test"]
        with torch.no_grad():
            for x, y in map(test.batch, range(len(test))):
                counted = int((y != -100).sum())
                total, count = total + next_token_loss(self.net(x), y).item() * counted, count + counted
        return total / count

    @torch.no_grad()
    def write(self, x):
        torch.nn.utils.vector_to_parameters(x.clone(), self.net.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("state", ["keep", "reset"])
def test_one_client_without_an_outer_step_is_a_plain_loop(words, state):
    """x_{t+1} = x_t - (x_t - x_K): the loop passes on the weights, and AdamW's state where it is kept."""
    result = fedgm.run([*words, "algorithm=fedavg", f"local.state={state}"])
    plain = Plain(words, keep=state == "keep")
    for t in range(1, 1 + plain.rounds):
        plain.train(t)
    assert torch.allclose(final_model(result, plain.net), flat(plain.net.parameters()), rtol=0, atol=1e-4)
    last = rows.read(result.folder / "metrics.jsonl")[-1]
    assert last["test/loss"] == pytest.approx(plain.test_loss(), abs=1e-4)
    other = Plain(words, keep=state != "keep")
    for t in range(1, 1 + other.rounds):
        other.train(t)
    assert not torch.allclose(final_model(result, plain.net), flat(other.net.parameters()), atol=1e-3)


def test_snoo_is_its_own_recursion_around_a_plain_loop(words):
    """b = mu b + D;  x -= lr (D + mu b), with lr .7 and mu .5."""
    result = fedgm.run([*words, "algorithm=snoo", "local.state=keep"])
    plain = Plain(words)
    x = flat(plain.net.parameters())
    b = torch.zeros_like(x)
    for t in range(1, 1 + plain.rounds):
        plain.train(t)
        D = x - flat(plain.net.parameters())
        b = 0.5 * b + D
        x = x - 0.7 * (D + 0.5 * b)
        plain.write(x)
    assert torch.allclose(final_model(result, plain.net), x, rtol=0, atol=1e-5)


def test_top_k_in_the_loop_is_error_feedback_around_a_plain_loop(words):
    """p = D + e;  send the largest tenth;  e = p - sent, the residual kept from round to round."""
    result = fedgm.run([*words, "algorithm=fedavg", "local.state=keep", "upload=topk", "upload.share=0.1"])
    plain = Plain(words)
    x = flat(plain.net.parameters())
    e, n = torch.zeros_like(x), len(x)
    k = -(-n // 10)
    for t in range(1, 1 + plain.rounds):
        plain.train(t)
        p = x - flat(plain.net.parameters()) + e
        sent = torch.where(p.abs() >= p.abs().sort().values[-k], p, 0.0)
        e = p - sent
        x = x - sent
        plain.write(x)
    assert torch.allclose(final_model(result, plain.net), x, rtol=0, atol=1e-4)
    bits = k * (32 + (n - 1).bit_length())
    assert [row["bytes/up"] for row in rows.read(result.folder / "metrics.jsonl")] == [-(-bits // 8)] * 5
    assert e.abs().max() > 1e-3  # something was held back


LINES = ["algorithm=fedavg", "algorithm=fedavgm", "algorithm=fedgm schedule=multistage", "algorithm=diloco"]


@pytest.mark.parametrize("line", quick(LINES, LINES[2]))
def test_every_line_of_the_outer_experiment_pauses_and_goes_on_to_the_same_bits(words, tmp_path, line):
    run = [
        *words[:-1],
        *line.split(),
        "local.state=keep",
        "clients.count=4",
        "clients.per_round=2",
        "upload=qsparse",
    ]
    whole = fedgm.run([*run, f"output_dir={tmp_path / 'whole'}"])
    paused = fedgm.run([*run, "stop_after=3", f"output_dir={tmp_path / 'paused'}"])
    assert paused.status == "paused"
    done = fedgm.run([*run, f"output_dir={tmp_path / 'paused'}"])
    assert (done.status, done.summary["rounds"]) == ("finished", 5)
    ours, theirs = (r.folder / "model.safetensors" for r in (done, whole))
    assert ours.read_bytes() == theirs.read_bytes()
