"""Stored runs keep their hash where the arithmetic stayed, and lose it where it changed."""

import pytest

from fedgm.config import compose
from fedgm.config.identity import identity

# Hashes of these commands (first 16 digits) before the rules were corrected.
BEFORE = {
    "": "d62039c8e90eab87",
    "algorithm=fedadam": "25b0491e94dffe04",
    "algorithm=diloco": "eedb4b754fb4fc3b",
    "schedule=multistage": "84a52a08f2deb986",
    "schedule=stages": "662375f7b04c42f9",
    "participation=autonomous": "d35796a2e87194ff",
    "participation=autonomous_current": "4fb45915ad675d69",
    "participation=event": "7f00942d1e66f4c8",
    "participation=fednova": "91e660a4992d0a8a",
    "client=scaffold": "bfc41991be1f769d",
    "client=mifa": "b62640f63f8c6c16",
    "profile=paper": "a61e12b858efdfed",
    "data=synthetic": "c3e044d47a4d7213",
    "+experiment=multistage": "235b7632d2b10dbc",
    "participation=sync client=scaffold": "93ce5294d4dec600",
    "algorithm=qhadam algorithm.bias_correction=false": "94a1708c4753d914",
    "+experiment=autonomous algorithm.eta=2 algorithm.beta=0.9 algorithm.nu=0.9": "14323f16fbbf9402",
}


@pytest.mark.parametrize("words", BEFORE)
def test_a_run_whose_arithmetic_stayed_is_found(words):
    assert identity(compose(words.split()))[:16] == BEFORE[words]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("", "participation=autonomous participation.age=round"),
        ("algorithm=qhadam algorithm.bias_correction=false", "algorithm=qhadam"),
        ("algorithm=gpa", "algorithm=gpa eval.point=average"),
        ("data.partition=shards", "data.partition=shards data.shards=3"),
    ],
)
def test_a_new_choice_is_another_run(before, now):
    assert identity(compose(before.split())) != identity(compose(now.split()))


# Hashes of these commands before, when they computed something else.
OLD = {
    "algorithm=fedams": "e3fe841638b96d9a",
    "algorithm=qhadam": "94a1708c4753d914",
    "participation=autonomous client=scaffold": "884bf07bfeb4e847",
    "participation=event client=scaffold": "622c668d8feb7eea",
    "schedule=stages algorithm=fedadam": "700af301c93c4c58",
    "participation=fednova local.momentum=0.9": "2f4075e9d8d5a52c",
}


@pytest.mark.parametrize("words", OLD)
def test_a_run_whose_arithmetic_changed_is_not_taken_for_the_old_one(words):
    assert identity(compose(words.split()))[:16] != OLD[words]
