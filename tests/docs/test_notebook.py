"""The notebook runs from top to bottom on the stored results."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "read_results.ipynb"


@pytest.mark.slow
def test_every_cell_runs_and_the_numbers_are_those_of_the_stored_runs(monkeypatch, capsys):
    monkeypatch.chdir(NOTEBOOK.parent)
    drawn = []
    monkeypatch.setattr(plt, "show", lambda: drawn.append(len(plt.gcf().axes[0].lines)))
    space: dict = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)
    plt.close("all")
    text = capsys.readouterr().out
    assert "evaluations" in text
    assert "90 % of draws" in text
    assert drawn == [len(space["winners"])]
    winners = space["winners"]
    fedavg = winners[winners["algorithm"] == "fedavg"].iloc[0]
    assert fedavg["algorithm.eta"] == 1.0
    assert round(fedavg["last10, %"], 2) == 34.14  # seed 0, eta 1
    assert len(space["curve_of"](fedavg)) == 25
