"""A run killed with kill -9 and started again ends as if nothing had happened, bit for bit."""

import random
import shutil
import time

import pytest

import fedgm
from fedgm.running import one_run
from fedgm.seals import write_json
from tests.e2e.commands import TINY, is_alive, newest_checkpoint, read_summary, result, rows, run_folder

# Eq. 3 gives stages of 1, 2 and 4 rounds: every kill below is followed by another stage end or follows one.
RUN = (*TINY, "schedule=multistage", "rounds=7")


@pytest.fixture(scope="module")
def never_stopped(tmp_path_factory):
    home = tmp_path_factory.mktemp("reference")
    fedgm.run([*RUN, f"output_dir={home}"])
    return result(home)


@pytest.fixture(scope="module")
def unfinished(commands, tmp_path_factory):
    """Killed after round 4 or 5, with two checkpoints; to be copied, not used."""
    home = tmp_path_factory.mktemp("unfinished") / "out"
    command = commands.start(home, *RUN)
    after(4)(command)
    command.kill()
    return home


@pytest.fixture
def home(unfinished, tmp_path):
    return shutil.copytree(unfinished, tmp_path / "out")


def after(rounds, pause=0.0):
    """The moment ``pause`` seconds after the command has printed this many rounds of its own."""

    def moment(command):
        command.until(lambda: command.text.count("s/round") >= rounds and "folder" in command.text)
        time.sleep(pause)

    return moment


def die_and_come_back(commands, home, starts):
    """Each start is (arguments, the moment to kill it at); the last has None and must finish."""
    done, kept = 0, []
    for arguments, moment in starts:
        command = commands.start(home, *arguments)
        if moment is None:
            assert command.wait() == 0, command.text
        else:
            moment(command)
            command.kill()
        assert (f"continuing after round {done}\n" in command.text) == (done > 0)
        assert rows(home)[:done] == kept  # with their times: they were not computed again
        if moment is not None:
            done = newest_checkpoint(home)
            kept = rows(home)[:done]
            assert len(kept) == done  # the rows of a checkpoint are there before it is
    assert not (run_folder(home) / "checkpoints").exists()
    assert read_summary(home)["status"] == "finished"


def test_two_kills_and_two_numbers_of_workers_change_nothing(commands, tmp_path, never_stopped):
    draw = random.Random(1)
    two = (*RUN, "trainer.workers=2")
    workers = []

    def see_workers(command):
        after(1, draw.uniform(0, 0.15))(command)
        workers.extend(command.children())

    starts = [(two, see_workers), (RUN, after(2, draw.uniform(0, 0.15))), (two, None)]
    die_and_come_back(commands, tmp_path / "out", starts)
    assert result(tmp_path / "out") == never_stopped
    assert len(workers) == 1
    assert not is_alive(workers[0])


@pytest.mark.slow
def test_a_truncated_checkpoint_falls_back_to_the_one_before(home, never_stopped, capsys):
    newest = newest_checkpoint(home)
    path = run_folder(home) / f"checkpoints/round-{newest:06d}.ckpt"
    path.write_bytes(path.read_bytes()[:-1000])
    fedgm.run([*RUN, f"output_dir={home}"])
    printed = capsys.readouterr().out
    assert f"checkpoint {path.name} is damaged" in printed
    assert "using the one before" in printed
    assert f"continuing after round {newest - 1}\n" in printed
    assert result(home) == never_stopped


def test_with_every_checkpoint_truncated_it_starts_over_and_says_so(home, never_stopped, capsys):
    paths = list((run_folder(home) / "checkpoints").glob("round-*.ckpt"))
    for path in paths:
        path.write_bytes(path.read_bytes()[:100])
    fedgm.run([*RUN, f"output_dir={home}"])
    printed = capsys.readouterr().out
    assert len(paths) >= 2  # three, if it was killed before the oldest went
    assert all(f"checkpoint {path.name} is damaged" in printed for path in paths)
    assert "no checkpoint can be read: starting from round 1" in printed
    assert result(home) == never_stopped


def test_a_row_cut_off_by_the_kill_is_written_again(home, never_stopped):
    with (run_folder(home) / "metrics.jsonl").open("a") as file:
        file.write('{"round": 6, "train/lo')
    fedgm.run([*RUN, f"output_dir={home}"])
    assert result(home) == never_stopped


def test_a_change_of_program_is_mentioned(home, capsys):
    write_json(run_folder(home) / "summary.json", {**read_summary(home), "commit": "0123456"})
    fedgm.run([*RUN, f"output_dir={home}"])
    assert "begun with another program (commit 0123456 -> " in capsys.readouterr().out


def test_killed_between_the_last_round_and_the_summary(tmp_path, never_stopped, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(one_run.checkpoint, "discard", lambda folder: None)
        fedgm.run([*RUN, f"output_dir={tmp_path}"])
    folder = run_folder(tmp_path)
    before = read_summary(tmp_path)
    write_json(folder / "summary.json", {**before, "status": "running", "initial": None})
    (folder / "model.safetensors").unlink()
    recorded = (folder / "metrics.jsonl").read_bytes()
    capsys.readouterr()
    fedgm.run([*RUN, f"output_dir={tmp_path}"])
    assert "continuing after round 7\n" in capsys.readouterr().out
    assert result(tmp_path) == never_stopped
    assert (folder / "metrics.jsonl").read_bytes() == recorded
    assert read_summary(tmp_path) == before  # with x_0's evaluation, which only the checkpoint knew
    assert not (folder / "checkpoints").exists()


@pytest.mark.slow
def test_a_search_for_values_that_is_paused_ends_as_if_never_stopped(commands, tmp_path):
    words = (*TINY, "algorithm=fedgm", "schedule=auto", "local.lr=0.3", "rounds=80")
    assert commands.run(tmp_path / "whole", *words).code == 0
    for pause, workers in ((3, 1), (30, 2), (40, 1)):  # two workers decide, and one goes on
        more = (f"stop_after={pause}", f"trainer.workers={workers}")
        assert commands.run(tmp_path / "parts", *words, *more).code == 0
    assert commands.run(tmp_path / "parts", *words).code == 0
    assert result(tmp_path / "parts") == result(tmp_path / "whole")
    stages = read_summary(tmp_path / "whole")["stages"]
    assert len({stage["eta"] for stage in stages if stage["nu"] == 0}) > 2  # eta rose
    assert stages[-1]["nu"] > 0  # and FedGM's values came
