import pytest
import torch
from omegaconf import OmegaConf

from fedgm import config
from fedgm.config.parts import build
from fedgm.errors import ConfigError
from fedgm.models.convolutional import cnn, norm_layer, resnet, vgg11

MODELS = {
    "cnn": lambda: cnn(32),
    "resnet8": lambda: resnet(8, 16, "group"),
    "resnet20": lambda: resnet(20, 16, "batch"),
    "resnet18": lambda: resnet(18, 64, "batch"),
    "vgg11": lambda: vgg11(64, "batch"),
}
COUNTS = {
    # 3*6*25+6 + 6*16*25+16 + 400*120+120 + 120*84+84 + 84*10+10
    "cnn": 62_006,
    # stem 432+32; 16: 2*2304+64; 32: 4608+9216+128, shortcut 512+64; 64: 18432+36864+256, 2048+128; head 650
    "resnet8": 78_042,
    # He 2016 has 269,722 with shortcuts that need no parameters; ours are projected: +576 +2,176
    "resnet20": 272_474,
    # kuangliu/pytorch-cifar
    "resnet18": 11_173_962,
    # kuangliu/pytorch-cifar has 9,231,114 with 2,752 convolution biases, idle before a norm: left out here
    "vgg11": 9_228_362,
}


def model_node(*overrides: str) -> dict:
    cfg = config.compose(overrides)
    return OmegaConf.to_container(cfg.model, resolve=True)


def parameters(net: torch.nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_parameter_counts(name):
    assert parameters(MODELS[name]()) == COUNTS[name]


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_the_norm_does_not_change_the_number_of_parameters(norm):
    assert parameters(resnet(8, 16, norm)) == 78_042
    kinds = {type(m) for m in resnet(8, 16, norm).modules()}
    assert (torch.nn.BatchNorm2d in kinds, torch.nn.GroupNorm in kinds) == (norm == "batch", norm == "group")


@pytest.mark.parametrize("side", [8, 16, 32])
@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize(
    "make", [lambda n: resnet(8, 8, n, 7), lambda n: resnet(18, 8, n, 7), lambda n: vgg11(8, n, 7)]
)
def test_shapes_and_gradients_at_all_sizes(side, norm, make):
    net = make(norm)
    scores = net(torch.randn(3, 3, side, side).to(memory_format=torch.channels_last))
    assert scores.shape == (3, 7)
    scores.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


def test_vgg_skips_only_the_pools_that_would_leave_nothing():
    net, sides = vgg11(8, "group"), []
    for group in net.groups:
        group.register_forward_hook(lambda _, args, __: sides.append(args[0].shape[-1]))
    net(torch.randn(1, 3, 16, 16))
    net(torch.randn(1, 3, 32, 32))
    assert sides == [16, 8, 4, 2, 1, 32, 16, 8, 4, 2]


def test_resnet_halves_the_side_in_every_stage_but_the_first():
    net, shapes = resnet(20, 8, "group"), []
    for block in net.blocks:
        block.register_forward_hook(lambda _, __, out: shapes.append(tuple(out.shape[1:3])))
    net(torch.randn(1, 3, 32, 32))
    assert shapes == [(8, 32)] * 3 + [(16, 16)] * 3 + [(32, 8)] * 3


@pytest.mark.parametrize("make", [lambda w: resnet(8, w, "group"), lambda w: vgg11(w, "group")])
@pytest.mark.parametrize("width", [-2, 0, 7, 9])
def test_widths_that_two_groups_do_not_divide_are_refused(make, width):
    with pytest.raises(ConfigError, match=rf"^model\.width={width}: expected an even number of at least 2"):
        make(width)


@pytest.mark.parametrize("depth", [2, 9, 19, -4])
def test_depths_that_do_not_exist_are_refused(depth):
    with pytest.raises(ConfigError, match=rf"^model\.depth={depth}: expected 18, or 6n\+2.*model\.depth=8"):
        resnet(depth, 16, "group")


def test_unknown_norm_is_refused():
    with pytest.raises(ConfigError, match=r"^model\.norm=layer: expected batch or group"):
        norm_layer("layer", 8)  # pyright: ignore[reportArgumentType]


def test_cnn_refuses_16_pixels_and_names_the_key():
    with pytest.raises(ConfigError) as caught:
        build(model_node("model=cnn"), "model", num_classes=10)  # profile=small has 16x16 pixels
    assert (caught.value.key, caught.value.value) == ("data.resolution", 16)
    assert "data.resolution=32" in caught.value.hint
    assert parameters(build(model_node("model=cnn", "data.resolution=32"), "model", num_classes=10)) == 62_006


def test_any_torchvision_classifier_comes_by_its_name():
    net = build(model_node("model=mobilenet"), "model", num_classes=10)
    # torchvision documents 2,542,856 for 1,000 classes; ten have 1,024 weights and a bias each
    assert parameters(net) == 2_542_856 - 990 * 1_025
    assert net(torch.randn(2, 3, 32, 32)).shape == (2, 10)


def test_weights_are_drawn_from_the_seed_alone():
    from fedgm.running.trainer import build_module

    def first(seed: int, noise: int) -> torch.Tensor:
        cfg = config.compose(["profile=tiny", f"seed={seed}"])
        torch.manual_seed(noise)
        return next(build_module(config.validate(cfg), {"num_classes": 10}).parameters()).detach().clone()

    assert torch.equal(first(0, noise=1), first(0, noise=2))
    assert not torch.equal(first(0, noise=1), first(1, noise=1))
