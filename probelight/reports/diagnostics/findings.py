"""What the diagnostics show of each model, in sentences made from the numbers alone.

A share is above or below another number where its whole interval is. The paper's numbers have no
interval here: they are taken as they are printed, and stand beside those of models that were asked
about all of its contexts.
"""

from __future__ import annotations

from collections.abc import Sequence

from probelight.reports.diagnostics.facts import (
    BERT,
    MARGIN,
    PAPER_CONTEXTS,
    SENSITIVITY,
    Asked,
    asked,
)
from probelight.reports.kit.measured import Measured
from probelight.reports.kit.text import between, count, listed, percent, with_facts
from probelight.reports.published import short_name
from probelight.results.load import Results
from probelight.results.row import Row

FIRST, FIVE = "accuracy@1", "accuracy@5"
EVEN = 0.5
REPEATED = "repeated_subject"
NATURAL = ("natural", "less natural")


def expectations(results: Results) -> list[str]:
    """A paragraph a model: what it expects, what it prefers, and what “not” does to it."""
    metrics = (
        FIRST, FIVE, SENSITIVITY, MARGIN, "negation_sensitivity", "unchanged_by_not", REPEATED,
    )  # fmt: skip
    found = asked(results, metrics)
    labels = dict.fromkeys(one.label for one in found)
    told = (_paragraph(label, [one for one in found if one.label == label]) for label in labels)
    return [" ".join(sentences) for sentences in told if sentences]


def _paragraph(label: str, found: list[Asked]) -> list[str]:
    intact = [one for one in found if not one.perturbation]
    whole = {one.probe: one for one in intact if one.part is None}
    parts = {(one.probe, one.subset): one for one in intact}
    sentences = [
        _first_words(label, [one for one in whole.values() if FIRST in one.rows]),
        *(_perturbed(one, found) for one in whole.values()),
        _preferences([whole[name] for name in ("cprag", "role") if name in whole]),
        _negation(parts),
        _naturalness([parts["neg_nat", part] for part in NATURAL if ("neg_nat", part) in parts]),
        _changes(list(whole.values())),
    ]
    known = [sentence for sentence in sentences if sentence]
    # The first sentence names the model; where there is none, the others still are about it.
    return known if sentences[0] or not known else [f"{label}: {known[0]}", *known[1:]]


def _first_words(label: str, found: list[Asked]) -> str:
    """How often an expected word is the best one, beside the smaller model of the paper."""
    if not found:
        return ""
    texts = []
    for one in found:
        row, paper = one.rows[FIRST], one.paper(BERT, FIRST)
        same = row.num_items == PAPER_CONTEXTS.get(one.probe)
        beside = _beside(row, paper) if same and paper is not None else ""
        texts.append(f"{_counted(row, beside)} of {one.title}")
    sentences = [f"The first word of {label} is one that people expect in {listed(texts)}."]
    sentences += [
        f"In {_counted(one.rows[REPEATED])} of its errors on {one.title} it repeats the subject."
        for one in found
        if REPEATED in one.rows
    ]
    return " ".join(sentences)


def _beside(row: Row, paper: float) -> str:
    """How a share compares with what the paper has for its smaller model."""
    if percent(row.value) == percent(paper):
        return f"as {short_name(BERT)} in the paper"
    told, name = _against(row, paper), short_name(BERT)
    return f"{told} {name}'s {percent(paper)}%" if told else f"{name} {percent(paper)}%"


def _perturbed(whole: Asked, found: list[Asked]) -> str:
    """What perturbed contexts leave of the accuracy on a set."""
    less = [one for one in found if one.probe == whole.probe and one.perturbation]
    texts = [f"{percent(o.rows[FIVE].value)}% ({o.condition})" for o in less if FIVE in o.rows]
    if FIVE not in whole.rows or not whole.rows[FIVE].value or not texts:
        return ""  # nothing was perturbed, or there is nothing to lose
    return (
        "An expected word is among its first five in "
        f"{_counted(whole.rows[FIVE])} of {whole.title}, and of its perturbed contexts in "
        f"{listed(texts)}."
    )


def _preferences(found: list[Asked]) -> str:
    """Whether good completions are preferred, and by how much."""
    texts = []
    for one in found:
        if (row := one.rows.get(SENSITIVITY)) and one.chance is not None:
            told = _against(row, one.chance) or "not distinguishable from"
            facts = [f"{told} chance, {percent(one.chance)}%"]
            if MARGIN in one.rows:
                facts.append(f"by more than 0.01 in {percent(one.rows[MARGIN].value)}%")
            texts.append(f"{_counted(row, *facts)} of {one.title}")
    return f"It prefers the good completion in {listed(texts)}." if texts else ""


def _negation(parts: dict[tuple[str, str], Asked]) -> str:
    """Whether true words are preferred in statements, and in their negations."""
    known = [
        parts["neg_simp", polarity].rows.get(SENSITIVITY)
        for polarity in ("affirmative", "negative")
        if ("neg_simp", polarity) in parts
    ]
    if len(known) < 2 or None in known:
        return ""
    affirmative, negative = (row for row in known if row)
    told = _against(affirmative, EVEN), _against(negative, EVEN)
    verdict = {
        ("above", "above"): "it is sensitive to negation",
        ("above", "below"): "it goes by the noun, as if “not” were not there",
        ("below", "above"): "it goes against the noun, with “not” and without",
    }.get(told, "that does not show that it is sensitive to negation")
    return (
        f"On NEG-136-SIMP it prefers the true word in {_counted(affirmative)} of the statements "
        f"and in {_counted(negative)} of their negations: {verdict}."
    )


def _naturalness(found: list[Asked]) -> str:
    texts = [
        f"{_counted(one.rows[SENSITIVITY])} where negation is {one.subset}"
        for one in found
        if SENSITIVITY in one.rows
    ]
    return f"On NEG-136-NAT it prefers the true word in {listed(texts)}." if texts else ""


def _changes(found: list[Asked]) -> str:
    """How often the first word stays, or changes, when a statement is negated."""
    sentences = []
    for metric, done in (
        ("unchanged_by_not", "leaves its first word as it is"),
        ("negation_sensitivity", "changes its first word"),
    ):
        texts = [
            f"{_counted(one.rows[metric])} of {one.title}" for one in found if metric in one.rows
        ]
        sentences += [f"“Not” {done} in {listed(texts)}."] if texts else []
    return " ".join(sentences)


def _against(row: Measured, level: float) -> str:
    """On which side of a level the whole interval is; empty where it holds the level."""
    if row.ci_low is not None and row.ci_low > level:
        return "above"
    if row.ci_high is not None and row.ci_high < level:
        return "below"
    return ""


def _counted(row: Row, *facts: str) -> str:
    """Per cent with exact count, interval and what else is known."""
    exact: Sequence[str] = ()
    if row.num_items:
        exact = (f"{count(round(row.value * row.num_items))}/{count(row.num_items)}",)
    return with_facts(row.value, *exact, between(row.ci_low, row.ci_high), *facts)


def summary(results: Results) -> str:
    """The findings in one paragraph."""
    from probelight.reports.diagnostics.runs import unread

    return " ".join([*expectations(results), *unread(results)])
