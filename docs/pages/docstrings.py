"""Docstrings as the site shows them: examples as code, roles of Sphinx as plain code."""

import re
from typing import Any

import griffe


def fenced(text: str) -> str:
    """Examples (``>>>`` up to an empty line) as fenced blocks."""
    example = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
    text = example.sub(lambda found: f"```pycon\n{found[0].replace('  # doctest: +SKIP', '')}\n```", text)
    return re.sub(r":(?:class|func|mod|meth):`~?([^`]+)`", r"`\1`", text)


class Examples(griffe.Extension):
    """Called for everything that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
