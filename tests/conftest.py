"""What long tests have counted is shown at the end, also where pytest-xdist swallows what they print."""

SHOWN = "counts"  # name of the property: record_property(SHOWN, text)


def pytest_terminal_summary(terminalreporter):
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
