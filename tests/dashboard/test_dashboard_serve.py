"""The served page: newer rows arrive, nobody else may ask, only files on the page are given out."""

import json
import threading
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from fedgm.dashboard.collect import Collector
from fedgm.dashboard.serve import ADDRESS, PayloadSource, make_server
from tests.dashboard.dashboard_runs import write_run
from tests.waiting import PATIENCE


@contextmanager
def served(path):
    server = make_server(PayloadSource(Collector([path]), "runs"), 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask(port, path="/", **headers):
    connection = HTTPConnection(ADDRESS, port, timeout=PATIENCE)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, answer.headers


def test_new_rows_arrive_and_old_ones_are_not_sent_twice(tmp_path):
    write_run(tmp_path / "a", rounds=100, done=20, status="paused")
    with served(tmp_path) as port:
        status, body, headers = ask(port)
        assert (status, b'data-mode="live"' in body, b"connect-src 'self'" in body) == (200, True, True)
        status, body, headers = ask(port, "/data.json")
        assert json.loads(body)["runs"][0]["rounds_done"] == 20
        assert ask(port, "/data.json", **{"If-None-Match": headers["ETag"]})[:2] == (304, b"")
        write_run(tmp_path / "a", rounds=100, done=30, status="paused")
        status, body, _ = ask(port, "/data.json", **{"If-None-Match": headers["ETag"]})
        assert (status, json.loads(body)["runs"][0]["rounds_done"]) == (200, 30)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", ""])
def test_a_foreign_name_for_this_machine_is_refused(tmp_path, host):
    write_run(tmp_path / "a")
    with served(tmp_path) as port:
        for path in ("/", "/data.json"):
            status, body, _ = ask(port, path, Host=host)
            assert (status, b"fedgm" in body) == (403, False)
        assert ask(port, "/", Host=f"localhost:{port}")[0] == 200


def test_only_files_on_the_page_are_given_out(tmp_path):
    folder = write_run(tmp_path / "a")
    (folder / "secret.txt").write_text("secret")
    (tmp_path / "outside.json").write_text("{}")
    with served(tmp_path) as port:
        link = json.loads(ask(port, "/data.json")[1])["runs"][0]["link"]
        status, body, headers = ask(port, f"/{link}config.yaml")
        assert (status, body) == (200, (folder / "config.yaml").read_bytes())
        assert headers["Content-Type"] == "text/plain"  # shown, never run
        for name in ("secret.txt", "../../outside.json", "..%2F..%2Foutside.json", "", "config.yaml/x"):
            assert ask(port, f"/{link}{name}")[0] == 404
        assert ask(port, "/etc/passwd")[0] == 404
        assert ask(port, "/runs/x/config.yaml")[0] == 404


def test_the_server_listens_on_this_machine_alone(tmp_path):
    server = make_server(PayloadSource(Collector([tmp_path]), "runs"), 0)
    assert server.server_address[0] == "127.0.0.1"
    server.server_close()
