"""For all tests: quick configurations and pictures, and the counts of long tests are shown at the end."""

import signal
from importlib.util import find_spec

import pytest

SHOWN = "counts"  # name of the property: record_property(SHOWN, text)


def quick(names, *kept):
    """Parameters of a test of which `make test` runs the kept ones, and `make test-all` every one."""
    return [pytest.param(name, marks=() if name in kept else pytest.mark.slow) for name in names]


@pytest.fixture(scope="session", autouse=True)
def _quick_runs():
    """Not where only the mathematics is installed, as beside Flower."""
    if find_spec("hydra") is None:
        yield
        return
    from fedgm.config import composing
    from fedgm.figures import curves
    from tests.quick_compose import QuickCompose
    from tests.quick_curves import QuickCurves

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composing, "_compose", QuickCompose(composing._compose))
        patch.setattr(curves, "draw", QuickCurves(curves.draw))
        yield


@pytest.fixture(autouse=True)
def _signals():
    """A command that a test calls in this process sets them; what ends pytest's workers is SIGTERM."""
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.fixture
def real_composition(monkeypatch):
    """For tests of composition itself."""
    from fedgm.config import composing

    monkeypatch.setattr(composing, "_compose", composing._compose.compose)


@pytest.fixture
def real_curves(monkeypatch):
    """For tests of the pictures of runs."""
    from fedgm.figures import curves

    monkeypatch.setattr(curves, "draw", curves.draw.draw)


def pytest_terminal_summary(terminalreporter):
    """Also where pytest-xdist swallows what tests print."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    lines = [
        str(text)
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, text in report.user_properties
        if name == SHOWN
    ]
    if lines:
        terminalreporter.section("counts")
    for line in sorted(lines):
        terminalreporter.write_line(line)
