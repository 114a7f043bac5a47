"""Parts with a state, or that choose by the model: kill -9 and two workers change no bit."""

import pytest
from test_resume import after, die_and_come_back

import fedgm
from fedgm.results import rows
from tests.conftest import quick
from tests.e2e.commands import TINY, result

RUN = (
    *TINY, "data.train_samples=300", "data.test_samples=40", "eval.train_samples=40", "clients.count=8",
    "clients.per_round=4", "local.unit=steps", "local.epochs=4", "local.lr=0.05", "rounds=8",
)  # fmt: skip
SAMPLER = "participation/sampler"
CHOICE = [f"{SAMPLER}=power_of_choice", "participation.sampler.d=6"]
MODES = {
    "fetchsgd": ["algorithm=fetchsgd", "upload=sketch", "algorithm.k=100"],
    "momentum approximation": ["algorithm=momentum_approximation", "participation=autonomous"],
    "delayed nesterov": ["algorithm=delayed_nesterov", "participation=event", "participation.concurrency=6"],
    "senders": ["sending=optimal", "sending.m=1.5"],
    "power of choice": CHOICE,
    "last losses": [*CHOICE, "participation.sampler.variant=rpow"],
    "active": [f"{SAMPLER}=active", "participation.sampler.alpha1=0.4"],
    "plateau": ["schedule=plateau", "schedule.patience=1", "schedule.threshold=10"],
    "local rates": ["schedule=multistage", "work=stages", "work.lrs=[0.05,0.02,0.01]"],
    "batch growth": ["work=batch_growth"],
    "fedlaavg": ["client=mifa", f"{SAMPLER}=longest_absent", "participation.sampler.available=0.7"],
    "deadline": ["participation=deadline", "participation.share=0.5", "participation.deadline=3"],
    "private": ["privacy=central", "privacy.adaptive=true", "privacy.bit_noise=1"],
}


@pytest.mark.parametrize("mode", quick(MODES, "power of choice"))
def test_a_kill_and_two_workers_change_nothing(commands, tmp_path, mode):
    if mode == "private":
        pytest.importorskip("dp_accounting")
    run = (*RUN, *MODES[mode])
    starts = [((*run, "trainer.workers=2"), after(3)), (run, None)]
    die_and_come_back(commands, tmp_path / "out", starts)
    whole = fedgm.run([*run, f"output_dir={tmp_path / 'whole'}"])
    assert result(tmp_path / "out") == result(tmp_path / "whole")
    assert whole.status == "finished"


def test_a_plan_that_was_decided_during_the_run_is_told_as_it_was(tmp_path, capsys):
    run = fedgm.run([*RUN, *MODES["plateau"], f"output_dir={tmp_path}"])
    stored = rows.read(run.folder / "metrics.jsonl")
    etas = [row["server/eta"] for row in stored]
    assert len(set(etas)) > 1
    assert [stage["eta"] for stage in run.summary["stages"]] == sorted(set(etas), reverse=True)
    assert sum(stage["rounds"] for stage in run.summary["stages"]) == 8
    assert run.summary["last"]["eta"] == etas[-1]
    assert "decided during the run" in capsys.readouterr().out


def test_statistics_of_batches_are_averaged_over_those_that_send(tmp_path):
    words = [*RUN, "sending=optimal", "sending.m=0.4", "model.norm=batch"]
    run = fedgm.run([*words, f"output_dir={tmp_path}"])
    senders = [row["cohort/senders"] for row in rows.read(run.folder / "metrics.jsonl")]
    assert run.status == "finished"
    assert 0 in senders  # nobody sends: D is 0, and the statistics stay as they are
    assert max(senders) > 0
