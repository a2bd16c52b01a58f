""""""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probelight.results.load import Results, Run, UnreadableResultError
from probelight.results.predictions import difficulty_of, read_item_lines
from tests.fixtures import subsets

LINE = {
    "set": "made",
    "id": "m1",
    "position": 1,
    "question": "a finch is a [MASK].",
    "choices": ["bird", "fish"],
    "scores": [0.5, None],
    "prediction": 0,
    "tied": 1,
    "answer": 0,
    "correct": 1.0,
    "group": "finch.n.01",
    "by_rule": {"sum": {}},
}


def read(folder: Path, *lines: Any) -> Any:
    (folder / "run").mkdir()
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "run/predictions.jsonl").write_text(text, encoding="utf-8")
    run = Run(protocol="zero_shot", path="run")
    return read_item_lines(Results("made", (run,), (), folder), run)


def test_a_line_holds_what_was_asked_and_said(tmp_path: Path) -> None:
    [line] = read(tmp_path, LINE)
    assert line.asked == ("a finch is a [MASK].", ("bird", "fish"), 0)
    assert (line.scores, line.correct, line.group) == ((0.5, None), 1.0, "finch.n.01")


def test_facts_of_an_item_may_be_of_another_type_in_the_file(tmp_path: Path) -> None:
    [line] = read(tmp_path, LINE | {"group": 7, "hops": "2", "distractor_type": 3})
    assert (line.group, line.hops, line.distractor_type) == ("7", 2, "3")


def test_questions_without_choices_are_none_of_these(tmp_path: Path) -> None:
    assert read(tmp_path, {"context": "He", "target": "ran", "predictions": ["ran"]}) == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([1], "not an object"),
        (LINE | {"answer": 2}, "2 choices"),
        (LINE | {"scores": [0.5]}, "1 scores"),
        (LINE | {"correct": 1.5}, "not between 0 and 1"),
        (LINE | {"choices": "bird"}, "choices"),
        (LINE | {"hops": "two"}, "two"),
        (LINE | {"hops": [1]}, "list"),
        ({"set": "made", "choices": ["a", "b"]}, "id"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: Any, said: str) -> None:
    with pytest.raises(UnreadableResultError, match=said) as caught:
        read(tmp_path, LINE, line)
    assert "run/predictions.jsonl:2" in str(caught.value)


RELEASED = {"hops": 2, "distractor_type": "sister", "distractor_hops": 1, "chain": "a=>b=>c"}


def test_a_released_item_has_the_difficulty_that_its_notes_name() -> None:
    assert difficulty_of(RELEASED) == subsets.difficulty(2, "sister", 1)


def test_random_distractors_have_no_distance() -> None:
    # As the released files have it: null where there is nothing to measure.
    notes = {"hops": 1, "distractor_type": "random", "distractor_hops": None}
    assert difficulty_of(notes) == subsets.difficulty(1, "random", 0)


@pytest.mark.parametrize("missing", ["hops", "distractor_type"])
def test_an_item_without_one_of_the_two_has_none(missing: str) -> None:
    assert difficulty_of({**RELEASED, missing: None}) is None
    assert difficulty_of({k: v for k, v in RELEASED.items() if k != missing}) is None
