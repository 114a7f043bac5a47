"""The map of the house (docs/architecture.md): the way of a value from the command line to Eq. 2."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import fedgm.config.parts
from fedgm.running import main as entry

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
SMALL = [
    "profile=tiny", "rounds=2", "clients.count=10", "clients.per_round=2", "data.train_samples=200",
    "local.unit=steps", "local.epochs=1", "trainer.workers=1", "track=csv", "algorithm.beta=0.8",
]  # fmt: skip


def hops_of_the_page() -> list[str]:
    """``module.function`` of each numbered line of the map."""
    return re.findall(r"^\d+\. `fedgm\.([\w.]+)`", PAGE.read_text(), re.M)


def typed(monkeypatch, folder, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", *SMALL, *words, f"output_dir={folder}"])
    entry.main()


def test_every_hop_of_the_map_is_called_in_that_order(monkeypatch, tmp_path, capsys):
    """At most 25 from run.py to Eq. 2; each function's first call comes after that of the hop before it."""
    hops, seen = hops_of_the_page(), dict[str, int]()
    assert 15 <= len(hops) <= 25
    assert hops[-1] == "server.momentum.server_step"
    wanted = set(hops)

    def watch(frame, event, argument):
        if event == "call" and "/fedgm/" in frame.f_code.co_filename:
            module = str(frame.f_globals.get("__name__", "")).removeprefix("fedgm.")
            name = f"{module}.{frame.f_code.co_qualname}"
            if name in wanted:
                seen.setdefault(name, len(seen))

    sys.setprofile(watch)
    try:
        typed(monkeypatch, tmp_path)
    finally:
        sys.setprofile(None)
    assert [hop for hop in hops if hop not in seen] == []
    assert sorted(hops, key=seen.__getitem__) == hops


@pytest.mark.parametrize("words", [[], ["participation=autonomous", "client=scaffold"]])
def test_every_part_is_built_once(monkeypatch, tmp_path, capsys, words):
    built = Counter[str]()
    plain = fedgm.config.parts.instantiate

    def counted(node, **options):
        made = plain(node, **options)
        built[str(node["_target_"])] += 1
        return made

    monkeypatch.setattr(fedgm.config.parts, "instantiate", counted)
    typed(monkeypatch, tmp_path, *words, "callbacks=early_stopping")
    tried = ("fedgm.models.", "torch.optim.")  # for their size, and for what they refuse
    once = {target: count for target, count in built.items() if not target.startswith(tried)}
    assert set(once.values()) == {1}, once
    kinds = ("server", "schedule", "participation", "client", "upload", "tasks", "data")
    assert all(any(target.startswith(f"fedgm.{kind}.") for target in once) for kind in kinds), once
    others = ("pytorch_lightning.loggers", "pytorch_lightning.callbacks", "torch.optim")
    assert all(any(target.startswith(kind) for target in built) for kind in others), built
