"""The comparisons on each diagnostic set, and their rows of results.csv.

The parts of a set that are measured alone are those of Ettinger (2020), tables 4 to 14; perturbed
contexts are those of tables 4 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from statistics import fmean, stdev
from typing import Any

import numpy as np

from probelight.commands.diagnose.word_predictions import WordPredictions
from probelight.metrics.diagnostics import (
    ARTICLES,
    MARGIN,
    in_top,
    keeps_word,
    obeys_article,
    prefers,
    says,
)
from probelight.metrics.intervals import accuracy_interval
from probelight.probes.diagnostics import items
from probelight.probes.diagnostics.sets import DiagnosticSet, perturbations_of
from probelight.results.model_outputs import ModelOutputs
from probelight.results.row import Row, Subset

NATURALNESS = {"Y": "natural", "N": "less natural"}
TOPS = (1, 5, 10, 20)


@dataclass(frozen=True)
class Completion:
    """A prompt whose completion is compared with those that people expect."""

    prompt: int  # its index
    expected: tuple[str, ...]  # words that count as right: an expected completion by its first word
    subsets: tuple[Subset, ...] = ()  # the parts of the set that it belongs to
    subject: str = ""  # the noun that the statement is about; empty where repeating it is no error


@dataclass(frozen=True)
class Contrast:
    """Prompts of which one has a better target than the others."""

    good: int  # index of the better one
    bad: tuple[int, ...]  # indices of the others
    subsets: tuple[Subset, ...] = ()


@dataclass(frozen=True)
class Continuation:
    """A context that ends in an article, which calls for a vowel or a consonant."""

    prompt: int  # its index; of prompts with one context that of the first
    article: str  # in lower case
    subsets: tuple[Subset, ...] = ()


@dataclass(frozen=True)
class Negation:
    """A statement and its negation, with the same article at their ends where there is one."""

    first: int  # index of the statement
    second: int  # index of its negation
    subsets: tuple[Subset, ...] = ()


Comparison = Completion | Contrast | Continuation | Negation


@dataclass(frozen=True)
class Comparisons:
    """All comparisons on a set; articles are those of the sets of Ettinger (2020)."""

    completions: list[Completion] = field(default_factory=list)  # accuracy, repeated subjects
    contrasts: list[Contrast] = field(default_factory=list)  # sensitivity
    negated: list[tuple[int, int]] = field(default_factory=list)  # negation sensitivity
    articles: list[Continuation] = field(default_factory=list)  # obedience to "a" and "an"
    negations: list[Negation] = field(default_factory=list)  # words that "not" leaves as they are


def comparisons_of(data: DiagnosticSet) -> Comparisons:
    """Return the comparisons on a set's prompts.

    Of the three prompts of a context of CPRAG-102 the first is used. The accuracy of negations is
    that of their affirmative statements, since hardly any word is wrong in a negated one.
    """
    comparisons, numbers = Comparisons(), count()
    cloze = [item.cloze for item in data.items if isinstance(item, items.RoleItem)]
    quarters = np.percentile(cloze, [25, 50, 75, 100]).tolist() if cloze else []
    roles: dict[tuple[str, str], int] = {}
    for item in data.items:
        indices = [next(numbers) for _ in item.prompts]
        if isinstance(item, items.SentencePair):
            sentences = [
                Completion(index, (prompt.target,))
                for index, prompt in zip(indices, item.prompts, strict=True)
            ]
            if isinstance(item, items.NegatedPair):
                sentences = sentences[:1]
                comparisons.negated.append((indices[0], indices[1]))
            comparisons.completions.extend(sentences)
            continue
        if isinstance(item, items.InferenceItem):
            level = items.CONSTRAINTS[item.constraint]
            constraint = (Subset.of("constraint", f"{level} constraint", level=level),)
            expected = _first_words(item.expected)
            comparisons.completions.append(Completion(indices[0], expected, constraint))
            comparisons.contrasts.append(Contrast(indices[0], tuple(indices[1:]), constraint))
        elif isinstance(item, items.RoleItem):
            upper = next(upper for upper in quarters if item.cloze <= upper)
            # As Ettinger (2020) has it in table 8: "cloze <=.17".
            text = f"cloze <={upper:.2f}".replace("=0", "=")
            quarter = Subset.of("cloze", text, upper=upper)
            expected = _first_words(*item.expected)
            comparisons.completions.append(Completion(indices[0], expected, (quarter,)))
            roles[item.pair, item.role] = indices[0]
        elif isinstance(item, items.NegationItem):
            _add_negation(comparisons, item, indices)
        contexts: dict[str, int] = {}
        for index, prompt in zip(indices, item.prompts, strict=True):
            contexts.setdefault(prompt.context, index)
        for context, index in contexts.items():
            if (article := context.split()[-1].lower()) in ARTICLES:
                article_subset = Subset.of("article", f"behind {article}", word=article)
                comparisons.articles.append(Continuation(index, article, (article_subset,)))
    pairs = dict.fromkeys(pair for pair, _ in roles)
    comparisons.contrasts.extend(Contrast(roles[pair, "a"], (roles[pair, "b"],)) for pair in pairs)
    return comparisons


def _statements(polarity: str, naturalness: str = "") -> Subset:
    """Return the part with statements of a polarity, a naturalness, or both; "" leaves one open."""
    text = f"{polarity} {naturalness}".strip()
    return Subset.of("statements", text, polarity=polarity, naturalness=naturalness)


def _add_negation(comparisons: Comparisons, item: items.NegationItem, indices: list[int]) -> None:
    """Add the comparisons of a statement of NEG-136 and its negation."""
    true_affirmative, false_negative, false_affirmative, true_negative = indices
    naturalness = "" if item.licensing is None else NATURALNESS[item.licensing]
    natural = (_statements("", naturalness),) if naturalness else ()
    if not naturalness:
        words = item.negative.split()
        verb = words.index("not") - 1 if "not" in words else 0
        subject = words[verb - 1] if verb >= 1 else ""  # the noun before the verb
        expected = _first_words(item.true_affirmative)
        comparisons.completions.append(Completion(indices[0], expected, subject=subject))
    for polarity, true, false in (
        ("affirmative", true_affirmative, false_affirmative),
        ("negative", true_negative, false_negative),
    ):
        subsets: tuple[Subset, ...] = (_statements(polarity),)
        if naturalness:
            subsets += (*natural, _statements(polarity, naturalness))
        comparisons.contrasts.append(Contrast(true, (false,), subsets))
    # Once, or once for each article where the item's two words call for both.
    comparisons.negations.append(Negation(true_affirmative, false_negative, natural))
    if item.prompts[2].context != item.prompts[0].context:
        comparisons.negations.append(Negation(false_affirmative, true_negative, natural))


def _first_words(*completions: str) -> tuple[str, ...]:
    return tuple(completion.split()[0] for completion in completions)


def diagnostic_rows(comparisons: Comparisons, outputs: ModelOutputs, row: Row) -> list[Row]:
    """Return accuracies as far down as the model's words go, and sensitivities of probabilities.

    Three more shares are of the best words alone, as Ettinger (2020) describes in sections 9.1 to
    9.4. `repeated_subject`: of the statements whose best word is not the expected one, the share in
    which it repeats the subject ("A daisy is a daisy"); no row where there is no such error.
    `article_obedience`: of the contexts that end in "a" or "an", the share whose best word can
    follow. `unchanged_by_not`: of the statements, the share whose best word "not" leaves as it is.
    """
    words = outputs.predictions
    completions = known_completions(comparisons.completions, outputs)
    rows: list[Row] = []

    def add(metric: str, compared: Sequence[Comparison], outcomes: Sequence[bool]) -> None:
        """Add the share of the whole set and that of each of its parts."""
        by_subset: dict[Subset | None, list[bool]] = {None: list(outcomes)} if compared else {}
        for comparison, outcome in zip(compared, outcomes, strict=True):
            for subset in comparison.subsets:
                by_subset.setdefault(subset, []).append(outcome)
        for key, subset_outcomes in by_subset.items():
            rows.append(share_row(subset_outcomes, replace(row, metric=metric, subset=key)))

    for k in (k for k in TOPS if k <= outputs.depth):
        right = [in_top(words[item.prompt], item.expected, k) for item in completions]
        add(f"accuracy@{k}", completions, right)
    if outputs.probabilities is not None:
        scored = known_contrasts(comparisons, outputs.probabilities)
        contrasts = [contrast for contrast, *_ in scored]
        for metric, margin in (("sensitivity", 0.0), ("sensitivity_margin", MARGIN)):
            add(
                metric,
                contrasts,
                [prefers(good, bad, margin) for _, good, bad in scored],
            )
    if outputs.depth:
        if comparisons.negated:
            changed = [
                words[prompt][:1] != words[negated_prompt][:1]
                for prompt, negated_prompt in comparisons.negated
            ]
            rows.append(share_row(changed, replace(row, metric="negation_sensitivity")))
        errors = [
            item
            for item in completions
            if item.subject and not in_top(words[item.prompt], item.expected, 1)
        ]
        add(
            "repeated_subject",
            errors,
            [says(words[item.prompt], item.subject) for item in errors],
        )
        obeyed = [obeys_article(words[item.prompt], item.article) for item in comparisons.articles]
        add("article_obedience", comparisons.articles, obeyed)
        unchanged = [
            keeps_word(words[item.first], words[item.second]) for item in comparisons.negations
        ]
        add("unchanged_by_not", comparisons.negations, unchanged)
    return rows


def known_completions(completions: Sequence[Completion], outputs: ModelOutputs) -> list[Completion]:
    """Return the completions with an expected word that the vocabulary, as far as known, has."""
    return [item for item in completions if not outputs.split.issuperset(item.expected)]


def known_contrasts(
    comparisons: Comparisons, probabilities: Sequence[float | None]
) -> list[tuple[Contrast, float, list[float]]]:
    """Return the contrasts whose targets all have a probability: the good one's, the bad ones'."""
    contrasts = []
    for contrast in comparisons.contrasts:
        good, *bad = (probabilities[prompt] for prompt in (contrast.good, *contrast.bad))
        bad_probabilities = [probability for probability in bad if probability is not None]
        if good is not None and len(bad_probabilities) == len(bad):
            contrasts.append((contrast, good, bad_probabilities))
    return contrasts


def share_row(outcomes: Sequence[float], row: Row) -> Row:
    """Return a share with Wilson's interval (Ettinger 2020); an outcome may count in part."""
    value, low, high = accuracy_interval([float(outcome) for outcome in outcomes])
    return replace(row, value=value, ci_low=low, ci_high=high, num_items=len(outcomes))


