"""``model.weights``: a new head for the data's classes, or a refusal that names what there is."""

import pytest
import torch

import fedgm
from fedgm.errors import ConfigError, DataError
from fedgm.lightning import pl  # noqa: F401 - before torchvision
from fedgm.models.build import build_net
from fedgm.models.size import parameters

NODE = {
    "_target_": "torchvision.models.mobilenet_v3_small", "weights": "IMAGENET1K_V1", "name": "mobilenet",
    "channels_last": True,
}  # fmt: skip
FILE = "mobilenet_v3_small-047dcff4.pth"


@pytest.fixture
def torch_home(tmp_path, monkeypatch):
    """No network, and a cache of one's own."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    for name in ("https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    folder = tmp_path / "torch" / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def stored(torch_home):
    from torchvision.models import mobilenet_v3_small

    net = mobilenet_v3_small()
    torch.save(net.state_dict(), torch_home / FILE)
    return net


def test_weights_are_kept_and_the_head_fits_the_classes(stored):
    net = build_net(NODE, {"num_classes": 7})
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 7)
    assert torch.equal(net.get_parameter("features.0.0.weight"), stored.get_parameter("features.0.0.weight"))
    assert torch.equal(net.get_parameter("classifier.0.weight"), stored.get_parameter("classifier.0.weight"))


def test_without_network_it_says_what_to_put_where(torch_home):
    with pytest.raises(DataError, match=r"model.weights=IMAGENET1K_V1: https") as caught:
        build_net(NODE, {"num_classes": 7})
    for part in (FILE, "TORCH_HOME", "model.weights=null"):
        assert part in str(caught.value)


def test_a_damaged_file_is_told_alike(torch_home):
    (torch_home / FILE).write_bytes(b"half a download")
    with pytest.raises(DataError, match="cannot be fetched or read"):
        build_net(NODE, {"num_classes": 7})


def test_unknown_weights_are_answered_with_those_that_there_are(tmp_path):
    words = ("profile=tiny", "track.mode=disabled", "model=mobilenet", "model.weights=IMAGENET1K_V9")
    with pytest.raises(ConfigError, match=r"model\.weights=IMAGENET1K_V9") as caught:
        fedgm.run([*words, f"output_dir={tmp_path}"])
    assert caught.value.allowed == "null or one of IMAGENET1K_V1, DEFAULT"
    assert caught.value.hint == "model.weights=IMAGENET1K_V1"
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("torch_home")
def test_counting_needs_no_weights():
    before = torch.random.get_rng_state()
    plain = parameters({**NODE, "weights": None}, {"num_classes": 7})
    assert parameters(NODE, {"num_classes": 7}) == plain > 10**6
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_model_without_a_linear_head_is_refused(torch_home):
    from torchvision.models import squeezenet1_1

    torch.save(squeezenet1_1().state_dict(), torch_home / "squeezenet1_1-b8a52dc0.pth")
    node = {**NODE, "_target_": "torchvision.models.squeezenet1_1", "name": "squeezenet"}
    with pytest.raises(ConfigError, match="no linear layer of 1000 outputs") as caught:
        build_net(node, {"num_classes": 7})
    assert caught.value.hint == "model.weights=null"
