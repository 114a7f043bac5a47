"""FedGM as the server's optimiser in NVFlare's FedOpt, by path: multistage, two sites with half a plane each.

pip install torch nvflare, and fedgm without its dependencies: fedgm.optim needs torch alone. The same file is
the script of the sites. It runs in NVFlare's simulator; a provisioned project takes the same recipe.
"""

import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import nvflare.client as flare
import torch
from nvflare.app_opt.pt.recipes.fedopt import FedOptRecipe
from nvflare.recipe import SimEnv
from torch.nn import functional as F

ROUNDS, SITES, STEPS = 8, 2, 5
LINE = {"class_path": "torch.nn.Linear", "args": {"in_features": 2, "out_features": 2}}
SERVER = {"path": "fedgm.optim.GeneralMomentum", "args": {"lr": 2.0, "beta": 0.9, "nu": 0.9}}
STAGES = {"path": "fedgm.optim.Multistage", "args": {"etas": [2.0, 1.0], "rounds": ROUNDS}}


def plane():
    points = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    return points, (points[:, 0] > points[:, 1]).long()


def site(notes):
    """A site's side: receive, train, send; and note down both for the check at the end."""
    flare.init()
    name, (points, labels), net = flare.get_site_name(), plane(), torch.nn.Linear(2, 2)
    mine = points[:, 0] > 0 if name.endswith("1") else points[:, 0] <= 0
    while flare.is_running():
        model = flare.receive()
        before = {key: torch.as_tensor(value).clone() for key, value in model.params.items()}
        net.load_state_dict(before)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(STEPS):
            optimizer.zero_grad()
            F.cross_entropy(net(points[mine]), labels[mine]).backward()
            optimizer.step()
        after = {key: value.detach().clone() for key, value in net.state_dict().items()}
        torch.save((before, after), Path(notes) / f"{model.current_round}-{name}.pt")
        flare.send(flare.FLModel(params=after, meta={"NUM_STEPS_CURRENT_ROUND": STEPS}))


def main():
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        recipe = FedOptRecipe(
            name="fedgm", model=LINE, min_clients=SITES, num_rounds=ROUNDS, train_script=__file__,
            train_args=str(notes), device="cpu", optimizer_args=SERVER, lr_scheduler_args=STAGES,
        )  # fmt: skip
        recipe.execute(SimEnv(num_clients=SITES, workspace_root=folder))
        rounds = [[torch.load(path) for path in sorted(notes.glob(f"{t}-*.pt"))] for t in range(ROUNDS)]
    assert [len(sites) for sites in rounds] == [SITES] * ROUNDS
    check(
        [(flat(sites[0][0]), torch.stack([flat(b) - flat(a) for b, a in sites]).mean(0)) for sites in rounds]
    )


def check(rounds):
    """The same D through fedgm's own server come to the next round's model, up to rounding of the mean."""
    from fedgm.schedule import Multistage
    from fedgm.server import GeneralMomentum
    from fedgm.server.engine import Engine

    rule = GeneralMomentum(2.0, 0.9, 0.9)
    engine = Engine(rule, Multistage([2.0, 1.0]).plan(ROUNDS, rule))
    for t, ((x, delta), (after, _)) in enumerate(pairwise(rounds), start=1):
        torch.testing.assert_close(engine.step(t, x, delta), after, rtol=1e-5, atol=1e-6)
    print(f"NVFlare: {ROUNDS - 1} server steps as in fedgm's engine")


def flat(arrays):
    return torch.cat([arrays[name].flatten() for name in ("weight", "bias")])


if __name__ == "__main__":
    site(sys.argv[1]) if len(sys.argv) > 1 else main()
