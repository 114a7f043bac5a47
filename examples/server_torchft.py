"""FedGM as the outer optimiser of torchft's DiLoCo: two replicas, each with its own half of the data.

pip install torchft, and fedgm without its dependencies: fedgm.optim needs torch alone. torchft's manager
listens on every address of the machine.
"""

import multiprocessing
import sys
from datetime import timedelta

import torch
from torch.distributed import TCPStore
from torch.nn import functional as F
from torchft import Manager, ProcessGroupGloo
from torchft.coordination import LighthouseServer
from torchft.local_sgd import DiLoCo

from fedgm.optim import GeneralMomentum
from fedgm.schedule import Constant
from fedgm.server import GeneralMomentum as Rule
from fedgm.server.engine import Engine

ROUNDS, STEPS, LOCAL = 8, 5, "127.0.0.1"


def replica(number, lighthouse):
    torch.manual_seed(0)
    points = torch.randn(400, 2)
    labels = (points[:, 0] > points[:, 1]).long()
    mine = points[:, 0] > 0 if number else points[:, 0] <= 0  # replicas see different data
    net = torch.nn.Linear(2, 2)
    x = flat(net)
    inner = torch.optim.SGD(net.parameters(), lr=0.1)
    outer = GeneralMomentum(net.parameters(), lr=1.0, beta=0.9, nu=0.9)
    deltas = []
    outer.register_step_pre_hook(
        lambda *_: deltas.append(torch.cat([p.grad.flatten() for p in net.parameters()]))
    )
    store = TCPStore(LOCAL, 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timedelta(seconds=60)), load_state_dict=net.load_state_dict,
        state_dict=net.state_dict, min_replica_size=2, use_async_quorum=False, rank=0, world_size=1,
        replica_id=f"replica_{number}",
        store_addr=LOCAL, store_port=store.port, lighthouse_addr=lighthouse, hostname=LOCAL,
    )  # fmt: skip
    with DiLoCo(manager, [net], inner, outer, sync_every=STEPS, pin_memory=False):
        while manager.current_step() < ROUNDS:
            inner.zero_grad()
            F.cross_entropy(net(points[mine]), labels[mine]).backward()
            inner.step()
    rule = Rule(1.0, 0.9, 0.9)
    engine = Engine(rule, Constant().plan(ROUNDS, rule))
    for t, delta in enumerate(deltas, start=1):
        x = engine.step(t, x, delta)
    assert len(deltas) == ROUNDS
    assert torch.equal(x, flat(net)), "not the steps of fedgm's engine"
    right = (net(points).argmax(1) == labels).float().mean().item()
    print(
        f"torchft replica {number}: accuracy {right:.3f}, every outer step as in fedgm's engine", flush=True
    )
    manager.shutdown(wait=False)


def flat(net):
    return torch.cat([p.detach().flatten() for p in net.parameters()])


def main():
    lighthouse = LighthouseServer(bind=f"{LOCAL}:0", min_replicas=2, join_timeout_ms=1000)
    processes = multiprocessing.get_context("spawn")
    # The port that was chosen; the name in the address may not be known here
    address = f"http://{LOCAL}:{lighthouse.address().rpartition(':')[2]}"
    replicas = [processes.Process(target=replica, args=(number, address), daemon=True) for number in range(2)]
    for process in replicas:
        process.start()
    for process in replicas:
        process.join()
    lighthouse.shutdown()
    sys.exit(any(process.exitcode for process in replicas))


if __name__ == "__main__":
    main()
