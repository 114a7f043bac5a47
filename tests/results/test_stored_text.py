"""What is stored is text: no name, tag or value of a run folder styles, breaks or controls what shows it."""

import io
import json
import re

import matplotlib.pyplot as plt
import pytest
import yaml
from click.testing import CliRunner

from fedgm import commands as cli
from fedgm import config
from fedgm.errors import ConfigError
from fedgm.figures import style
from fedgm.plain import message, plain
from fedgm.results import archive
from fedgm.results.find import below
from fedgm.running import terminal
from fedgm.running.start import execute
from fedgm.screen import Screen
from fedgm.study import compare
from fedgm.study.runner import reason
from tests.dashboard.dashboard_runs import write_run
from tests.results.test_runs import TINY
from tests.study.planned_sweep import WHOLE, plan
from tests.study.stored_runs import store

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"  # OSC 52: a terminal would put it on the clipboard
# Half a surrogate pair, which JSON can name, is refused when a file is read (test_hostile_archives.py).
HOSTILE = f"[/b] [bold]{CLIPBOARD} \x9b2J \u202eabc :skull: $\\frac{{ \r\n\t\x08"
LONG = "x" * 100_000
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")
STRINGS = ("name", "algorithm", "schedule", "participation", "profile", "model", "data", "reason", "commit")
COLUMN = [{"name": "acc", "label": HOSTILE, "unit": HOSTILE, "scale": 100.0, "better": "higher"}]


@pytest.fixture(params=[HOSTILE, LONG], ids=["hostile", "long"])
def home(tmp_path, request):
    """Two runs in whose files every text is hostile."""
    for seed in (0, 1):
        place = tmp_path / "runs" / f"[{seed}] \x1b[2J" / f"seed={seed}"
        folder = write_run(place, seed=seed, eta=1.0 + seed)
        content = json.loads((folder / "summary.json").read_text())
        content |= dict.fromkeys(STRINGS, request.param)
        (folder / "summary.json").write_text(json.dumps(content))
        text = request.param.replace("\ud800", "")  # yaml has no such character
        values = {"seed": seed, "name": text, "tags": [text, text], f"key {text[:100]}": text}
        values["algorithm"] = {"eta": 1.0 + seed, "name": text}
        (folder / "config.yaml").write_text(yaml.safe_dump(values))
    return tmp_path / "runs"


