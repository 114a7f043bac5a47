"""The lines that `-m +experiment=...` runs are those of the figure."""

import pytest
import yaml

from fedgm import config


def lines(experiment):
    return yaml.safe_load((config.conf_dir() / "experiment" / f"{experiment}.yaml").read_text())["hydra"][
        "sweeper"
    ]["lines"]


@pytest.mark.parametrize(("experiment", "delay"), [("autonomous", 5), ("autonomous_delay10", 10)])
def test_both_readings_of_alg_4_are_lines_of_figures_1cd_and_9(experiment, delay):
    runs = [config.compose([f"+experiment={experiment}", *line.split()]) for line in lines("autonomous")]
    got = [
        (
            run.algorithm.name,
            run.participation.get("anchor"),
            run.participation.get("normalize"),
            run.participation.get("delay"),
        )
        for run in runs
    ]
    assert got == [
        ("fedgm", "start", "reference", delay),
        ("fedavg", "start", "reference", delay),
        ("fedgm", "current", "none", delay),
        ("fedavg", "current", "none", delay),
        ("fedgm", None, "none", None),
    ]
    assert [run.winners for run in runs] == [*[experiment] * 4, "fedgm"]
