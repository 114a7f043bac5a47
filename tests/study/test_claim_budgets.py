"""Notes about budgets: the best of the larger grid at FedAvg's number of runs."""

import pytest

from fedgm.results.best_of import budget_notes as notes_of
from fedgm.tasks.metric import column
from tests.study.made_curves import flat


def budget_notes(*grids):
    return notes_of(*grids, column("test/acc"))


def grid(values, **more):
    return [flat(0, value, **more) for value in values]


def test_the_expected_best_by_hand():
    # two of (50, 40, 30): 50 with probability 2/3, 40 with 1/3 -> 46.67
    [note] = budget_notes("FedGM", grid([0.5, 0.4, 0.3]), "FedAvg", grid([0.2, 0.45]))
    assert note.startswith(
        "seed 0: best of 3: 50.0 %, expected best of 2 of them: 46.7 % (90 % of draws: 40.0"
    )
    assert note.endswith("FedAvg's best of 2: 45.0 %")


def test_a_winner_that_owes_its_place_to_the_budget_is_said():
    notes = budget_notes("FedGM", grid([0.5, 0.4, 0.3]), "FedAvg", grid([0.2, 0.48]))
    assert notes[-1] == "FedGM: not ahead at equal budget"


def test_diverged_points_count_with_chance_and_paused_ones_are_counted():
    points = [*grid([0.5, 0.4]), *grid([0.9], status="diverged")]
    [note] = budget_notes("FedGM", points, "FedAvg", grid([0.2]))
    assert "expected best of 1 of them: 33.3 %" in note  # (50 + 40 + 10) / 3
    notes = budget_notes("FedGM", [*grid([0.5, 0.4]), *grid([0.3], status="paused")], "FedAvg", grid([0.2]))
    assert "1 of 3 points were paused" in notes[1]


@pytest.mark.parametrize("points", [[None, *grid([0.5])], []])
def test_a_grid_that_is_not_complete_is_said(points):
    [note] = budget_notes("FedGM", points, "FedAvg", grid([0.2]))
    assert (
        note == f"no comparison at equal budget: {len(points) // 2} of {len(points)} points "
        "of FedGM's grid have results"
    )
