"""The screen of every command: whatever is printed on it is text, not markup, and controls no terminal.

A run folder can come from anybody, so no string is searched for markup: what is to be bold or green is a
:class:`rich.text.Text`. Functions that print take a ``Screen``, so that the types show who is covered.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style

from fedgm.plain import visible

LEAST = 10  # characters of a column of text, however narrow the screen


class Screen(Console):
    """A console of rich without markup, emoji codes, highlighting or control characters in the text."""

    def __init__(self, **options: Any) -> None:
        plain: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
        super().__init__(**plain | options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Rich adds colours behind the segments, so an escape character in one comes from the text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

    def say(self, *words: object, style: str | None = None) -> None:
        """A line that is not wrapped, so that a path in it can be copied."""
        self.print(*words, style=style, soft_wrap=True)


@dataclass(frozen=True)
class Listing:
    """A table of thousands of lines, as wide as its text; the widest columns are wrapped where they must be.

    Rich's own table lays out every cell by itself, which takes milliseconds a line.
    """

    title: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]
    right: Sequence[str]  # columns with numbers
    caption: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        table = [self.head, *self.lines]
        widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
        texts = [place for place, name in enumerate(self.head) if name not in self.right]
        for _ in range(sum(widths) + 2 * (len(widths) - 1) - options.max_width):
            widest = max(texts, key=lambda place: widths[place])
            widths[widest] = max(widths[widest] - 1, LEAST)
        for text, style in ((self.title, Style(italic=True)), *self._body(table, widths)):
            yield Segment(text.rstrip() + "\n", style)
        if self.caption:
            yield Segment(self.caption + "\n", Style(dim=True, italic=True))

    def _body(self, table: Sequence[Sequence[str]], widths: list[int]) -> Iterator[tuple[str, Style | None]]:
        right = [name in self.right for name in self.head]
        for number, cells in enumerate(table):
            parts = [
                wrap(cell, width) if cell_len(cell) > width else [cell]
                for cell, width in zip(cells, widths, strict=True)
            ]
            for line in zip_longest(*parts, fillvalue=""):
                yield (
                    "  ".join(map(_padded, line, widths, right)),
                    (None if number else Style(bold=True)),
                )


def _padded(text: str, width: int, right: bool) -> str:
    room = " " * (width - cell_len(text))
    return room + text if right else text + room
