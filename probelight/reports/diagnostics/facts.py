"""What the runs of the diagnostics measured, put together as the tables of Ettinger (2020) are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from probelight.probes.diagnostics.sets import SETS
from probelight.reports.diagnostics.runs import labelled_runs
from probelight.reports.published import DiagnosticKey, published_diagnostics
from probelight.results.load import Results
from probelight.results.row import Row, Subset

PAPER_MODELS = ("bert-base-uncased", "bert-large-uncased")
BERT = PAPER_MODELS[0]
PAPER_CONTEXTS = {"cprag": 34, "role": 88, "neg_simp": 18}  # those of its accuracies
SPREAD = "_sd"  # behind a metric: its standard deviation over shuffles
ACCURACY, SURVIVAL = "accuracy", "survival"  # at each k
SENSITIVITY, MARGIN = "sensitivity", "sensitivity_margin"
MEASURES = {
    "negation_sensitivity": "first word changed by “not”",
    "unchanged_by_not": "first word unchanged by “not”",
    "repeated_subject": "errors that repeat the subject",
    "article_obedience": "first word that “a” or “an” asks for",
}
PERTURBATIONS = {
    "shuffled": "1st sentence shuffled",
    "truncated": "2nd sentence cut",
    "shuffled+truncated": "shuffled and cut",
    "generic_object": "generic object",
    "generic_subject": "generic subject",
    "generic_both": "generic object, subject",
}


@dataclass(frozen=True)
class Asked:
    """What one model did with a part of a set, or with the whole of it, perturbed or not.

    Attributes:
        label: The model, as tables call it.
        rows: Its numbers, by metric.
    """

    label: str
    probe: str
    part: Subset | None
    perturbation: str
    rows: Mapping[str, Row]

    @property
    def subset(self) -> str:
        """How results.csv calls the part; empty for the whole set."""
        return "" if self.part is None else self.part.text

    @property
    def place(self) -> tuple[str, str, str]:
        """What was asked, whichever model it was."""
        return self.probe, self.subset, self.perturbation

    @property
    def title(self) -> str:
        """What the paper calls the set."""
        return SETS[self.probe].title

    @property
    def condition(self) -> str:
        """The part and how it was perturbed; empty for the whole set as it is."""
        perturbed = PERTURBATIONS.get(self.perturbation, self.perturbation.replace("_", " "))
        return ", ".join(filter(None, (self.subset, perturbed)))

    @property
    def num_items(self) -> int | None:
        """Contexts, or comparisons."""
        return next((row.num_items for row in self.rows.values()), None)

    @property
    def chance(self) -> float | None:
        """The sensitivity of a model that does not look: it finds the good word among K."""
        if SENSITIVITY not in self.rows:
            return None
        return 1 / 3 if self.probe == "cprag" else 1 / 2

    def spread(self, metric: str) -> float | None:
        """The standard deviation of a metric, where it is a mean over shuffles."""
        row = self.rows.get(metric + SPREAD)
        return None if row is None else row.value

    def paper(self, model: str, metric: str) -> float | None:
        """What the paper has for one of its models."""
        return published_diagnostics().get(
            DiagnosticKey(model, self.probe, metric, self.subset, self.perturbation)
        )


def asked(results: Results, metrics: Iterable[str]) -> list[Asked]:
    """All that some metrics were measured on: set by set, perturbed contexts behind the others."""
    wanted = {name for metric in metrics for name in (metric, metric + SPREAD)}
    found: dict[tuple[str, str, Subset | None, str], dict[str, Row]] = {}
    for run, label in labelled_runs(results):
        for row in run.rows:
            if row.metric in wanted:
                place = (label, row.probe, row.subset, row.perturbation)
                found.setdefault(place, {})[row.metric] = row
    return sorted((Asked(*place, rows) for place, rows in found.items()), key=_order)


def _order(one: Asked) -> tuple[int, bool, float]:
    upper = one.part["upper"] if one.part and one.part.kind == "cloze" else 0.0
    return list(SETS).index(one.probe), bool(one.perturbation), upper


def at_each_k(results: Results, name: str) -> list[str]:
    """How far down the models' words were looked at, each as the metric of that name."""
    named = {row.metric for run, _ in labelled_runs(results) for row in run.rows}
    depths = (metric.removeprefix(f"{name}@") for metric in named)
    return [f"{name}@{k}" for k in sorted(int(k) for k in depths if k.isdecimal())]


def other_metrics(results: Results) -> list[str]:
    """What the tables of the others do not have, in the order of the rows."""
    named = dict.fromkeys(row.metric for run, _ in labelled_runs(results) for row in run.rows)
    by_k = (metric for name in (ACCURACY, SURVIVAL) for metric in at_each_k(results, name))
    known = {SENSITIVITY, MARGIN, *by_k}
    return [name for name in named if name.removesuffix(SPREAD) not in known]
