"""What a run leaves behind: rows, summary, curves, the closing table, and the frame made of them."""

import io
import json
import struct
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from fedgm.figures import curves, style
from fedgm.results import curve, rows, summary
from fedgm.results.run import mean_steps
from fedgm.running import facts, terminal
from fedgm.screen import Screen
from fedgm.tasks.metric import scoreboard
from tests.quick_curves import QuickCurves

BOARD = scoreboard({})  # of classification
NAN, INF = float("nan"), float("inf")


def row(t: int, acc: float | None = None, loss: float | None = None, **more) -> dict:
    """A row with the keys that a summary reads; acc and loss of the test set, train is better by .1."""
    return {
        "round": t,
        "test/acc": acc,
        "test/loss": loss,
        "train/acc": None if acc is None else acc + 0.1,
        "train/loss": None if loss is None else loss - 0.1,
        "time/round": 2.0,
        "time/eval": None if acc is None else 0.5,
        **more,
    }


# Rows -----------------------------------------------------------------------------------------------------


def test_what_is_no_number_becomes_null():
    text = rows.dump(
        {"round": 3, "server/gain": NAN, "test/loss": INF, "train/loss": -INF, "x": None, "y": 0.5}
    )
    assert text.endswith("\n")
    values = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    expected = {"round": 3, "server/gain": None, "test/loss": None, "train/loss": None, "x": None, "y": 0.5}
    assert values == expected


def test_rows_come_back_as_they_were_to_the_last_bit(tmp_path):
    recorded = [{"round": 1, "a": 0.1 + 0.2}, {"round": 2, "a": 1e-300}]
    (tmp_path / "m.jsonl").write_text("".join(map(rows.dump, recorded)))
    assert rows.read(tmp_path / "m.jsonl") == recorded


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_truncated_last_line_is_dropped(tmp_path, cut):
    text = rows.dump({"round": 1, "a": 0.5}) + rows.dump({"round": 2, "a": 0.25})
    (tmp_path / "m.jsonl").write_text(text[:-cut])
    kept = rows.read(tmp_path / "m.jsonl")
    assert kept == [{"round": 1, "a": 0.5}, {"round": 2, "a": 0.25}][: 2 if cut == 1 else 1]


def test_no_file_is_no_row(tmp_path):
    assert rows.read(tmp_path / "absent") == []


# Summary --------------------------------------------------------------------------------------------------


def test_summary_numbers_by_hand():
    recorded = [row(1), row(2, 0.2, 2.0), row(3), row(4, 0.6, 1.0), row(5), row(6, 0.4, 1.2)]
    got = rows.summarise(recorded, BOARD)
    assert got["rounds_done"] == 6
    assert got["seconds"] == 6 * 2.0 + 3 * 0.5
    assert got["final"] == {
        "round": 6, "test/acc": 0.4, "test/loss": 1.2, "train/acc": 0.5, "train/loss": pytest.approx(1.1),
    }  # fmt: skip
    assert (got["best"]["round"], got["best"]["test/acc"]) == (4, 0.6)
    assert got["last10"]["test/acc"] == pytest.approx(0.4)  # (.2+.6+.4)/3
    assert got["last10"]["train/loss"] == pytest.approx(1.3)  # (1.9+.9+1.1)/3


def test_the_mean_is_over_the_last_ten_evaluations_and_not_rounds():
    recorded = [r for t in range(1, 31) for r in ([row(t, t / 100, 1.0)] if t % 2 == 0 else [row(t)])]
    assert rows.summarise(recorded, BOARD)["last10"]["test/acc"] == pytest.approx(
        0.21
    )  # rounds 12, 14 ... 30
    assert curve.LAST == 10


def test_the_first_of_equally_good_rounds_is_best():
    assert rows.summarise([row(1, 0.5, 1.0), row(2, 0.5, 0.9)], BOARD)["best"]["round"] == 1


def test_a_mean_over_a_lost_value_is_no_number():
    recorded = [row(1, 0.5, None), row(2, 0.5, 1.0)]
    assert rows.summarise(recorded, BOARD)["last10"]["test/loss"] is None
    assert rows.summarise(recorded, BOARD)["last10"]["test/acc"] == 0.5


