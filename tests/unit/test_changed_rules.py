"""Stored runs keep their hash where the arithmetic stayed, and lose it where it changed."""

import pytest

from fedgm.config import compose
from fedgm.track.identity import identity

# Hashes of these commands before the rules were corrected.
BEFORE = {
    "": "d62039c8e90eab877b06c0af2e62f4a6d12f0fa307812cc6d578f23d9fec26e7",
    "algorithm=fedadam": "25b0491e94dffe04a90abd433f9b724c33f8236c550a8b5adb2ca769c89f2aec",
    "algorithm=diloco": "eedb4b754fb4fc3baca14108e3d5f177c07c6993e9a53209422d5d48281a5766",
    "schedule=multistage": "84a52a08f2deb986067c53f2eed411e314ecca80b4880765ecce876b5e039d12",
    "schedule=stages": "662375f7b04c42f9b8b2d5a419968240fa63a75f0174d133cfceab2114d937c3",
    "participation=autonomous": "d35796a2e87194ffce8752c0f5ca05889952df055a0afc9c34a552a54f8c45ce",
    "participation=autonomous_current": "4fb45915ad675d695754a2540d7dd393c198a86f565d1b7a0e2ab73d99e77461",
    "participation=event": "7f00942d1e66f4c8e8025520a3618f0691e568a745232b0ebea426222e50c695",
    "participation=fednova": "91e660a4992d0a8a62c591c9ccce1312ce25eba3d141c0a652575d688c23b017",
    "client=scaffold": "bfc41991be1f769dc91da2e201c1fbe771d6b195fd37638b238d94791f6dfa7b",
    "client=mifa": "b62640f63f8c6c16eac31062df4159211eb0991432df45b9095576c8c26879ae",
    "profile=paper": "a61e12b858efdfed939f050b3fd44284a3a29ba92d6fd77b4ea44e5b563b0915",
    "data=synthetic": "c3e044d47a4d72136ba00f16f7ee1fb2359fa7c1a53ff1120cd477a8fa7e36ca",
    "+experiment=multistage": "235b7632d2b10dbc5a23befffcfd88216a07afd7528ed3efd0c1a2d45eea9755",
    "participation=sync client=scaffold": "93ce5294d4dec600eb1e297309fab21471d06416d93a86130e2f0113a05261aa",
    "algorithm=qhadam algorithm.bias_correction=false": "94a1708c4753d9142a8901535558fe115d8fcb2a17cc060cd9431061297f4749",
    "+experiment=autonomous": "14323f16fbbf9402d9cc8e5f49b90bd2d01decd616849c72f5fc3862b72637dd",
}


@pytest.mark.parametrize("words", BEFORE)
def test_a_run_whose_arithmetic_stayed_is_found(words):
    assert identity(compose(words.split())) == BEFORE[words]


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
    "algorithm=fedams": "e3fe841638b96d9a000aabf3ee907b5a1485cd2e089c92c0462a54b93a8f4901",
    "algorithm=qhadam": "94a1708c4753d9142a8901535558fe115d8fcb2a17cc060cd9431061297f4749",
    "participation=autonomous client=scaffold": "884bf07bfeb4e847d2bafc40b731a873ce5f4f2bc1cbced16cca648ed6099d13",
    "participation=event client=scaffold": "622c668d8feb7eea8c82c2bcbc4ac469a19c1246b5c13b4482199b7e173a08df",
    "schedule=stages algorithm=fedadam": "700af301c93c4c5892bbe376a161fa2d9b94be45eb933ae97afd75f00fc126ae",
    "participation=fednova local.momentum=0.9": "2f4075e9d8d5a52c4fe91ec17978505961aa38b9a90bc98393801b1aac14deec",
}


@pytest.mark.parametrize("words", OLD)
def test_a_run_whose_arithmetic_changed_is_not_taken_for_the_old_one(words):
    assert identity(compose(words.split())) != OLD[words]
