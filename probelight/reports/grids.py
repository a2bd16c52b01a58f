"""Predictions over all pairs of values: ages and years, sizes (Talmor et al. 2020, section 4.1).

The heat maps are those of its figures 2A and 3, and of table 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby, product, zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np

from probelight.io.escaping import all_visible, visible
from probelight.io.settings import STRICT, typed
from probelight.reports import figure
from probelight.reports import table as tables
from probelight.reports.numbers import ABSENT, INTERVAL, listed, percent, scored_by
from probelight.reports.published import (
    ScoreKey,
    paper_model,
    published_scores,
    published_size_errors,
)
from probelight.reports.table import SIZE, Cell, Column, Table
from probelight.reports.zero_shot.scores import STUCK
from probelight.results.load import GRID_FILE, Run, RunSet, UnreadableResultError
from probelight.results.row import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure as Canvas

T = TypeVar("T")
Matrix = tuple[tuple[T | None, ...], ...]

AGE_PANELS = ("A", "B", "C", "D")
SIZES = "sizes"
# Talmor et al. 2020, section 4.1, of roberta-large; the accuracies of panel A are in table 2.
PAPER_PANELS = {"B": "76", "C": "always older", "D": "12", SIZES: "83.9"}  # 47 of 56 pairs
PAPER_SIZES_MODEL = "roberta-large"  # of table 4 as well
MOST_TOLD = 6  # sentences of the paragraph
MOST_ROWS = 8  # of a figure
WIDTH, ROW, KEY, PITCH, SIDE = 7.4, 2.85, 0.55, 1.81, 1.36  # inches of the figure of ages


@dataclass(frozen=True, kw_only=True)
class GridFile:
    """The content of grid.json: answers to all ordered pairs of values in one sentence.

    Rows of the matrices are first values, columns second ones; on the diagonal is None.
    """

    __pydantic_config__: ClassVar = {**STRICT, "extra": "ignore"}

    name: str  # "A" to "D" (figure 3), or "sizes" (table 4)
    title: str
    wording: str
    axes: tuple[str, str]  # what the first and the second value are
    candidates: tuple[str, str]
    values: tuple[Any, ...]  # ages or years, or names of objects
    probability: Matrix[float]  # of the first candidate
    prediction: Matrix[Literal[0, 1]]  # index of a candidate; None for a tie
    answer: Matrix[Literal[0, 1]]  # index of the right one


@dataclass(frozen=True, kw_only=True)
class Grid(GridFile):
    """A grid and its run."""

    run: Run

    @property
    def accuracy(self) -> Row:
        """The share of right answers, without the diagonal."""
        return next(row for row in self.run.rows if row.metric == "accuracy")

    def value(self, metric: str) -> float | None:
        """Return a metric of the run; None if it was not measured."""
        return next((row.value for row in self.run.rows if row.metric == metric), None)

    @property
    def first_share(self) -> float | None:
        """How often the model said the first candidate."""
        return self.value(f"share_{self.candidates[0]}")

    @property
    def span(self) -> str:
        """The values in a few words: "15–105", "15–105 in steps of 5"."""
        if self.name == SIZES:
            return f"{len(self.values)} objects"
        step = self.values[1] - self.values[0]
        steps = "" if step == 1 else f" in steps of {step}"
        return f"{self.values[0]}–{self.values[-1]}{steps}"

    @property
    def in_table_4(self) -> bool:
        """Whether table 4 of the paper has this model's answers."""
        return self.name == SIZES and paper_model(self.run) == PAPER_SIZES_MODEL

    @property
    def published(self) -> str:
        """The paper's result of this panel, model and wording; empty if there is none."""
        model = paper_model(self.run) or ""
        if self.wording != "paper":
            return ""
        if self.name == AGE_PANELS[0]:
            score = published_scores("age_comparison").get(model, {}).get(ScoreKey("zero_shot"))
            return "" if score is None else f"{100 * score:.0f}"
        return PAPER_PANELS.get(self.name, "") if model == PAPER_SIZES_MODEL else ""

    def pairs(self) -> Iterator[dict[str, Any]]:
        """Yield a record per pair that was asked; a tie counts 1/2."""
        wrong_in_paper = published_size_errors() if self.in_table_4 else ()
        for (i, first), (j, second) in product(enumerate(self.values), repeat=2):
            p, choice, answer = self.probability[i][j], self.prediction[i][j], self.answer[i][j]
            if answer is None or (p is None and choice is None):
                continue
            paper = self.candidates[answer != ((first, second) in wrong_in_paper)]
            yield {
                "_row": i,
                "_column": j,
                "first": first,
                "second": second,
                f"p_{self.candidates[0]}": p,
                "prediction": "tie" if choice is None else self.candidates[choice],
                "answer": self.candidates[answer],
                "correct": 0.5 if choice is None else float(choice == answer),
                "paper": paper if wrong_in_paper else None,
            }


