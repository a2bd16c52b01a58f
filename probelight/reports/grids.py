"""Predictions over all pairs of values: ages and years, sizes (Talmor et al. 2020, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, product
from typing import Any, ClassVar, Literal, TypeVar

from probelight.io.documents import STRICT, typed
from probelight.io.escaping import all_visible, visible
from probelight.reports import table as kit
from probelight.reports.published import ScoreKey, published_scores, published_size_errors
from probelight.reports.released import paper_model
from probelight.reports.table import SIZE, Cell, Column, Table
from probelight.reports.words import INTERVAL, listed, way
from probelight.results.load import GRID_FILE, Results, Run, UnreadableResultError
from probelight.results.row import Row

T = TypeVar("T")
Matrix = tuple[tuple[T | None, ...], ...]

AGE_PANELS = ("A", "B", "C", "D")
SIZES = "sizes"
# Talmor et al. 2020, section 4.1, of roberta-large; the accuracies of panel A are in table 2.
PAPER_PANELS = {"B": "76", "C": "always older", "D": "12"}
PAPER_SIZES_MODEL = "roberta-large"  # of table 4 as well, with 56 pairs
MOST_TOLD = 6  # sentences of the paragraph
STUCK = 0.95  # share of one answer from which a model is said to give it whatever is asked


@dataclass(frozen=True, kw_only=True)
class GridFile:
    """What grid.json holds: the answers to all ordered pairs of values in one sentence.

    Attributes:
        name: "A" to "D" (figure 3), or "sizes" (table 4).
        axes: What the first value (rows) and the second (columns) are.
        values: Ages or years, or the names of objects.
        probability: p(first candidate) of each pair; None on the diagonal.
        prediction: Index of the candidate said; None on the diagonal and where both are as likely.
        answer: Index of the right one.
    """

    __pydantic_config__: ClassVar = {**STRICT, "extra": "ignore"}

    name: str
    title: str
    wording: str
    axes: tuple[str, str]
    candidates: tuple[str, str]
    values: tuple[Any, ...]
    probability: Matrix[float]
    prediction: Matrix[Literal[0, 1]]
    answer: Matrix[Literal[0, 1]]


@dataclass(frozen=True, kw_only=True)
class Grid(GridFile):
    """A grid, and the run that it is of.

    Attributes:
        run: The run.
        rows: Its measurements by metric.
        paper_model: The paper's name of the checkpoint that the run recorded; None for another.
    """

    run: Run
    rows: Mapping[str, Row]
    paper_model: str | None = None

    @property
    def model(self) -> str:
        """The model that answered."""
        return self.run.model

    @property
    def control_of(self) -> str:
        """The model whose architecture with random weights it is; empty for any other."""
        return self.run.source.control_of

    @property
    def accuracy(self) -> Row:
        """Share of right answers, without the diagonal."""
        return self.rows["accuracy"]

    def value(self, metric: str) -> float | None:
        """Return a measurement, None where it was not made."""
        row = self.rows.get(metric)
        return None if row is None else row.value

    @property
    def first_share(self) -> float | None:
        """How often the first candidate was said."""
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
        """Whether the paper has its answers to pairs of objects."""
        return self.name == SIZES and self.paper_model == PAPER_SIZES_MODEL

    @property
    def published(self) -> str:
        """What the paper has of this model's panel in its wording; empty where nothing."""
        if self.wording != "paper":
            return ""
        if self.in_table_4:
            return f"{100 * (1 - len(published_size_errors()) / 56):.1f}"
        if self.name == AGE_PANELS[0]:
            scores = published_scores("age_comparison").get(self.paper_model or "", {})
            score = scores.get(ScoreKey("zero_shot"))
            return "" if score is None else f"{100 * score:.0f}"
        return PAPER_PANELS.get(self.name, "") if self.paper_model == PAPER_SIZES_MODEL else ""

    def pairs(self) -> list[dict[str, Any]]:
        """Return a record for each pair that was asked.

        Its places are `_row` and `_column`, its values `first` and `second`, `p_` and the first
        candidate its probability; `prediction`, `answer` and `paper` are words ("tie" where
        both are as likely, None where the paper has no answer) and `correct` is 1, 0 or 1/2.
        """
        found = []
        for (i, first), (j, second) in product(enumerate(self.values), repeat=2):
            p, choice, answer = self.probability[i][j], self.prediction[i][j], self.answer[i][j]
            if answer is None or (p is None and choice is None):
                continue
            is_wrong = (first, second) in published_size_errors()
            record = {
                "_row": i,
                "_column": j,
                "first": first,
                "second": second,
                f"p_{self.candidates[0]}": p,
                "prediction": "tie" if choice is None else self.candidates[choice],
                "answer": self.candidates[answer],
                "correct": 0.5 if choice is None else float(choice == answer),
                "paper": self.candidates[answer != is_wrong] if self.in_table_4 else None,
            }
            found.append(record)
        return found


def grids(results: Results) -> list[Grid]:
    """Return every grid of the results that can be read, by model, wording, values and panel."""
    return _read(results)[0]


