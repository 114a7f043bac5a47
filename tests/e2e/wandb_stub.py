"""A W&B server on loopback that accepts runs and keeps what they send; just enough for the real client."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote, urlparse

from tests.e2e.wandb_sweep_stub import Sweeps

MOST = 2_000_000  # bytes of one request
ENTITY = "someone"


class Stub(ThreadingHTTPServer):
    """Runs by id: their config, history rows, summary, files and exit code."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.runs: dict[str, dict[str, Any]] = {}
        self.operations: list[str] = []
        self.sweeps = Sweeps()
        self.lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client drops its connections when it is done."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def run(self, name: str) -> dict[str, Any]:
        empty = {"config": {}, "rows": {}, "summary": {}, "files": {}, "output": ""}
        return self.runs.setdefault(name, {**empty, "exit": None, "sweep": None, "group": None})

    def rows(self, name: str) -> list[dict[str, Any]]:
        """History in the order of the file stream's own offsets."""
        return [json.loads(line) for _, line in sorted(self.run(name)["rows"].items())]


class Handler(BaseHTTPRequestHandler):
    server: Stub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        path, body = urlparse(self.path).path, self._body()
        with self.server.lock:
            if path.endswith("/graphql"):
                request = json.loads(body)
                name = request.get("operationName") or _operation(request["query"])
                self.server.operations.append(name)
                self._answer({"data": answer(self.server, name, request.get("variables") or {})})
            elif path.endswith("/file_stream"):
                self._file_stream(path.split("/")[-2], json.loads(body))
                self._answer({})
            else:
                self._answer({})

    def do_PUT(self) -> None:
        """A file of a run, at the address that CreateRunFiles has named."""
        body, (_, _, name, file) = self._body(), urlparse(self.path).path.split("/", 3)
        with self.server.lock:
            self.server.run(name)["files"][unquote(file)] = body
        self._answer({})

    def do_GET(self) -> None:
        self._answer({})

    def _file_stream(self, name: str, sent: dict[str, Any]) -> None:
        run = self.server.run(name)
        for file, chunk in (sent.get("files") or {}).items():
            if file == "wandb-history.jsonl":
                run["rows"].update(enumerate(chunk["content"], start=chunk["offset"]))
            elif file == "output.log":
                run["output"] += "\n".join(chunk["content"]) + "\n"
            elif file == "wandb-summary.json":
                run["summary"] = json.loads(chunk["content"][-1])
        if sent.get("complete"):
            run["exit"] = sent.get("exitcode")

    def _body(self) -> bytes:
        size = int(self.headers.get("Content-Length") or 0)
        if size > MOST:
            raise ValueError(f"a request of {size} bytes")
        return self.rfile.read(size)

    def _answer(self, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _operation(query: str) -> str:
    words = query.replace("(", " ").replace("{", " ").split()
    return words[1] if len(words) > 1 else "?"


def answer(server: Stub, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What the real server would say, as far as the client reads it."""
    entity = {"id": "e", "name": ENTITY}
    if (about_sweeps := server.sweeps.answer(name, given, entity)) is not None:
        return about_sweeps
    if name == "Viewer":
        return {
            "viewer": {"id": "v", "entity": ENTITY, "username": ENTITY, "flags": "{}", "teams": {"edges": []}}
        }
    if name == "UpsertBucket":
        run_id, project = given.get("name") or "unnamed", given.get("project") or "uncategorized"
        if given.get("config"):
            server.run(run_id)["config"] = json.loads(given["config"])
        server.run(run_id)["group"] = given.get("groupName") or server.run(run_id)["group"]
        server.run(run_id)["sweep"] = given.get("sweep") or server.run(run_id)["sweep"]
        bucket = {
            "id": run_id, "name": run_id, "displayName": given.get("displayName"), "description": None,
            "config": given.get("config"), "sweepName": given.get("sweep"), "historyLineCount": 0,
            "project": {"id": "p", "name": project, "entity": entity},
        }  # fmt: skip
        return {"upsertBucket": {"bucket": bucket, "inserted": True}}
    if name == "RunResumeStatus":
        return {"model": {"id": "p", "name": given.get("project"), "entity": entity, "bucket": None}}
    if name == "ServerFeaturesQuery":
        return {"serverInfo": {"features": []}}
    if name == "OrganizationCoreWeaveOrganizationID":
        return {"entity": {"organization": {"coreWeaveOrganizationId": None}}}
    if name == "CreateRunFiles":
        place = f"{server.url}/upload/{given.get('run')}"
        files = [{"name": f, "uploadUrl": f"{place}/{quote(f)}"} for f in given.get("files") or []]
        return {"createRunFiles": {"runID": given.get("run"), "uploadHeaders": [], "files": files}}
    return {}


@contextmanager
def serving():
    server = Stub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
