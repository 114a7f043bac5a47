"""Many, slow and vanishing clients of the served page: it goes on, in few threads and little memory."""

import os
import re
import socket
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from fedgm.dashboard import messages, serve
from tests.dashboard.dashboard_runs import write_run
from tests.dashboard.served import Visitor, command, served
from tests.waiting import until

RESET = struct.pack("ii", 1, 0)  # linger for 0 seconds: closing sends a reset


def status(process, field: str) -> int:
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+)", text)[1])


def vanish(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


def test_800_idle_and_800_half_requests_do_not_stop_it(tmp_path):
    write_run(tmp_path / "a")
    with command(tmp_path) as (process, visitor):
        threads = status(process, "Threads")
        crowd = [visitor.connect(start) for start in (b"", b"GET / HTTP/1.1\r\nHost: ") for _ in range(800)]
        assert [visitor.ask(path)[0] for path in ("/", "/data.json", "/nothing")] == [200, 200, 404]
        assert status(process, "Threads") <= threads + 1
        assert (
            len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
            < serve.MOST_WAITING + serve.MOST_ANSWERS + 40
        )
        for connection in crowd:
            connection.close()


def test_clients_that_go_away_print_nothing(tmp_path):
    folder = write_run(tmp_path / "a")
    (folder / "model.safetensors").write_bytes(b"x" * 10_000_000)
    with command(tmp_path) as (_, visitor):  # at its end it looks at all that was printed
        link = re.search(rb'"link":"([^"]*)"', visitor.ask("/data.json")[1])[1].decode()
        for path in ("/", "/data.json", f"/{link}model.safetensors"):
            whole = visitor.head(path)
            for start in (b"", whole[:20], whole):
                for _ in range(10):
                    vanish(visitor.connect(start))
            connection = visitor.connect(whole)
            connection.recv(1000)
            vanish(connection)
        assert visitor.ask()[0] == 200


def test_a_large_file_passes_in_pieces(tmp_path):
    folder = write_run(tmp_path / "a")
    size = 400_000_000
    (folder / "model.safetensors").touch()
    os.truncate(folder / "model.safetensors", size)
    with command(tmp_path) as (process, visitor):
        link = re.search(rb'"link":"([^"]*)"', visitor.ask("/data.json")[1])[1].decode()
        before = status(process, "VmHWM")
        connection = visitor.connect(visitor.head(f"/{link}model.safetensors"))
        received = 0
        while part := connection.recv(1 << 20):
            received += len(part)
        connection.close()
        assert size < received < size + 2000
        assert status(process, "VmHWM") < before + 40_000  # kB


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(messages, "IDLE", 0.3)
    monkeypatch.setattr(serve, "IDLE", 0.3)


@pytest.mark.parametrize("start", [b"", b"GET / HT"])
def test_a_connection_without_a_request_is_closed_after_a_while(tmp_path, hasty, start):
    with served(tmp_path) as (_, visitor):
        connection = visitor.connect(start)
        with suppress(ConnectionResetError):
            assert connection.recv(10) == b""
        connection.close()


def test_a_client_that_does_not_read_is_dropped(tmp_path, hasty):
    folder = write_run(tmp_path / "a")
    (folder / "model.safetensors").touch()
    os.truncate(folder / "model.safetensors", 100_000_000)
    with served(tmp_path) as (server, visitor):
        link = re.search(rb'"link":"([^"]*)"', visitor.ask("/data.json")[1])[1].decode()
        connection = visitor.connect(visitor.head(f"/{link}model.safetensors"))
        connection.recv(100)
        assert server._answers == 1
        until(lambda: server._answers == 0)
        connection.close()


def test_beyond_the_cap_answers_are_refused_and_come_back(tmp_path, monkeypatch):
    folder = write_run(tmp_path / "a")
    (folder / "model.safetensors").touch()
    os.truncate(folder / "model.safetensors", 100_000_000)
    monkeypatch.setattr(serve, "MOST_ANSWERS", 2)
    with served(tmp_path) as (server, visitor):
        link = re.search(rb'"link":"([^"]*)"', visitor.ask("/data.json")[1])[1].decode()
        slow = [visitor.connect(visitor.head(f"/{link}model.safetensors")) for _ in range(2)]
        until(lambda: server._answers == 2)
        assert visitor.ask()[0] == 503
        assert Visitor(server.port).ask()[0] == 403  # refusals need no place
        for connection in slow:
            vanish(connection)
        until(lambda: server._answers == 0)
        assert visitor.ask()[0] == 200


def test_a_request_without_an_end_is_dropped(tmp_path):
    with served(tmp_path) as (_, visitor):
        connection = visitor.connect(b"GET / HTTP/1.1\r\n")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            connection.sendall(b"X: " + b"a" * 100_000_000)
        connection.close()
