"""Tables that benchmarks write into docs/benchmarks.md, each between two marks."""

from pathlib import Path


def put(name: str, table: str, page: Path = Path("docs/benchmarks.md")) -> None:
    """Replace what stands between the two marks of this name."""
    mark = f"<!-- {name} -->\n"
    before, first, rest = page.read_text().partition(mark)
    _, second, after = rest.partition(mark)
    assert all((first, second)), f"{page} has no two lines {mark.strip()}"
    page.write_text(before + mark + table + mark + after)
