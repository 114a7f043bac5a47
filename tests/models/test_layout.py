"""channels_last where torch can be trusted with it: which layout is chosen, and that the heap stays whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import fedgm
from fedgm.models import layout
from fedgm.models.convolutional import cnn, resnet, vgg11
from fedgm.models.layout import is_channels_last, torch_overruns
from fedgm.running import diagnosis
from fedgm.running.trainer import build_module
from tests.federated.federated_run import configured, fit

ROOT = Path(__file__).parents[2]
SIDES = (8, 16, 31, 32, 40, 48, 56, 63, 64, 65, 72, 96, 128)
WIDTHS = (2, 4, 6, 8, 12, 16, 24)


@pytest.fixture
def faulty(monkeypatch):
    """A torch that has the fault, whichever is installed."""
    monkeypatch.setattr(layout, "torch_overruns", lambda: True)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("width", [8, 16, 64])
def test_a_resnet_is_plain_above_forty_pixels(faulty, side, width):
    assert is_channels_last(resnet(8, width, "group"), asked=True, side=side) is (side <= 40)


@pytest.mark.parametrize("side", SIDES)
def test_a_narrow_resnet_is_plain_at_any_side(faulty, side):
    assert not is_channels_last(resnet(8, 4, "group"), asked=True, side=side)


@pytest.mark.parametrize("side", [32, 64, 128])
def test_other_networks_keep_what_their_yaml_asks_for(faulty, side):
    pooled = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.Conv2d(4, 8, 1), nn.MaxPool2d(2))
    for net in (vgg11(8, "group"), cnn(32), pooled):  # none has a strided 1x1 convolution
        assert is_channels_last(net, asked=True, side=side)
        assert not is_channels_last(net, asked=False, side=side)


def test_a_gpu_and_another_torch_are_not_affected(monkeypatch):
    net = resnet(8, 8, "group")
    monkeypatch.setattr(layout, "torch_overruns", lambda: True)
    assert is_channels_last(net, asked=True, side=64, accelerator="gpu")
    monkeypatch.setattr(layout, "torch_overruns", lambda: False)
    assert is_channels_last(net, asked=True, side=64)


def test_the_versions_that_have_the_fault():
    answers = {
        version: torch_overruns(version) for version in ("2.12.1", "2.13.0+cpu", "2.13.2", "2.14.0", "3.13.0")
    }
    assert answers == {"2.12.1": False, "2.13.0+cpu": True, "2.13.2": True, "2.14.0": False, "3.13.0": False}


@pytest.mark.parametrize(("side", "last"), [(32, True), (48, False)])
def test_network_and_batches_of_a_run_agree(faulty, side, last):
    run = configured("rounds=1", f"data.resolution={side}", "clients.per_round=1", "local.epochs=1")
    fitted = fit(run)
    weight = fitted.module.net.stem.weight
    (images, _), *_ = fitted.clients.batches(0, 1, 1)
    for tensor in (weight, images):
        assert tensor.is_contiguous(memory_format=torch.channels_last) is last
        assert tensor.is_contiguous() is not last


@pytest.mark.parametrize(("side", "last"), [(32, True), (48, False)])
def test_so_do_those_of_an_estimate(faulty, monkeypatch, tmp_path, side, last):
    run = configured(f"data.resolution={side}", "local.batch_size=2")
    weights = build_module(run, {"num_classes": 10}).state_dict()
    save_file({name: each.contiguous() for name, each in weights.items()}, tmp_path / "model.safetensors")
    seen = []
    monkeypatch.setattr(diagnosis, "measure", lambda module, loss, given, **_: seen.extend(next(given[0])))
    diagnosis.estimate_run(run, tmp_path, 2)
    assert seen[0].is_contiguous(memory_format=torch.channels_last) is last


@pytest.mark.parametrize(("side", "last"), [(32, True), (48, False)])
def test_so_do_those_of_an_evaluation(faulty, monkeypatch, tmp_path, side, last):
    words = ["profile=tiny", "track=none", "rounds=1", "local.unit=steps", "local.epochs=1", "model=resnet8"]
    few = ["clients.count=2", "clients.per_round=1", "data.train_samples=40", "data.test_samples=20"]
    run = fedgm.run([*words, *few, f"data.resolution={side}", f"output_dir={tmp_path}"])
    seen = []
    forward = nn.Conv2d.forward

    def watched(conv, images):
        seen.append(images)
        return forward(conv, images)

    monkeypatch.setattr(nn.Conv2d, "forward", watched)
    fedgm.evaluate(run.folder)
    assert seen[0].shape[-1] == side
    assert seen[0].is_contiguous(memory_format=torch.channels_last) is last


CASES = """
import os, sys
import torch
from torch import nn
from fedgm.models.layout import is_channels_last

torch.set_num_threads(1)
failed = []
for width in {widths}:
    for side in {sides}:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what the allocator says of a broken heap
            net = nn.Conv2d(width, 2 * width, 1, stride=2, bias=False)
            last = is_channels_last(net, asked=True, side=side)
            layout = torch.channels_last if last else torch.contiguous_format
            net = net.to(memory_format=layout)
            for _ in range(8):
                x = torch.randn(4, width, side, side).to(memory_format=layout).requires_grad_()
                net(x).square().sum().backward()
                kept = [torch.randn(n) for n in (7, 33, 100, 1000)]
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            failed.append((width, side))
print(failed)
"""


def broken_heaps(widths, sides, source=CASES):
    """The cases in which the allocator found its own data overwritten, each tried in a process of its own."""
    checks = {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.check=3"}
    preloaded = {"LD_PRELOAD": "libc_malloc_debug.so.0"} if sys.platform == "linux" else {}
    done = subprocess.run(
        [sys.executable, "-c", source.format(widths=widths, sides=sides)],
        env={**os.environ, **checks, **preloaded, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_the_heap_stays_whole_over_widths_and_sides():
    """On the instruction set at hand: AVX2 shows the fault below 8 channels, AVX-512 at 8 from side 48 on."""
    assert broken_heaps(WIDTHS, SIDES) == "[]"
