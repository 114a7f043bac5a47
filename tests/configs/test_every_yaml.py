"""Every yaml below conf/ is run, or (a GPU, hours) composed and built, with no test code of its own."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import fedgm
from fedgm import config
from fedgm.errors import ConfigError, DataError
from fedgm.results import rows
from fedgm.running.main import main
from fedgm.running.parts import build_parts
from fedgm.running.trainer import build_module

CONF = config.conf_dir()
GROUPS = {g.name: sorted(p.stem for p in g.glob("*.yaml")) for g in sorted(CONF.iterdir()) if g.is_dir()}
# Groups of a run: those of config.yaml's defaults, and experiment, which is added to them.
CHOSEN = [
    next(iter(d))
    for d in yaml.safe_load((CONF / "config.yaml").read_text())["defaults"]
    if isinstance(d, dict)
]
RUN_GROUPS = [g for g in (*CHOSEN, "experiment") if g in GROUPS]
TEXT_PARTS = (("task", "next_token"), ("model", "gpt"))
BUILT_ONLY = ("profile", "trainer")  # sizes that take hours, accelerators that are not here
SMALL = [
    "profile=tiny", "data.train_samples=200", "data.test_samples=20", "eval.train_samples=20",
    "clients.count=10", "clients.per_round=2", "local.unit=steps", "local.epochs=1", "local.batch_size=10",
    "trainer.workers=1", "track.mode=disabled",
]  # fmt: skip
KEYS = [
    "round", "train/loss", "train/acc", "local/loss", "local/acc", "test/loss", "test/acc", "server/eta",
    "server/beta", "server/nu", "server/stage", "server/gain",
    "server/W1", "server/W2", "update/norm", "momentum/norm", "client/drift",
    "cohort/clients", "cohort/nonfinite", "cohort/steps", "cohort/staleness", "bytes/up",
    "bytes/down", "time/round", "time/eval",
    "samples_per_s",
]  # fmt: skip
# Columns of parts that most runs do not have.
MORE_KEYS = {
    "deadline": ["clock/time", "cohort/asked"],
    "optimal": ["cohort/senders", "bytes/norms"],
    "central": ["privacy/epsilon", "privacy/delta", "privacy/clip", "privacy/clipped"],
    "batch_growth": ["work/batch"],
    "post_local": ["work/epochs"],
    "personal": [f"personal/{m}_{s}" for m in ("loss", "acc") for s in ("mean", "std", "p10", "p90")],
}
COMPANIONS = {
    "cnn1d": ["data=hapt"],
    "sketch": ["algorithm=fetchsgd"],
    "batch_growth": ["work.etas=[1,0.9]"],
    "auto": ["rounds=32", "local.lr=0.5", "schedule.start=0.1"],  # its edge comes soon
}
CLOCK_KEYS = [
    "clock/time",
    "clock/wait",
    "cohort/dropped",
    "cohort/stale",
    "cohort/idle",
]  # of schemes with a clock


DEPLOYED = ("participation", "live")  # runs on nodes alone: tests/flower


def every(*groups: str) -> list:
    return [pytest.param(g, o, id=f"{g}-{o}") for g in groups for o in GROUPS[g]]


def options(*groups: str) -> list:
    """Every option; slow are experiments, which combine others, and names for other values of a class."""
    params, seen = [], set()
    for group, option in ((g, o) for g in groups for o in GROUPS[g]):
        target = (yaml.safe_load((CONF / group / f"{option}.yaml").read_text()) or {}).get("_target_", option)
        is_slow = group == "experiment" or (group, target) in seen
        seen.add((group, target))
        if (group, option) != DEPLOYED:
            marks = pytest.mark.slow if is_slow else ()
            params.append(pytest.param(group, option, id=f"{group}-{option}", marks=marks))
    return params


def choice(group: str, option: str) -> str:
    return f"+experiment={option}" if group == "experiment" else f"{group}={option}"


def with_its_own_hint(call, overrides: list[str]):
    """Some parts refuse two rounds or eight pixels; what their message says to type must then do."""
    for _ in range(2):
        try:
            return call(overrides)
        except ConfigError as error:
            hint = re.search(rf"{re.escape(error.key)}=[\w.]+", error.hint)
            if hint is None:
                raise
            overrides = [*overrides, hint[0]]
    return call(overrides)


def own_images(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(250, 8, 8, 3), dtype=np.uint8)
    labels = np.arange(250) % 10
    path = folder / "own.npz"
    np.savez(path, x_train=images[:200], y_train=labels[:200], x_test=images[200:], y_test=labels[200:])
    return path


def own_text(folder: Path) -> Path:
    path = folder / "own.txt"
    path.write_text("What is said once is said again, and again. " * 100)
    return path


def companions(group: str, option: str, folder: Path) -> list[str]:
    """Data of one's own, and for parts that train on text a text, which needs no download."""
    if group == "data":
        return [f"data.path={own_text(folder) if option == 'text' else own_images(folder)}"]
    if (group, option) == ("participation", "replay"):
        tasks = [[[2 * t, t - 1, 1, 1.0], [2 * t + 1, 0, 1, 0.5]] for t in (1, 2)]
        lines = [{"round": t, "anchor": "start", "numbers": [], "tasks": tasks[t - 1]} for t in (1, 2)]
        (folder / "arrivals.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return [f"participation.arrivals={folder}"]
    if (group, option) == ("callbacks", "personal"):  # measures clients that hold samples out
        words = ["task=next_token", "model=gpt", "data=text", f"data.path={own_text(folder)}"]
        return [*words, "callbacks.personal.clients=2"]
    if (group, option) in TEXT_PARTS:
        return ["data=text", f"data.path={own_text(folder)}"]
    return COMPANIONS.get(option, [])


@pytest.mark.parametrize(("group", "option"), options(*(g for g in RUN_GROUPS if g not in BUILT_ONLY)))
@pytest.mark.filterwarnings("ignore:algorithm.nu=.* lies outside", "ignore:schedule=stages breaks Eq. 3")
def test_every_option_runs_and_writes_the_documented_rows(group, option, tmp_path):
    overrides = [*SMALL, "rounds=2", choice(group, option), f"output_dir={tmp_path}"]
    overrides += companions(group, option, tmp_path)
    try:
        result = with_its_own_hint(fedgm.run, overrides)
    except ConfigError as error:
        if group in ("track", "privacy") and "is not installed" in str(error):
            pytest.skip(f"{option} is an extra that is not installed here")
        raise
    except DataError as error:
        if "cannot be fetched" in str(error):
            pytest.skip("the data cannot be fetched here")
        raise
    assert result.status == "finished"
    stored = rows.read(result.folder / "metrics.jsonl")
    assert [row["round"] for row in stored] == list(range(1, result.summary["rounds"] + 1))
    for row in stored:
        more = MORE_KEYS.get(option, CLOCK_KEYS if "clock/time" in row else [])
        assert sorted(row) == sorted([*KEYS, *more])
        assert row["test/acc"] is not None
        assert row["cohort/clients"] in (1, 2)  # one in FedAsync, whatever is asked for
        assert row["server/eta"] > 0
    if group != "experiment":
        assert result.summary.get(group, option) == option


@pytest.mark.parametrize(("group", "option"), every("profile", "trainer"))
def test_every_profile_and_trainer_composes_and_its_parts_are_built(group, option):
    run = config.validate(config.compose([choice(group, option)]))
    plan = build_parts(run).engine.plan
    assert plan.ends[-1] == run.rounds == round(500 * run.profile.rounds_scale)
    module = build_module(run, {"num_classes": 10})
    assert sum(p.numel() for p in module.parameters()) > 10_000
    assert getattr(run, group).name == option


@pytest.mark.parametrize(("group", "option"), every("experiment"))
def test_every_experiment_composes_at_the_papers_scale(group, option):
    run = config.validate(config.compose([choice(group, option), "profile=paper"]))
    assert run.rounds == run.paper_rounds
    assert build_parts(run).engine.plan.ends[-1] == run.paper_rounds
    assert run.name == option  # the folder of its figure


def test_nu_outside_its_interval_warns_and_runs(tmp_path):
    with pytest.warns(UserWarning, match=r"algorithm\.nu=1\.25 lies outside \[0, 1\]"):
        result = fedgm.run([*SMALL, "rounds=1", "algorithm.nu=1.25", f"output_dir={tmp_path}"])
    assert (result.status, result.summary["stages"][0]["nu"]) == ("finished", 1.25)


def test_stages_that_break_eq3_warn_and_run(tmp_path):
    words = [*SMALL, "rounds=3", "schedule=stages", "schedule.etas=[1,2]", "schedule.lengths=[2,1]"]
    with pytest.warns(UserWarning, match=r"breaks Eq\. 3.*eta must not increase"):
        result = fedgm.run([*words, f"output_dir={tmp_path}"])
    assert result.status == "finished"
    assert [row["server/eta"] for row in rows.read(result.folder / "metrics.jsonl")] == [1.0, 1.0, 2.0]


# Documentation where it stands ----------------------------------------------------------------------------

KEY = re.compile(r"^(?P<indent> *)(?P<key>[\w/]+):(?P<value>.*)$")
NEEDS_NO_WORDS = ("name", "_target_", "defaults")


def undocumented(path: Path) -> list[str]:
    """Keys without a comment beside or above them.

    Excepted: names, what only passes on another key, what a file overrides of the file it inherits from or of
    the group that an experiment chooses, and all of Hydra's own node.
    """
    lines = path.read_text().splitlines()
    inherits = any(re.match(r"defaults: *\[\w+", line) for line in lines) or "experiment" in path.parts
    is_written = "best" in path.parts  # by `fedgm sweep --best --write`, under a head that explains it
    missing, inside_hydra = [], False
    for number, line in enumerate(lines):
        if (match := KEY.match(line)) is None:
            continue
        key, value, nested = match["key"], match["value"], bool(match["indent"])
        inside_hydra = key == "hydra" if not nested else inside_hydra
        above = number > 0 and lines[number - 1].strip().startswith("#") and number > first_key(lines)
        words = " #" in value or above
        passes_on = re.fullmatch(r" *\"?\$\{[\w.]+\}\"?", value) is not None
        opens = value.strip() == ""  # its children speak for themselves
        if not (
            words
            or passes_on
            or opens
            or inherits
            or is_written
            or inside_hydra
            or key in NEEDS_NO_WORDS
            or "{_target_" in value
        ):
            missing.append(f"{path.relative_to(CONF)}:{number + 1}: {key}")
    return missing


def first_key(lines: list[str]) -> int:
    return next(i for i, line in enumerate(lines) if KEY.match(line))


@pytest.mark.parametrize("path", sorted(CONF.rglob("*.yaml")), ids=lambda p: str(p.relative_to(CONF)))
def test_every_key_is_documented_where_it_stands(path):
    assert undocumented(path) == []


@pytest.mark.parametrize("path", sorted(CONF.rglob("*.yaml")), ids=lambda p: str(p.relative_to(CONF)))
def test_every_file_says_first_what_it_is(path):
    lines = [line for line in path.read_text().splitlines() if not line.startswith("# @package")]
    assert re.match(r"# \w.{10,}", lines[0])


def test_every_group_file_carries_its_name():
    for group in (group for group in RUN_GROUPS if group != "debug"):  # values of others, no part
        for option in GROUPS[group]:
            text = (CONF / group / f"{option}.yaml").read_text()
            assert re.search(rf"^ *name: {option}$", text, re.M), f"{group}/{option}"


def test_no_key_asks_hydra_outside_its_own_node():
    """``${hydra:...}`` fails where a notebook composes."""
    for path in CONF.rglob("*.yaml"):
        assert "${hydra:" not in path.read_text(), path


def test_the_check_of_documentation_can_fail(tmp_path, monkeypatch):
    (tmp_path / "a.yaml").write_text("# What it is.\nname: a\nbare: 1\nsaid: 2  # why\npassed: ${x.y}\n")
    monkeypatch.setitem(globals(), "CONF", tmp_path)
    assert undocumented(tmp_path / "a.yaml") == ["a.yaml:3: bare"]


def test_the_help_names_every_option_by_itself(monkeypatch, capsys):
    """Hydra writes the list: a new yaml needs no line of help."""
    monkeypatch.setattr("sys.argv", ["run.py", "--help"])
    with pytest.raises(SystemExit):
        main()
    printed = capsys.readouterr().out
    for group, names in GROUPS.items():
        if group != "best":  # winners of grids, which a profile chooses
            assert f"{group}: {', '.join(names)}" in " ".join(printed.split()), group
    template = yaml.safe_load((CONF / "config.yaml").read_text())["hydra"]["help"]["template"]
    assert max(map(len, template.splitlines())) <= 88
