from __future__ import annotations

import pytest

from probelight.probes.diagnostics.items import (
    InferenceItem,
    NegatedPair,
    NegationItem,
    Prompt,
    RoleItem,
    SentencePair,
)

ROLES = "the owner forgot which customer the waitress had"


def test_the_article_of_a_negation_follows_its_target() -> None:
    item = NegationItem("An ant is (a|an)", "An ant is not (a|an)", "insect", "vegetable")
    assert [(one.context, one.target) for one in item.prompts] == [
        ("An ant is an", "insect"),
        ("An ant is not an", "insect"),
        ("An ant is a", "vegetable"),
        ("An ant is not a", "vegetable"),
    ]


def test_an_inference_has_one_context_and_three_targets() -> None:
    item = InferenceItem("One.", "He had", "tea", "milk", "oil", "H")
    assert {one.context for one in item.prompts} == {"One. He had"}
    assert [one.target for one in item.prompts] == ["tea", "milk", "oil"]


def test_a_sentence_pair_asks_for_both_last_words() -> None:
    pair = SentencePair(Prompt("a not b", "c"), Prompt("d", "e"))
    assert [one.target for one in pair.prompts] == ["c", "e"]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a context and a word"):
        Prompt("", "word")
    with pytest.raises(ValueError, match=r"\[MASK\] is put behind the context"):
        Prompt("a [MASK] is a", "word")
    for context in ("x", "which customer the waitress", "which one the maid of the house had"):
        with pytest.raises(ValueError, match="must end in 'which NOUN the NOUN had'"):
            RoleItem("1", "a", context, ("y",), 0.5, "z")
    with pytest.raises(ValueError, match="must be H or L"):
        InferenceItem("a.", "b", "c", "d", "e", "M")
    with pytest.raises(ValueError, match="must be a number and -a or -b"):
        RoleItem("1", "c", ROLES, ("y",), 0.5, "z")
    with pytest.raises(ValueError, match="an empty completion"):
        RoleItem("1", "a", ROLES, ("y", ""), 0.5, "z")
    with pytest.raises(ValueError, match="from 0 to 1"):
        RoleItem("1", "a", ROLES, ("y",), 1.5, "z")
    with pytest.raises(ValueError, match="must be Y or N"):
        NegationItem("a", "b", "c", "d", "X")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="without 'not', the second with"):
        NegatedPair(Prompt("A cat is not a", "dog"), Prompt("A cat is an", "animal"))
