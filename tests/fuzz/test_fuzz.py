"""The fuzzer and the kills as tests: half a minute of them in `make test`, all in `make test-all`."""

import pytest

from tests.e2e.commands import Commands
from tests.fuzz.fuzzer import Fuzzer, cases_of, fuzz
from tests.fuzz.kills import storm

QUICK, ALL, KILLS = 40, 1000, 100
SECONDS = 30  # of the quick part, however slow the machine


@pytest.fixture(scope="module")
def commands():
    starter = Commands()
    yield starter
    starter.close()


@pytest.mark.parametrize(
    ("count", "seconds"),
    [(QUICK, SECONDS), pytest.param(ALL, float("inf"), marks=pytest.mark.slow)],
)
def test_every_case_ends_well_or_as_a_refusal(commands, tmp_path, capsys, count, seconds):
    counts, findings = fuzz(Fuzzer(commands, tmp_path), cases_of(count, count), seconds)
    with capsys.disabled():
        print(f"\n{sum(counts.values())} cases: {dict(sorted(counts.items()))}")
    assert not findings, "\n".join(findings)
    assert counts


@pytest.mark.slow
def test_a_hundred_kills_change_no_byte(commands, tmp_path):
    met = storm(commands, tmp_path, KILLS, seed=0)
    assert sum(met.values()) >= KILLS
    assert set(met) == {"one worker", "two workers", "event", "states", "kept optimiser", "sweep"}
