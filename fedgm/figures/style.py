"""One style for every picture: colours, the sheet, title and caption, bare axes, reproducible files."""

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any
from zlib import crc32

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from fedgm.errors import require
from fedgm.files import write_atomically
from fedgm.plain import visible

INK, MUTED, FAINT, EMPTY = "#1f2430", "#5b6270", "#d9dce1", "#eceef1"
# Okabe and Ito's colours, which colour-blind readers tell apart.
BLUE, RED, GREEN, PURPLE, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
WINE = "#882255"  # of Tol's
# A colour belongs to an algorithm everywhere, also in the dashboard (page/colours.js).
HUES = {
    BLUE: "fedgm suggested",
    RED: "fedavg fedsgd",
    GREEN: "fedavgm fedavgm_summed slowmo momentum_approximation",
    PURPLE: "fednag fedmom snoo ema_nesterov delayed_nesterov nsgdm fetchsgd",
    ORANGE: "fedadam fedamsgrad qhadam robust gpa",
    SKY: "fedacg diloco muloco accsgd triple amplified",
    INK: "fedexp fedexp_gm snv pid true_topk",
    WINE: "fedyogi fedadagrad fedams schedule_free pid_opt",
}
ALGORITHMS = {name: colour for colour, names in HUES.items() for name in names.split()}
OTHERS = (PURPLE, ORANGE, SKY, INK, WINE)  # of rules that are not in the tree
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
PALEST = 0.4  # how much white the last of several lines of one algorithm has
LIGHTEST = 0.298  # luminance of words on white: a contrast of 3 to 1, with room for rounding
CLASSES = (  # of labels: areas, which need ten lighter colours
    "#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#9d755d", "#ff9da6", "#8c96a3", "#e3c13b",
    "#3fb8af",
)  # fmt: skip


def colours(algorithms: Iterable[str]) -> dict[str, str]:
    """The colour of each algorithm, whatever stands beside it; that of an unknown one follows from its name.

    >>> colours(["fedavg", "fedgm"])
    {'fedavg': '#d55e00', 'fedgm': '#0072b2'}
    """
    return {
        name: ALGORITHMS.get(name, OTHERS[crc32(name.encode()) % len(OTHERS)])
        for name in dict.fromkeys(algorithms)
    }


def line_styles(
    algorithms: Sequence[str], strengths: Sequence[tuple[bool, float]] = ()
) -> list[tuple[str, Any]]:
    """Colour and dashes of lines by their algorithms: the strongest of one is plain, weaker ones are paler.

    Without strengths, and where they are equal, the first is the strongest. Two rules may share a colour.

    >>> line_styles(["fedgm", "fedgm"], [(True, 1.0), (True, 5.0)])
    [('#66aad1', (0, (5, 1.5))), ('#0072b2', '-')]
    """
    own, styles = colours(algorithms), list[tuple[str, Any]]()
    drawn = [own[name] for name in algorithms]
    for place, colour in enumerate(drawn):
        same = [i for i, other in enumerate(drawn) if other == colour]
        if strengths:
            same.sort(key=lambda i: strengths[i], reverse=True)
        number = same.index(place)
        white = PALEST * number / max(1, len(same) - 1)
        r, g, b = ((1 - white) * part + white for part in to_rgb(colour))
        styles.append((to_hex((r, g, b)), DASHES[number % len(DASHES)]))
    return styles


def readable(colour: str) -> str:
    """The colour for words and thin lines on white: darker where its contrast is below 3 to 1."""
    r, g, b = to_rgb(colour)
    while luminance((r, g, b)) > LIGHTEST:
        r, g, b = 0.98 * r, 0.98 * g, 0.98 * b
    return to_hex((r, g, b))


def luminance(rgb: Sequence[float]) -> float:
    """How light a colour is to the eye, as W3C's rules for contrast have it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def sheet(width: float, height: float) -> Figure:
    """An empty page, in inches, with room kept by matplotlib for labels."""
    figure = Figure(figsize=(width, height), dpi=160, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def write_text(figure: Figure, title: str, caption: Sequence[str], entries: Sequence[Artist] = ()) -> None:
    """Title and legend above, caption below; its sentences are joined and wrapped to the page."""
    width, height = float(figure.get_figwidth()), float(figure.get_figheight())
    lines = fill(title, int(10.0 * width))
    room = "\n" if entries else ""  # a line that the legend is put on
    figure.suptitle(lines + room, fontsize=10.5, fontweight="bold", color=INK)
    if entries:
        depth = 0.04 + 0.18 * (1 + lines.count("\n"))
        legend = figure.legend(
            handles=list(entries),
            loc="upper center",
            bbox_to_anchor=(0.5, 1 - depth / height),
            ncols=len(entries),
            frameon=False,
            fontsize=7.5,
            columnspacing=1.4,
            handlelength=1.8,
        )
        legend.set_in_layout(False)
    figure.supxlabel(wrapped(caption, width), fontsize=7.5, color=MUTED)


def wrapped(caption: Sequence[str], width: float) -> str:
    """The sentences of a caption as lines of a page of this width."""
    return fill(" ".join(sentence for sentence in caption if sentence), int(17.0 * width))


def plain(axes: Axes) -> None:
    """No frame, no tick marks."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0, labelsize=8.5, colors=INK)


SILENT: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}


def as_text(figure: Figure) -> None:
    """A dollar sign in a stored name begins no formula, and a control character is left out."""
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_parse_math(False)
        text.set_text(visible(text.get_text()))


def save(figure: Figure, path: Path) -> Path:
    """Written whole, in the format that the name ends with."""
    kind = path.suffix.lstrip(".").lower()
    require(kind in SILENT, "--out", path, "a name that ends with .png, .pdf or .svg", "--out compare.png")
    as_text(figure)
    picture = BytesIO()
    # Text stays text in a PDF or SVG; the salt makes the names inside an SVG the same each time.
    with mpl.rc_context(
        {"text.parse_math": False, "svg.hashsalt": "fedgm", "svg.fonttype": "none", "pdf.fonttype": 42}
    ):
        figure.savefig(picture, format=kind, metadata=SILENT[kind])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, picture.getbuffer())
    return path


def save_all(figure: Figure, path: Path, kinds: Iterable[str] = ("png", "pdf")) -> list[Path]:
    """The figure under one name in several formats."""
    return [save(figure, path.with_name(f"{path.name}.{kind}")) for kind in kinds]