def test_without_evaluations_there_is_nothing_to_say():
    got = rows.summarise([row(1), row(2)], BOARD)
    assert (got["rounds_done"], got["final"], got["best"], got["last10"]) == (2, None, None, None)


def test_what_changed_since_a_run_was_begun():
    before = {"versions": {"torch": "1", "numpy": "2", "cpu": "AVX2"}, "commit": "abc"}
    now = {"versions": {"torch": "1", "numpy": "3", "cpu": "AVX512"}, "commit": "def"}
    assert summary.changes(before, now) == ["numpy 2 -> 3", "cpu AVX2 -> AVX512", "commit abc -> def"]
    del before["versions"]["cpu"]  # an older version did not write it down
    assert summary.changes(before, now) == ["numpy 2 -> 3", "commit abc -> def"]
    assert summary.changes(now, now) == []


def test_versions_name_the_instruction_set_that_rounds():
    assert facts.versions()["cpu"] == torch.backends.cpu.get_cpu_capability()


# Curves ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("real_curves")
@pytest.mark.parametrize(
    "recorded",
    [
        [],
        [row(1), row(2)],
        [row(1, 0.3, 2.0)],
        [row(t, t / 300, 2.0 - t / 300) for t in range(1, 201)],
        [row(1, 0.3, None)],  # a loss that was not finite
    ],
    ids=["no row", "no evaluation", "one", "many", "lost value"],
)
@pytest.mark.parametrize("ends", [[200], [30, 90, 200]])
def test_curves_are_drawn_from_any_number_of_evaluations(tmp_path, recorded, ends):
    curves.draw(tmp_path / "curves.png", recorded, ends, "a title", "a caption\nof two lines", BOARD)
    data = (tmp_path / "curves.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (1152, 528)  # 9.6 x 4.4 inches at 120 dpi
    assert [p.name for p in tmp_path.iterdir()] == ["curves.png"]


@pytest.mark.usefixtures("real_curves")
def test_curves_of_equal_rows_are_equal_files(tmp_path):
    for name in ("a.png", "b.png"):
        curves.draw(tmp_path / name, [row(1, 0.3, 2.0)], [1], "t", "c", BOARD)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    curves.draw(tmp_path / "b.png", [row(1, 0.4, 2.0)], [1], "t", "c", BOARD)
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "b.png").read_bytes()


@pytest.mark.usefixtures("real_curves")
def test_curves_begin_with_the_untrained_model(tmp_path):
    draw = partial(curves.draw, rows=[row(1, 0.3, 2.0)], ends=[1], title="t", caption="c", board=BOARD)
    draw(tmp_path / "a.png")
    draw(tmp_path / "b.png", initial={"test/acc": 0.1, "test/loss": 2.4})
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "b.png").read_bytes()


