"""The page of all grids: each grid's winner from stored results."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs.pages.winners import command
from fedgm.results import archive
from fedgm.study import points, sweep_file, sweep_pictures
from tests.results.made_records import record

GRID = Path(__file__).parents[2] / "sweeps" / "fedavg_grid.yaml"


def made(job, score):
    run = record(job, [score] * 12, algorithm="fedavg")
    return replace(run, facts={**run.facts, "name": "fedgm"})


def test_the_page_has_the_winner_its_other_seeds_and_its_pictures(tmp_path):
    jobs = points.make(sweep_file.read(GRID), [], [0], str(tmp_path / "none")).jobs
    runs = [made(job, 0.3 + 0.01 * job.point) for job in jobs]
    runs += [made(replace(jobs[9], seed=1), 0.36), made(replace(jobs[9], seed=2), 0.11)]
    archive.write(tmp_path / "rows" / "fedavg_grid.jsonl", runs)
    page = tmp_path / "docs" / "grids.md"
    done = CliRunner().invoke(command, [str(tmp_path / "rows"), "--page", str(page)])
    assert done.exit_code == 0, done.output
    text = page.read_text()
    judged = "23.50 % (11.00 % to 36.00 %, seeds: 2)"  # as measured, though 11 % is little
    row = f"| ideal clients | fedavg | 10 finished | eta 5.0 | 39.00 % | {judged} | - |"
    assert row in text
    assert "| fedgm |" not in text  # no run of that grid is stored
    assert "![heatmap of fedavg_grid](figures/grids/fedavg_grid/heatmap.png)" in text
    assert (tmp_path / "docs/figures/grids/fedavg_grid/heatmap.png").read_bytes().startswith(b"\x89PNG")


def test_heat_maps_of_all_grids_share_a_scale(tmp_path, monkeypatch):
    scales = list[object]()
    monkeypatch.setattr(sweep_pictures, "draw", lambda results, folder, shared: scales.append(shared) or [])
    for name, experiment, low in (
        ("fedavg_grid", "fedgm", 0.30),
        ("literal_fedavg_grid", "autonomous_literal", 0.20),
    ):
        jobs = points.make(sweep_file.read(GRID.with_stem(name)), [], [0], str(tmp_path / "none")).jobs
        runs = [made(job, low + 0.01 * job.point) for job in jobs]
        runs = [replace(run, facts={**run.facts, "name": experiment}) for run in runs]
        archive.write(tmp_path / "rows" / f"{name}.jsonl", runs)
    done = CliRunner().invoke(command, [str(tmp_path / "rows"), "--page", str(tmp_path / "grids.md")])
    assert done.exit_code == 0, done.output
    assert scales == [pytest.approx((0.20, 0.39))] * 2


def test_results_without_grids_are_refused(tmp_path):
    archive.write(tmp_path / "rows.jsonl", [])
    done = CliRunner().invoke(command, [str(tmp_path / "rows.jsonl"), "--page", str(tmp_path / "p.md")])
    assert done.exit_code != 0
    assert not (tmp_path / "p.md").exists()
