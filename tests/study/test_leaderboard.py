"""fedgm leaderboard: the file, the tuning and judging seeds, the standings, and a rule of the user's own."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedgm import intake
from fedgm.commands import main
from fedgm.errors import FedGMError, RefusedError
from fedgm.results.find import find
from fedgm.results.interval import mean_interval
from fedgm.study import board, board_file, board_page
from fedgm.study.standings import Standing, standings
from fedgm.study.winners import Ranked
from tests.study.stored_runs import store

FILE = """
title: A tiny board
overrides: [profile=tiny, rounds=4, eval.every=2, local.unit=steps, local.epochs=1, track=none]
metric: {name: test/acc, goal: maximize}
level: 0.5
judge: [1, 2, 3]
rules:
  fedavg: {name: FedAvg, overrides: algorithm=fedavg, points: {algorithm.eta: [0.5, 1.0, 2.0]}}
  fedgm:
    name: FedGM
    overrides: algorithm=fedgm
    points:
      - {algorithm.eta: 1.0, algorithm.beta: 0.9, algorithm.nu: 0.9}
      - {algorithm.eta: 2.0, algorithm.beta: 0.9, algorithm.nu: 0.7}
  fedcm: {name: FedCM, overrides: client=fedcm algorithm=fedavg, points: {client.a: [0.1, 0.5]}}