@pytest.mark.usefixtures("real_curves")
@pytest.mark.parametrize(("algorithm", "colour"), [("fedgm", style.BLUE), ("fedavg", style.RED)])
def test_both_curves_of_a_run_have_the_colour_of_its_algorithm(algorithm, colour, monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(curves, "save", lambda figure, path: drawn.append(figure))
    recorded = [row(t, t / 300, 2.0 - t / 300) for t in range(1, 201)]
    curves.draw(tmp_path / "a.png", recorded, [200], "t", "c", BOARD, algorithm=algorithm)
    for axes in drawn[0].axes:
        train, test = axes.get_lines()
        assert (train.get_color(), test.get_color()) == (colour, colour)
        assert (train.get_linestyle(), test.get_linestyle()) == ("--", "-")
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["train", "test"]


def test_what_tests_draw_with_draws_the_first_of_every_kind(tmp_path):
    drawn = []

    def draw(path, found, *rest):
        drawn.append(found)
        path.write_bytes(b"%d" % len(drawn))

    quick = QuickCurves(draw)
    one, other = [row(1, 0.3, 2.0)], [{**row(1, 0.3, 2.0), "clock/time": 1.0}]
    for name, found in (("a", one), ("b", one), ("c", other)):
        quick(tmp_path / name, found, [1], "t", "c", BOARD)
    assert drawn == [one, other]
    assert [(tmp_path / name).read_bytes() for name in "abc"] == [b"1", b"1", b"2"]


# What is printed ------------------------------------------------------------------------------------------

STAGES = [
    {"rounds": 36, "eta": 2.0, "beta": 0.9, "nu": 0.9},
    {"rounds": 71, "eta": 1.0, "beta": 0.9474, "nu": 0.9},
    {"rounds": 143, "eta": 0.5, "beta": 0.97297, "nu": 0.9},
]


def static(**more) -> dict:
    return {
        "status": "finished", "name": "autonomous_delay10", "algorithm": "fedavgm_summed",
        "schedule": "multistage", "participation": "ideal", "profile": "small", "model": "resnet",
        "data": "cifar10", "seed": 12345,
        "rounds": 250, "stages": STAGES, "gain": 0.38, "local_steps": 17.25,
        "initial": {"test/acc": 0.1, "test/loss": 2.3, "train/acc": 0.1, "train/loss": 2.3},
        **rows.summarise([row(t, 0.5, 123.4567) for t in range(1, 251)], BOARD), **more,
    }  # fmt: skip


def printed(show, *args, width: int = 80) -> str:
    stream = io.StringIO()
    show(Screen(file=stream, width=width, color_system=None), *args)
    return stream.getvalue()


def test_the_closing_table_fits_80_columns_and_cuts_no_number(tmp_path):
    (tmp_path / "curves.png").touch()
    text = printed(terminal.closing, static(), tmp_path)
    table = [line for line in text.splitlines() if str(tmp_path) not in line]
    assert max(map(len, table)) <= 80
    for word in (
        "start",
        "final",
        "best",
        "mean of last 10",
        "123.4567",
        "50.00 %",
        "60.00 %",
        "250 of 250",
        "625 s",
    ):
        assert word in text
    assert "…" not in text
    assert str(tmp_path / "curves.png") in text  # in one piece, to be clicked on
    assert "model.safetensors" not in text  # it is not there


def test_a_run_that_never_evaluated_still_closes(tmp_path):
    ended = static(status="failed", reason="OSError: disk", final=None, best=None, last10=None, initial=None)
    text = printed(terminal.closing, ended, tmp_path)
    assert "failed: OSError: disk after 250 of 250 rounds" in " ".join(text.split())


@pytest.mark.parametrize("gain", [0.38, NAN])
def test_the_headline_names_momentum_and_fits_80_columns(tmp_path, gain):
    text = printed(terminal.headline, static(gain=gain), 78042, 2, tmp_path)
    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "2 then 1 then 0.5",
        "0.9 then 0.9474 then 0.973",
        "after rounds 36, 107",
        "78,042 parameters",
        "seed 12345",
    ):
        assert words in text
    assert ("gain" in text, "nan" in text) == (gain == 0.38, False)


def test_the_caption_names_profile_and_local_steps():
    text = terminal.caption(static(), {"model.name": "resnet", "data.name": "cifar10", "model.depth": 8})
    assert "profile small: resnet-8 on cifar10, 250 of 250 rounds, seed 12345,\nK = 17.2 local steps" in text
    rates = "eta 2 then 1 then 0.5, beta 0.9 then 0.9474 then 0.973, nu 0.9"
    assert f"{rates}, stages end after rounds 36, 107" in text


# load_runs ------------------------------------------------------------------------------------------------


def test_a_schedule_that_changes_every_round_shows_where_it_ends():
    words = terminal.momentum([{"rounds": 9, "eta": 2.0, "beta": 0.9}], {"eta": 0.1, "beta": 0.9})
    assert words == {"eta": "2 ... 0.1, changing from round to round", "beta": "0.9"}


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([], ""),
        ([None], ""),
        ([20.0, 20.04], ", K = 20.0 local steps on average"),
        ([30.2, 9.5], ", K = 9.5 to 30.2 local steps on average"),
    ],
)
def test_a_caption_names_the_least_and_the_largest_mean_of_steps(steps, said):
    runs = [SimpleNamespace(facts={"local_steps": value}) for value in steps]
    assert mean_steps(runs) == said
