from __future__ import annotations

import json

import pytest

from results.subset import (
    Answered,
    ChoiceSet,
    Clusters,
    Difficulty,
    GridWording,
    NearerDistractor,
    OneModel,
    SourceSet,
    Subset,
    Template,
    Untouched,
)

TEXTS = {
    Template("has"): "template=has",
    ChoiceSet(("older", "younger")): "pair=older/younger",
    Untouched(): "group not in train",
    Clusters(5): "clusters of 5",
    Difficulty(3, "hyponym", 4): "hops=3 distractors=hyponym:4",
    Difficulty(0, "a: b", 0): "hops=0 distractors=a: b:0",
    SourceSet("openbookqa"): "openbookqa",
    Answered("choice 1"): "choice 1",
    GridWording("paper"): "wording=paper",
    NearerDistractor(True): "with a nearer distractor",
    NearerDistractor(False): "without",
    OneModel("embedded (random weights)"): "embedded (random weights)",
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
