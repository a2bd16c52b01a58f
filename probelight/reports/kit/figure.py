"""How figures look: one style, colours that survive grey and colour blindness, fixed bytes."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

# Each colour has one job and stands once in the page's style sheet, where the dark theme has its
# own. The hues are Okabe and Ito's; lines differ by dash and marker too.
INK = "#1c2430"
MUTED = "#5b6673"
RULE = "#dde1e6"
PAPER = "#fefefe"
BLUE = "#0072b2"
ORANGE = "#d55e00"
GREEN = "#009e73"
PURPLE = "#a2608d"
PALETTE = {
    INK: "--ink",
    MUTED: "--muted",
    RULE: "--rule",
    PAPER: "--paper",
    BLUE: "--blue",
    ORANGE: "--orange",
    GREEN: "--green",
    PURPLE: "--purple",
}
MAX_PANELS = 24
HEAD_WIDTH = 60  # characters of small print over one of two panels side by side

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
    "axes.labelsize": 8.5,
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
    "savefig.facecolor": PAPER,
    "lines.solid_capstyle": "round",
    "hatch.linewidth": 0.6,
}


@dataclass(frozen=True)
class Figure:
    """A drawn figure.

    Attributes:
        name: Name of its files.
        title: What it shows, in a few words.
        caption: How to read it.
        canvas: What it was rendered from.
    """

    name: str
    title: str
    caption: str
    svg: str
    png: bytes
    canvas: Canvas | None = field(default=None, repr=False, compare=False)

    def pdf(self) -> bytes:
        """The same as PDF, its letters embedded; made when asked for, as it takes the longest."""
        if self.canvas is None:
            raise ValueError(f"figure {self.name}: it has no canvas to be rendered from")
        file = io.BytesIO()
        unsaid = dict.fromkeys(("CreationDate", "Creator", "Producer"))
        with styled():
            self.canvas.savefig(file, format="pdf", metadata=unsaid)
        return file.getvalue()


@dataclass(frozen=True)
class Line:
    """How one kind of line looks."""

    color: str
    dash: str | tuple[int, tuple[float, ...]]
    marker: str


# What one panel tells apart, by colour, dash and mark; further ones are a figure's own.
LINES = (
    Line(BLUE, "-", "o"),
    Line(ORANGE, (0, (5, 2)), "s"),
    Line(GREEN, (0, (1.5, 1.5)), "^"),
    Line(PURPLE, (0, (6, 2, 1.5, 2)), "D"),
)


def drawn(name: str, title: str, caption: str, canvas: Canvas) -> Figure:
    """Renders a canvas; the same canvas gives the same bytes."""
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")  # laid out once for both: it takes longer than the drawing
    svg, png = io.StringIO(), io.BytesIO()
    canvas.savefig(svg, format="svg", metadata={"Date": None})
    canvas.savefig(png, format="png", dpi=200, metadata={"Software": None})
    text = "\n".join(line.rstrip() for line in svg.getvalue().splitlines())
    return Figure(name, title, caption, text + "\n", png.getvalue(), canvas)


def panels(number: int, height: float = 2.6, shared: bool = True) -> tuple[Canvas, list[Axes]]:
    """A grid of `number` panels, whose y axis is `shared` or their own; call inside `styled`."""
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


@contextmanager
def styled() -> Iterator[None]:
    """Everything is drawn and rendered in this context; a user's own matplotlibrc has no say."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def head(axis: Axes, title: str, subtitle: str) -> None:
    """Title of a panel, with what else identifies it in quieter lines below."""
    lines = [
        part
        for line in subtitle.splitlines()
        for part in textwrap.wrap(line, HEAD_WIDTH, break_long_words=False, break_on_hyphens=False)
    ]
    pad = 6 + 12 * len(lines)
    axis.set_title(title, loc="left", fontsize=9, fontweight="bold", pad=pad)
    axis.text(
        0, 1.025, "\n".join(lines), transform=axis.transAxes, fontsize=7.5, color=MUTED,
        va="bottom",
    )  # fmt: skip
