"""`fedgm sync`: the real W&B client sends runs that were never recorded to a server on loopback."""

import subprocess
import sys

import pytest

from tests.e2e.commands import TINY, rows
from tests.e2e.wandb_client import logged_in, same_rows
from tests.e2e.wandb_stub import serving
from tests.waiting import PATIENCE


@pytest.mark.slow
def test_stored_runs_are_sent_later_once(tmp_path, commands, stranger):
    home = tmp_path / "o"
    commands.run(home, *TINY, "rounds=2", "data.train_samples=200", "clients.count=10")  # track.mode=disabled
    own = rows(home)

    def sync(url):
        return subprocess.run(
            [sys.executable, "-m", "fedgm", "sync", str(home)], env=logged_in(stranger, url, tmp_path),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip

    with serving() as server:
        first = sync(server.url)
        assert first.returncode == 0, first.stdout + first.stderr
        assert "[1/1]" in first.stdout
        assert "seed=0: sent" in first.stdout
        (name,) = server.runs
        assert same_rows(server.rows(name), own)
        assert server.run(name)["config"]["rounds"]["value"] == 2
        assert server.run(name)["summary"]["status"] == "finished"
        assert server.run(name)["summary"]["final/test/acc"] == own[-1]["test/acc"]
