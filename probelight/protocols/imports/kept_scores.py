"""What is kept of the scores of a file: they as they are, or what an answer is to go by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from probelight.io.errors import RecordError
from probelight.metrics.scoring_rules import divided, num_characters
from probelight.results.importers.answers import Answer, at

Kept = Literal["as_given", "logarithm", "per_character"]


def kept(answers: Sequence[Answer], what: Kept) -> tuple[Answer, ...]:
    """The answers with what is kept of their scores.

    Args:
        answers: What a file says.
        what: "logarithm", of probabilities; "per_character", each by the length of its choice, as
            `acc_norm` of lm-evaluation-harness goes by; or "as_given".

    Raises:
        RecordError: If a score is no probability, or choices are not known; the message names file
            and line.
    """
    found = []
    for answer in answers:
        with at(answer.where):
            found.append(replace(answer, scores=tuple(_RULES[what](answer))))
    return tuple(found)


def _logarithms(answer: Answer) -> list[float]:
    if wrong := [score for score in answer.scores if not 0 <= score <= 1]:
        raise RecordError(f"--scores logarithm: {wrong[0]:g} is no probability, from 0 to 1")
    return [math.log(score) if score else -math.inf for score in answer.scores]


def _per_character(answer: Answer) -> list[float]:
    sizes = [num_characters(choice) for choice in answer.choices]
    if 0 in (sizes or [0]):
        raise RecordError("--scores per_character: the texts of the choices are not known")
    return divided(answer.scores, sizes)


_RULES: Mapping[Kept, Callable[[Answer], Sequence[float]]] = {
    "as_given": lambda answer: answer.scores,
    "logarithm": _logarithms,
    "per_character": _per_character,
}
