"""PNG, PDF and SVG of a figure, the same bytes each time: no date and no version in the file."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from fedgm.errors import require
from fedgm.files import write_atomically

SILENT: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}


def save(figure: Figure, path: Path) -> Path:
    """Written whole, in the format that the name ends with."""
    kind = path.suffix.lstrip(".").lower()
    require(kind in SILENT, "--out", path, "a name that ends with .png, .pdf or .svg", "--out compare.png")
    picture = BytesIO()
    # Text stays text in a PDF or SVG; the salt makes the names inside an SVG the same each time.
    with mpl.rc_context({"svg.hashsalt": "fedgm", "svg.fonttype": "none", "pdf.fonttype": 42}):
        figure.savefig(picture, format=kind, metadata=SILENT[kind])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, picture.getbuffer())
    return path


def save_all(figure: Figure, path: Path, kinds: Iterable[str] = ("png", "pdf")) -> list[Path]:
    """The figure under one name in several formats."""
    return [save(figure, path.with_name(f"{path.name}.{kind}")) for kind in kinds]
