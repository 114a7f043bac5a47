"""Cleaning of the plays' markdown, rule by rule."""

import re
from textwrap import dedent

from fedgm.data.plays import Speech, by_role, is_joint, script, speeches, spoken_lines


def cleaned(markdown):
    with_breaks = re.sub(r"(?m)(?<=\S)$", "  ", dedent(markdown))  # markdown's line break: two spaces
    return [(role, text) for _, role, text in speeches("play", with_breaks)]


def test_a_speech_goes_on_after_a_direction_and_ends_at_the_next_role():
    found = cleaned("""\
        # Play

        ## ACT I

        _Enter A and
        B, talking_

        **A**
        One,
        two.

        _Exit B_

        Three.

        **First Lord**
        Four.
        """)
    assert found == [("A", "One,\ntwo.\nThree.\n"), ("First Lord", "Four.\n")]


def test_lines_before_the_first_role_of_a_scene_belong_to_nobody():
    found = cleaned("""\
        Nobody says this.

        **A**
        One.

        ### SCENE II. A wood.

        lying asleep.

        **B**
        Two.

        **Scene III**
        Eastcheap. The Boar's-Head Tavern.

        Not B any more.
        """)
    assert found == [("A", "One.\n"), ("B", "Two.\n")]


def test_directions_inside_a_speech_are_dropped_also_where_they_are_damaged():
    assert spoken_lines("_\\[Aside]_  \nOne.") == ["One."]
    assert spoken_lines("[Within]_  \nWho's there?") == ["Who's there?"]
    assert spoken_lines("__\\[Awaking]_  \nHelp me!") == ["Help me!"]
    assert spoken_lines("*[Reads.]*  \n'Dear sir'") == ["'Dear sir'"]
    assert spoken_lines("_During this song they pinch him.\nAll run away_") == []
    assert spoken_lines("_Burthen _\\[dispersedly, within_") == []


def test_an_editors_guess_at_a_lost_word_stays():
    assert spoken_lines("And _\\[Censorinus,]_  ") == ["And Censorinus,"]
    assert spoken_lines("And either _\\[ ]_  ") == ["And either"]


def test_the_one_character_beyond_ascii_becomes_two_hyphens():
    assert spoken_lines("Stay\N{EM DASH}go.") == ["Stay--go."]


def test_names_of_roles_that_the_edition_tore_apart_are_joined():
    found = cleaned("""\
        **A**
        One.
        BISHOP

        **OF WINCHESTER**
        Two.
        """)
    assert found == [("A", "One.\n"), ("BISHOP OF WINCHESTER", "Two.\n")]


def test_half_a_verse_is_no_role():
    found = cleaned("""\
        **BIRON**
        Can any face of brass hold longer out?

        **Here stand I**
        lady, dart thy skill at me;
        """)
    assert found == [
        ("BIRON", "Can any face of brass hold longer out?\nHere stand I: lady, dart thy skill at me;\n")
    ]


def test_who_speaks_together():
    joint = ["ALL", "All", "BOTH", "All Lords", "Both Citizens", "GREY & SCROOP"]
    assert all(map(is_joint, joint))
    assert not any(map(is_joint, ["GALLUS", "Wall", "ALLEN", "HAMLET"]))


def test_by_role_keys_play_and_role_and_needs_three_lines():
    spoken = [
        Speech("p", "Page", "One.\n"),
        Speech("q", "PAGE", "Other play.\n"),
        Speech("p", "PAGE", "Two.\nThree.\n"),
        Speech("p", "ALL", "a\nb\nc\n"),
    ]
    assert by_role(spoken) == {"p/PAGE": "One.\n\nTwo.\nThree.\n"}
    assert set(by_role(spoken, min_lines=1)) == {"p/PAGE", "q/PAGE"}


def test_a_script_looks_like_tiny_shakespeare():
    spoken = [Speech("p", "First Citizen", "Speak.\n"), Speech("p", "ALL", "Speak, speak.\n")]
    assert script(spoken) == "First Citizen:\nSpeak.\n\nALL:\nSpeak, speak.\n"
