"""How much accuracy is left when contexts are perturbed (Ettinger 2020, tables 4 and 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from probelight.metrics.diagnostics import in_top
from probelight.probes.diagnostics.perturbations import Perturbation, perturbations_of
from probelight.probes.diagnostics.sets import DiagnosticSet
from probelight.protocols.diagnostics.ask import Answers
from probelight.protocols.diagnostics.questions import Completion, questions_of
from probelight.protocols.diagnostics.rows import TOPS, known_completions, share_row
from probelight.results.model_outputs import ModelOutputs
from probelight.results.row import Row


@dataclass(frozen=True)
class Perturbed:
    """A set under one perturbation.

    Attributes:
        name: What tables of results call the perturbation.
        asked: What is held against the model's words; a completion's prompt says of which item.
        contexts: (R, N) of each draw, the context of each of `asked`; one draw where none is drawn.
    """

    name: str
    asked: Sequence[Completion]
    contexts: Sequence[Sequence[str]]

    @property
    def words(self) -> dict[str, list[str]]:
        """For each context the words that count as right."""
        found: dict[str, list[str]] = {}
        for draw in self.contexts:
            for context, one in zip(draw, self.asked, strict=True):
                found.setdefault(context, []).extend(one.expected)
        return found


def perturbed(data: DiagnosticSet, shuffles: int) -> list[Perturbed]:
    """A set under each of its perturbations.

    Args:
        data: The set.
        shuffles: How often what is drawn at random is drawn, with seeds from 0; none at all leaves
            the perturbations out that are.
    """
    asked = questions_of(data).completions

    def contexts(one: Perturbation, seeds: int) -> list[list[str]]:
        return [[one.context(item, seed) for item in data.items] for seed in range(seeds)]

    draws = [(one, shuffles if one.is_drawn else 1) for one in perturbations_of(data)]
    return [Perturbed(one.name, asked, contexts(one, seeds)) for one, seeds in draws if seeds]


def perturbed_rows(own: Perturbed, answers: Answers, outputs: ModelOutputs, row: Row) -> list[Row]:
    """Accuracy@k under a perturbation, and what is left of the items that were right without it.

    `accuracy@k`: where orders are drawn, the mean over the draws, beside it as `accuracy@k_sd` the
    standard deviation of the draws' accuracies (of a sample, n - 1). An item counts the share of
    draws in which it is right, and the interval is Wilson's over the items: it says how sure the
    accuracy is for other items, which more draws do not make surer.
    `survival@k`: of the items that are right unperturbed, the mean share of draws in which they
    still are; no row where none is.

    Args:
        own: The set under the perturbation.
        answers: What the model says behind these contexts.
        outputs: What it says unperturbed.
        row: The columns that all rows share.
    """
    rows, row = list[Row](), replace(row, perturbation=own.name)
    known = known_completions(own.asked, outputs)
    for k in (k for k in TOPS if known and k <= answers.depth):
        right = {one: _right(own, answers, one, k) for one in known}
        credit = {one: fmean(draws) for one, draws in right.items()}
        rows.append(share_row([*credit.values()], replace(row, metric=f"accuracy@{k}")))
        if len(own.contexts) > 1:
            spread = stdev(fmean(draw) for draw in zip(*right.values(), strict=True))
            sd = replace(row, metric=f"accuracy@{k}_sd", value=spread, num_items=len(known))
            rows.append(sd)
        survived = [
            credit[one] for one in known if in_top(outputs.predictions[one.prompt], one.expected, k)
        ]
        if survived:
            rows.append(share_row(survived, replace(row, metric=f"survival@{k}")))
    return rows


def perturbed_lines(
    own: Perturbed, data: DiagnosticSet, answers: Answers
) -> Iterator[dict[str, Any]]:
    """Of each item what was asked and said in the first draw, and in what share it was right."""
    tops = [k for k in TOPS if k <= answers.depth]
    for one, context in zip(own.asked, own.contexts[0], strict=True):
        yield {
            "perturbation": own.name,
            "context": data.prompts[one.prompt].context,
            "perturbed": context,
            "expected": list(one.expected),
            "predictions": list(answers.behind[context].best),
            **{f"right@{k}": fmean(_right(own, answers, one, k)) for k in tops},
        }


def _right(own: Perturbed, answers: Answers, one: Completion, k: int) -> list[bool]:
    """(R,) in which draws a completion is among the model's k best words."""
    place = own.asked.index(one)
    return [in_top(answers.behind[draw[place]].best, one.expected, k) for draw in own.contexts]
