"""Pages that people write around tables that a command makes."""

from pathlib import Path

from fedgm.errors import RefusedError
from fedgm.files import write_atomically


def replace_between(page: Path, name: str, body: str, title: str = "") -> None:
    """Put ``body`` between the marks of ``name``, and leave the rest as it is; a new page has a title."""
    require_marks(page, name)
    start, end = marks(name)
    text = page.read_text() if page.exists() else f"# {title}\n\n{start}\n{end}\n"
    before, _, rest = text.partition(start)
    after = rest.partition(end)[2]
    write_atomically(page, f"{before}{start}\n{body}{end}{after}")


def require_marks(page: Path, name: str) -> None:
    """Refuse a page without a place for the tables, before hours of work for them."""
    start, end = marks(name)
    if page.exists() and end not in page.read_text().partition(start)[2]:
        raise RefusedError(f"{page}: put the lines '{start}' and '{end}' where the table is to go")


def marks(name: str) -> tuple[str, str]:
    """The lines around what a command writes."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
