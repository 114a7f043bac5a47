"""The split over clients on the page is the one that the run trained on."""

import json

import numpy as np
from click.testing import CliRunner
from omegaconf import OmegaConf

from fedgm import commands as cli
from fedgm import config
from fedgm.dashboard.collect import Collector
from fedgm.dashboard.split import splits
from fedgm.running.parts import load_clients
from tests.dashboard.dashboard_runs import write_run

TINY = ["profile=tiny", "data=synthetic", "clients.count=12"]


def with_config(folder, *overrides):
    """A run folder whose config.yaml is a real one."""
    write_run(folder)
    composed = config.compose([*TINY, *overrides])
    (folder / "config.yaml").write_text(OmegaConf.to_yaml(composed, resolve=True))
    return composed


def test_counts_are_those_of_the_federation(tmp_path):
    composed = with_config(tmp_path / "a")
    ((table,), notes) = splits(Collector([tmp_path]).collect())
    clients = load_clients(config.validate(composed))
    labels = clients.images.train_labels.numpy()
    assert notes == []
    assert (table["clients"], len(table["counts"]), table["runs"]) == (12, 12, 1)
    for client in (0, 11):
        client_labels = labels[clients.partition.indices(client)]
        assert table["counts"][client] == np.bincount(client_labels, minlength=len(table["classes"])).tolist()


def test_a_config_that_names_no_data_is_a_note(tmp_path):
    write_run(tmp_path / "a")  # its configuration is made up
    tables, (note,) = splits(Collector([tmp_path]).collect())
    assert tables == []
    assert note.startswith("the split of 1 runs")


def test_the_panel_is_on_the_page_only_when_asked_for(tmp_path):
    with_config(tmp_path / "a")
    out = tmp_path / "page.html"
    for flag, wanted in (([], 0), (["--partition"], 1)):
        result = CliRunner().invoke(cli.main, ["dashboard", str(tmp_path), "--out", str(out), *flag])
        assert result.exit_code == 0, result.output
        text = out.read_text()
        start = text.index('type="application/json">') + len('type="application/json">')
        assert len(json.loads(text[start : text.index("</script>", start)])["splits"]) == wanted
