"""Stored runs as one table for a notebook."""

from pathlib import Path

import pytest

import fedgm
from fedgm.errors import FedGMError
from fedgm.results import rows
from fedgm.running import facts
from tests.results.test_record import row, static


def test_load_runs_has_one_line_a_round(tmp_path):
    for seed, count in ((0, 3), (1, 2)):
        place = tmp_path / "run" / "fedgm-12345678" / f"seed={seed}"
        place.mkdir(parents=True)
        recorded = [row(t, t / 10, 1.0) for t in range(1, count + 1)]
        (place / "metrics.jsonl").write_text("".join(map(rows.dump, recorded)))
        facts.write(place, static(seed=seed, hash="a"), "finished")
    frame = fedgm.load_runs(tmp_path)
    assert frame[["seed", "round"]].to_numpy().tolist() == [[0, 1], [0, 2], [0, 3], [1, 1], [1, 2]]
    assert frame["test/acc"].tolist() == [0.1, 0.2, 0.3, 0.1, 0.2]
    assert set(frame["algorithm"]) == {"fedavgm_summed"}
    assert {"name", "schedule", "participation", "profile", "status", "folder"} <= set(frame.columns)


def test_load_runs_of_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FedGMError, match="nowhere: no such folder or file"):
        fedgm.load_runs(tmp_path / "nowhere")


def test_load_runs_of_an_empty_folder_or_of_a_run_without_rows(tmp_path):
    assert fedgm.load_runs(tmp_path).empty
    facts.write(tmp_path, static(hash="a"), "running")
    assert len(fedgm.load_runs(tmp_path)) == 0


def test_load_runs_reads_stored_results_beside_run_folders(tmp_path):
    stored = fedgm.load_runs("docs/results/small/fedavg_grid.jsonl")
    assert set(stored["algorithm.eta"]) == {0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5}
    assert set(stored["algorithm"]) == {"fedavg"}
    assert len(stored) == 10 * 25  # 125 rounds, measured after every fifth
    (tmp_path / "results.jsonl").write_bytes(Path("docs/results/small/fedavg_grid.jsonl").read_bytes())
    (tmp_path / "metrics.jsonl").write_text('{"round": 1}\n')  # rows of a run are no stored results
    assert len(fedgm.load_runs(tmp_path)) == len(stored)