@dataclass(frozen=True)
class PerturbedSet:
    """A set under one perturbation."""

    name: str  # what tables call the perturbation
    completions: Sequence[Completion]  # their prompts name the items
    contexts: Sequence[Sequence[str]]  # (R, N) the context of each completion, for each draw

    def right(self, index: int, predictions: WordPredictions, k: int) -> list[bool]:
        """Return (R,) whether a completion is among the model's k best words, for each draw."""
        expected = self.completions[index].expected
        best = (predictions.by_context[draw[index]].best for draw in self.contexts)
        return [in_top(words, expected, k) for words in best]


def perturbed_sets(data: DiagnosticSet, shuffles: int) -> list[PerturbedSet]:
    """Return a set under each of its perturbations, random ones in `shuffles` draws."""
    completions = comparisons_of(data).completions
    perturbed = []
    for perturbation in perturbations_of(data):
        seeds = range(shuffles if perturbation.is_drawn else 1)
        draws = [[perturbation.context(item, seed) for item in data.items] for seed in seeds]
        if draws:
            perturbed.append(PerturbedSet(perturbation.name, completions, draws))
    return perturbed


def perturbed_rows(
    perturbed: PerturbedSet, predictions: WordPredictions, outputs: ModelOutputs, row: Row
) -> list[Row]:
    """Return accuracy@k under a perturbation, and how many right items survive it.

    `accuracy@k`: the mean over the draws, if orders are drawn, with `accuracy@k_sd`, the standard
    deviation of the draws' accuracies (of a sample, n - 1). The score of an item is the share of
    draws in which it is right; the interval is Wilson's over the items, which more draws do not
    narrow. `survival@k`: of the items that are right unperturbed (in `outputs`), the mean share of
    draws in which they still are; no row where none is.
    """
    rows, row = list[Row](), replace(row, perturbation=perturbed.name)
    completions = known_completions(perturbed.completions, outputs)
    indices = [index for index, item in enumerate(perturbed.completions) if item in completions]
    for k in (k for k in TOPS if completions and k <= predictions.depth):
        right = [perturbed.right(index, predictions, k) for index in indices]
        shares = [fmean(draws) for draws in right]
        rows.append(share_row(shares, replace(row, metric=f"accuracy@{k}")))
        if len(perturbed.contexts) > 1:
            spread = stdev(fmean(draw) for draw in zip(*right, strict=True))
            sd = replace(row, metric=f"accuracy@{k}_sd", value=spread, num_items=len(completions))
            rows.append(sd)
        survived = [
            share
            for share, item in zip(shares, completions, strict=True)
            if in_top(outputs.predictions[item.prompt], item.expected, k)
        ]
        if survived:
            rows.append(share_row(survived, replace(row, metric=f"survival@{k}")))
    return rows


def perturbed_lines(
    perturbed: PerturbedSet, data: DiagnosticSet, predictions: WordPredictions
) -> Iterator[dict[str, Any]]:
    """Yield each item's context and words in the first draw, and the share of right draws."""
    tops = [k for k in TOPS if k <= predictions.depth]
    pairs = zip(perturbed.completions, perturbed.contexts[0], strict=True)
    for index, (item, context) in enumerate(pairs):
        yield {
            "perturbation": perturbed.name,
            "context": data.prompts[item.prompt].context,
            "perturbed": context,
            "expected": list(item.expected),
            "predictions": list(predictions.by_context[context].best),
            **{f"right@{k}": fmean(perturbed.right(index, predictions, k)) for k in tops},
        }
