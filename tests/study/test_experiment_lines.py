"""An experiment's figure: lines for `-m` and for `fedgm reproduce`, panels, claims, each said once."""

import re

import pytest
import yaml

from fedgm import config
from fedgm.config.identity import identity
from fedgm.errors import ConfigError
from fedgm.study import claims, figure, figure_runs, sweep_file

EXPERIMENTS = sorted(figure.choose("all"))


@pytest.fixture(scope="module")
def figures():
    return {name: figure.read(name) for name in EXPERIMENTS}


@pytest.mark.parametrize(("experiment", "delay"), [("autonomous", 5), ("autonomous_delay10", 10)])
def test_both_readings_of_alg_4_are_lines_of_figures_1cd_and_9(experiment, delay, figures):
    lines = figures[experiment].lines
    runs = [config.compose([f"+experiment={experiment}", *line.overrides]) for line in lines]
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
    assert [line.key for line in lines] == [
        "fedgm_start", "fedavg_start", "fedgm_current", "fedavg_current", "ideal",
    ]  # fmt: skip


def test_every_experiment_is_one_figure_of_the_paper():
    assert figure.numbers() == {
        "1ab": "fedgm", "1cd": "autonomous", "2": "multistage", "5": "fedavg_eta", "6": "fedgm_eta",
        "9": "autonomous_delay10", "4": "heterogeneity", "7": "early_late", "3": "vgg",
        "8": "multistage_long",
    }  # fmt: skip


def test_an_experiment_outside_the_paper_has_lines_and_no_number():
    lines = config.compose(["+experiment=outer"]).figure.lines
    assert [line.key for line in lines] == ["fedavg", "fedavgm", "multistage", "snoo", "diloco"]
    one = figure.read("outer")
    assert (one.number, one.name, one.heading) == (None, "outer", "Outer steps for language models")
    assert (one.claims, one.metric) == ((), "loss")


def test_every_claim_is_judged_by_a_figure_and_finds_its_lines(figures):
    every = {claim.name for group in claims.CLAIMS.values() for claim in group}
    assert {claim.name for one in figures.values() for claim in one.claims} == every
    for one in figures.values():
        for claim in one.claims:
            keys = {line.key for line in one.lines}
            for name in claim.figures:
                keys |= {f"{name}/{line.key}" for line in figures[name].lines}
            wanted = set(re.findall(r"(?:a|b|line)='([\w/]+)'", repr(claim.parts)))
            assert wanted
            assert wanted <= keys
            assert {key for pair in claim.budgets for key in pair} <= keys


def test_grids_of_winners_are_sweep_files_of_the_line_s_algorithm(figures):
    for one in figures.values():
        for line in one.lines:
            if line.grid:
                name, *words = line.grid.split()
                read = sweep_file.read(config.conf_dir().parent / "sweeps" / f"{name}.yaml")
                assert f"algorithm={read.points[0]['algorithm']}" in line.overrides
                assert set(words) <= set(line.overrides)


def test_the_figure_says_nothing_about_the_run():
    plain = config.compose(["+experiment=multistage"])
    changed = config.compose(["+experiment=multistage", "figure.title=other", "figure.claims=[C1]"])
    assert identity(plain) == identity(changed)
    assert identity(config.compose(["+experiment=multistage", "figure=null"])) == identity(plain)


def test_seeds_where_winners_were_chosen_start_at_one(figures):
    assert figure_runs.seeds_of(figures["fedgm"], 3) == (1, 2, 3)
    assert figure_runs.seeds_of(figures["multistage"], 3) == (0, 1, 2)
    assert figure_runs.seeds_of(figures["fedgm"], [1, 2, 5]) == (1, 2, 5)
    assert [name for name, one in figures.items() if one.has_winners] == [
        "autonomous", "autonomous_delay10", "autonomous_literal", "fedgm", "heterogeneity", "long", "vgg",
    ]  # fmt: skip


def test_names_of_figures():
    assert figure.choose("fig1") == ["fedgm", "autonomous"]
    assert figure.choose("fig1cd") == ["autonomous"]
    assert figure.choose("outer") == ["outer"]
    assert figure.choose("8") == ["multistage_long"]
    beside = ["autonomous_literal", "long", "multistage_fedavg"]  # of no figure, but with claims
    assert figure.choose("all") == [*figure.numbers().values(), *beside]
    assert len(figure.numbers()) == 10
    with pytest.raises(ConfigError, match=r"figure=fig10: expected fig1ab, .*fig1, all or an exp"):
        figure.choose("fig10")


def test_panels_of_figure_7_are_the_first_and_the_last_quarter(figures):
    assert [(p.metric, p.period) for p in figures["early_late"].panels] == [
        ("train/acc", "first quarter"), ("train/acc", "last quarter"),
        ("train/acc", "last quarter residual"), ("test/acc", "last quarter residual"),
    ]  # fmt: skip
    assert [(p.metric, p.period) for p in figures["vgg"].panels] == [("train/acc", ""), ("test/acc", "")]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("figure.panels=[test/acc late]", "METRIC last quarter"),
        ("figure.claims=[C11]", r"figure.claims=C11: expected C1"),
        ("+figure.seeds=3", r"figure.seeds=3: expected values by profile"),
        ("+figure.seeds.small=0", r"figure.seeds=0: expected at least 1"),
        ("figure.lines=[{key:a,name:b,overides:c}]", r"overides=c: expected key, name"),
        ("figure.lines=[{key:a,name:b}]", r"lines.overrides=\(missing\)"),
        ("figure.lines=[]", r"figure.lines=\[\]"),
        ("+figure.kind=bars", r"figure.kind=bars: expected curves or dots"),
        ("+figure.note=x", r"figure.note=x: expected sentences by profile"),
    ],
)
def test_a_figure_that_cannot_be_read_is_refused(override, message):
    with pytest.raises(ConfigError, match=message):
        figure.read("fedavg_eta", [override])


def test_lines_have_one_source():
    """Under `figure`: Hydra's own node holds none."""
    for path in (config.conf_dir() / "experiment").glob("*.yaml"):
        assert "hydra" not in yaml.safe_load(path.read_text()), path


def test_a_figure_of_ones_own_needs_a_title_and_lines(tmp_path):
    """Its panels are then of the metric that judges its runs."""
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(
        "# @package _global_\nname: mine\nfigure:\n  title: Mine\n  lines:\n"
        "    - {key: a, name: A, overrides: algorithm=fedavg}\n"
    )
    words = [f"hydra.searchpath=[{tmp_path}]"]
    one = figure.read("mine", words)
    assert [panel.metric for panel in one.panels] == ["train/acc", "test/acc"]
    assert (one.name, one.metric, one.claims) == ("mine", "acc", ())
    other = figure.read("mine", [*words, "eval.metric=test/loss"])
    assert ([panel.metric for panel in other.panels], other.metric) == (["train/loss", "test/loss"], "loss")
    with pytest.raises(ConfigError, match=r"\+experiment=mime: expected one of .*mine"):
        figure.read("mime", words)
    with pytest.raises(ConfigError, match=r"mine: figure\.lins=x: expected number, title"):
        figure.read("mine", [*words, "+figure.lins=x"])