def grids(results: RunSet) -> list[Grid]:
    """Return all grids that can be read, sorted by model, wording and panel."""
    return _read_grids(results)[0]


@lru_cache(maxsize=2)
def _read_grids(results: RunSet) -> tuple[list[Grid], list[str]]:
    """Return the grids, and a sentence on each that cannot be read."""
    read_grids, problems = list[Grid](), list[str]()
    for run in results.of("grid"):
        try:
            if (content := results.read(run, GRID_FILE)) is not None:
                read_grids.append(_checked_grid(content, run))
        except UnreadableResultError as error:
            problems.append(f"Not shown: {visible(str(error))}.")
    read_grids.sort(key=lambda g: (g.run.model, g.wording, g.name, g.span))
    return read_grids, problems


def _checked_grid(content: object, run: Run) -> Grid:
    path = f"{run.path}/{GRID_FILE}"
    file = typed(GridFile, all_visible(content), path, UnreadableResultError)
    grid = Grid(**vars(file), run=run)
    size = len(grid.values)
    for name in ("probability", "prediction", "answer"):
        if [len(row) for row in getattr(grid, name)] != [size] * size:
            raise UnreadableResultError(f"{path}: `{name}` must be {size} rows of {size} values")
    kind = str if grid.name == SIZES else int
    if size < 2 or any(type(value) is not kind for value in grid.values):
        raise UnreadableResultError(f"{path}: `values` do not fit grid {grid.name}")
    return grid


def grid_table(results: RunSet) -> Table | None:
    """Make the table of the accuracy on each panel, with the paper's."""
    records = [
        {
            "model": grid.run.model,
            "wording": grid.wording,
            "perturbation": grid.name,
            "title": grid.title,
            "values": grid.span,
            "accuracy": grid.accuracy.value,
            **{name: getattr(grid.accuracy, name) for name in f"ci_low ci_high {SIZE}".split()},
            "paper": grid.published or None,
            "first_share": grid.first_share,
            "order_accuracy": grid.value("order_accuracy"),
            "_how": ", ".join(
                filter(None, (f"{grid.wording} wording", scored_by(grid.accuracy.mode)))
            ),
            "_grid": grid.title if grid.name == SIZES else f"{grid.name}: {grid.title}",
            "_runs": grid.run.key,
        }
        for grid in grids(results)
    ]
    return tables.table(
        "grid",
        "Predictions over all pairs of values",
        f"{INTERVAL} (by pairs in both orders). It is too narrow, because pairs of a grid share "
        "their values. Chance is 50%. First answers: younger, smaller. Orders distinguished: the "
        "pairs whose first answer is more probable in the order in which it is right. Compare this "
        "with the same model with random weights, which may be far from 50%. Paper: Talmor et al. "
        "2020, which does not say which values it used.",
        records,
        [
            tables.text("model", "model", "_how"),
            tables.text("grid", "_grid"),
            tables.text("values", "values"),
            tables.accuracy("accuracy %"),
            tables.number("paper", "paper", str),
            tables.share("says the first answer %", "first_share"),
            tables.share("orders distinguished %", "order_accuracy"),
            tables.size(),
        ],
    )


def sizes_table(results: RunSet) -> Table | None:
    """Make the table of the answers to all pairs of objects (table 4 of the paper)."""
    size_grids = [grid for grid in grids(results) if grid.name == SIZES]

    def answer(row: Any) -> Cell:
        wrong = "" if row.correct else " ✗"
        mark = " †" if row.paper not in (None, row.prediction) else ""
        p = row.p_smaller or 0.0
        return Cell(f"{row.prediction}{wrong}{mark}", f"{max(p, 1 - p):.2f}")

    return tables.table(
        "sizes_grid",
        "Which of two objects is larger?",
        "Objects go from small to large, so “smaller” is right above the diagonal and “larger” "
        "below. ✗ marks a wrong answer; a tie counts one half. With each answer comes its "
        "probability among the two. † marks answers that differ from the paper's table 4.",
        [
            {
                "model": grid.run.model,
                "wording": grid.wording,
                **pair,
                "_place": number,
                "_runs": grid.run.key,
            }
            for number, grid in enumerate(size_grids)
            for pair in grid.pairs()
        ],
        [tables.text("model", "model", "wording"), tables.text("size of a …", "first")],
        rows="_place first",
        across="second",
        each=lambda name: [Column(name, answer, "left", "than the size of a …")],
        values=list(dict.fromkeys(value for grid in size_grids for value in grid.values)),
    )


