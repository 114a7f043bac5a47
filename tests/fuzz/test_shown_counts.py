"""Counts of long tests reach the terminal, whatever pytest does with what they print."""

from types import SimpleNamespace

from tests.conftest import SHOWN, pytest_terminal_summary


def report(when, *properties):
    return SimpleNamespace(when=when, user_properties=list(properties))


def test_counts_of_passed_and_failed_tests_are_shown_once():
    lines = []
    passed, failed = (SHOWN, "12 cases"), (SHOWN, "3 cases")
    stats = {
        "passed": [report("call", passed, ("other", "x"))],
        "failed": [report("call", failed)],
        "": [report("setup"), report("teardown", passed)],
        "warnings": [SimpleNamespace()],
    }
    pytest_terminal_summary(SimpleNamespace(stats=stats, section=lines.append, write_line=lines.append))
    assert lines == ["counts", "12 cases", "3 cases"]
