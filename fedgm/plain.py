"""Stored text on its way to a screen, a log or a picture: without control characters, no longer than fits."""

import re

LONGEST = 200  # characters of a name, a reason or a value in a line
MESSAGE = 4000  # of a whole message, which may have several lines
ENDS = "..."
# Controls of a terminal (an escape sequence can write the clipboard), marks that turn the direction of
# writing, and characters that are not seen. Half a surrogate pair cannot be encoded.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
BREAKS = re.compile("[\t\n\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]+")
HALVES = re.compile("[\ud800-\udfff]")


def plain(value: object, most: int = LONGEST) -> str:
    """One line of text.

    >>> plain("a name\\x1b]52;c;cm0=\\x07 of\\ntwo lines")
    'a name]52;c;cm0= of two lines'
    >>> plain("x" * 300, most=10)
    'xxxxxxx...'
    """
    return visible(BREAKS.sub(" ", _text(value)), most)


def message(value: object, most: int = MESSAGE) -> str:
    """The same for a message, which keeps its line breaks."""
    return visible(_text(value), most)


def visible(text: str, most: int | None = None) -> str:
    """The characters that a screen shows as such; what is cut off is marked."""
    shown = HALVES.sub("\ufffd", UNSEEN.sub("", text)).replace("\t", " ")
    return shown if most is None or len(shown) <= most else shown[: most - len(ENDS)] + ENDS


def _text(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return f"a {type(value).__name__} of more than 4,300 digits"