def grids_summary(results: RunSet) -> str:
    """Return which models say one word whatever the values, and which grids are not shown."""
    read_grids, problems = _read_grids(results)
    sentences = []
    for (model, wording), members in groupby(
        read_grids, key=lambda grid: (grid.run.model, grid.wording)
    ):
        stuck: dict[str, list[str]] = {}
        for grid in members:
            first = grid.first_share
            if first is not None and not 1 - STUCK < first < STUCK:
                stuck.setdefault(grid.candidates[first < STUCK], []).append(grid.name)
        if stuck:
            words = listed([f"“{word}” ({', '.join(names)})" for word, names in stuck.items()])
            sentences.append(
                f"Whatever the values ({wording} wording), {model} almost always says {words}."
            )
    if (num_more := len(sentences) - MOST_TOLD) > 0:
        sentences[MOST_TOLD:] = [f"So do {num_more} more."]
    return " ".join([*sentences, *problems])


@cache
def shades() -> Colormap:
    """Return the colours of probabilities: light is the second answer, dark the first.

    The step between them shows in grey too; the shade on either side says how sure the model is.
    """
    from matplotlib.colors import LinearSegmentedColormap

    steps = [(0, "#ffffff"), (0.5, "#c6d6e6"), (0.5, "#5ea3d0"), (1, "#00355c")]
    colors = LinearSegmentedColormap.from_list("decision", steps)
    return colors.with_extremes(bad=figure.ON_DARK)


@figure.styled()
def age_grid_figure(results: RunSet) -> figure.Figure | None:
    """Draw younger or older for all pairs of ages and birth years (figures 2A and 3)."""
    from matplotlib.figure import Figure as Canvas

    panels = [grid for grid in grids(results) if grid.name in AGE_PANELS]
    if not panels:
        return None
    several = len({grid.wording for grid in panels}) > 1
    # Panels of one model and wording share a row; a panel over other values opens a further one.
    rows = []
    for (model, wording), group in groupby(panels, lambda grid: (grid.run.model, grid.wording)):
        label = f"{model} · {wording} wording" if several else model
        members = [*group]
        by_panel = [[grid for grid in members if grid.name == name] for name in AGE_PANELS]
        rows += [(label, row) for row in zip_longest(*by_panel)]
    visible_rows = rows[:MOST_ROWS]
    height = ROW * len(visible_rows)
    # Placed by hand: panels of all rows are below each other, whatever their headings are.
    canvas = Canvas(figsize=(WIDTH, height + KEY))
    for number, (label, row) in enumerate(visible_rows):
        top = ROW * number
        canvas.text(
            0.01, 1 - (top + 0.08) / (height + KEY), label, fontsize=9.5, fontweight="bold",
            va="top",
        )  # fmt: skip
        for column, grid in enumerate(row):
            if grid is not None:
                _age_panel(figure.placed(canvas, 0.5 + PITCH * column, top + 1.1, SIDE, SIDE), grid)
    key_axis = figure.placed(canvas, WIDTH / 2 - 1.25, height, 2.5, 0.13)
    _color_bar(canvas, panels[0].candidates, cax=key_axis)
    return figure.drawn(
        "grid",
        "Younger or older? Every pair of values",
        "Each cell is one sentence: its first value goes up, its second to the right. Dark means "
        "that the model says younger, light that it says older; the shade shows how sure it is. "
        "The corners name the right answer there. A perfect model changes its answer on the "
        "dashed diagonal, where neither is right. Above each panel are its accuracy (chance is "
        f"50%) and the paper's, if there is one.{figure.left_out(len(rows), MOST_ROWS)}",
        canvas,
    )


