"""The real W&B client: without an account, without network, against a server on loopback."""

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from fedgm.running.wandb_run import INIT_TIMEOUT
from tests.e2e.commands import read_summary, rows, run_folder
from tests.e2e.wandb_client import KEY, numbers, of_rounds, same_rows, surroundings
from tests.e2e.wandb_stub import serving
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
TINY = ("profile=tiny", "trainer.workers=1")
COMMAND = [sys.executable, str(ROOT / "run.py"), *TINY, "rounds=2"]
QUESTIONS = ("Enter your choice", "Create a W&B account", "wandb.ai/authorize", "Paste an API key")


def records(path: Path):
    """The records of an offline file: LevelDB's log format, after a header of 7 bytes, holding protobuf."""
    from wandb.proto import wandb_internal_pb2

    data, place, whole = path.read_bytes(), 7, b""
    assert data[:4] == b":W&B"
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:  # a block ends in zeros where no header fits
            place += left
            continue
        size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # a whole record, or the last part of one
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


def offline_file(folder: Path) -> Path:
    """The one offline record of a run."""
    (found,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    return found


def read_offline(folder: Path) -> tuple[dict, list[dict]]:
    """Config and history rows of the one offline record."""
    config, history = {}, []
    for record in records(offline_file(folder)):
        if record.WhichOneof("record_type") == "run":
            config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
        elif record.WhichOneof("record_type") == "history":
            items = record.history.item
            history.append({i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in items})
    return config, history


def test_without_account_and_terminal_it_records_offline_and_sync_sends_it(tmp_path, stranger):
    env = surroundings(stranger)
    done = subprocess.run(
        [*COMMAND, f"output_dir={tmp_path / 'o'}"], env=env, cwd=tmp_path, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not any(question in done.stdout + done.stderr for question in QUESTIONS)
    own = rows(tmp_path / "o")
    config, history = read_offline(run_folder(tmp_path / "o"))
    assert numbers(history) == [0, 1, 2]
    assert same_rows(history, own)
    assert all(0 <= row["test/acc"] <= 1 for row in of_rounds(history))
    assert (config["rounds"], config["algorithm"], config["data.seed"]) == (2, "fedgm", 0)
    assert {p.name for p in tmp_path.iterdir()} == {"o", "home"}  # no stray wandb/ or outputs/

    with serving() as server:
        program, record = Path(sys.executable).with_name("wandb"), offline_file(run_folder(tmp_path / "o"))
        sync = subprocess.run(
            [str(program), "sync", str(record.parent)],
            env={**env, "WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY}, cwd=tmp_path,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert list(server.runs), sync.stdout + sync.stderr
        (name,) = server.runs
        assert same_rows(server.rows(name), own)
        assert server.run(name)["config"]["rounds"]["value"] == 2
        assert server.run(name)["summary"]["status"] == "finished"
        assert server.run(name)["summary"]["final/test/acc"] == own[-1]["test/acc"]


@pytest.mark.slow
def test_a_record_has_job_type_tags_and_curves_and_the_model_only_when_asked(tmp_path, stranger):
    for artifacts in (False, True):
        words = ("track.mode=offline", "track.tags=[mine]", f"track.artifacts={artifacts}".lower())
        home = tmp_path / str(artifacts)
        command = [*COMMAND, f"output_dir={home}", *words]
        subprocess.run(command, env=surroundings(stranger), cwd=tmp_path, check=True, capture_output=True)
        found = list(records(offline_file(run_folder(home))))
        kinds = [record.WhichOneof("record_type") for record in found]
        (run, *_) = (record.run for record in found if record.WhichOneof("record_type") == "run")
        assert run.job_type == "fedgm"
        assert set(run.tags) == {"mine", "run", "fedgm", "constant", "ideal", "tiny"}
        saved = [f.path for r in found if r.WhichOneof("record_type") == "files" for f in r.files.files]
        assert any(path.startswith("media/images/curves") for path in saved)
        sent = [
            r
            for r in found
            if r.WhichOneof("record_type") == "request" and r.request.HasField("log_artifact")
        ]
        assert ("artifact" in kinds or bool(sent)) == artifacts


def on_a_terminal(folder: Path, env: dict[str, str], *words: str) -> str:
    """All that the command shows to somebody who sits before it and types nothing."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, f"output_dir={folder / 'o'}", *words], env={**env, "TERM": "xterm", "COLUMNS": "80"},
        cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    text = b""
    try:
        while not any(q.encode() in text for q in QUESTIONS):
            assert select.select([ours], [], [], PATIENCE)[0], text.decode()
            try:
                text += os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
        assert not any(question in text.decode() for question in QUESTIONS), text.decode()
        assert process.wait(timeout=PATIENCE) == 0, text.decode()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)
    return text.decode()


@pytest.mark.parametrize(
    ("mode", "variable"),
    [
        pytest.param("auto", {}, marks=pytest.mark.slow),
        pytest.param("online", {}, marks=pytest.mark.slow),
        pytest.param("auto", {"WANDB_MODE": "online"}, marks=pytest.mark.slow),
    ],
)
def test_on_a_terminal_it_does_not_ask_either(tmp_path, stranger, mode, variable):
    shown = on_a_terminal(tmp_path, surroundings(stranger) | variable, f"track.mode={mode}")
    assert "2/2" in shown  # the progress bar of a terminal
    asked = mode == "online" or bool(variable)
    assert ("track.mode=online needs a key" in " ".join(shown.split())) == asked
    assert same_rows(read_offline(run_folder(tmp_path / "o"))[1], rows(tmp_path / "o"))


@pytest.mark.slow
def test_a_multirun_of_three_makes_three_runs(tmp_path, stranger, commands):
    words = ("-m", *TINY, "rounds=1", "algorithm=fedavg,fedavgm,fedgm")
    command = commands.run(tmp_path / "o", *words, **stranger)
    assert command.code == 0, command.text
    folders = sorted((tmp_path / "o").glob("*/*/seed=0"))
    found = [read_offline(folder) for folder in folders]
    assert sorted(config["algorithm"] for config, _ in found) == ["fedavg", "fedavgm", "fedgm"]
    assert [numbers(history) for _, history in found] == [[0, 1]] * 3
    assert len({offline_file(folder).name for folder in folders}) == 3


@pytest.mark.slow
def test_a_run_that_was_killed_and_continued_is_one_record_with_all_rows(tmp_path, stranger, commands):
    words = (*TINY, "rounds=12", "track.mode=offline")
    first = commands.start(tmp_path / "o", *words, **stranger)
    first.until_row(3)
    first.kill()
    second = commands.run(tmp_path / "o", *words, **stranger)
    assert second.code == 0, second.text
    assert "continuing after round" in second.text
    _, history = read_offline(run_folder(tmp_path / "o"))
    assert numbers(history) == list(range(13))
    assert same_rows(history, rows(tmp_path / "o"))


@pytest.mark.slow
def test_an_unreachable_server_means_offline_after_our_time_not_wandbs(tmp_path, stranger, commands):
    env = {**stranger, "WANDB_API_KEY": KEY, "WANDB_BASE_URL": "http://127.0.0.1:1"}
    command = commands.run(tmp_path / "o", *TINY, "rounds=1", **env)
    assert command.code == 0, command.text
    said = re.search(r"W&B cannot be reached \((.*?)\): recording offline", command.words)
    ends = (
        f"timed out after {INIT_TIMEOUT}",
        "context deadline exceeded",
    )  # W&B's own time is 90 s
    assert said, command.words
    assert any(end in said[1] for end in ends), said[1]
    assert same_rows(read_offline(run_folder(tmp_path / "o"))[1], rows(tmp_path / "o"))


@pytest.mark.parametrize("mode", ["offline", "auto", "disabled"])
def test_inside_a_sweep_agent_a_record_that_never_arrives_is_refused(tmp_path, stranger, commands, mode):
    words = (*TINY, "rounds=1", f"track.mode={mode}")
    command = commands.run(tmp_path / "o", *words, **stranger, WANDB_SWEEP_ID="abc123")
    resolved = "offline" if mode == "auto" else mode
    assert command.code == 2
    assert f"track.mode={resolved}: inside a sweep agent" in command.words
    assert "fedgm sweep FILE" in command.words
    assert not list((tmp_path / "o").rglob("metrics.jsonl"))


def test_an_online_run_arrives_and_a_sweep_gets_the_rows_of_a_finished_one(tmp_path, stranger, commands):
    with serving() as server:
        env = {**stranger, "WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY}
        command = commands.run(tmp_path / "o", *TINY, "rounds=2", **env)
        assert command.code == 0, command.text
        own, folder = rows(tmp_path / "o"), run_folder(tmp_path / "o")
        (name,) = server.runs
        assert same_rows(server.rows(name), own)
        assert server.run(name)["exit"] == 0
        config, summary = server.run(name)["config"], server.run(name)["summary"]
        sent = {key: config[key]["value"] for key in ("algorithm", "algorithm.eta", "parameters", "commit")}
        stored = read_summary(tmp_path / "o")
        assert sent == {
            "algorithm": "fedgm", "algorithm.eta": 1.0, "parameters": stored["parameters"],
            "commit": stored["commit"],
        }  # fmt: skip
        assert config["setting"]["value"] == server.run(name)["group"] == folder.parent.name
        last10 = sum(row["test/acc"] for row in own) / 2  # what `fedgm sweep --best` ranks by
        assert summary["last10/test/acc"] == pytest.approx(last10, abs=1e-12)
        assert server.rows(name)[1]["last10/test/acc"] == own[0]["test/acc"]
        (picture,) = [row["curves"] for row in server.rows(name) if "curves" in row]
        assert picture["_type"] == "image-file"
        assert server.run(name)["files"][picture["path"]] == (folder / "curves.png").read_bytes()
        assert "round 1/2" in server.run(name)["output"]
        assert "symlink" not in command.text.lower()
        assert server.run(name)["summary"]["final/test/acc"] == own[-1]["test/acc"]

        env |= {"WANDB_SWEEP_ID": "abc123", "WANDB_RUN_ID": "sweeprun"}
        again = commands.run(tmp_path / "o", *TINY, "rounds=2", **env)
        assert again.code == 0, again.text
        assert "already done" in again.text
        assert same_rows(server.rows("sweeprun"), own)
