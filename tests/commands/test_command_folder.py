"""Commands are files: found by name, imported when called, ended in one place."""

import pytest
from click.testing import CliRunner

from fedgm import commands as group
from fedgm.commands import ends_plainly
from fedgm.errors import ConfigError, DataError, FedGMError, RefusedError

NEW = '"""Say hello.\n\nMore."""\nimport click\n\n@click.command()\ndef command():\n    click.echo("hello")\n'


def test_every_command_has_a_line_and_answers_help():
    names = group.main.list_commands(None)
    assert {"run", "sweep", "list", "data", "theory"} <= set(names)
    overview = " ".join(CliRunner().invoke(group.main, ["--help"]).output.split())
    for name in names:
        assert f"{name} {group.summary(name)}" in overview
        assert group.summary(name).endswith(".")
    assert "Usage: fedgm list" in CliRunner().invoke(group.main, ["list", "--help"], prog_name="fedgm").output


def test_a_new_command_is_one_file(tmp_path, monkeypatch):
    import fedgm.commands

    (tmp_path / "greet.py").write_text(NEW)
    monkeypatch.setattr(group, "FOLDER", tmp_path)
    monkeypatch.setattr(fedgm.commands, "__path__", [str(tmp_path)])
    assert "greet  Say hello." in CliRunner().invoke(group.main, ["--help"]).output
    assert CliRunner().invoke(group.main, ["greet"]).output == "hello\n"
    assert CliRunner().invoke(group.main, ["list"]).exit_code == 2


@pytest.mark.parametrize("words", [["list"], ["suggest"], ["show", "outputs"]])
def test_every_command_says_that_the_working_directory_is_gone(tmp_path, monkeypatch, words):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    ended = CliRunner().invoke(group.main, words)
    assert ended.exit_code == 2
    assert ended.output.startswith("error: the working directory is gone")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("a.b", 3, "more", "a.b=4"), 2),
        (RefusedError("no such folder"), 2),
        (FedGMError("a worker was killed"), 1),
        (DataError("cannot be fetched"), 1),
        (PermissionError("no"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_one_place_decides_how_a_command_ends(error, code, capsys):
    with pytest.raises(SystemExit) as ended, ends_plainly():
        raise error
    assert ended.value.code == code
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_ctrl_c_in_an_import_that_makes_another_error_of_it_is_ctrl_c(capsys):
    def imported():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ImportError("numpy could not be imported") from None

    with pytest.raises(SystemExit) as ended, ends_plainly():
        imported()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "stopped; the same command continues\n"


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), ends_plainly():
        raise ZeroDivisionError
