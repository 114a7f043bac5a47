"""The served page: newer rows arrive, nobody else may ask, only plain files on the page are given out."""

import json
import os
import shutil

import pytest

from fedgm.dashboard import source
from fedgm.dashboard.collect import Collector
from fedgm.dashboard.serve import Server
from fedgm.dashboard.source import PayloadSource
from tests.dashboard.dashboard_runs import write_run
from tests.dashboard.served import Visitor, served

SECRET = b"algorithm: {name: secret, eta: 77.125}\n"


def test_new_rows_arrive_and_old_ones_are_not_sent_twice(tmp_path):
    write_run(tmp_path / "a", rounds=100, done=20, status="paused")
    with served(tmp_path) as (_, visitor):
        status, body, headers = visitor.ask()
        assert (status, b'data-mode="live"' in body, b"connect-src 'self'" in body) == (200, True, True)
        status, body, headers = visitor.ask("/data.json")
        assert json.loads(body)["runs"][0]["rounds_done"] == 20
        assert visitor.ask("/data.json", **{"If-None-Match": headers["ETag"]})[:2] == (304, b"")
        write_run(tmp_path / "a", rounds=100, done=30, status="paused")
        status, body, _ = visitor.ask("/data.json", **{"If-None-Match": headers["ETag"]})
        assert (status, json.loads(body)["runs"][0]["rounds_done"]) == (200, 30)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", ""])
def test_a_foreign_name_for_this_machine_is_refused(tmp_path, host):
    write_run(tmp_path / "a")
    with served(tmp_path) as (server, visitor):
        for path in ("/", "/data.json", f"/?token={server.access.token}"):
            status, body, headers = visitor.ask(path, Host=host)
            assert (status, b"fedgm" in body, headers["Set-Cookie"]) == (403, False, None)
        assert visitor.ask("/", Host=f"localhost:{server.port}")[0] == 200


def test_only_files_on_the_page_are_given_out(tmp_path):
    folder = write_run(tmp_path / "a")
    (folder / "secret.txt").write_text("secret")
    (tmp_path / "outside.json").write_text("{}")
    with served(tmp_path) as (_, visitor):
        link = json.loads(visitor.ask("/data.json")[1])["runs"][0]["link"]
        status, body, headers = visitor.ask(f"/{link}config.yaml")
        assert (status, body) == (200, (folder / "config.yaml").read_bytes())
        assert headers["Content-Type"] == "text/plain; charset=utf-8"  # shown, never run
        for name in ("secret.txt", "../../outside.json", "..%2F..%2Foutside.json", "", "config.yaml/x"):
            assert visitor.ask(f"/{link}{name}")[0] == 404
        assert visitor.ask("/etc/passwd")[0] == 404
        assert visitor.ask("/runs/x/config.yaml")[0] == 404


def link_to_a_file(path, secret):
    path.symlink_to(secret)


def link_to_a_device(path, secret):
    path.symlink_to("/dev/zero")


def pipe(path, secret):
    os.mkfifo(path)


def large(path, secret):
    path.touch()
    os.truncate(path, source.LARGEST + 1)


def folder_behind_a_link(path, secret):
    shutil.move(path.parent, secret.parent / "moved")
    (secret.parent / "moved" / path.name).write_bytes(SECRET)
    path.parent.symlink_to(secret.parent / "moved")


ODD = [link_to_a_file, link_to_a_device, pipe, large, folder_behind_a_link]


@pytest.mark.parametrize("change", ODD)
@pytest.mark.parametrize("name", ["config.yaml", "model.safetensors"])
def test_links_pipes_devices_and_huge_files_are_not_given_out(tmp_path, name, change):
    folder = write_run(tmp_path / "runs" / "a")
    secret = tmp_path / "elsewhere" / "secret.yaml"
    secret.parent.mkdir()
    secret.write_bytes(SECRET)
    with served(tmp_path / "runs") as (_, visitor):
        link = json.loads(visitor.ask("/data.json")[1])["runs"][0]["link"]
        (folder / name).unlink(missing_ok=True)
        change(folder / name, secret)  # after the page has been built
        status, body, _ = visitor.ask(f"/{link}{name}")
        assert (status, SECRET in body) == (404, False)


@pytest.mark.parametrize("change", [link_to_a_file, link_to_a_device, pipe, folder_behind_a_link])
@pytest.mark.parametrize("name", ["summary.json", "config.yaml", "metrics.jsonl"])
def test_nothing_behind_a_link_or_pipe_is_on_the_page(tmp_path, name, change):
    write_run(tmp_path / "runs" / "good")
    folder = write_run(tmp_path / "runs" / "odd", eta=2.0)
    secret = tmp_path / "elsewhere" / "secret.yaml"
    secret.parent.mkdir()
    shutil.copy(folder / name, secret)  # what is behind the link is a good file
    (folder / name).unlink()
    change(folder / name, secret)
    with served(tmp_path / "runs") as (_, visitor):
        values = json.loads(visitor.ask("/data.json")[1])
    assert [run["config"].get("algorithm.eta", 1.0) for run in values["runs"]] == [1.0]
    if change is not folder_behind_a_link:  # a folder behind a link is not looked at
        assert any(note.endswith(": runs/odd") for note in values["notes"])


