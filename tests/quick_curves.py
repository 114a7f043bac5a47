"""Pictures for tests: of every kind of run the first is drawn, and the others get that picture again.

A picture takes 0.4 seconds, a third of a small run, and tests run hundreds that nobody looks at. What tests
start as a command draws for itself, and tests of pictures ask for ``real_curves``.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from fedgm.files import write_atomically
from fedgm.results.rows import Row
from fedgm.tasks import Scoreboard


class QuickCurves:
    """Stands in for ``fedgm.figures.curves.draw``."""

    def __init__(self, draw: Callable[..., None]) -> None:
        self.draw = draw
        self._drawn: dict[tuple, bytes] = {}

    def __call__(
        self, path: Path, rows: list[Row], ends: list[int], title: str, caption: str, board: Scoreboard,
        initial: Mapping[str, float] | None = None, algorithm: str = "",
    ) -> None:  # fmt: skip
        kind = board.columns, board.headline, frozenset(rows[0] if rows else ()), len(ends), initial is None
        if kind in self._drawn:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, self._drawn[kind])
        else:
            self.draw(path, rows, ends, title, caption, board, initial, algorithm)
            self._drawn[kind] = path.read_bytes()
