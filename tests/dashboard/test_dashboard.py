"""The dashboard's page as text: what it holds, that it is whole, and that names stay names."""

import json
import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fedgm import commands as cli
from fedgm.dashboard import columns, payload, render
from fedgm.dashboard.collect import Collector
from fedgm.figures import style
from fedgm.results import archive, rows
from fedgm.results.find import below
from tests.dashboard.dashboard_runs import STAGES, write_grid, write_run

NASTY = "</script><script>alert(1)</script><!-- \u2028 \u2029 {{SCRIPT}} & \"'"


class Reader(HTMLParser):
    """Elements with their attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements, self.scripts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), []))

    def handle_data(self, data):
        if self.cdata_elem == "script":
            self.scripts[-1][1].append(data)

    @property
    def data(self) -> dict:
        return json.loads("".join(self.scripts[0][1]))


def built(*paths: Path) -> dict:
    return payload.build(Collector(paths).collect(), "runs", lambda run: "there/")


def decoded(code, count: int) -> list[float]:
    if isinstance(code, str):
        return np.frombuffer(b64decode(code), "<f4").tolist()
    first, step = (*code, 0)[:2]
    return [first + i * step for i in range(count)]


def test_the_page_holds_exactly_the_payload_and_asks_nobody(tmp_path):
    values = built(write_grid(tmp_path))
    reader = Reader(render.render(values))
    assert reader.data == json.loads(json.dumps(values))
    assert len(reader.data["runs"]) == 61
    assert len(reader.scripts) == 2
    links = [a for tag, a in reader.elements if "src" in a or (tag == "link" and a.get("href") != "data:,")]
    assert links == []
    policy = next(a["content"] for tag, a in reader.elements if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy
    for wanted in ("glance", "curves", "heat", "parallel", "staleness", "partition", "compare", "table"):
        assert any(a.get("id") == wanted for _, a in reader.elements), wanted


def test_every_script_is_on_the_page_and_none_is_long():
    parts = {path.stem: path for path in render.PARTS.glob("*.js")}
    assert set(parts) == set(render.SCRIPTS)
    assert all(len(path.read_text().splitlines()) <= 300 for path in render.PARTS.iterdir())


def test_columns_are_the_rows_with_the_start_before_them(tmp_path):
    folder = write_run(tmp_path / "a", rounds=20)
    (run,) = built(tmp_path)["runs"]
    evaluations = [row for row in rows.read(folder / "metrics.jsonl") if row["test/acc"] is not None]
    assert (run["points"], len(evaluations)) == (5, 4)
    assert run["columns"]["round"] == [0, 5]  # the first and the step
    acc = decoded(run["columns"]["test/acc"], 5)
    assert acc == pytest.approx([0.1, *(row["test/acc"] for row in evaluations)], rel=1e-7)
    assert decoded(run["columns"]["total/bytes"], 5) == [0, 5e6, 10e6, 15e6, 20e6]
    # 20 rounds of 1 s and an evaluation of .5 s in every fifth
    assert decoded(run["columns"]["total/seconds"], 5) == [0, 5.5, 11, 16.5, 22]
    steps = [0, 515, 0, 0, 0]  # 100 + t % 7 for t = 1..5
    assert decoded(run["columns"]["total/steps"], 5)[:2] == steps[:2]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ([3, 3, 3], [3]),
        ([None, None], [None]),
        ([0, 5, 10], [0, 5]),
        ([7], [7]),
        ([float("nan"), float("inf")], [None]),
        (["a", [1]], [None]),
    ],
)
def test_short_forms_of_a_column(values, code):
    assert columns.encode(values) == code


def test_a_column_with_gaps_keeps_them():
    code = columns.encode([0.5, None, float("inf"), "x", 0.25])
    assert decoded(code, 5) == pytest.approx([0.5, np.nan, np.nan, np.nan, 0.25], nan_ok=True)


def test_equal_runs_give_equal_bytes_from_anywhere(tmp_path, monkeypatch):
    write_grid(tmp_path / "runs")
    out = tmp_path / "page.html"
    call = CliRunner().invoke
    assert call(cli.main, ["dashboard", str(tmp_path / "runs"), "--out", str(out)]).exit_code == 0
    first = out.read_bytes()
    monkeypatch.chdir(tmp_path)
    result = call(cli.main, ["dashboard", "runs", "--out", "page.html"])
    assert result.output == "page.html: 61 runs, 0.3 MB\n"
    assert out.read_bytes() == first
    write_run(tmp_path / "runs" / "more", eta=9.0)
    call(cli.main, ["dashboard", "runs", "--out", "page.html"])
    assert out.read_bytes() != first


def test_links_lead_from_the_page_to_the_files(tmp_path, monkeypatch):
    write_run(tmp_path / "runs" / "fedgm,eta=1 #2" / "seed=0")
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(cli.main, ["dashboard", "runs", "--out", "pages/page.html"])
    (run,) = Reader((tmp_path / "pages" / "page.html").read_text()).data["runs"]
    assert run["link"] == "../runs/fedgm%2Ceta%3D1%20%232/seed%3D0/"
    assert run["files"] == ["summary.json", "config.yaml", "metrics.jsonl"]


def test_names_stay_text(tmp_path):
    write_run(tmp_path / "a", name=NASTY)
    text = render.render(built(tmp_path))
    reader = Reader(text)
    assert len(reader.scripts) == 2
    assert reader.data["runs"][0]["name"] == NASTY
    assert "alert(1)</script>" not in text
    assert "\u2028" not in text
    assert "<!-- " not in text


def test_stage_ends_and_the_shared_configuration(tmp_path):
    write_run(tmp_path / "a", stages=STAGES)
    write_run(tmp_path / "b", seed=1, stages=STAGES)
    write_run(tmp_path / "c", eta=3.0)
    values = built(tmp_path)
    by_eta = {run["config"].get("algorithm.eta", 1.0): run for run in values["runs"]}
    assert by_eta[1.0]["ends"] == [40]
    assert by_eta[3.0]["ends"] == []
    assert values["config"]["algorithm.eta"] == 1.0
    assert values["config"]["data.alpha"] == "inf"  # JSON has no infinity
    assert "output_dir" not in values["config"]


def test_any_metric_has_its_column(tmp_path):
    write_run(tmp_path / "a", metrics=("test/perplexity", "train/bpc"))
    (run,) = built(tmp_path)["runs"]
    assert {"test/perplexity", "train/bpc", "update/norm"} <= set(run["columns"])
    assert "test/acc" not in run["columns"]


def test_scores_are_those_of_python(tmp_path):
    write_grid(tmp_path)
    runs = {(run.key[0][:8], run.seed): run for run in below(tmp_path)}
    for shown in built(tmp_path)["runs"]:
        run = runs[shown["hash"], shown["seed"]]
        assert shown["scores"]["test/acc"] == run.score("test/acc")
        assert (shown["scores"]["test/acc"] is None) == (
            run.status == "diverged"
        )  # its classes are not known
    write_run(tmp_path / "ten", eta=7.0, status="diverged", done=30)
    summary = tmp_path / "ten" / "summary.json"
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "classes": 10}))
    scores = [run["scores"] for run in built(tmp_path)["runs"] if run["config"].get("algorithm.eta") == 7.0]
    assert [(score["test/acc"], score["test/loss"]) for score in scores] == [(0.1, None)]


def test_staleness_counts_rounds(tmp_path):
    write_run(tmp_path / "a", stale=2.0, rounds=30)
    write_run(tmp_path / "b", eta=2.0)
    stale, fresh = sorted(built(tmp_path)["runs"], key=lambda run: -len(run["staleness"]))
    assert sum(count for _, count in stale["staleness"]) == 30
    assert fresh["staleness"] == []


def test_an_archive_shows_the_same_curves_as_the_folders(tmp_path):
    write_grid(tmp_path / "runs")
    archive.write(tmp_path / "stored" / "grid.jsonl", below(tmp_path / "runs"))
    folders, stored = built(tmp_path / "runs"), built(tmp_path / "stored")
    assert [run["hash"] for run in stored["runs"]] == [run["hash"] for run in folders["runs"]]
    for a, b in zip(folders["runs"], stored["runs"], strict=True):
        assert a["columns"]["test/acc"] == b["columns"]["test/acc"]
        assert a["config"] == b["config"]
    both = built(tmp_path)
    assert len(both["runs"]) == 61
    (note,) = both["notes"]  # once, with a count and a few names
    assert note.startswith("the same run (hash and seed) is already on the page (61): ")
    assert note.endswith(" and 58 more")


def test_too_much_is_thinned_and_said(tmp_path, monkeypatch):
    write_run(tmp_path / "a", rounds=400, every=1)
    monkeypatch.setattr(payload, "MOST_POINTS", 100)
    monkeypatch.setattr(payload, "MOST_VALUES", 100)
    values = built(tmp_path)
    (run,) = values["runs"]
    assert run["points"] == 100
    rounds = decoded(run["columns"]["round"], 100)
    assert (rounds[0], rounds[-1]) == (0, 400)
    assert "update/norm" not in run["columns"]
    assert ["evenly spaced" in values["notes"][0], "too many" in values["notes"][1]] == [True, True]


def test_every_rule_has_the_colour_of_the_figures():
    page = Path(render.__file__).parent / "page"
    palette = dict(re.findall(r"--c(\d): (#\w+)", (page / "page.css").read_text().split("@media")[0]))
    (stated,) = re.findall(r"HUE = {(.*?)}", (page / "colours.js").read_text(), re.DOTALL)
    drawn = {name: palette[hue] for name, hue in re.findall(r"(\w+): (\d)", stated)}
    rules = [path.stem for path in (page.parents[2] / "conf/algorithm").glob("*.yaml")]
    assert drawn == {name: style.ALGORITHMS[name] for name in rules}