"""
MINE = "mine: {name: Mine, overrides: algorithm=fedavgm, points: {algorithm.eta: [1.5]}}"
TUNED = {"fedavg": ([0.2, 0.4], [0.4, 0.6], [0.3, 0.5]), "fedgm": ([0.5, 0.6], [0.6, 0.7]),
         "fedcm": ([0.4, 0.5], [0.3, 0.4])}  # fmt: skip
JUDGED = {"fedavg": (0.50, 0.52, 0.51), "fedgm": (0.60, 0.63, 0.61), "fedcm": (0.60, 0.61, 0.62)}


def planned(folder: Path, text: str = FILE, **more) -> board.Leaderboard:
    (folder / "b.yaml").write_text(text)
    return board.load(folder / "b.yaml", output_dir=folder / "o", **more)


def fill(folder: Path) -> None:
    """Every run of the board with made-up evaluations, as if it had been run."""
    work = planned(folder)
    for key, scores in TUNED.items():
        for job, evaluations in zip(work.tuning[key].plan.jobs, scores, strict=True):
            diverged = (key, job.point) == ("fedavg", 2)
            store(job, evaluations, "diverged" if diverged else "finished")
    for key, results in work.judging().items():
        for job, score in zip(results.plan.jobs, JUDGED[key], strict=True):
            store(job, [score, score])


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    fill(folder)
    return folder


def test_points_are_combined_or_listed():
    (rule,) = [rule for rule in board_file.read("hapt").rules if rule.key == "fedavgm"]
    assert len(rule.points) == 8
    assert rule.points[1] == {"algorithm.eta": 0.5, "algorithm.beta": 0.9}
    assert rule.swept == ["algorithm.eta", "algorithm.beta"]


@pytest.mark.parametrize("name", board_file.bundled())
def test_bundled_boards_give_every_rule_eight_points(name):
    read = board_file.read(name)
    tuned = [rule for rule in read.rules if rule.key != "suggested"]  # it chooses by itself
    assert len(tuned) == 13
    assert {len(rule.points) for rule in tuned} == {board_file.POINTS}
    assert [rule.key for rule in read.rules if rule.kind == "client"] == [
        "scaffold", "fedcm", "feddyn", "ghbm", "mimelite"
    ]  # fmt: skip
    assert (read.tune, read.judge) == (0, (1, 2, 3))


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("level: 0.5", "levle: 0.5", r"b\.yaml: levle=\(unknown key\).*level: as the key"),
        ("level: 0.5", "level: high", r"b\.yaml: level=high"),
        ("[1, 2, 3]", "[0, 1]", r"b\.yaml: judge=\[0, 1\].*other seeds than the one that tunes"),
        ("[1, 2, 3]", "[1, 1]", r"b\.yaml: judge=\[1, 1\]"),
        ("[1, 2, 3]", "7", r"b\.yaml: judge=7"),
        ("[0.5, 1.0, 2.0]", "[1, 2, 3, 4, 5, 6, 7, 8, 9]", r"b\.yaml: fedavg\.points=9 points.*at most 8"),
        ("[0.5, 1.0, 2.0]", "[]", r"b\.yaml: fedavg\.points"),
        ("[0.5, 1.0, 2.0]", "[[1]]", r"b\.yaml: fedavg\.points\.algorithm\.eta=\[1\]"),
        ("[0.5, 1.0, 2.0]", "[1.0, 1.0]", r"stands there twice"),
        ("{algorithm.eta: 2.0, algorithm.beta: 0.9, algorithm.nu: 0.7}", "{algorithm.eta: 2.0}", "same keys"),
        ("overrides: algorithm=fedgm", "overrides: fedgm", r"b\.yaml: fedgm\.overrides=fedgm"),
        ("name: FedGM", "nmae: FedGM", r"b\.yaml: fedgm\.nmae"),
        ("rules:", "rules: 3 #", r"b\.yaml"),
        ("goal: maximize", "goal: up", r"b\.yaml: metric\.goal=up"),
    ],
)
def test_bad_files_are_refused_with_the_key(tmp_path, old, new, part):
    assert old in FILE
    with pytest.raises(FedGMError, match=part):
        planned(tmp_path, FILE.replace(old, new, 1))


def test_a_board_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(RefusedError, match=r"hapd: No such file.*one of cifar10, hapt\. Try hapt"):
        board.load("hapd")


def test_a_rule_is_judged_at_the_best_point_of_the_other_seed(filled):
    work = planned(filled)
    fedavg = next(rule for rule in work.board.rules if rule.key == "fedavg")
    winner = work.winner(fedavg)
    assert winner is not None
    assert winner.job.values == {"algorithm.eta": 1.0}
    jobs = work.judging()["fedavg"].plan.jobs
    assert [job.seed for job in jobs] == [1, 2, 3]
    assert {job.hash for job in jobs} == {winner.job.hash}


def test_nothing_is_run_twice(tmp_path, filled):
    work = planned(tmp_path)
    assert work.judging() == {}
    missing = board.joined(work.tuning.values(), "x")
    assert missing is not None
    assert len(missing.jobs) == 7
    work = planned(filled)
    assert board.joined(work.tuning.values(), "x") is None
    assert board.joined(work.judging().values(), "x") is None
    assert work.run(workers=1) == {}


def test_the_standings(filled):
    found = standings(planned(filled))
    assert [line.rule.key for line in found.lines] == ["fedgm", "fedcm", "fedavg"]
    first, second, last = found.lines
    assert first.interval is not None
    assert first.interval.mean == pytest.approx((0.60 + 0.63 + 0.61) / 3)
    assert found.behind(second, first) == pytest.approx([0.0, 0.02, -0.01])
    assert found.not_told_apart == [second]
    assert found.base is last
    assert found.gap(last, first).low > 0
    assert first.until(0.5, "maximize") == [2, 2, 2]
    assert first.until(0.62, "maximize") == [None, 2, None]
    assert (last.lost, last.cost) == (1, 12)
    assert first.megabytes == pytest.approx(100 / 1e6)
    words = board_page.sentences(found)
    assert words[0] == "First is FedGM."
    assert "Seeds do not tell it apart from FedCM" in words[1]
    assert words[2] == "Ahead of FedAvg beyond the noise of seeds: FedGM and FedCM."


def test_a_half_judged_rule_has_no_place(filled):
    summary = planned(filled, only=["fedgm"]).judging()["fedgm"].plan.jobs[2].folder / "summary.json"
    kept = summary.read_bytes()
    summary.unlink()
    found = standings(planned(filled))
    summary.write_bytes(kept)
    assert [line.rule.key for line in found.judged] == ["fedcm", "fedavg"]
    assert found.lines[-1].rule.key == "fedgm"
    assert "Not judged yet, so the order may change: FedGM." in board_page.sentences(found)


def test_page_and_picture_come_from_stored_rows(tmp_path, filled):
    found = standings(planned(filled))
    assert board_page.write(found, tmp_path / "page.md") == [
        tmp_path / "page.md",
        tmp_path / "leaderboard_b.png",
    ]
    text = (tmp_path / "page.md").read_text()
    assert "| 1 | FedGM | server | eta 2, nu 0.7 |" in text
    assert "| 3 | FedAvg | server | eta 1 |" in text
    assert "12, 1 of 3 |" in text
    assert "rounds to 50.00 %" in text
    assert (tmp_path / "leaderboard_b.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "page.md").write_text(text.replace("# Leaderboard\n", "# Leaderboard\n\nMine stays.\n"))
    board_page.write(found, tmp_path / "page.md")
    assert "Mine stays." in (tmp_path / "page.md").read_text()
    other = tmp_path / "other.md"
    other.write_text("# no marks\n")
    with pytest.raises(RefusedError, match="fedgm leaderboard b: begin"):
        board_page.write(found, other)


@pytest.mark.parametrize("words", [["rounds=60"], ["--only", "fedgm"], ["--add", "mine.yaml"]])
def test_a_page_shows_the_board_that_its_heading_names(tmp_path, filled, words):
    page = tmp_path / "page.md"
    told = ["leaderboard", str(filled / "b.yaml"), "--output-dir", str(filled / "o"), "--page", str(page)]
    refused = CliRunner().invoke(main, [*told, *words])
    assert refused.exit_code == 2
    assert f"({' '.join(words)})" in refused.output
    assert not page.exists()
    assert CliRunner().invoke(main, told).exit_code == 0
    assert "| 3 | FedAvg |" in page.read_text()


def test_a_gap_has_the_variance_of_its_own_differences(filled):
    found = standings(planned(filled))
    fedgm, fedcm, fedavg = found.lines
    for line, other in ((fedcm, fedgm), (fedavg, fedgm), (fedavg, fedcm)):
        assert found.gap(line, other) == mean_interval(found.behind(line, other))
    assert "each difference by its own variance (2 degrees of freedom)" in "".join(
        board_page.sentences(found)
    )


def test_a_rule_that_diverges_on_a_judging_seed_is_last_and_not_open(tmp_path):
    """A loss has no chance level: a run that diverged has no score."""
    text = FILE.replace("test/acc, goal: maximize", "test/loss, goal: minimize")
    work = planned(tmp_path, text)
    for results in work.tuning.values():
        for job in results.plan.jobs:
            store(job, [0.5, 0.5])
    for key, results in work.judging().items():
        for job in results.plan.jobs:
            store(job, [0.5, 0.5], "diverged" if (key, job.seed) == ("fedavg", 2) else "finished")
    found = standings(planned(tmp_path, text))
    assert [line.rule.key for line in found.lines] == ["fedgm", "fedcm", "fedavg"]
    assert [line.rule.key for line in found.judged] == ["fedgm", "fedcm"]
    assert found.open == []
    assert found.lines[-1].out == "diverged on seed 2"
    words = board_page.sentences(found)
    assert "FedAvg: diverged on seed 2, so it is last." in words
    assert not any("Not judged yet" in line for line in words)
    assert board_page._rows(found)[-1][:2] == ["3", "FedAvg"]
    assert board_page._rows(found)[-1][5] == "diverged on seed 2"


def test_a_rule_without_a_point_that_finished_is_last_and_not_open(tmp_path):
    text = FILE.replace("test/acc, goal: maximize", "test/loss, goal: minimize")
    for key, results in planned(tmp_path, text).tuning.items():
        for job in results.plan.jobs:
            store(job, [0.5, 0.5], "diverged" if key == "fedcm" else "finished")
    found = standings(planned(tmp_path, text))
    assert [line.rule.key for line in found.open] == ["fedavg", "fedgm"]
    assert found.lines[0].out == "no point of its tuning finished"
    assert board_page.sentences(found)[0] == "FedCM: no point of its tuning finished, so it is last."


@pytest.mark.parametrize("values", ["[null, 0.5, 0.9]", "[a, b, 0.9]"])
def test_only_numbers_have_an_edge(tmp_path, values):
    points = tuple({"algorithm.eta": value} for value in intake.from_yaml(values))
    rule = board_file.Rule("x", "X", (), points)
    job = planned(tmp_path).tuning["fedavg"].plan.jobs[0]
    winner = Ranked(replace(job, values=points[2]), {}, 0.5)
    line = Standing(rule, winner, [], {}, "test/acc")
    assert not board_page._is_at_an_edge(line)
    numbers = replace(
        line, rule=replace(rule, points=tuple({"algorithm.eta": eta} for eta in (0.1, 0.2, 0.9)))
    )
    assert board_page._is_at_an_edge(numbers)


def test_a_rule_of_the_users_own_joins(tmp_path):
    (tmp_path / "mine.yaml").write_text(MINE)
    joined = planned(tmp_path, added=[tmp_path / "mine.yaml"])
    assert joined.board.rules[-1].name == "Mine"
    assert [job.values for job in joined.tuning["mine"].plan.jobs] == [{"algorithm.eta": 1.5}]
    alone = planned(tmp_path, added=[tmp_path / "mine.yaml"], only=["mine"])
    assert [rule.key for rule in alone.board.rules] == ["mine"]
    with pytest.raises(FedGMError, match=r"--only=mien: expected fedavg, fedgm, fedcm, mine"):
        planned(tmp_path, added=[tmp_path / "mine.yaml"], only=["mien"])
    (tmp_path / "mine.yaml").write_text(MINE.replace("mine:", "fedgm:"))
    with pytest.raises(FedGMError, match=r"mine\.yaml: fedgm"):
        planned(tmp_path, added=[tmp_path / "mine.yaml"])


def test_it_runs_keeps_and_reads_its_runs(tmp_path):
    """One rule of the user's own, tuned and judged by the command; its rows serve without the folders."""
    (tmp_path / "b.yaml").write_text(FILE.replace("[1, 2, 3]", "[1, 2]"))
    (tmp_path / "mine.yaml").write_text(MINE.replace("[1.5]", "[0.5, 1.5]"))
    words = ["leaderboard", str(tmp_path / "b.yaml"), "--add", str(tmp_path / "mine.yaml"), "--only", "mine",
             "--output-dir", str(tmp_path / "o")]  # fmt: skip
    done = CliRunner().invoke(main, [*words, "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "First is Mine." in done.output
    assert len(find([tmp_path / "o"])) == 4
    kept = CliRunner().invoke(main, [*words, "--export", str(tmp_path / "kept.jsonl")])
    assert "4 runs in" in kept.output
    stored = board.load(
        tmp_path / "b.yaml", output_dir=tmp_path / "none", stored=[tmp_path / "kept.jsonl"],
        added=[tmp_path / "mine.yaml"], only=["mine"],
    )  # fmt: skip
    (line,) = standings(stored).judged
    assert set(line.scores) == {1, 2}
    assert stored.run(workers=1) == {}
    assert not (tmp_path / "none").exists()