def test_a_file_that_is_a_link_is_not_offered(tmp_path):
    folder = write_run(tmp_path / "a")
    (tmp_path / "secret.png").write_bytes(b"png")
    (folder / "curves.png").symlink_to(tmp_path / "secret.png")
    with served(tmp_path) as (_, visitor):
        (run,) = json.loads(visitor.ask("/data.json")[1])["runs"]
        assert "config.yaml" in run["files"]
        assert "curves.png" not in run["files"]
        assert visitor.ask(f"/{run['link']}curves.png")[0] == 404


def test_folders_that_the_user_typed_may_be_links(tmp_path):
    write_run(tmp_path / "disk" / "a")
    (tmp_path / "outputs").symlink_to(tmp_path / "disk")
    with served(tmp_path / "outputs") as (_, visitor):
        link = json.loads(visitor.ask("/data.json")[1])["runs"][0]["link"]
        assert visitor.ask(f"/{link}config.yaml")[0] == 200


def test_without_the_token_nothing_is_shown(tmp_path):
    write_run(tmp_path / "a")
    with served(tmp_path) as (server, visitor):
        link = json.loads(visitor.ask("/data.json")[1])["runs"][0]["link"]
        stranger = Visitor(server.port)
        for cookie in ("", f"{server.access.name}=", f"{server.access.name}=wrong", visitor.cookie[:-1]):
            stranger.cookie = cookie
            for path in ("/", "/data.json", f"/{link}config.yaml", "/?token=", "/?token=wrong"):
                status, body, headers = stranger.ask(path)
                assert (status, b"fedgm dashboard --serve" in body) == (403, True)
                assert headers["Set-Cookie"] is None


def test_the_token_is_exchanged_for_a_cookie_and_is_in_no_later_answer(tmp_path):
    write_run(tmp_path / "a")
    with served(tmp_path) as (server, visitor):
        token = server.access.token
        status, body, headers = Visitor(server.port).ask(f"/?token={token}")
        assert (status, body, headers["Location"]) == (303, b"", "/")
        pair, *properties = headers["Set-Cookie"].split("; ")
        assert pair == visitor.cookie
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} == set(properties)
        assert token not in pair
        for path in ("/", "/data.json"):
            _, body, headers = visitor.ask(path)
            assert token not in body.decode() + str(headers)
        visitor.cookie = f'theme={{"a"; x; {visitor.cookie}; ='  # cookies of other servers of this machine
        assert visitor.ask()[0] == 200
        assert visitor.ask("/?token=old")[2]["Location"] == "/"  # who has the cookie loses the token, too


def test_servers_do_not_accept_each_others_cookies(tmp_path):
    with served(tmp_path) as (_, visitor), served(tmp_path) as (other, _):
        name = other.access.name
        assert Visitor(other.port, f"{name}={visitor.cookie.partition('=')[2]}").ask()[0] == 403


def test_a_browser_that_is_opened_gets_a_token_that_works_once(tmp_path):
    with served(tmp_path) as (server, _):
        address = server.address(server.access.once())
        Visitor(server.port).enter(address)
        assert Visitor(server.port).ask(f"/{address.rpartition('/')[2]}")[0] == 403


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "OPTIONS"])
def test_other_methods_are_refused(tmp_path, method):
    with served(tmp_path) as (_, visitor):
        assert visitor.ask("/", method)[0] == 405


@pytest.mark.parametrize(
    "request_", [b"hello\r\n\r\n", b"GET http://[ HTTP/1.1\r\n\r\n", b"\xff\x00\r\n\r\n"]
)
def test_what_is_not_a_request_is_refused(tmp_path, request_):
    with served(tmp_path) as (_, visitor):
        connection = visitor.connect(request_)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
        connection.close()


def test_a_fault_is_shown_in_the_terminal_and_the_server_goes_on(tmp_path, monkeypatch, capfd):
    write_run(tmp_path / "a")
    with served(tmp_path) as (server, visitor):
        with monkeypatch.context() as patch:
            patch.setattr(server.source, "data", lambda: 1 / 0)
            assert visitor.ask("/data.json")[0] == 500
        assert "ZeroDivisionError" in capfd.readouterr().err
        assert visitor.ask("/data.json")[0] == 200


def test_the_server_listens_on_this_machine_alone(tmp_path):
    server = Server(PayloadSource(Collector([tmp_path]), "runs"), 0)
    assert server._socket.getsockname()[0] == "127.0.0.1"
    server._socket.close()
