"""Boards that are seldom written: one judging seed, rounds of different sizes, 1e-3, a seed that is typed."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from fedgm import intake
from fedgm.commands import main
from fedgm.errors import FedGMError
from fedgm.study import board_file, board_page
from fedgm.study.board import load
from fedgm.study.standings import standings
from tests.study.test_leaderboard import FILE, MINE, fill, planned


def test_a_number_that_yaml_takes_for_a_text_is_a_number(tmp_path):
    assert planned(tmp_path, FILE.replace("level: 0.5", "level: 5e-1")).board.level == 0.5
    points = board_file._points("x", {"algorithm.eta": intake.from_yaml("[1e-3, 1e-2]")})
    assert points == ({"algorithm.eta": 0.001}, {"algorithm.eta": 0.01})
    assert board_file._points("x", [intake.from_yaml("{algorithm.eta: 1e0}")]) == ({"algorithm.eta": 1.0},)


def test_one_judging_seed_has_no_interval(tmp_path):
    fill(tmp_path)
    found = standings(planned(tmp_path, FILE.replace("[1, 2, 3]", "[2]")))
    assert board_page._rows(found)[1][5:7] == ["61.0", "2.0"]
    said = board_page.sentences(found)
    assert said[:2] == [
        "First is FedGM.",
        "One seed says nothing of the noise of seeds, so there are no intervals.",
    ]
    text = " ".join([*said, *board_page.markdown(found)])
    assert "judged on seed 2 (mean of the last 10 evaluations of test/acc)." in text
    assert not any(word in text for word in ("inf", "0 degrees", "do not tell", "beyond the noise"))


def test_a_round_that_differs_from_the_last_one_counts_in_what_was_sent(tmp_path):
    fill(tmp_path)
    line = standings(planned(tmp_path)).lines[0]
    rows = [{"round": 0}, {"round": 2, "bytes/up": 300, "bytes/down": 100}, {"round": 4, "bytes/up": 0}]
    judged = {seed: replace(run, evaluations=rows) for seed, run in line.judged.items()}
    assert replace(line, judged=judged).megabytes == pytest.approx(200 / 1e6)


def test_the_seed_is_the_boards():
    with pytest.raises(
        FedGMError, match=r"seed=3: tune and judge of the board set it. Try a board of your own"
    ):
        load("hapt", ["seed=3"])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("fedavgm", "fedavgm rounds=300", r"mine\.overrides=rounds=300: .*\(rounds=4 here\)"),
        ("fedavgm", "fedavgm data/partition=shards", r"mine\.overrides=data/partition=shards: .* without it"),
        ("fedavgm", "fedavgm +experiment=long", r"mine\.overrides=experiment=long"),
        ("fedavgm", "fedavgm local.epochs=2", r"mine\.overrides=local\.epochs=2: .*\(local\.epochs=1 here\)"),
        ("fedavgm", "fedavgm seed=5", r"mine\.overrides=seed=5: seed is the same for all rules"),
        ("algorithm.eta", "participation.delay", r"mine\.points=participation\.delay=1\.5: "),
        ("fedavgm", "fedavgm algorithm.eta=2", r"mine\.overrides=algorithm\.eta=2: its points set algorithm"),
        ("algorithm.eta", "algorithm.bta", r"mine\.points\.algorithm\.bta=1\.5: expected a key"),
        ("fedavgm", "fedavgmm", r"point 0=.*Try algorithm=fedavgm"),
    ],
)  # fmt: skip
def test_a_rule_of_the_users_own_has_the_boards_budget_and_is_refused_by_its_file(tmp_path, old, new, said):
    (tmp_path / "mine.yaml").write_text(MINE.replace(old, new))
    with pytest.raises(FedGMError, match=rf"^mine\.yaml: {said}"):
        _ = planned(tmp_path, added=[tmp_path / "mine.yaml"], only=["mine"]).tuning


def test_a_rule_of_the_board_has_its_budget_too(tmp_path):
    with pytest.raises(FedGMError, match=r"^b\.yaml: fedavg\.overrides=rounds=8: "):
        planned(
            tmp_path, FILE.replace("overrides: algorithm=fedavg,", "overrides: algorithm=fedavg rounds=8,")
        )


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("client=plain", r"client=plain: fedcm of the board sets client \(fedcm\)\. Try .* of your own"),
        ("+client=plain", "client=plain: fedcm of the board"),
        ("client=scaffold", r"client=scaffold: fedcm of the board"),
        ("algorithm=fedgm", r"algorithm=fedgm: fedavg of the board sets algorithm \(fedavg\)"),
        ("algorithm.eta=1", r"fedavg of the board sets algorithm\.eta \(points\)"),
        ("stop_after=2", "stop_after=2: a board compares whole runs"),
    ],
)  # fmt: skip
def test_a_word_for_all_rules_that_a_rule_sets_is_refused(tmp_path, word, said):
    """Whichever rules run here: others of the board run elsewhere."""
    with pytest.raises(FedGMError, match=said):
        planned(tmp_path, overrides=[word], only=["fedavg"])
    assert (
        planned(tmp_path, overrides=["rounds=6"], only=["fedavg"]).tuning["fedavg"].plan.jobs[0].rounds == 6
    )


@pytest.mark.parametrize("place", ["fedgm_grid", "sweeps/fedgm_grid.yaml"])
def test_a_sweep_file_is_named_as_one(place):
    with pytest.raises(FedGMError, match=rf"^{place}: a sweep file.*Try fedgm sweep {place}$"):
        load(place)


def test_a_missing_file_of_rules_is_no_board(tmp_path):
    with pytest.raises(FedGMError, match=r"gone\.yaml: No such file or directory: expected a file of rules"):
        planned(tmp_path, added=[tmp_path / "gone.yaml"])


def test_only_without_a_word_names_the_rules(tmp_path):
    (tmp_path / "b.yaml").write_text(FILE)
    told = ["leaderboard", str(tmp_path / "b.yaml"), "--show", "--output-dir", str(tmp_path / "o"), "--only"]
    assert [rule.key for rule in planned(tmp_path, only=["fedgm", ""]).board.rules] == ["fedgm"]
    for nothing in ("", ","):
        refused = CliRunner().invoke(main, [*told, nothing])
        assert refused.exit_code == 2
        assert "--only=: expected fedavg, fedgm, fedcm. Try --only fedavg" in refused.output


def test_a_page_makes_its_folder(tmp_path):
    fill(tmp_path)
    page = tmp_path / "new" / "folder" / "page.md"
    assert board_page.write(standings(planned(tmp_path)), page)[0] == page
    assert "| 1 | FedGM |" in page.read_text()
