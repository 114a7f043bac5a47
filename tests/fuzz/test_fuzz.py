"""The fuzzer and the kills as tests: half a minute of them in `make test`, all in `make test-all`."""

import time

import pytest

from tests.conftest import SHOWN
from tests.e2e.commands import Commands
from tests.fuzz.fuzzer import KINDS, Fuzzer, cases_of, fuzz, told
from tests.fuzz.kills import storm

QUICK, HALF, KILLS = 40, 500, 100
SECONDS = 5  # of the quick part, once every kind of case was tried


@pytest.fixture(scope="module")
def commands():
    starter = Commands()
    yield starter
    starter.close()


def counted(commands, home, cases, record_property, **limits):
    begun = time.monotonic()
    counts, findings = fuzz(Fuzzer(commands, home), cases, **limits)
    record_property(SHOWN, f"fuzzer: {told(counts, findings, time.monotonic() - begun)}")
    assert not findings, "\n".join(findings)
    return counts


def test_some_cases_of_every_kind_end_well_or_as_a_refusal(commands, tmp_path, record_property):
    cases = cases_of(QUICK, QUICK)
    counts = counted(commands, tmp_path, cases, record_property, seconds=SECONDS, least=len(KINDS))
    assert {name.partition(":")[0] for name in counts} == set(KINDS)


# What the fuzzer has found: rates of groups were float32 beside float64 parameters (SCAFFOLD, 6e-10 off).
FOUND = [("modules", 40982310308282368000020)]


@pytest.mark.parametrize(("kind", "seed"), FOUND)
def test_what_was_found_stays_mended(commands, tmp_path, kind, seed):
    assert Fuzzer(commands, tmp_path).case(kind, seed) == "good"


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_a_thousand_cases(commands, tmp_path, record_property, half):
    """In halves, so that two cores run them side by side."""
    counts = counted(commands, tmp_path, cases_of(2 * HALF, 2 * HALF)[half::2], record_property)
    assert sum(counts.values()) == HALF


@pytest.mark.slow
def test_a_hundred_kills_change_no_byte(commands, tmp_path, record_property):
    begun = time.monotonic()
    met = storm(commands, tmp_path, KILLS, seed=0)
    seconds = time.monotonic() - begun
    record_property(SHOWN, f"kill -9: {sum(met.values())} byte-equal, {seconds:.0f} s: {dict(met)}")
    assert sum(met.values()) >= KILLS
    assert set(met) == {"one worker", "two workers", "event", "states", "kept optimiser", "sweep"}
