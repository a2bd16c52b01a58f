"""The rows of results.csv of a model's outputs on a diagnostic set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from probelight.metrics.diagnostics import MARGIN, in_top, keeps_word, obeys_article, prefers, says
from probelight.metrics.intervals import accuracy_interval
from probelight.protocols.diagnostics.questions import (
    Completion,
    Continuation,
    Contrast,
    Negation,
    Questions,
)
from probelight.results.model_outputs import ModelOutputs
from probelight.results.row import Row
from probelight.results.subset import Subset

TOPS = (1, 5, 10, 20)
_Asked = Completion | Contrast | Continuation | Negation


def diagnostic_rows(asked: Questions, outputs: ModelOutputs, row: Row) -> list[Row]:
    """Accuracy as far down as the model's words go, sensitivities where there are probabilities.

    Args:
        asked: What the set asks.
        outputs: What the model said.
        row: The columns that all rows share.
    """
    said = outputs.predictions
    completions = known_completions(asked.completions, outputs)
    rows: list[Row] = []
    for k in (k for k in TOPS if k <= outputs.depth):
        right = [in_top(said[one.prompt], one.expected, k) for one in completions]
        rows += _rows(completions, right, replace(row, metric=f"accuracy@{k}"))
    if outputs.probabilities is not None:
        known = known_contrasts(asked, outputs.probabilities)
        contrasts = [one for one, *_ in known]
        for metric, margin in (("sensitivity", 0.0), ("sensitivity_margin", MARGIN)):
            better = [prefers(good, bad, margin) for _, good, bad in known]
            rows += _rows(contrasts, better, replace(row, metric=metric))
    if asked.negated and outputs.depth:
        changed = [said[first][:1] != said[second][:1] for first, second in asked.negated]
        rows.append(share_row(changed, replace(row, metric="negation_sensitivity")))
    return [*rows, *_first_word_rows(asked, outputs, row)]


def _first_word_rows(asked: Questions, outputs: ModelOutputs, row: Row) -> list[Row]:
    """What else the best words alone tell, which Ettinger (2020) describes in sections 9.1 to 9.4.

    `repeated_subject`: of the statements whose best word is not the expected one, the share in
    which it repeats the subject ("A daisy is a daisy"); no row where there is no such error.
    `article_obedience`: of the contexts that end in "a" or "an", the share whose best word can
    stand there. `unchanged_by_not`: of the statements, the share whose best word "not" leaves as
    it is.
    """
    if not outputs.depth:
        return []
    said = outputs.predictions
    about = [one for one in known_completions(asked.completions, outputs) if one.subject]
    errors = [one for one in about if not in_top(said[one.prompt], one.expected, 1)]
    repeated = [says(said[one.prompt], one.subject) for one in errors]
    obeyed = [obeys_article(said[one.prompt], one.article) for one in asked.articles]
    kept = [keeps_word(said[one.first], said[one.second]) for one in asked.negations]
    return [
        *_rows(errors, repeated, replace(row, metric="repeated_subject")),
        *_rows(asked.articles, obeyed, replace(row, metric="article_obedience")),
        *_rows(asked.negations, kept, replace(row, metric="unchanged_by_not")),
    ]


def known_completions(asked: Sequence[Completion], outputs: ModelOutputs) -> list[Completion]:
    """The completions of which the vocabulary has an expected word, as far as that is known."""
    return [one for one in asked if not outputs.split.issuperset(one.expected)]


def known_contrasts(
    asked: Questions, probabilities: Sequence[float | None]
) -> list[tuple[Contrast, float, list[float]]]:
    """The contrasts whose targets all have a probability, with those of the good and the bad."""
    known = []
    for one in asked.contrasts:
        good, *bad = (probabilities[place] for place in (one.good, *one.bad))
        values = [value for value in bad if value is not None]
        if good is not None and len(values) == len(bad):
            known.append((one, good, values))
    return known


def _rows(asked: Sequence[_Asked], outcomes: Sequence[bool], row: Row) -> list[Row]:
    """The share of the whole set, and of each of its parts."""
    if not asked:
        return []
    parts: dict[Subset, list[bool]] = {}
    for one, outcome in zip(asked, outcomes, strict=True):
        for part in one.parts:
            parts.setdefault(part, []).append(outcome)
    rows = [share_row(own, replace(row, subset=part)) for part, own in parts.items()]
    return [share_row(outcomes, row), *rows]


def share_row(outcomes: Sequence[float], row: Row) -> Row:
    """A share with Wilson's interval (Ettinger 2020); an outcome may count in part."""
    value, low, high = accuracy_interval([float(one) for one in outcomes])
    return replace(row, value=value, ci_low=low, ci_high=high, num_items=len(outcomes))
