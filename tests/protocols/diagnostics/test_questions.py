from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from probelight.probes.diagnostics.sets import load_set
from probelight.protocols.diagnostics.questions import (
    Completion,
    Continuation,
    Contrast,
    Negation,
    questions_of,
)
from probelight.results.subset import ClozeBin, Constraint, Statements
from tests.fixtures.diagnostics import FILES, NEG_SIMP, write_released

CPRAG_FILE = "lm-diagnostics/datasets/CPRAG-102/CPRAG-102.tsv"
NEG_SIMP_FILE = "lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv"


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return write_released(tmp_path)


def test_an_inference_is_better_than_both_bad_words(mirror: Path) -> None:
    asked = questions_of(load_set("cprag", mirror))
    assert asked.completions == [
        Completion(0, ("football",), (Constraint("high"),)),
        Completion(3, ("cake",), (Constraint("low"),)),
    ]
    assert [(one.good, one.bad) for one in asked.contrasts] == [(0, (1, 2)), (3, (4, 5))]


def test_roles_are_compared_between_the_contexts_of_a_pair(mirror: Path) -> None:
    asked = questions_of(load_set("role", mirror))
    # Line -b stands before line -a; "worked for" counts by its first word.
    assert asked.contrasts == [Contrast(1, (0,)), Contrast(3, (2,))]
    assert [one.expected for one in asked.completions] == [
        ("tipped",), ("served", "worked"), ("seen",), ("eaten",),
    ]  # fmt: skip
    # Quartiles of 0.1, 0.2, 0.3, 0.4 with linear interpolation: 0.175, 0.25, 0.325.
    [bins] = zip(*(one.parts for one in asked.completions), strict=True)
    assert [round(one.upper, 9) for one in bins if isinstance(one, ClozeBin)] == [
        0.25, 0.4, 0.325, 0.175,
    ]  # fmt: skip


def test_truth_is_compared_within_a_polarity(mirror: Path) -> None:
    asked = questions_of(load_set("neg_simp", mirror))
    assert [one.prompt for one in asked.completions] == [0, 4]
    assert asked.contrasts[:2] == [
        Contrast(0, (2,), (Statements("affirmative"),)),
        Contrast(3, (1,), (Statements("negative"),)),
    ]
    natural = questions_of(load_set("neg_nat", mirror))
    assert natural.completions == []
    assert natural.contrasts[3].parts == (
        Statements("negative"),
        Statements("", "less natural"),
        Statements("negative", "less natural"),
    )


def test_a_statement_and_its_negation_are_held_together_once_an_article(mirror: Path) -> None:
    asked = questions_of(load_set("neg_simp", mirror))
    # "A trout is a" comes of both its words; "An ant is an" and "An ant is a" of one each.
    assert asked.negations == [Negation(0, 1), Negation(4, 5), Negation(6, 7)]
    assert asked.articles == [
        *(Continuation(place, "a") for place in (0, 1)),
        *(Continuation(place, "an") for place in (4, 5)),
        *(Continuation(place, "a") for place in (6, 7)),
    ]
    assert [one.subject for one in asked.completions] == ["trout", "ant"]
    natural = questions_of(load_set("neg_nat", mirror))
    assert natural.negations == [
        Negation(0, 1, (Statements("", "natural"),)),
        Negation(4, 5, (Statements("", "less natural"),)),
    ]


def test_what_a_set_does_not_have_is_not_asked(mirror: Path, tmp_path: Path) -> None:
    for name in ("cprag", "role", "role_1500", "neg_1500_simp_gen"):
        asked = questions_of(load_set(name, mirror))
        assert (asked.negations, asked.articles) == ([], [])
        assert not any(one.subject for one in asked.completions)
    odd = NEG_SIMP.replace("A trout is not", "Not").replace("An ant is not", "not ant is")
    write_released(tmp_path / "odd", {NEG_SIMP_FILE: odd})
    asked = questions_of(load_set("neg_simp", tmp_path / "odd"))
    assert [one.subject for one in asked.completions] == ["", ""]


def test_an_article_ends_a_context_of_three_prompts(tmp_path: Path) -> None:
    released = FILES[CPRAG_FILE].replace("She ate the", "She ate A")
    write_released(tmp_path, {CPRAG_FILE: released})
    assert questions_of(load_set("cprag", tmp_path)).articles == [Continuation(3, "a")]


def test_negated_sentences_have_no_right_word(mirror: Path) -> None:
    asked = questions_of(load_set("neg_1500_simp_gen", mirror))
    assert asked.completions == [Completion(0, ("animal",)), Completion(2, ("text",))]
    assert asked.negated == [(0, 1), (2, 3)]
    roles = questions_of(load_set("role_1500", mirror))
    assert roles.completions == [Completion(0, ("signed",)), Completion(1, ("left",))]
    assert roles.negated == []


@pytest.mark.paper_data
def test_the_quarters_of_role_88_are_those_of_table_8(data_mirror: Path) -> None:
    asked = questions_of(load_set("role", data_mirror))
    sizes = Counter(part.text for one in asked.completions for part in one.parts)
    # Its percentages are those of so many items: 12.0 is 3/25, 17.4 is 4/23, 11.8 is 2/17.
    assert sizes == {"cloze <=.17": 25, "cloze <=.23": 23, "cloze <=.33": 23, "cloze <=.77": 17}
    assert len(asked.contrasts) == 44


@pytest.mark.paper_data
def test_naturalness_is_counted_over_both_polarities_and_apart(data_mirror: Path) -> None:
    asked = questions_of(load_set("neg_nat", data_mirror))
    sizes = Counter(part.text for one in asked.contrasts for part in one.parts)
    assert sizes == {
        "affirmative": 16, "negative": 16, "natural": 16, "less natural": 16,
        "affirmative natural": 8, "negative natural": 8,
        "affirmative less natural": 8, "negative less natural": 8,
    }  # fmt: skip
