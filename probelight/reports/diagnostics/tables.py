"""The tables of the psycholinguistic diagnostics, beside those of Ettinger (2020)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose

from probelight.probes.diagnostics.sets import SETS
from probelight.reports.diagnostics.facts import (
    ACCURACY,
    MARGIN,
    MEASURES,
    PAPER_MODELS,
    SENSITIVITY,
    SPREAD,
    SURVIVAL,
    Asked,
    asked,
    at_each_k,
    other_metrics,
)
from probelight.reports.kit.columns import attributes, column, field, text
from probelight.reports.kit.table import Across, Cell, Column, Declared, Heading, Table
from probelight.reports.kit.text import between, count, percent
from probelight.reports.published import short_name
from probelight.results.load import Results
from probelight.results.row import Row

COUNTED = "Beside each share stand the exact count and, below it, Wilson's 95% interval."
PAPER = "Paper: Ettinger (2020), tables"


def accuracy_table(results: Results, *, with_paper: bool = True) -> Table | None:
    """Tables 4, 7, 8 and 11: which of the words that people expect the models have.

    Args:
        results: The results.
        with_paper: Whether people see the paper's numbers; the csv file has them always.
    """
    note = (
        "@k: an expected word is among the model's k best, over contexts; in NEG-136 and NEG-1500 "
        "over the affirmative statements, since behind “not” hardly any word is wrong. Contexts "
        "whose expected words a model's vocabulary does not have are left out, so that it may "
        f"count fewer than others. {COUNTED} ± is the standard deviation over shuffles."
    )
    source = f"{PAPER} 4, 7, 8, 11." if with_paper else ""
    return _table(
        Titled("diagnostics_accuracy", "Words that people expect", note, source),
        _headings(results, ACCURACY),
        results,
    )


def survival_table(results: Results) -> Table | None:
    """Section 7.1: of the contexts with an expected word, those that keep it when perturbed."""
    note = (
        "Of the contexts in which an expected word is among the model's k best: the share in which "
        "one still is when the context is perturbed, over shuffles their mean share. "
        f"{COUNTED} perturbations.jsonl of each run has the contexts and the words."
    )
    return _table(
        Titled("diagnostics_survival", "What perturbed contexts leave", note, ""),
        _headings(results, SURVIVAL),
        results,
    )


def sensitivity_table(results: Results, *, with_paper: bool = True) -> Table | None:
    """Tables 5, 9, 12 and 14: which completions the models prefer.

    Args:
        results: The results.
        with_paper: Whether people see the paper's numbers; the csv file has them always.
    """
    note = (
        "How often the good completion is more probable than the bad one, and how often it is by "
        "more than 0.01. CPRAG-102: than both bad ones (33.3% by chance); "
        "ROLE-88: than in the context with the roles reversed; NEG-136: the true one than the "
        f"false one (50% by chance). {COUNTED}"
    )
    source = f"{PAPER} 5, 9, 12, 14." if with_paper else ""
    return _table(
        Titled("diagnostics_sensitivity", "Good or bad completions", note, source),
        {SENSITIVITY: "prefers %", MARGIN: "by 0.01 %"},
        results,
    )


@dataclass(frozen=True)
class Titled:
    """What stands above a table.

    Attributes:
        source: Where the paper has its numbers; without one they stand in the csv file alone.
    """

    name: str
    title: str
    note: str
    source: str


def first_words_table(results: Results) -> Table | None:
    """Sections 9.1 to 9.4: what the first words tell; rows are measures, columns models."""
    metrics = [name for name in other_metrics(results) if not name.endswith(SPREAD)]
    found = [
        Measure(one, name, one.rows[name])
        for one in asked(results, metrics)
        for name in metrics
        if name in one.rows
    ]
    order = list(SETS)
    found.sort(key=lambda e: (order.index(e.of.probe), metrics.index(e.metric)))
    return Declared[Measure](
        "diagnostics_first_words",
        "What the first word goes by",
        "Of a model's best word alone: how often it repeats the subject where it is not the "
        "expected one (“a daisy is a daisy”; as all errors of both BERTs do in section 9.1 of the "
        "paper), how often it begins with the sound that the article before it asks for, and how "
        "often it is the same, or another, when “not” is put into the statement. " + COUNTED,
        [
            text("set", lambda e: e.of.title, small=lambda e: e.of.condition),
            text("measured", lambda e: MEASURES.get(e.metric, e.metric.replace("_", " "))),
            attributes("probe subset perturbation", lambda e: e.of),
            field("model", lambda e: e.of.label),
            field("metric", lambda e: e.metric),
        ],
        Across(
            lambda e: e.of.label,
            lambda e: (e.of.place, e.metric),
            lambda label: [
                column(
                    Heading("share %", group=label),
                    lambda e: (e.row, e.of.spread(e.metric)),
                    _cell,
                    "value ci_low ci_high num_items",
                    lambda known: _numbers(known[0]),
                )
            ],
        ),
        "model probe metric subset perturbation value ci_low ci_high num_items",
    ).of(found)


@dataclass(frozen=True)
class Measure:
    """One number of a model."""

    of: Asked
    metric: str
    row: Row


def _headings(results: Results, name: str) -> dict[str, str]:
    """What stands above a metric at each k."""
    return {metric: f"{metric.removeprefix(name)} %" for metric in at_each_k(results, name)}


def _table(titled: Titled, headings: dict[str, str], results: Results) -> Table | None:
    """Rows are parts of the sets, columns the metrics of the paper's models and of others."""
    found = asked(results, headings)
    papers = [
        _paper(model, metric, heading)
        for model in PAPER_MODELS
        for metric, heading in headings.items()
        if any(one.paper(model, metric) is not None for one in found)
    ]
    return Declared[Asked](
        titled.name,
        titled.title,
        f"{titled.note} {titled.source}".rstrip() if papers else titled.note,
        [
            field("model", lambda e: e.label),
            text("set", lambda e: e.title, small=lambda e: e.condition),
            attributes("probe subset perturbation num_items"),
            *(papers if titled.source else [one.hidden for one in papers]),
        ],
        Across(
            lambda e: e.label,
            lambda e: e.place,
            lambda label: [
                one
                for metric, heading in headings.items()
                if any(metric in own.rows for own in found if own.label == label)
                for one in _measured(label, metric, heading)
            ],
        ),
        "model probe subset perturbation num_items",
    ).of(found)


