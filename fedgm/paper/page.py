"""Pages that people write around tables that a command makes."""

from pathlib import Path

from fedgm.errors import FedGMError
from fedgm.files import write_atomically


def replace_between(page: Path, name: str, body: str, title: str = "") -> None:
    """Put ``body`` between the marks of ``name``, and leave the rest as it is; a new page has a title."""
    start, end = marks(name)
    text = page.read_text() if page.exists() else f"# {title}\n\n{start}\n{end}\n"
    if start not in text or end not in text:
        raise FedGMError(f"{page}: the lines '{start}' and '{end}' are missing, between which the tables go")
    before, after = text.split(start)[0], text.split(end)[1]
    write_atomically(page, f"{before}{start}\n{body}{end}{after}")


def marks(name: str) -> tuple[str, str]:
    """The lines around what a command writes."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
