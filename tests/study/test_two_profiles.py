"""`fedgm reproduce all --stored` judges profile full beside the default one, where it has rows."""

import pytest
from click.testing import CliRunner

import fedgm.commands as cli
from fedgm.results import archive
from fedgm.study import figure_runs, reproduce
from tests.results.made_records import record

WORDS = ["rounds=100", "eval.every=5"]
LEVEL = {
    "small": {"fedgm": 0.6, "fedavgm": 0.5, "fedavg": 0.4},
    "full": {"fedgm": 0.5, "fedavgm": 0.6, "fedavg": 0.4},
}


@pytest.fixture(autouse=True)
def one_figure(monkeypatch):
    """All figures are Figures 1ab and 2 here."""
    monkeypatch.setattr(reproduce, "choose", lambda figure: ["fedgm", "multistage"])


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Figure 1ab: FedGM leads at small and is behind FedAvgM at full."""
    runs = []
    for profile, level in LEVEL.items():
        words = [*WORDS, f"profile={profile}"]
        for (key, seed), job in figure_runs.make("fedgm", [1, 2, 3], words, "outputs").jobs.items():
            runs.append(record(job, [level[key] + 0.001 * seed] * 20, algorithm=key))
            runs[-1].facts.update(name="fedgm", profile=profile)
    path = tmp_path_factory.mktemp("stored") / "rows.jsonl"
    archive.write(path, runs)
    return path


def reproduced(rows, out, *more):
    words = ["reproduce", "all", *WORDS, *more, "--stored", str(rows), "--out", str(out / "figures")]
    words += ["--seeds", "1,2,3", "--report", str(out / "page.md"), "--export", str(out / "rows.jsonl")]
    result = CliRunner().invoke(cli.main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return (out / "page.md").read_text()


def test_the_table_has_what_the_paper_says_and_a_verdict_at_each_profile(rows, tmp_path):
    page = reproduced(rows, tmp_path)
    assert "| figure | what the paper says | at `small` | at `full` | command |" in page
    [line] = [line for line in page.splitlines() if line.startswith("| 1ab | C1: ")]
    small, full = line.split(" | ")[2:4]
    assert small.startswith("**holds**")
    assert full.startswith("**does not hold**")
    assert small.endswith("100 rounds, seeds 1, 2, 3")
    [line] = [line for line in page.splitlines() if line.startswith("| 2 | C3 (training): ")]
    assert line.split(" | ")[2:4] == ["not run", "not run"]  # of full it is not even planned


def test_pictures_and_rows_of_both_are_kept(rows, tmp_path):
    page = reproduced(rows, tmp_path)
    for folder in ("fig1ab", "full/fig1ab"):
        assert (tmp_path / "figures" / folder / "fig1ab.png").exists()
        assert f"(figures/{folder}/fig1ab.png)" in page
    assert not (tmp_path / "figures" / "full" / "fig2").exists()
    assert len(archive.read(tmp_path / "rows.jsonl")) == len(archive.read(rows)) == 18


def test_a_profile_that_is_typed_is_judged_alone(rows, tmp_path):
    page = reproduced(rows, tmp_path, "profile=full")
    assert "| figure | what the paper says | at `full` | command |" in page
    assert (tmp_path / "figures" / "fig1ab" / "fig1ab.png").exists()
    assert "profile small" not in page