def _measured(label: str, metric: str, heading: str) -> Iterator[Column[Asked]]:
    """A metric of a model."""
    yield column(
        Heading(heading, group=label),
        lambda e: (e.rows.get(metric), e.spread(metric)),
        _cell,
        f"{metric} {metric}_ci_low {metric}_ci_high",
        lambda known: _numbers(known[0])[:3],
    )
    yield field(f"{metric}{SPREAD}", lambda e: e.spread(metric))


def _paper(model: str, metric: str, heading: str) -> Column[Asked]:
    """A metric of one of the paper's models."""
    return column(
        Heading(heading, group=f"{short_name(model)} (paper)"),
        lambda e: (e.paper(model, metric), e.paper(model, metric + SPREAD)),
        lambda known: Cell(_spread(*known)),
        f"{model}_{metric} {model}_{metric}{SPREAD}",
        lambda known: known,
    )


def _cell(known: tuple[Row | None, float | None]) -> Cell:
    """A share with its exact count; a mean over shuffles has none, but may have a spread."""
    row, spread = known
    if row is None:
        return Cell(_spread(None, None))
    interval = between(row.ci_low, row.ci_high)
    if spread is not None or not row.num_items:
        return Cell(_spread(row.value, spread), interval)
    right, number = row.value * row.num_items, count(row.num_items)
    exact = f"{count(round(right))}/{number}" if isclose(right, round(right)) else f"n = {number}"
    return Cell(f"{percent(row.value)} ({exact})", interval)


def _spread(value: float | None, spread: float | None) -> str:
    return percent(value) if spread is None else f"{percent(value)} ± {percent(spread)}"


def _numbers(row: Row | None) -> Sequence[float | None]:
    if row is None:
        return (None,) * 4
    return row.value, row.ci_low, row.ci_high, row.num_items


def own_accuracy_table(results: Results) -> Table | None:
    """Without the paper's rows."""
    return accuracy_table(results, with_paper=False)


def own_sensitivity_table(results: Results) -> Table | None:
    """Without the paper's rows."""
    return sensitivity_table(results, with_paper=False)
