"""A server of the dashboard: in a thread of the test, or as the command that a user types."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from fedgm.dashboard.collect import Collector
from fedgm.dashboard.serve import ADDRESS, Server
from fedgm.dashboard.source import PayloadSource
from tests.waiting import PATIENCE


class Visitor:
    """A client with the cookie, or without."""

    def __init__(self, port: int, cookie: str = "") -> None:
        self.port, self.cookie = port, cookie

    def ask(self, path="/", method="GET", **headers):
        """Status, body and headers of an answer."""
        connection = HTTPConnection(ADDRESS, self.port, timeout=PATIENCE)
        given = {"Cookie": self.cookie} if self.cookie else {}
        connection.request(method, path, headers={**given, **headers})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body, answer.headers

    def enter(self, address: str) -> "Visitor":
        """Exchange the token of an address for the cookie."""
        status, _, headers = self.ask(f"/?{urlsplit(address).query}")
        assert status == 303
        self.cookie = headers["Set-Cookie"].split(";")[0]
        return self

    def connect(self, request: bytes = b"") -> socket.socket:
        """A bare connection."""
        connection = socket.create_connection((ADDRESS, self.port), timeout=PATIENCE)
        connection.sendall(request)
        return connection

    def head(self, path: str) -> bytes:
        """A whole request as bytes."""
        host = f"{ADDRESS}:{self.port}"
        return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {self.cookie}\r\n\r\n".encode()


@contextmanager
def served(path: Path, port: int = 0):
    """A server in a thread, and a visitor who has the cookie."""
    server = Server(PayloadSource(Collector([path]), "runs"), port)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = Future()

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        await server.serve()

    def run() -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(main())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield server, Visitor(server.port).enter(server.address(server.access.token))
    finally:
        loop, task = started.result()
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


@contextmanager
def command(path: Path):
    """``fedgm dashboard PATH --serve``: the process and a visitor who has the cookie; Ctrl-C ends it.

    All that it ever prints is the address.
    """
    words = [sys.executable, "-m", "fedgm", "dashboard", str(path), "--serve", "--port", "0"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0]
        yield process, Visitor(int(address.split(":")[2].split("/")[0])).enter(address)
        process.send_signal(signal.SIGINT)
        printed = process.communicate(timeout=PATIENCE)
        assert (process.returncode, *printed) == (0, "\n", ""), printed
    finally:
        process.kill()
        process.communicate()
