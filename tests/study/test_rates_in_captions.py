"""Captions say what the lines' eta, beta and nu are, what was trained, and nothing twice."""

from dataclasses import replace

import pytest

from fedgm.figures import style
from fedgm.results import labels
from fedgm.results.run import Run
from fedgm.study import compare
from fedgm.study.figure_picture import caption, picture
from fedgm.study.figure_runs import make
from fedgm.study.rates import Rated, said
from tests.results.made_records import record

CONFIG = {
    "model.name": "resnet", "model.depth": 8, "data.name": "cifar10", "data.train_samples": 10_000,
    "data.resolution": 16, "data.partition": "dirichlet", "data.alpha": 0.5, "clients.per_round": 5,
    "clients.count": 100, "local.batch_size": 10,
}  # fmt: skip


def run(*stages, **config):
    rates = [dict(zip(("rounds", "eta", "beta", "nu"), stage, strict=True)) for stage in stages]
    facts = {"algorithm": "fedgm", "seed": 0, "stages": rates, "name": "a", "status": "finished"}
    return Run(facts, CONFIG | config, [])


def test_rates_that_all_lines_have_are_said_once():
    lines = [Rated(f"eta {eta}", [run((9, eta, 0.95, 0.95))]) for eta in (1, 5)]
    assert said(lines) == "Server rates: beta = nu = 0.95 in all."
    lines = [Rated("a", [run((9, 1, 0.9, 0.9))]), Rated("eta 1.5", [run((9, 1, 0.9, 0.7))])]
    assert said(lines) == "Server rates: eta 1, beta 0.9 in all; nu 0.9: a; nu 0.7: eta 1.5."


def test_rates_stand_before_the_names_and_stages_in_their_order():
    staged = run((3, 2.0, 0.9, 0.9), (6, 1.0, 36 / 38, 0.9))
    lines = [Rated("multistage", [staged]), Rated("eta 2", [run((9, 2.0, 0.9, 0.9))])]
    assert said(lines) == (
        "Server rates: nu 0.9 in all; eta 2 then 1, beta 0.9 then 0.9474: multistage; beta 0.9: eta 2."
    )


def test_a_winner_beside_it_takes_no_line_its_rates():
    lines = [Rated("a", [], "eta 2 (winner of a grid)"), Rated("b", [run((9, 1, 0, 0))]), Rated("c", [])]
    assert said(lines) == "Server rates: eta 2 (winner of a grid): a; eta 1, beta = nu = 0: b."


def test_winners_of_grids_are_said_once_and_a_row_of_equal_rates_by_its_name():
    words = ["eta 2, beta 0.9, nu 0.9", "eta 2, beta 0.9, nu 0.9", "eta 0.5, beta 0, nu 0"]
    chosen = [f"{rates} (winner of g{i} (participation=x) on seed 0)" for i, rates in enumerate(words)]
    rows = ["stale", "stale", ""]
    lines = [Rated(name, [], *rest) for name, *rest in zip("abc", chosen, rows, strict=True)]
    winners = "Server rates, winners of their grids on seed 0: "
    assert said(lines) == f"{winners}eta 2, beta 0.9, nu 0.9: stale; eta 0.5: c."
    of_two_rows = [*lines, Rated("d", [], chosen[0], "stale")]
    assert "nu 0.9: stale;" in said(of_two_rows)
    other = [*lines, Rated("d", [], chosen[2], "stale")]  # its row has other rates, too
    assert said(other) == f"{winners}eta 2, beta 0.9, nu 0.9: a and b; eta 0.5: c and d."
    no_winner = [*lines, Rated("d", [], "eta 1, beta 0, nu 0 (not a winner of the grid)")]
    assert "(winner of g0 (participation=x) on seed 0): a;" in said(no_winner)
    two_seeds = [*lines, Rated("d", [], chosen[0].replace("seed 0", "seed 1"))]
    assert "on seed 1): d" in said(two_seeds)


def test_rules_without_rates_have_none_and_many_lines_are_counted():
    assert said([Rated("a", [run((9, None, None, None))])]) == ""
    many = [Rated(f"line {i}", [run((9, i, i / 20, i / 30))]) for i in range(1, 12)]
    assert said(many).endswith("line 8; and 3 more.")


