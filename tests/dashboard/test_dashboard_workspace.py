"""`fedgm dashboard --wandb`: the real wandb-workspaces package against a server on loopback."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner

from fedgm import commands as cli
from fedgm.dashboard import workspace
from fedgm.dashboard.collect import Collector
from tests.dashboard.dashboard_runs import write_grid, write_run

KEY = "a" * 40


class Handler(BaseHTTPRequestHandler):
    """Answers who the user is, and keeps the view that is saved."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        view = {"id": "v1", "name": "nw-abc-v"}
        data = {
            "viewer": {
                "id": "u",
                "entity": "someone",
                "username": "someone",
                "flags": "{}",
                "teams": {"edges": []},
            }
        }
        if "UpsertView2" in request["query"]:
            self.server.saved.append(request["variables"])
            data = {"upsertView": {"view": view, "inserted": True}}
        body = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@contextmanager
def stand_in():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.saved = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the package uses an older style of pydantic
def test_the_saved_view_compares_algorithms(tmp_path, monkeypatch):
    pytest.importorskip("wandb_workspaces")
    write_grid(tmp_path / "runs")
    with stand_in() as server:
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        result = CliRunner().invoke(
            cli.main, ["dashboard", str(tmp_path / "runs"), "--wandb", "someone/trial"]
        )
        assert result.exit_code == 0, result.output
        (saved,) = server.saved
    assert "not against the real service" in result.output
    assert (saved["entityName"], saved["projectName"]) == ("someone", "trial")
    text = saved["spec"]
    for word in ("test/acc", "train/loss", "algorithm.value.name", "algorithm.value.eta", "minmax", "round"):
        assert word in text, word


def test_metrics_and_keys_are_those_of_the_runs(tmp_path):
    write_grid(tmp_path)
    collection = Collector([tmp_path]).collect()
    assert workspace.metrics(collection) == ["test/acc", "test/loss", "train/acc", "train/loss"]
    assert workspace.swept(collection) == [
        "algorithm.beta",
        "algorithm.eta",
        "algorithm.name",
        "algorithm.nu",
        "schedule.name",
    ]


@pytest.mark.parametrize(
    ("missing", "words"), [("package", "pip install 'fedgm[workspace]'"), ("key", "Try wandb login")]
)
def test_what_is_missing_is_said(tmp_path, monkeypatch, missing, words):
    write_run(tmp_path)
    spec = None if missing == "package" else object()
    monkeypatch.setattr(workspace, "find_spec", lambda name: spec)
    monkeypatch.setattr(workspace, "has_key", lambda: missing != "key")
    result = CliRunner().invoke(cli.main, ["dashboard", str(tmp_path), "--wandb", "trial"])
    assert result.exit_code == 2
    assert words in result.output
