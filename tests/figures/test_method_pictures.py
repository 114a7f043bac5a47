"""Pictures of the momentum family: a rule has its colour in all of them, and readings have one name."""

from matplotlib.colors import to_hex

from fedgm.figures import family, impulse, stability
from fedgm.figures.style import ALGORITHMS, BLUE, GREEN, RED


def drawn(axes) -> dict[str, tuple[str, str]]:
    """Colour and dash by label."""
    return {line.get_label(): (line.get_color(), line.get_linestyle()) for line in axes.get_lines()}


def test_responses_have_the_colours_of_their_rules():
    weights, totals, *_ = impulse.draw().axes
    assert {label: colour for label, (colour, _) in drawn(weights).items()} == {
        "FedAvg": RED, "FedGM, ν = 0.7": BLUE, "FedNAG": ALGORITHMS["fednag"], "FedAvgM, damped": GREEN,
    }  # fmt: skip
    summed = totals.get_lines()[-1]
    assert (summed.get_color(), summed.get_linestyle()) == (GREEN, "--")


def test_the_plane_has_the_colours_of_its_rules_and_hides_no_point_of_the_grid():
    [axes] = family.draw().axes
    colours = {text.get_text().partition(":")[0]: to_hex(text.get_color()) for text in axes.texts}
    assert (colours["ν = 0"], colours["ν = 1"], colours["FedGM"]) == (RED, GREEN, BLUE)
    assert colours["ν = β"] == ALGORITHMS["fednag"]
    [grid] = [line for line in axes.get_lines() if line.get_marker() == "s"]
    [diloco] = [line for line in axes.get_lines() if line.get_xydata().tolist() == [[0.9, 0.9]]]
    assert grid.get_zorder() > diloco.get_zorder()
    assert grid.get_markersize() > diloco.get_markersize()


def test_stability_names_readings_as_the_docs_do_and_says_that_a_flat_line_is_not_free():
    figure = stability.draw()
    assert [axes.get_title("left") for axes in figure.axes] == ["start", "literal", "current"]
    current = figure.axes[-1]
    assert "η = 4 works as 0.52 at delay 5" in " ".join(text.get_text() for text in current.texts)
    assert {"FedGM, β = ν = 0.95", "FedGM, β = ν = 0.7", "FedGM, β = 0.95, ν = 0.7"} <= {*drawn(current)}
    assert "without noise" in figure.get_supxlabel()
