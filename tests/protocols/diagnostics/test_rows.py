from __future__ import annotations

import pytest

from probelight.protocols.diagnostics.questions import (
    Completion,
    Continuation,
    Contrast,
    Negation,
    Questions,
)
from probelight.protocols.diagnostics.rows import diagnostic_rows, known_contrasts
from probelight.results.model_outputs import ModelOutputs
from probelight.results.row import Row
from probelight.results.subset import Constraint, Statements
from tests.fixtures.results import wilson

HIGH, LOW = (Constraint("high"),), (Constraint("low"),)
ASKED = Questions(
    [Completion(0, ("tea",), HIGH), Completion(2, ("bus", "car"), LOW)],
    [Contrast(0, (1,), HIGH), Contrast(2, (3,), LOW)],
)
WORDS = (("tea",), (), ("a", "b", "c", "car", "d"), ())


def measured(asked: Questions, outputs: ModelOutputs) -> dict[tuple[str, str], tuple[float, int]]:
    rows = diagnostic_rows(asked, outputs, Row(protocol="diagnose"))
    found = {(row.metric, row.subset_text): (row.value, row.num_items or 0) for row in rows}
    assert len(found) == len(rows)
    return found


def test_shares_of_the_set_and_of_its_parts() -> None:
    assert measured(ASKED, ModelOutputs(WORDS, 5, (0.5, 0.4, 0.2, 0.195))) == {
        ("accuracy@1", ""): (0.5, 2),
        ("accuracy@1", "high constraint"): (1.0, 1),
        ("accuracy@1", "low constraint"): (0.0, 1),
        ("accuracy@5", ""): (1.0, 2),
        ("accuracy@5", "high constraint"): (1.0, 1),
        ("accuracy@5", "low constraint"): (1.0, 1),
        ("sensitivity", ""): (1.0, 2),
        ("sensitivity", "high constraint"): (1.0, 1),
        ("sensitivity", "low constraint"): (1.0, 1),
        ("sensitivity_margin", ""): (0.5, 2),
        ("sensitivity_margin", "high constraint"): (1.0, 1),
        ("sensitivity_margin", "low constraint"): (0.0, 1),
    }


def test_a_word_without_a_probability_is_left_out() -> None:
    probabilities = (0.5, None, 0.2, 0.3)
    [(contrast, good, bad)] = known_contrasts(ASKED, probabilities)
    assert (contrast, good, bad) == (ASKED.contrasts[1], 0.2, [0.3])
    found = measured(ASKED, ModelOutputs(WORDS, 5, probabilities))
    assert found["sensitivity", ""] == (0.0, 1)
    assert ("sensitivity", "high constraint") not in found


def test_accuracy_goes_as_far_down_as_the_words() -> None:
    asked = Questions([Completion(0, ("w3",))])
    ten = ModelOutputs((tuple(f"w{number}" for number in range(9)),), 10)
    assert measured(asked, ten) == {
        ("accuracy@1", ""): (0.0, 1),
        ("accuracy@5", ""): (1.0, 1),
        ("accuracy@10", ""): (1.0, 1),
    }


def test_negation_sensitivity_looks_at_the_first_word_alone() -> None:
    asked = Questions(negated=[(0, 1), (2, 3)])
    outputs = ModelOutputs((("a", "b"), ("a", "c"), ("a",), ("b",)), 2)
    assert measured(asked, outputs) == {("negation_sensitivity", ""): (0.5, 2)}


def test_errors_that_repeat_the_subject() -> None:
    words = (("flower", "daisy"), ("Ant",), ("bird", "robin"), ("house",), (), ("x",))
    asked = Questions(
        [
            *(
                Completion(place, (expected,), subject=subject)
                for place, (expected, subject) in enumerate(
                    [("flower", "daisy"), ("insect", "ant"), ("fish", "robin"), ("x", "house")]
                )
            ),
            Completion(4, ("x",), subject="house"),
            Completion(5, ("y",)),  # without a subject it is none of the errors
        ]
    )
    found = measured(asked, ModelOutputs(words, 2))
    assert found["repeated_subject", ""] == (0.5, 4)  # ant and house, of ant, bird, house and none
    right = Questions([Completion(0, ("flower",), subject="daisy")])
    assert measured(right, ModelOutputs(words[:1], 2)) == {("accuracy@1", ""): (1.0, 1)}


def test_articles_that_are_obeyed() -> None:
    asked = Questions(
        articles=[Continuation(0, "an"), Continuation(1, "a"), Continuation(3, "a")],
        negations=[Negation(0, 1, (Statements("", "natural"),)), Negation(2, 3)],
    )
    said = ModelOutputs((("ant",), ("ant", "tool"), ("hour",), ("hour",)), 2)
    assert measured(asked, said) == {
        ("article_obedience", ""): (1 / 3, 3),
        ("article_obedience", "behind an"): (1.0, 1),
        ("article_obedience", "behind a"): (0.0, 2),
        ("unchanged_by_not", ""): (1.0, 2),
        ("unchanged_by_not", "natural"): (1.0, 1),
    }
    assert measured(asked, ModelOutputs(((),) * 4, 0)) == {}  # no words were recorded


def test_intervals_are_wilsons() -> None:
    asked = Questions([Completion(place, ("x",)) for place in range(34)])
    outputs = ModelOutputs((("x",),) * 8 + (("y",),) * 26, 1)
    [row] = diagnostic_rows(asked, outputs, Row(model="m"))
    assert (row.ci_low, row.ci_high) == pytest.approx(wilson(8 / 34, 34))
    assert (row.model, row.num_groups) == ("m", None)
