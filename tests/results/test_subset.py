from __future__ import annotations

import json

import pytest

from probelight.results.subset import (
    Answered,
    AnswerPart,
    Article,
    ChoiceSet,
    ClozeBin,
    Clusters,
    Constraint,
    Difficulty,
    GridWording,
    NearerDistractor,
    OneModel,
    Paradigm,
    SourceSet,
    Statements,
    Subset,
    Template,
    Untouched,
    Versus,
)

TEXTS = {
    AnswerPart("word", "entity"): "word=entity",
    Template("has"): "template=has",
    ChoiceSet(("older", "younger")): "pair=older/younger",
    Untouched(): "group not in train",
    Clusters(5): "clusters of 5",
    Difficulty(3, "hyponym", 4): "hops=3 distractors=hyponym:4",
    Difficulty(0, "a: b", 0): "hops=0 distractors=a: b:0",
    SourceSet("openbookqa"): "openbookqa",
    Paradigm("wh_island"): "UID=wh_island",
    Answered("choice 1"): "choice 1",
    GridWording("paper"): "wording=paper",
    NearerDistractor(True): "with a nearer distractor",
    NearerDistractor(False): "without",
    OneModel("embedded (random weights)"): "embedded (random weights)",
    Versus("bert", "roberta"): "bert − roberta",
    Constraint("high"): "high constraint",
    ClozeBin(0.166666667): "cloze <=.17",
    Statements("affirmative"): "affirmative",
    Article("an"): "behind an",
    Statements("", "natural"): "natural",
    Statements("negative", "less natural"): "negative less natural",
}


@pytest.mark.parametrize(("subset", "text"), TEXTS.items())
def test_a_part_has_a_text_and_comes_back_from_json(subset: Subset, text: str) -> None:
    assert subset.text == text
    assert Subset.from_json(json.loads(json.dumps(subset.to_json()))) == subset


def test_every_kind_is_tried() -> None:
    assert {type(subset) for subset in TEXTS} == set(Subset.__subclasses__())
    assert len({subset.kind for subset in TEXTS}) == len(Subset.__subclasses__())


@pytest.mark.parametrize(
    "value",
    ["template=has", {}, {"kind": "template"}, {"kind": "nothing"}, {"kind": "untouched", "x": 1}],
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="names no part of a set"):
        Subset.from_json(value)


RELEASED = {"hops": 2, "distractor_type": "sister", "distractor_hops": 1, "chain": "a=>b=>c"}


def test_a_released_item_has_the_difficulty_that_its_notes_name() -> None:
    assert Difficulty.of(RELEASED) == Difficulty(2, "sister", 1)


def test_random_distractors_have_no_distance() -> None:
    # As the released files have it: null where there is nothing to measure.
    notes = {"hops": 1, "distractor_type": "random", "distractor_hops": None}
    assert Difficulty.of(notes) == Difficulty(1, "random", 0)


@pytest.mark.parametrize("missing", ["hops", "distractor_type"])
def test_an_item_without_one_of_the_two_has_none(missing: str) -> None:
    assert Difficulty.of({**RELEASED, missing: None}) is None
    assert Difficulty.of({k: v for k, v in RELEASED.items() if k != missing}) is None
