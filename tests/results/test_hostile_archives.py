"""Archives that claim anything: a sentence, or runs that every reader can use; never a traceback."""

import io
import json
import os

import pytest

from fedgm import intake
from fedgm.dashboard import payload, render
from fedgm.dashboard.collect import Collector
from fedgm.errors import RefusedError
from fedgm.results import archive, choose, shape, table
from fedgm.results.find import configuration, read_folder
from fedgm.results.run import Run, once
from fedgm.screen import Screen
from fedgm.study import compare
from tests.dashboard.dashboard_runs import write_run

LARGE = 10**400
WRONG = [
    None, True, -1, 3, 2**62, 2**70, LARGE, 1.5, float("nan"), float("inf"), "", "x", "../../x", "\ud800",
    [], [1], [None], {}, {"a": 1}, {"rounds": 1}, [{"rounds": None}], [{"rounds": 2**60}], [{"name": 1}],
    [{"name": "a", "label": []}],
]  # fmt: skip


def base() -> list[dict]:
    """A head with a shared configuration, and a run that diverged."""
    facts = dict.fromkeys(shape.FACTS) | {
        "hash": "a" * 64, "name": "made", "algorithm": "fedgm", "seed": 0, "rounds": 6, "status": "diverged",
        "rounds_done": 4, "seconds": 1.0, "classes": 10, "stages": [{"rounds": 6, "eta": 1.0}],
        "initial": {"test/acc": 0.1}, "metric": "test/acc",
        "metrics": [{"name": "acc", "label": "accuracy", "better": "higher", "scale": 100.0, "unit": "%"}],
    }  # fmt: skip
    rows = {"round": [2, 4], "test/acc": [0.1, 0.2], "test/loss": [2.0, None]}
    config = {"algorithm.eta": 1.0, "eval.every": 2, "data.name": "cifar10"}
    head = {"format": archive.FORMAT, "config": config}
    return [head, {**facts, "config": {"seed": 0}, "without": [], "evaluations": rows}]


def write(path, lines) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def use(runs: list[Run]) -> None:
    """Everything that lists, sorts, compares or shows runs."""
    screen = Screen(file=io.StringIO(), width=100)
    screen.print(table.of_runs(runs))
    for run in runs:
        table.show(run, screen)
        run.score(), run.final(), run.curve("test/acc"), run.near_chance, run.stage_ends, run.label
    choose.order(choose.matching(runs, ["seed=0"]), "rounds")
    compare.latex_table(compare.rows({"line": runs}, target=0.15))
    compare.title(runs), compare.caption(runs), once(runs)


def read_or_refused(path) -> bool:
    """Whether the file was read; else it was refused in words."""
    try:
        runs = archive.read(path)
    except RefusedError:
        return False
    use(runs)
    archive.write(path, runs)  # what was read can be written again
    assert len(archive.read(path)) == len(runs)
    collected = Collector([path]).collect()
    render.render(payload.build(collected, "all", lambda run: None))
    return True


def test_the_archive_that_the_others_are_made_of_is_read(tmp_path):
    write(tmp_path / "a.jsonl", base())
    assert read_or_refused(tmp_path / "a.jsonl")


@pytest.mark.parametrize("key", [*shape.FACTS, "config", "without", "evaluations"])
def test_a_fact_of_the_wrong_kind_is_refused_or_does_no_harm(tmp_path, key):
    for value in WRONG:
        head, run = base()
        write(tmp_path / "a.jsonl", [head, {**run, key: value}])
        read_or_refused(tmp_path / "a.jsonl")
    head, run = base()
    del run[key]
    write(tmp_path / "a.jsonl", [head, run])
    needed = ("hash", "seed", "status", "config", "without", "evaluations")
    assert read_or_refused(tmp_path / "a.jsonl") == (key not in (*needed, "metric", "metrics"))