@lru_cache(maxsize=2)
def _read(results: Results) -> tuple[list[Grid], list[str]]:
    """Return the grids, and a sentence about each that cannot be read."""
    found, damaged = list[Grid](), list[str]()
    for run in results.of("grid"):
        rows = {row.metric: row for row in run.rows}
        try:
            held = results.read(run, GRID_FILE)
            if held is not None and "accuracy" in rows:
                file = _checked(held, f"{run.path}/{GRID_FILE}")
                found.append(Grid(**vars(file), run=run, rows=rows, paper_model=paper_model(run)))
        except UnreadableResultError as error:
            damaged.append(f"Not shown: {visible(str(error))}.")
    found.sort(key=lambda g: (g.model, g.wording, g.name == SIZES, g.name, g.span))
    return found, damaged


def _checked(held: object, place: str) -> GridFile:
    grid = typed(GridFile, all_visible(held), place, UnreadableResultError)
    size = len(grid.values)
    for name in ("probability", "prediction", "answer"):
        if [len(row) for row in getattr(grid, name)] != [size] * size:
            raise UnreadableResultError(f"{place}: `{name}` is not {size} rows of {size} values")
    kind = str if grid.name == SIZES else int
    if size < 2 or any(type(value) is not kind for value in grid.values):
        raise UnreadableResultError(f"{place}: `values` are not those of grid {grid.name}")
    return grid


def grid_table(results: Results) -> Table | None:
    """Make the table of the accuracy of each panel, with the paper's."""
    records = [
        {
            "model": grid.model,
            "wording": grid.wording,
            "perturbation": grid.name,
            "title": grid.title,
            "values": grid.span,
            "accuracy": grid.accuracy.value,
            **{name: getattr(grid.accuracy, name) for name in f"ci_low ci_high {SIZE}".split()},
            "paper": grid.published or None,
            "first_share": grid.first_share,
            "order_accuracy": grid.value("order_accuracy"),
            "_how": ", ".join(filter(None, (f"{grid.wording} wording", way(grid.accuracy.mode)))),
            "_grid": grid.title if grid.name == SIZES else f"{grid.name}: {grid.title}",
            "_runs": grid.run.key,
        }
        for grid in grids(results)
    ]
    return kit.table(
        "grid",
        "Predictions over all pairs of values",
        f"{INTERVAL} (by pairs in both orders); pairs of a grid share their values, so it is too "
        "narrow. Chance is 50%. First answers: younger, smaller. Orders told apart: the pairs "
        "whose first answer is more probable in the order where it is right; it does not suffer "
        "when a model always says one word, but it says something only next to the same model "
        "with random weights, which may be far from 50% too. Paper: Talmor et al. 2020, who do not "
        "say over which values they ran; of the released wording there is no published number.",
        records,
        [
            kit.text("model", "model", "_how"),
            kit.text("grid", "_grid"),
            kit.text("values", "values"),
            kit.accuracy("accuracy %"),
            kit.number("paper", "paper", str),
            kit.share("says the first answer %", "first_share"),
            kit.share("orders told apart %", "order_accuracy"),
            kit.size(),
        ],
    )


def sizes_table(results: Results) -> Table | None:
    """Make the table of the answer to each pair of objects (table 4 of the paper)."""
    found = [grid for grid in grids(results) if grid.name == SIZES]
    records = []
    for place, grid in enumerate(found):
        for pair in grid.pairs():
            p, word = pair[f"p_{grid.candidates[0]}"] or 0.0, pair["prediction"]
            wrong = "" if pair["correct"] else " ✗"
            other = " †" if pair["paper"] not in (None, word) else ""
            sure = 1 - p if word == grid.candidates[1] else p
            answer = Cell(f"{word}{wrong}{other}", f"{sure:.2f}")
            record = {"model": grid.model, "wording": grid.wording, **pair, "_place": place}
            records.append(record | {"_answer": answer, "_runs": grid.run.key})
    paper = any(grid.in_table_4 for grid in found)
    return kit.table(
        "sizes_grid",
        "Which of two objects is larger?",
        "Objects go from small to large, so “smaller” is right above the diagonal and “larger” "
        "below; ✗ marks a wrong answer, a tie counts one half. With each answer is its probability "
        "among the two."
        + (" † marks where the paper's table 4 has another answer." if paper else ""),
        records,
        [kit.text("model", "model", "wording"), kit.text("size of a …", "first")],
        rows="_place first",
        across="second",
        each=lambda name: [Column(name, lambda row: row._answer, "left", "than the size of a …")],
        values=list(dict.fromkeys(value for grid in found for value in grid.values)),
    )


def summary(results: Results) -> str:
    """Return which models say one word whatever the values are, and which grids are not shown."""
    found, damaged = _read(results)
    sentences = []
    for (model, wording), members in groupby(found, key=lambda grid: (grid.model, grid.wording)):
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
    if (rest := len(sentences) - MOST_TOLD) > 0:
        sentences[MOST_TOLD:] = [f"So do {rest} more."]
    return " ".join([*sentences, *damaged])