def typed(*words):
    result = CliRunner().invoke(cli.main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert not FORBIDDEN.search(result.output), repr(FORBIDDEN.search(result.output))
    assert len(result.output) < 40_000
    return result


@pytest.mark.parametrize("words", [(), ("--filter", "seed=0"), ("--sort", "-eta")], ids=str)
def test_list_shows_them_as_text(home, words):
    result = typed("list", home, *words)
    assert result.exit_code == 0
    assert "finished" in result.output


def test_a_folder_that_is_deleted_is_named_as_text(home):
    for path in home.rglob("summary.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "failed"}))
    result = CliRunner().invoke(cli.main, ["list", str(home), "--prune"], input="n\n")
    assert "nothing deleted" in result.output
    assert "[0] [2J" in result.output
    assert not FORBIDDEN.search(result.output)


def test_show_shows_them_as_text(home):
    result = typed("show", next(home.rglob("seed=1")))
    assert result.exit_code == 0
    assert ("[/b] [bold]" in result.output) != ("xxx..." in result.output)
    assert "tags" in result.output


@pytest.mark.parametrize("words", [(), ("--latex",)], ids=["table", "latex"])
def test_compare_shows_and_draws_them_as_text(home, tmp_path, words):
    result = typed("compare", home, "--out", tmp_path / "c.svg", *words)
    assert result.exit_code == 0
    picture = (tmp_path / "c.svg").read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", picture)


def test_the_page_is_written(home, tmp_path):
    result = typed("dashboard", home, "--out", tmp_path / "page.html")
    assert result.exit_code == 0
    assert "\x1b" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_an_archive_of_them_is_listed_too(home, tmp_path):
    archive.write(tmp_path / "a.jsonl", below(home))
    assert typed("list", tmp_path / "a.jsonl").exit_code == 0


def test_a_summary_that_describes_its_metric_so_is_listed(tmp_path):
    folder = write_run(tmp_path / "run")
    content = json.loads((folder / "summary.json").read_text()) | {"metric": "acc", "metrics": COLUMN}
    (folder / "summary.json").write_text(json.dumps(content))
    assert len(below(tmp_path)) == 1
    for words in (("list", tmp_path), ("show", folder), ("compare", folder, "--out", tmp_path / "c.png")):
        assert typed(*words).exit_code == 0


@pytest.mark.parametrize("words", [("--status",), ("--best",)], ids=" ".join)
def test_a_sweep_shows_them_as_text(tmp_path, words):
    text = f"name: {json.dumps(HOSTILE.replace(chr(0xD800), ''))}\n"
    text += "method: grid\nmetric: {name: test/acc, goal: maximize}\nparameters:\n"
    text += f"  name: {{values: [a, {json.dumps('[/b] ' + CLIPBOARD)}]}}\n"
    text += 'command: ["${program}", profile=tiny, rounds=30, eval.every=3, "${args_no_hyphens}"]\n'
    sweep = plan(tmp_path, text)
    for job in sweep.jobs:
        store(job, [0.3 + 0.1 * job.point] * 10)
    result = typed("sweep", tmp_path / "s.yaml", "--output-dir", tmp_path / "o", *words)
    assert result.exit_code == 0
    assert "[/b] ]52;c;" in " ".join(result.output.split())


def test_the_last_line_of_a_log_is_shown_as_text(tmp_path):
    job = plan(tmp_path, WHOLE).jobs[0]
    job.folder.mkdir(parents=True)
    (job.folder / "output.log").write_bytes(HOSTILE.encode("utf-8", "surrogatepass") + b"\xff\n")
    screen = Screen(file=io.StringIO(), width=100)
    screen.say(reason(job, 1))
    assert not FORBIDDEN.search(screen.file.getvalue())


def test_a_run_shows_its_own_words_as_text(tmp_path):
    summary = dict.fromkeys(STRINGS, HOSTILE) | {
        "status": "diverged", "rounds": 3, "rounds_done": 3, "seed": 0, "gain": 1.0, "seconds": 1.0,
        "stages": [{"rounds": 3, "eta": 1.0}], "final": None, "best": None, "last10": None,
    }  # fmt: skip
    screen = Screen(file=io.StringIO(), width=80)
    terminal.headline(screen, summary, 10, 1, tmp_path / "[red]" / "\x1b[2J")
    terminal.closing(screen, summary, tmp_path)
    terminal.stopped(screen, summary)
    text = screen.file.getvalue()
    assert not FORBIDDEN.search(text)
    assert "[/b] [bold]" in text


def test_a_run_s_progress_shows_its_name_as_text(tmp_path):
    screen = Screen(file=io.StringIO(), force_terminal=True, width=120)
    words = [*TINY, "name='[/b] [red]'", f"output_dir={tmp_path}"]
    assert execute(config.compose(words), words, screen).status == "finished"
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.file.getvalue())
    assert "[/b] [red]" in text
    assert "2/2" in text  # the bar was there


def test_a_refusal_and_a_warning_hold_no_controls(tmp_path, capsys):
    with pytest.raises(SystemExit), cli.ends_plainly():
        raise ConfigError("data.path", HOSTILE + LONG, "a file", f"data.path={CLIPBOARD}")
    said = capsys.readouterr().err
    assert not FORBIDDEN.search(said)
    assert len(said) < 5000
    folder = tmp_path / "runs" / "\x1b]0;title\x07"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text("{}")
    with pytest.warns(UserWarning, match="left out") as warned:
        below(tmp_path / "runs")
    assert not FORBIDDEN.search(str(warned[0].message))


def test_colours_are_kept_and_markup_is_not_read():
    screen = Screen(file=io.StringIO(), force_terminal=True, width=80)
    screen.say("  [green]a[/] :skull:", style="yellow")
    assert screen.file.getvalue() == "\x1b[33m  [green]a[/] :skull:\x1b[0m\n"


def test_a_dollar_in_a_name_begins_no_formula(tmp_path):
    figure = plt.Figure()
    figure.suptitle("$\\frac{$ and $5")
    figure.add_subplot().set_ylabel("a\x1bb")
    style.save(figure, tmp_path / "a.svg")
    assert "$\\frac{$ and $5" in (tmp_path / "a.svg").read_text()
    assert "ab" in (tmp_path / "a.svg").read_text()


def test_latex_of_a_name_runs_no_command():
    text = compare.latex_table([{"line": r"\input{/etc/passwd} $x^2$ a_b ~ 50%"}])
    assert r"\textbackslash{}input\{/etc/passwd\} \$x\textasciicircum{}2\$ a\_b" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [("a\nb\r\n c", "a b  c"), ("\ud800x", "\ufffdx"), ("x" * 300, "x" * 197 + "..."), (None, "None")],
)
def test_plain_text_is_one_line(value, text):
    assert plain(value) == text


def test_a_message_keeps_its_lines_and_a_number_without_digits_has_a_name():
    assert message("a\n- b\x1b") == "a\n- b"
    assert plain(1 << 20_000) == "a int of more than 4,300 digits"
