"""fedgm deploy: what it writes, and what it refuses; the runs themselves are in test_loopback.py."""

import tomllib

import pytest
from click.testing import CliRunner

from fedgm.commands import main
from fedgm.flower.loopback import TEMPLATE, Follow, free_port, write_app


def fedgm_command(*words):
    return CliRunner().invoke(main, words, catch_exceptions=False)


def test_new_writes_an_app_and_replaces_nothing(tmp_path):
    result = fedgm_command("deploy", "new", str(tmp_path / "app"))
    assert result.exit_code == 0
    written = sorted(
        str(p.relative_to(tmp_path / "app")) for p in (tmp_path / "app").rglob("*") if p.is_file()
    )
    assert written == [
        "certificates.sh",
        *(f"fedgm_app/{name}.py" for name in ("__init__", "client", "server")),
        "pyproject.toml",
    ]
    app = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    assert app["components"] == {"serverapp": "fedgm_app.server:app", "clientapp": "fedgm_app.client:app"}
    assert set(app["config"]) == {"words", "wait", "timeout", "min-replies", "log"}
    again = fedgm_command("deploy", "new", str(tmp_path / "app"))
    assert again.exit_code == 2
    assert "is not empty" in again.output


def test_server_and_client_are_a_few_lines():
    for name in ("server", "client"):
        code = (TEMPLATE / "fedgm_app" / f"{name}.py").read_text().split('"""')[2]
        assert len(code.strip().splitlines()) <= 10


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "3", "clients.count=5"], "clients.count=5: a node is a client. Try --nodes 5"),
        (["--nodes", "0"], "--nodes=0: expected at least 1"),
        (["algorithm=fedgn"], "algorithm=fedgn"),
        (["--nodes", "2", "clients.per_round=3"], "clients.per_round=3"),
    ],
)
def test_local_refuses_before_anything_is_started(words, said, tmp_path):
    result = fedgm_command("deploy", "local", *words, "profile=tiny", f"output_dir={tmp_path}")
    assert result.exit_code == 2
    assert said in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_followed_line_by_line(tmp_path):
    said, path = [], tmp_path / "log"
    follow = Follow(path, said.append)
    follow.lines()
    path.write_text("one\ntwo\nthr")
    follow.lines()
    assert said == ["one", "two"]
    with path.open("a") as file:
        file.write("ee\n")
    follow.lines()
    assert said == ["one", "two", "three"]


def test_ports_are_free_and_files_that_are_there_stay(tmp_path):
    assert 1024 < free_port() < 65536
    (tmp_path / "pyproject.toml").write_text("mine")
    assert tmp_path / "pyproject.toml" not in write_app(tmp_path)
    assert (tmp_path / "pyproject.toml").read_text() == "mine"
