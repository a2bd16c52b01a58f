"""How figures look: one style, colours that survive grey and colour blindness, fixed bytes.

matplotlib takes a second to import, so it is imported where something is drawn.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure as Canvas

# Each colour has one job and a variable in the page's style sheet, where the dark theme changes
# it. The hues are Okabe and Ito's; lines differ by dash and marker too.
PALETTE = {
    "#1c2430": "--ink",
    "#5b6673": "--muted",
    "#dde1e6": "--rule",
    "#fefefe": "--paper",
    "#0072b2": "--blue",
    "#d55e00": "--orange",
    "#009e73": "--green",
    "#a2608d": "--purple",
}
INK, MUTED, RULE, PAPER, BLUE, ORANGE, GREEN, PURPLE = PALETTE
# Cells of heat maps do not follow the page's theme, and neither may what is written on them.
ON_LIGHT, ON_DARK = "#101820", "#ffffff"
MAX_PANELS = 24
HEAD_WIDTH = 60  # characters of a line of small print above a panel

STYLE: Any = {  # matplotlib types its keys as literals that differ between versions
    "text.parse_math": False,  # names may hold dollar signs
    "svg.fonttype": "none",
    "svg.hashsalt": "probelight",
    "pdf.fonttype": 42,  # publishers refuse fonts of type 3
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture on every machine
    "font.size": 8.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": PAPER,
    "lines.solid_capstyle": "round",
    "lines.linewidth": 1.7,
}


@dataclass(frozen=True)
class Figure:
    """A drawn figure, with the canvas that it was rendered from."""

    name: str  # of its files
    title: str
    caption: str  # how to read it
    svg: str
    png: bytes
    canvas: Canvas = field(repr=False, compare=False)

    def _repr_svg_(self) -> str:
        return self.svg  # what a notebook shows

    def pdf(self) -> bytes:
        """Render it as PDF with embedded fonts, which takes longer than SVG and PNG."""
        file = io.BytesIO()
        left_out = dict.fromkeys(("CreationDate", "Creator", "Producer"))
        with styled():
            self.canvas.savefig(file, format="pdf", metadata=left_out)
        return file.getvalue()


@dataclass(frozen=True)
class Line:
    """The look of a line with its marks."""

    color: str
    dash: str | tuple[int, tuple[float, ...]] = "-"  # "none" for marks alone
    marker: str = ""
    face: str = ""  # what marks are filled with; the line's colour by default
    size: float = 4.8  # of marks, in points
    width: float = 1.7

    @property
    def style(self) -> dict[str, Any]:
        """Its keyword arguments for matplotlib."""
        return {
            "color": self.color,
            "linestyle": self.dash,
            "marker": self.marker,
            "markerfacecolor": self.face or self.color,
            "markersize": self.size,
            "linewidth": self.width,
        }


# The lines of one panel, told apart by colour, dash and mark.
LINES = (
    Line(BLUE, "-", "o"),
    Line(ORANGE, (0, (5, 2)), "s"),
    Line(GREEN, (0, (1.5, 1.5)), "^"),
    Line(PURPLE, (0, (6, 2, 1.5, 2)), "D"),
)


def model_looks(models: Iterable[str]) -> dict[str, Line]:
    """Return a look for each model; from the fifth on, marks are hollow."""
    looks = [replace(line, dash="-", face=face) for face in ("", PAPER) for line in LINES]
    return dict(zip(models, cycle(looks), strict=False))


@contextmanager
def styled() -> Iterator[None]:
    """Draw and render in our style, whatever the user's matplotlibrc says."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def drawn(name: str, title: str, caption: str, canvas: Canvas) -> Figure:
    """Render a canvas, with long names shortened; the same canvas gives the same bytes."""
    from matplotlib.text import Text

    for axis in (side for axes in canvas.axes for side in (axes.xaxis, axes.yaxis)):
        labels = [label.get_text() for label in axis.get_ticklabels()]
        if (short_labels := [*map(fitting, labels)]) != labels:
            axis.set_ticks(axis.get_ticklocs(), short_labels)
    for words in canvas.findobj(Text):
        words.set_text(fitting(words.get_text()))
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")  # laid out once for both: it takes longer than the drawing
    svg, png = io.StringIO(), io.BytesIO()
    canvas.savefig(svg, format="svg", metadata={"Date": None})
    canvas.savefig(png, format="png", dpi=200, metadata={"Software": None})
    text = "\n".join(line.rstrip() for line in svg.getvalue().splitlines())
    return Figure(name, title, caption, text + "\n", png.getvalue(), canvas)


