import pytest
import torch
from torch import nn

from fedgm.client.weights import FlatWeights, Snapshot, is_finite
from fedgm.models.convolutional import resnet


def small() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3, 2))


def test_the_parts_are_flat_and_in_order():
    net = small()
    flat = FlatWeights(net).read()
    assert torch.equal(flat.x, torch.cat([p.detach().reshape(-1) for p in net.parameters()]))
    assert flat.buffers.tolist() == [0.0] * 3 + [1.0] * 3  # running mean, running variance
    assert flat.counters.tolist() == [0]
    assert [part.dtype for part in flat] == [torch.float32, torch.float32, torch.int64]


def test_reading_what_was_written():
    net = small()
    weights = FlatWeights(net)
    like = weights.read()
    new = Snapshot(torch.randn(like.x.numel()), torch.rand(6), torch.tensor([41]))
    weights.write(new)
    assert all(torch.equal(a, b) for a, b in zip(weights.read(), new, strict=True))
    assert torch.equal(net[3].bias, new.x[-2:])
    assert torch.equal(net[1].running_var, new.buffers[3:])
    assert net[1].num_batches_tracked.item() == 41


def test_a_snapshot_is_a_copy():
    net = small()
    weights = FlatWeights(net)
    before = weights.read()
    kept = [part.clone() for part in before]
    with torch.no_grad():
        net[0].weight.add_(1)
    net(torch.randn(4, 2, 2, 2))  # moves the statistics and the counter
    assert all(torch.equal(a, b) for a, b in zip(before, kept, strict=True))
    after = weights.read()
    assert not any(torch.equal(a, b) for a, b in zip(after, kept, strict=True))


def test_channels_last_gives_the_order_of_contiguous_memory():
    torch.manual_seed(0)
    plain = resnet(8, 8, "batch")
    last = resnet(8, 8, "batch").to(memory_format=torch.channels_last)
    last.load_state_dict(plain.state_dict())
    assert last.stem.weight.stride() != plain.stem.weight.stride()
    assert torch.equal(FlatWeights(last).read().x, FlatWeights(plain).read().x)
    marked = torch.arange(FlatWeights(plain).read().x.numel(), dtype=torch.float32)
    for net in (plain, last):
        FlatWeights(net).write(FlatWeights(net).read()._replace(x=marked))
    assert torch.equal(plain.stem.weight, last.stem.weight)
    assert plain.stem.weight[1, 0, 0, 0] == 27  # the second filter begins after 3*3*3 entries
    assert last.stem.weight.is_contiguous(memory_format=torch.channels_last)  # the layout stays


def test_frozen_parameters_are_neither_read_nor_written():
    net = small()
    net[0].requires_grad_(False)
    frozen = net[0].weight.clone()
    weights = FlatWeights(net)
    flat = weights.read()
    assert flat.x.numel() == 3 + 3 + 6 + 2
    weights.write(flat._replace(x=torch.full_like(flat.x, 7.0)))
    assert torch.equal(net[0].weight, frozen)
    assert (net[3].weight == 7).all()


def test_a_model_without_buffers():
    net = nn.Linear(2, 1)
    flat = FlatWeights(net).read()
    assert [part.numel() for part in flat] == [3, 0, 0]
    FlatWeights(net).write(flat._replace(x=torch.tensor([1.0, 2.0, 3.0])))
    assert net(torch.tensor([10.0, 100.0])).item() == 213.0


def test_writing_leaves_the_optimiser_its_tensors():
    net = nn.Linear(2, 1)
    sgd = torch.optim.SGD(net.parameters(), lr=1.0)
    weights = FlatWeights(net)
    weights.write(weights.read()._replace(x=torch.zeros(3)))
    net(torch.ones(2)).backward()
    sgd.step()
    assert weights.read().x.tolist() == [-1.0, -1.0, -1.0]


def test_a_vector_is_in_logical_order_whatever_the_layout():
    net = small().to(memory_format=torch.channels_last)
    assert not net[0].weight.is_contiguous()
    expected = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
    assert torch.equal(FlatWeights(net).read().x, expected)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", [0, 5, 9])
def test_one_bad_entry_is_seen(bad, place):
    values = torch.linspace(-1, 1, 10)
    assert is_finite(values)
    values[place] = bad
    assert not is_finite(values)


def test_nothing_is_finite_and_so_are_the_largest_numbers():
    assert is_finite(torch.empty(0))
    most = torch.finfo(torch.float32).max
    assert is_finite(torch.tensor([-most, most]))  # their difference is not
