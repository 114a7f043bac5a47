"""Serve the page on this machine alone, and the data again whenever a run has moved on."""

import hashlib
import mimetypes
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fedgm.dashboard import payload, render
from fedgm.dashboard.collect import Collection, Collector
from fedgm.results.run import Run

ADDRESS = "127.0.0.1"
Splits = tuple[Sequence[dict[str, Any]], Sequence[str]]  # tables, and notes on what is missing


def run_key(run: Run) -> str:
    """How a served run is addressed."""
    return f"{run.facts['hash'][:16]}-{run.facts['seed']}"


class PayloadSource:
    """The newest payload, read once for all who ask at the same time."""

    def __init__(self, collector: Collector, title: str, splits: Splits = ((), ())) -> None:
        self.collector, self.title, self.splits = collector, title, splits
        self.folders: dict[str, Run] = {}
        self.port = 0  # known once the server listens
        self._lock = threading.Lock()
        self._collection: Collection | None = None
        self._state: object = None
        self._payload: dict[str, Any] = {}

    def payload(self) -> dict[str, Any]:
        """Read what has changed; build the payload again only if anything has."""
        with self._lock:
            collection = self.collector.collect()
            # Runs that were not read again are the same objects; keeping them keeps their ids theirs.
            state = ([id(run) for run in collection.runs], collection.left_out)
            if state != self._state:
                self.folders = {run_key(run): run for run in collection.runs if run.folder is not None}
                self._payload = payload.build(collection, self.title, _link, *self.splits)
                self._state, self._collection = state, collection
            return self._payload

    def file(self, key: str, name: str) -> Path | None:
        """A file of a run that is on the page; nothing else can be asked for."""
        run = self.folders.get(key)
        if run is None or run.folder is None or name not in payload.files(run.folder):
            return None
        return run.folder / name


def _link(run: Run) -> str | None:
    return f"runs/{run_key(run)}/" if run.folder is not None else None


def make_server(source: PayloadSource, port: int) -> ThreadingHTTPServer:
    """A server bound to the loopback address; port 0 takes any that is free."""

    class Handler(_Handler):
        shared = source

    server = ThreadingHTTPServer((ADDRESS, port), Handler)
    server.daemon_threads = True
    source.port = server.server_port
    return server


class _Handler(BaseHTTPRequestHandler):
    shared: PayloadSource

    def do_GET(self) -> None:
        """The page, its data, or a file of a run."""
        if not self._is_local():
            return self._send(HTTPStatus.FORBIDDEN, b"this page is for this machine alone\n", "text/plain")
        path = unquote(urlsplit(self.path).path)
        if path == "/":
            text = render.render(self.shared.payload(), live=True)
            return self._send(HTTPStatus.OK, text.encode(), "text/html; charset=utf-8")
        if path == "/data.json":
            return self._send_data()
        return self._send_file(path)

    def _is_local(self) -> bool:
        """A foreign name that resolves to this machine (DNS rebinding) may not read the runs."""
        port = self.shared.port
        return self.headers.get("Host") in (f"{ADDRESS}:{port}", f"localhost:{port}")

    def _send_data(self) -> None:
        body = render.dumps(self.shared.payload()).encode()
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        if self.headers.get("If-None-Match") == tag:
            return self._send(HTTPStatus.NOT_MODIFIED, b"", "application/json", tag)
        return self._send(HTTPStatus.OK, body, "application/json", tag)

    def _send_file(self, path: str) -> None:
        words = path.strip("/").split("/")
        file = self.shared.file(words[1], words[2]) if len(words) == 3 and words[0] == "runs" else None
        try:
            body = file.read_bytes() if file is not None else None
        except OSError:
            body = None
        if body is None or file is None:
            return self._send(HTTPStatus.NOT_FOUND, b"not on the page\n", "text/plain")
        kind = (
            "text/plain"
            if file.suffix in (".yaml", ".jsonl", ".json")
            else mimetypes.guess_type(file.name)[0]
        )
        return self._send(HTTPStatus.OK, body, kind or "application/octet-stream")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, tag: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        if tag:
            self.send_header("ETag", tag)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing for each poll."""