def fitting(text: str) -> str:
    """Return a text whose long words, such as names of models, are their two ends: tables have all.

    A legend or an axis with a word of 200 letters would leave no room for anything else.
    """
    return re.sub(r"\S{49,}", lambda match: f"{match[0][:30]}…{match[0][-15:]}", text)


def panels(number: int, height: float = 2.6, shared: bool = True) -> tuple[Canvas, list[Axes]]:
    """Return a canvas with a grid of panels, each `height` inches high; call inside `styled`."""
    from matplotlib.figure import Figure as Canvas

    columns = min(2, number)
    rows = math.ceil(number / columns)
    width = 5.4 if number == 1 else 7.4
    canvas = Canvas(figsize=(width, (height + (0.4 if number == 1 else 0.0)) * rows))
    canvas.set_layout_engine("constrained", w_pad=0.08, h_pad=0.08, wspace=0.03, hspace=0.05)
    grid = canvas.subplots(rows, columns, sharey=shared, squeeze=False)
    axes = [axis for line in grid for axis in line]
    for axis in axes[number:]:
        axis.set_visible(False)
    return canvas, axes[:number]


def legend(canvas: Canvas, looks: Mapping[str, Line], **how: Any) -> None:
    """Draw the legend above the panels, in as many columns as fit; `how` goes to matplotlib."""
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], label=label, **look.style) for label, look in looks.items()]
    longest = max(len(fitting(label)) for label in looks)
    most = int(canvas.get_figwidth() / (0.55 + 0.065 * longest))  # inches
    how.setdefault("ncols", max(1, min(most, len(marks))))
    canvas.legend(handles=marks, loc="outside upper left", **how)


def head(axis: Axes, title: str, subtitle: str) -> None:
    """Write a panel's title and its subtitle below, in small print."""
    lines = [
        piece
        for line in subtitle.splitlines()
        for piece in textwrap.wrap(line, HEAD_WIDTH, break_long_words=False, break_on_hyphens=False)
    ]
    pad = 9 + 9 * len(lines)
    axis.set_title(title, loc="left", fontsize=9, fontweight="bold", pad=pad)
    axis.text(
        0, 1.025, "\n".join(lines), transform=axis.transAxes, fontsize=7.5, color=MUTED,
        va="bottom",
    )  # fmt: skip


def placed(canvas: Canvas, x: float, y: float, width: float, height: float) -> Axes:
    """Add a panel at a place in inches from the upper left corner."""
    across, down = canvas.get_size_inches()
    return canvas.add_axes((x / across, 1 - (y + height) / down, width / across, height / down))


def heat_map(axis: Axes, shares: Any, shades: Colormap, **how: Any) -> None:
    """Draw cells of values from 0 to 1, framed and without a grid."""
    axis.imshow(shares, cmap=shades, vmin=0, vmax=1, interpolation="none", **how)
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(True)


def name_cells(axis: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Write the names of a heat map's rows and columns."""
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor")
    axis.tick_params(length=0, labelsize=7)


def ink_on(color: tuple[float, ...]) -> str:
    """Return black or white, whichever is easier to read on a cell of that colour."""
    grey = 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2]
    return ON_LIGHT if grey > 0.5 else ON_DARK


def left_out(number: int, most: int) -> str:
    """Return a sentence for the caption of a figure that draws `most` of a larger number."""
    return "" if number <= most else f" The first {most} of {number} are drawn."