@pytest.mark.parametrize("key", ["algorithm.eta", "eval.every", "data.name", "data.source.classes", "new"])
def test_a_configuration_of_the_wrong_kind_does_no_harm(tmp_path, key):
    for value in WRONG:
        head, run = base()
        write(tmp_path / "a.jsonl", [head, {**run, "config": {key: value}}])
        read = read_or_refused(tmp_path / "a.jsonl")
        assert read == (value not in (LARGE, "\ud800"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"round": [2, 4], "test/acc": [0.1]}, "columns of different lengths"),
        ({"test/acc": [0.1]}, "columns of different lengths, or no rounds"),
        ({"round": [4, 2]}, "rounds do not increase"),
        ({"round": [2, 2]}, "rounds do not increase"),
        ({"round": [True, 2]}, "rounds do not increase"),
        ({"round": ["1"]}, "rounds do not increase"),
        ({"round": [1], "test/acc": ["0.1"]}, "an evaluation is not a number"),
        ({"round": [1], "test/acc": [float("nan")]}, "an evaluation is not a number"),
        ({"round": [1], "test/acc": [LARGE]}, "a number beyond 1e308"),
        ({"round": [1], "test/acc": [[0.1]]}, "an evaluation is not a number"),
    ],
)
def test_rows_that_no_run_has_written_are_refused(tmp_path, rows, said):
    head, run = base()
    write(tmp_path / "a.jsonl", [head, {**run, "evaluations": rows}])
    with pytest.raises(RefusedError, match=rf"a\.jsonl: stored results are damaged .*{said}"):
        archive.read(tmp_path / "a.jsonl")


DEEP = "[" * 900 + "]" * 900
HEAD = json.dumps({"format": archive.FORMAT, "config": {}})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"{}\n", "it does not begin with"),
        (json.dumps({"format": archive.FORMAT, "config": 3}).encode(), "config is not a set of keys"),
        (f'{HEAD[:-1]}, "x": {DEEP}}}\n'.encode(), "nested more than 40 levels deep"),
        (f"{HEAD}\n{DEEP}\n".encode(), "nested more than 40 levels deep"),
        (f"{HEAD}\n{'[' * 100_000}\n".encode(), "nested more than 40 levels deep"),
        (f"{HEAD}\n".encode() + b'{"name": "\xff"}\n', "not JSON"),
        (f"{HEAD}\n{{\n".encode(), "not JSON"),
        (f"{HEAD}\n{'1' * 5000}\n".encode(), "not JSON"),
    ],
)
def test_bytes_that_no_archive_has_are_refused(tmp_path, content, said):
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(RefusedError, match=said):
        archive.read(tmp_path / "a.jsonl")


def test_an_archive_has_a_largest_size_and_a_longest_line(tmp_path, monkeypatch):
    with (tmp_path / "a.jsonl").open("wb") as file:
        file.truncate(2**40)  # sparse: no disk
    with pytest.raises(RefusedError, match="more than 1,073,741,824 bytes"):
        archive.read(tmp_path / "a.jsonl")
    monkeypatch.setattr(intake, "LINE", 100)
    (tmp_path / "b.jsonl").write_text(HEAD + " " * 200)
    with pytest.raises(RefusedError, match="a line of more than 100 bytes"):
        archive.read(tmp_path / "b.jsonl")


def test_a_device_and_a_folder_are_no_archives(tmp_path):
    for path in ("/dev/zero", tmp_path):
        with pytest.raises(RefusedError, match=r"not a file|Is a directory"):
            archive.read(type(tmp_path)(path))


# The same way in for run folders -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{a: " * 900 + "1" + "}" * 900,
        "1: 2",
        "a: 2020-01-01",
        f"a: 0x{'f' * 5000}",
        "a: &x [1]\nb: *x",
        "[" * 10**5,
    ],
    ids=["deep", "key", "date", "large", "alias", "open"],
)
def test_a_configuration_that_no_run_has_written_is_read_as_none(tmp_path, text):
    folder = write_run(tmp_path / "run")
    (folder / "config.yaml").write_text(text)
    assert configuration(folder) == {}
    run = read_folder(folder)
    assert run is not None
    use([run])


@pytest.mark.parametrize("value", [{"a": LARGE}, {"a": "\ud800"}, {"deep": json.loads(DEEP[300:-300])}])
def test_a_summary_has_the_same_limits(tmp_path, value):
    folder = write_run(tmp_path / "run")
    content = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(content | value))
    assert read_folder(folder) is None


def test_a_file_that_becomes_a_pipe_after_it_was_looked_at_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(intake.UnfitFileError, match="not a file"):
        intake.read_bytes(tmp_path / "pipe", 10)


def test_an_alias_that_stands_for_everything_is_refused():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for one, other in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{other}: &{other} [{', '.join(['*' + one] * 10)}]\n"
    with pytest.raises(intake.UnfitFileError, match="more than 5,000,000 values"):
        intake.from_yaml(bomb)
