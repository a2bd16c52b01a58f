"""The tables of the psycholinguistic diagnostics, beside those of Ettinger (2020)."""

from __future__ import annotations

from dataclasses import dataclass

from probes.diagnostics.sets import SETS
from reports.diagnostics.runs import labelled_runs
from reports.kit.columns import attributes, column, field, share, text
from reports.kit.published import DiagnosticKey, published_diagnostics, short_name
from reports.kit.table import Across, Cell, Column, Declared, Heading, Table
from reports.kit.text import between, count, percent
from results.load import Results
from results.row import Row

PAPER_MODELS = ("bert-base-uncased", "bert-large-uncased")
METRICS = {
    "sensitivity_margin": "sensitivity > 0.01",
    "negation_sensitivity": "negation sensitivity",
}


@dataclass(frozen=True)
class Measurement:
    """A number of a model, as tables call that."""

    row: Row
    label: str

    @property
    def paper(self) -> dict[str, float]:
        """The paper's numbers for the same, by model."""
        row, known = self.row, published_diagnostics()
        keys = [DiagnosticKey(m, row.probe, row.metric, row.subset_text) for m in PAPER_MODELS]
        return {key.model: known[key] for key in keys if key in known}


def diagnostics_table(results: Results) -> Table | None:
    """Accuracies and sensitivities: rows are what was measured, columns are models."""
    found = _measurements(results)
    with_paper = any(one.paper for one in found)

    def of_model(label: str) -> list[Column[Measurement]]:
        return [
            column(
                Heading("share %", group=label),
                lambda e: e.row,
                _counted,
                "value ci_low ci_high num_items",
                lambda row: (row.value, row.ci_low, row.ci_high, row.num_items),
            )
        ]

    return Declared[Measurement](
        "diagnostics",
        "What a model expects, and what it is sensitive to",
        "Accuracy@k: an expected word is among the model's k best, over contexts; of negations "
        "over the affirmative statements. Sensitivity: the good completion is more probable than "
        "the bad ones (CPRAG-102: than both; ROLE-88: than in the context with the roles reversed; "
        "NEG-136: the true one than the false one), and by more than 0.01. Negation sensitivity: "
        "the first word changes with the negation. With each share stand the exact count and "
        "Wilson's 95% interval, as most of these sets are small."
        + (" Paper: Ettinger (2020), tables 4 to 14, unperturbed." if with_paper else ""),
        [
            field("model", lambda e: e.label),
            text("set", lambda e: SETS[e.row.probe].title),
            attributes("probe metric", lambda e: e.row),
            text(
                "measured",
                lambda e: METRICS.get(e.row.metric, e.row.metric),
                small=lambda e: e.row.subset_text,
            ),
            field("subset", lambda e: e.row.subset_text),
            *(map(_paper, PAPER_MODELS) if with_paper else ()),
        ],
        Across(lambda e: e.label, lambda e: (e.row.probe, e.row.metric, e.row.subset), of_model),
        "model probe metric subset value ci_low ci_high num_items",
    ).of(found)


def _paper(model: str) -> Column[Measurement]:
    return share(short_name(model), lambda e: e.paper.get(model), f"paper_{model}", "paper %")


def _measurements(results: Results) -> list[Measurement]:
    """All rows, set by set."""
    runs = labelled_runs(results)
    return [Measurement(row, label) for run, label in runs for row in run.rows]


def _counted(row: Row) -> Cell:
    """A share with its exact count."""
    number = round(row.value * (row.num_items or 0))
    counted = f"{percent(row.value)} ({count(number)}/{count(row.num_items)})"
    return Cell(counted, between(row.ci_low, row.ci_high))
