"""Thirteen changes as a stranger makes them: a file and a yaml each, outside fedgm, nothing else edited."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

import fedgm
from fedgm.commands import main
from fedgm.errors import ConfigError
from fedgm.results import archive
from fedgm.study import claims, figure_runs
from tests.results.made_records import record

HOME = Path(__file__).parent
CONF = HOME / "my_conf"
SMALL = [
    "profile=tiny", "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20",
    "clients.count=10", "clients.per_round=2", "local.unit=steps", "local.epochs=1", "local.batch_size=10",
    "trainer.workers=1", "track=none", f"hydra.searchpath=[{CONF}]",
]  # fmt: skip


def rows(result):
    return [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]


def run(tmp_path, *words, rounds=2, callbacks=()):
    result = fedgm.run([*SMALL, f"rounds={rounds}", *words, f"output_dir={tmp_path}"], callbacks)
    assert result.status == "finished"
    return result


class Watch(fedgm.FederatedCallback):
    """Who trained in which round, how far it came, and how far the server went."""

    def __init__(self):
        self.clients, self.deltas, self.steps, self.x = [], [], [], None

    def on_client_end(self, trainer, pl_module, end):
        self.clients.append(end.task.client)
        self.deltas.append(end.delta.clone())

    def on_server_update(self, trainer, pl_module, update):  # after FedGM's: callbacks run in their order
        if self.x is not None:
            self.steps.append((update.x - self.x).norm().item())
        self.x = update.x.clone()


def test_each_yaml_names_one_file_and_no_file_is_named_twice():
    targets = [
        line.split("_target_: elsewhere.")[1].split(".")[0]
        for path in CONF.rglob("*.yaml")
        for line in path.read_text().splitlines()
        if "_target_: elsewhere." in line
    ]
    files = {path.stem for path in (HOME / "elsewhere").glob("*.py")} - {"__init__", "count_runs"}
    assert sorted(targets) == sorted(files)
    assert len(targets) == 13  # a command has no configuration


def test_server_rule(tmp_path):
    watch = Watch()
    stored = rows(run(tmp_path, "algorithm=clipped", "algorithm.eta=2", callbacks=[watch]))
    assert stored[1]["update/norm"] > 0.01
    assert watch.steps == [pytest.approx(0.02, rel=1e-3)]  # eta * limit
    shares = [1 - 0.01 / row["update/norm"] for row in stored]
    assert [row["server/clipped"] for row in stored] == pytest.approx(shares)  # a column of the rule's own
    with pytest.raises(ConfigError, match=r"algorithm\.limit=-1"):
        run(tmp_path, "algorithm=clipped", "algorithm.limit=-1")
    with pytest.raises(ConfigError, match=r"algorithm\.limit=wide: expected a number"):
        run(tmp_path, "algorithm=clipped", "algorithm.limit=wide")


def test_schedule(tmp_path):
    stored = rows(run(tmp_path, "schedule=halving", "algorithm=fedavg", "schedule.every=1", rounds=3))
    assert [row["server/eta"] for row in stored] == [1.0, 0.5, 0.25]


def test_client_rule(tmp_path):
    watch = Watch()
    run(tmp_path, "client=unit_gradient", "local.lr=0.03", callbacks=[watch])
    assert [delta.norm().item() for delta in watch.deltas] == pytest.approx([0.03] * 4, rel=1e-4)
    with pytest.raises(ConfigError, match="unit_gradient"):  # it says needs_plain_sgd
        run(tmp_path, "client=unit_gradient", "local.momentum=0.9")


def test_a_learning_rate_for_each_client(tmp_path):
    """Clients 0 and 1 in round 1, from the same model: the second goes half as far as it would."""
    whole, half = Watch(), Watch()
    words = ("participation/sampler=in_turn", "algorithm=fedavg")
    run(tmp_path / "whole", *words, rounds=1, callbacks=[whole])
    run(tmp_path / "half", *words, "client=own_rates", rounds=1, callbacks=[half])
    assert whole.clients == half.clients == [0, 1]
    assert torch.equal(half.deltas[0], whole.deltas[0])
    torch.testing.assert_close(half.deltas[1], 0.5 * whole.deltas[1], rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize(
    "scheme",
    [
        ["participation=ideal"],
        ["participation=autonomous", "participation.delay=2", "participation.epochs=[1,1]"],
        ["participation=event", "participation.speed_sigma=0", "participation.network=0"],
    ],
)
def test_sampler_for_every_scheme(tmp_path, scheme):
    watch = Watch()
    run(tmp_path, *scheme, "participation/sampler=in_turn", rounds=3, callbacks=[watch])
    assert [sorted(watch.clients[i : i + 2]) for i in (0, 2, 4)] == [[0, 1], [2, 3], [4, 5]]


def test_data_set(tmp_path):
    result = run(tmp_path, "data=stripes", "data.alpha=inf", "data.resolution=8", "local.lr=0.1", rounds=1)
    assert result.summary["data"] == "stripes"
    tensors = load_file(result.folder / "model.safetensors")
    assert min(len(bias) for name, bias in tensors.items() if name.endswith(".bias")) == 2  # its classes


WITHOUT_YAML = "data.partition={_target_: elsewhere.halves.halves, share: 0.75}"


@pytest.mark.parametrize("words", [["+data/partition=halves", "data.partition.share=0.75"], [WITHOUT_YAML]])
def test_partition(tmp_path, words):
    watch = Watch()
    words = [*words, "participation/sampler=in_turn", "clients.count=4", "local.unit=epochs"]
    result = run(tmp_path / "run", *words, rounds=1, callbacks=[watch])
    assert watch.clients == [0, 1]
    assert (
        rows(result)[0]["cohort/steps"] == 2 * 8
    )  # clients 0 and 1 share 150 of 200 images, in batches of 10
    drawn = CliRunner().invoke(main, ["data", "--show", *SMALL, *words, "--out", str(tmp_path / "split.png")])
    assert drawn.exit_code == 0, drawn.output
    with pytest.raises(ConfigError, match=r"data\.partition\.share=2: expected"):
        run(tmp_path, *words, "data.partition.share=2")
    with pytest.raises(ConfigError, match=r"data\.partition\.share=wide: expected a number"):
        run(tmp_path, *words, "data.partition.share=wide")


def test_task(tmp_path):
    result = run(tmp_path, "task=two_guesses")
    assert result.summary["metric"] == "test/top2"
    for row in rows(result):
        assert 0 <= row["test/top2"] <= 1
        assert not any(name.endswith("/acc") for name in row)


def test_logger(tmp_path):
    words = [word for word in SMALL if word != "track=none"] + ["track=lines", f"output_dir={tmp_path}"]
    fedgm.run([*words, "rounds=3", "stop_after=2"])
    result = fedgm.run([*words, "rounds=3"])
    lines = (result.folder / "lines" / "lines.txt").read_text().splitlines()
    assert lines == ["0 None", *(f"{row['round']} {row['update/norm']}" for row in rows(result))]


def test_picture(tmp_path):
    run(tmp_path, "callbacks=drift_picture")
    assert (tmp_path / "drift.png").read_bytes().startswith(b"\x89PNG")


def test_callback(tmp_path):
    run(tmp_path, "callbacks=count_clients", "participation/sampler=in_turn", rounds=6)
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert counts == {str(client): 2 if client < 2 else 1 for client in range(10)}


def test_upload_rule(tmp_path):
    watch = Watch()
    sent = rows(run(tmp_path / "bit", "upload=one_bit", rounds=1, callbacks=[watch]))[0]["bytes/up"]
    plain = rows(run(tmp_path / "plain", rounds=1))[0]["bytes/up"]
    n = watch.deltas[0].numel()
    assert plain - sent == 2 * (4 * n - (-(-n // 8) + 4))


def test_claim(tmp_path):
    """Runs with made-up curves: FedAvgM is two points ahead in the first half, behind in the second."""
    words = [word for word in SMALL if word != "trainer.workers=1"] + ["rounds=20", "eval.every=1"]
    planned = figure_runs.make("first_half", [0, 1, 2], words, str(tmp_path))
    first = {"fedavg": 0.30, "fedavgm": 0.32}
    made = [
        record(job, [first[key] + 0.001 * seed * (key == "fedavg")] * 10 + [0.6 - first[key]] * 10)
        for (key, seed), job in planned.jobs.items()
    ]
    archive.write(tmp_path / "rows.jsonl", made)
    [verdict] = fedgm.reproduce("first_half", words, stored=tmp_path / "rows.jsonl", out=tmp_path, seeds=3)
    ahead, behind = verdict["claims"]
    assert (ahead["claim"], ahead["verdict"], behind["verdict"]) == ("mine", "holds", "does not hold")
    assert ahead["parts"][0]["mean"] == pytest.approx(1.9)  # 2.0, 1.9, 1.8 points
    assert ahead["parts"][0]["part"] == "FedAvgM over FedAvg: area under test accuracy over the first half"


@pytest.mark.parametrize(
    ("entry", "why"),
    [("elsewhere.first_half.NONE", "nothing can be imported"), ("elsewhere.stripes.load", "not a fedgm")],
)
def test_a_claim_that_is_none_is_refused(entry, why):
    with pytest.raises(ConfigError, match=why):
        claims.claims([entry])
    with pytest.raises(ConfigError, match="or the dotted path of a claim"):
        claims.claims(["C11"])


def test_command(tmp_path, monkeypatch):
    """A file, and in the package's own pyproject.toml a line, which an installer writes as below."""
    info = tmp_path / "elsewhere-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[fedgm.commands]\ncount_runs = elsewhere.count_runs:command\n")
    monkeypatch.syspath_prepend(tmp_path)
    call = CliRunner().invoke
    overview = " ".join(call(main, ["--help"]).output.split())
    assert "count_runs From the package elsewhere." in overview
    (tmp_path / "summary.json").touch()
    assert call(main, ["count_runs", str(tmp_path)]).output == "1 runs\n"
    assert call(main, ["count_runs", str(tmp_path / "none")]).exit_code == 2  # RefusedError