def test_what_was_trained_is_said_as_far_as_the_runs_agree():
    small = "resnet-8 on 10,000 samples of cifar10, 16x16, alpha 0.5, 5 of 100 clients, batch 10"
    assert labels.work([CONFIG]) == small
    assert labels.work([CONFIG, CONFIG | {"data.alpha": 0.3}]) == small.replace(", alpha 0.5", "")
    assert "alpha" not in labels.work([CONFIG | {"data.alpha": float("inf")}])
    assert labels.work([{"model.name": "mlp", "data.name": "hapt"}]) == "mlp on hapt"


def test_compare_says_network_data_and_rates():
    runs = [run((9, 2.0, 0.9, 0.9)), run((9, 1.0, 0.9, 0.9))]
    assert "resnet-8 on 10,000 samples of cifar10, 16x16" in compare.caption(runs)


def test_compare_draws_the_larger_eta_darker_and_says_the_rates():
    rows = [{"round": t, "test/acc": 0.1 * t} for t in (1, 2, 3)]
    made = [run((9, eta, 0.9, 0.9), **{"algorithm.eta": eta}) for eta in (1.0, 2.0)]
    figure = compare.picture({f"eta {n}": [replace(one, evaluations=rows)] for n, one in enumerate(made, 1)})
    assert [line.get_color() for line in figure.axes[0].get_lines()][1] == style.BLUE
    assert "Server rates: beta = nu = 0.9 in all." in figure.get_supxlabel().replace("\n", " ")


@pytest.mark.parametrize(("experiment", "plain"), [("fedgm_eta", "eta_5"), ("stale_rate", "ideal_2")])
def test_a_figure_draws_the_largest_eta_and_ideal_clients_plain(experiment, plain):
    planned = make(experiment, [1], ["profile=tiny", "rounds=9"], "none")
    drawn = picture(planned, lambda job: record(job, [0.1, 0.2, 0.3]), [])
    keys = [line.key for line in planned.figure.lines]
    place = keys.index(plain)
    assert drawn.axes[0].get_lines()[place].get_color() == style.BLUE
    assert sum(line.get_color() == style.BLUE for line in drawn.axes[0].get_lines()) == 1


def test_labels_leave_out_how_nu_was_tied():
    runs = [run((9, 2.0, 0.9, 0.9), **{"algorithm.nu_is_beta": tied}) for tied in (True, False)]
    assert "algorithm.nu_is_beta" not in labels.differing(runs)
    staged = run((9, 2.0, 0.9, 0.9), **{"schedule.etas": [2.0, 1.0], "algorithm.eta": 1.0})
    assert labels.label(staged, ["algorithm.eta", "schedule.etas"]) == "FedGM, etas 2 then 1"


@pytest.mark.parametrize(("words", "says"), [((), True), (("profile=tiny",), False)])
def test_the_note_of_a_figure_holds_at_its_profile(words, says):
    planned = make("autonomous", [1], words, "none")
    assert ("were halved" in " ".join(caption(planned, {}, []))) == says


def test_parts_are_drawn_as_dots():
    planned = make("autonomous_parts", [1], ["profile=tiny", "rounds=9"], "none")
    drawn = picture(planned, lambda job: record(job, [0.1, 0.2, 0.3]), [])
    names = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    assert names[:2] == ["deltas from the start, normalised", "start, fresh, 3 epochs"]
    assert len(names) == 10


def test_the_paper_s_setting_is_said_of_its_data_alone():
    words = [" ".join(caption(make(name, [1], (), "none"), {}, [])) for name in ("multistage", "outer")]
    assert ["The paper has 50,000 images" in text for text in words] == [True, False]


@pytest.mark.parametrize(("name", "says"), [("fedgm", True), ("long", False)])
def test_the_paper_s_rounds_are_compared_in_its_own_figures(name, says):
    words = " ".join(caption(make(name, [1], (), "none"), {}, []))
    assert ("four times the rounds" in words) == says


def test_a_figure_names_the_row_of_lines_with_equal_rates():
    planned = make("autonomous_parts", [1], (), "none")
    rates = "eta 4, beta 0.9, nu 0.9 (winner of a grid on seed 0)"
    lines = [
        {"key": line.key, "name": line.name, "values": rates, "seeds": {}}
        for line in planned.figure.lines[:4]
    ]
    assert "nu 0.9: deltas from the start, normalised." in " ".join(caption(planned, {}, lines))