def _age_panel(axis: Axes, grid: Grid) -> None:
    from matplotlib.offsetbox import AnchoredText
    from matplotlib.ticker import MaxNLocator

    half = (grid.values[1] - grid.values[0]) / 2
    edges = (grid.values[0] - half, grid.values[-1] + half)
    shade = np.array(grid.probability, dtype=np.float64)  # NaN on the diagonal
    figure.heat_map(axis, shade, shades(), origin="lower", extent=(*edges, *edges))
    axis.plot(edges, edges, color=figure.ON_LIGHT, linewidth=0.8, dashes=(4, 3))
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_locator(MaxNLocator(4, integer=True))
    axis.tick_params(labelsize=7, length=2.5, pad=2)
    axis.set_ylabel(grid.axes[0], fontsize=7.5, labelpad=1)
    axis.set_xlabel(grid.axes[1], fontsize=7.5, labelpad=1)
    title = grid.title.replace(" in the ", " in the\n")
    says = f"says {grid.candidates[0]} {percent(grid.first_share)}%"
    paper = f"paper {grid.published or ABSENT}"
    figure.head(axis, f"{grid.name}  {percent(grid.accuracy.value)}%", f"{title}\n{says}\n{paper}")
    for loc, right in (("lower right", grid.answer[0][-1]), ("upper left", grid.answer[-1][0])):
        if right is not None:
            style = {"size": 6.3, "color": figure.ON_LIGHT}
            text = AnchoredText(grid.candidates[right], loc, prop=style, pad=0.15, borderpad=0.35)
            text.patch.set(facecolor=figure.ON_DARK, edgecolor="none", alpha=0.88)
            axis.add_artist(text)


@figure.styled()
def size_grid_figure(results: RunSet) -> figure.Figure | None:
    """Draw smaller or larger for all pairs of eight objects (table 4)."""
    size_grids = [grid for grid in grids(results) if grid.name == SIZES][:MOST_ROWS]
    if not size_grids:
        return None
    size_panels = [(grid, False) for grid in size_grids]
    size_panels += [(grid, True) for grid in size_grids if grid.in_table_4][:1]
    canvas, axes = figure.panels(len(size_panels), height=4.6, shared=False)
    for axis, (grid, is_paper) in zip(axes, size_panels, strict=True):
        _size_panel(axis, grid, is_paper)
    _color_bar(
        canvas, size_grids[0].candidates, ax=axes, location="bottom", shrink=0.35, aspect=20,
        fraction=0.15 / canvas.get_figheight(), pad=0.2 / canvas.get_figheight(), panchor=False,
    )  # fmt: skip
    return figure.drawn(
        "sizes_grid",
        "Smaller or larger? Every pair of objects",
        "“The size of a (row) is usually much … than the size of a (column).” Objects go "
        "from small to large, so smaller is right above the diagonal, larger below. A frame "
        "and a cross mark a wrong answer; the number is the probability of the model's answer.",
        canvas,
    )


def _size_panel(axis: Axes, grid: Grid, is_paper: bool) -> None:
    """Draw a model's answers, or the paper's, of which only the decision is known."""
    from matplotlib.patches import Rectangle

    pairs, size, first = [*grid.pairs()], len(grid.values), grid.candidates[0]
    shade = np.full((size, size), np.nan)
    right = 0.0
    for pair in pairs:
        row, column, p = pair["_row"], pair["_column"], pair[f"p_{first}"]
        word, correct, number = pair["prediction"], pair["correct"], ""
        if is_paper:
            word, correct = pair["paper"], float(pair["paper"] == pair["answer"])
            shade[row, column] = 0.75 if word == first else 0.25
        elif p is not None:
            shade[row, column] = p
            number = f"{max(p, 1 - p):.2f}".removeprefix("0")
        right += correct
        axis.text(
            column, row, f"{word}\n{'' if correct else '✗ '}{number}".strip(), fontsize=5.8,
            color=figure.ink_on(shades()(shade[row, column])), ha="center", va="center",
            linespacing=1.3,
        )  # fmt: skip
        if not correct:
            frame = Rectangle((column - 0.44, row - 0.44), 0.88, 0.88, fill=False, zorder=3)
            frame.set(edgecolor=figure.ORANGE, linewidth=1.5)
            axis.add_patch(frame)
    figure.heat_map(axis, shade, shades())
    figure.name_cells(axis, grid.values, grid.values)
    ends = (-0.5, size - 0.5)
    axis.plot(ends, ends, color=figure.ON_LIGHT, linewidth=0.8, dashes=(4, 3))
    share = f"{percent(right / len(pairs))}% right, {right:g} of {len(pairs)}"
    if is_paper:
        figure.head(axis, f"{grid.run.model} in the paper", f"{share} · table 4")
    else:
        figure.head(axis, grid.run.model, f"{share} · {grid.wording} wording")


def _color_bar(canvas: Canvas, candidates: Sequence[str], **options: Any) -> None:
    from matplotlib.cm import ScalarMappable

    first, second = candidates
    key = canvas.colorbar(
        ScalarMappable(cmap=shades()), **{"orientation": "horizontal"} | options,
        ticks=[0, 0.25, 0.5, 0.75, 1], format="%g",
    )  # fmt: skip
    key.set_label(f"says {second} ← p({first}) among the two → says {first}", fontsize=7.5)
    key.ax.tick_params(labelsize=7, length=2.5, pad=2)
