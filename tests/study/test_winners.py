"""conf/best: which stored winner an experiment takes, and what a caption says of its values."""

import pytest

from fedgm import config
from fedgm.config.winners import entry, origin

READINGS = {
    "start": {"anchor": "start", "normalize": "reference"},
    "current": {"anchor": "current", "normalize": "none"},
    "literal": {"anchor": "start", "normalize": "none"},
}
BEST = {
    "fedgm": {"fedgm": {"eta": 3.5, "beta": 0.7, "nu": 0.95, "sweep": "fedgm_grid", "seed": 0}},
    "autonomous": {"fedgm": {"start": {"eta": 0.25, "beta": 0.7, "nu": 0.7, "sweep": "a", "seed": 0}}},
}


def test_each_reading_has_a_winner_of_its_own():
    assert entry(BEST, "fedgm", "fedgm", None)["eta"] == 3.5
    assert entry(BEST, "fedgm", "fedgm", "start")["eta"] == 3.5  # ideal clients have one for all
    assert entry(BEST, "autonomous", "fedgm", "start")["eta"] == 0.25
    assert entry(BEST, "autonomous", "fedgm", "current") is None
    assert entry(BEST, None, "fedgm", None) is None
    assert entry({}, "fedgm", "fedgm", None) is None


def test_an_experiment_takes_the_winner_and_a_typed_value_beats_it(tmp_path):
    words = ["+experiment=fedgm", "profile=paper"]  # paper has no winners
    plain = config.compose(words)
    stored = config.compose([*words, "+best.fedgm.fedgm={eta:3.5,beta:0.7,nu:0.95}"])
    assert (plain.algorithm.eta, plain.algorithm.nu) == (2.0, 0.9)
    assert (stored.algorithm.eta, stored.algorithm.beta, stored.algorithm.nu) == (3.5, 0.7, 0.95)
    typed = config.compose([*words, "+best.fedgm.fedgm={eta:3.5,beta:0.7,nu:0.95}", "algorithm.eta=1"])
    assert (typed.algorithm.eta, typed.algorithm.beta) == (1, 0.7)
    other = config.compose([*words, "+best.fedgm.fedgm={eta:3.5,beta:0.7,nu:0.95}", "winners=null"])
    assert other.algorithm.eta == 2.0


@pytest.mark.parametrize(
    ("experiment", "algorithm", "words"),
    [
        (None, {"name": "fedgm", "eta": 3.5}, None),
        ("fedgm", {"name": "fedgm", "eta": 3.5, "beta": 0.7, "nu": 0.95}, "winner of fedgm_grid on seed 0"),
        ("fedgm", {"name": "fedgm", "eta": 3.0, "beta": 0.7, "nu": 0.95}, "not a winner of the grid"),
        ("fedgm", {"name": "fedavg", "eta": 1.0}, "not a winner of the grid"),
    ],
)
def test_a_caption_says_where_the_values_come_from(experiment, algorithm, words):
    assert origin(BEST, experiment, algorithm, {}) == words


def test_the_readings_have_winners_with_names_of_their_own():
    best = {
        "autonomous": {
            "fedgm": {how: {"eta": i, "sweep": f"g{i}", "seed": 0} for i, how in enumerate(READINGS)}
        }
    }
    schemes = enumerate(READINGS.values())
    said = [origin(best, "autonomous", {"name": "fedgm", "eta": i}, scheme) for i, scheme in schemes]
    current = "winner of g1 (participation=autonomous_current) on seed 0"
    assert said == ["winner of g0 on seed 0", current, "winner of g2 on seed 0"]
