"""The screen of every command: whatever is printed on it is text, not markup, and controls no terminal.

A run folder can come from anybody, so no string is searched for markup: what is to be bold or green is a
:class:`rich.text.Text`. Functions that print take a ``Screen``, so that the types show who is covered.
"""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fedgm.plain import visible


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
