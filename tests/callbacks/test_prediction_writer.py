""""""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch

from probelight.io.escaping import json_text
from probelight.models.answering import scores_by_item
from probelight.probes.record import Record
from probelight.results.predictions import prediction_rows

WHALE = Record("7", "A whale is [MASK] than a mouse.", ("larger", "smaller"), 0, position=3)
WHO = Record("7", "Who?", ("a", "b"), 0)


def test_a_prediction_can_be_read_without_the_file_of_its_item() -> None:
    (row,) = prediction_rows("dev", [WHALE], [[-1.5, -0.25]])
    assert row["question"] == "A whale is [MASK] than a mouse."
    assert row["choices"] == ["larger", "smaller"]
    assert row["choices"][row["prediction"]] == "smaller"
    assert (row["tied"], row["correct"]) == (1, 0.0)


def test_what_is_known_of_an_item_stands_behind_its_scores() -> None:
    known = {"cluster": "whale.n.01", "hops": 0, "distractor_type": "random", "template": "a"}
    plain, row = prediction_rows("dev", [WHO, replace(WHO, meta=known)], [[0.0, 1.0]] * 2)
    assert {name: row[name] for name in row.keys() - plain.keys()} == {
        "group": "whale.n.01", "hops": 0, "distractor_type": "random",
    }  # fmt: skip


def test_items_that_intervals_do_not_divide_are_numbered_and_others_are_not() -> None:
    scores = [[0.0, 1.0]] * 3
    rows = prediction_rows("dev", [WHO] * 3, scores, ["ant", "bee", "ant"])
    assert [row["interval_group"] for row in rows] == [0, 1, 0]
    alone = prediction_rows("dev", [WHO] * 2, scores[:2], ["a", "b"])
    assert not any("interval_group" in row for row in alone)


def test_an_empty_answer_that_pads_a_question_is_a_choice_of_its_own() -> None:
    (row,) = prediction_rows("dev", [WHO], [[0.0, 1.0, 2.0, 0.5]])
    assert row["choices"] == ["a", "b", "", ""]
    assert row["choices"][row["prediction"]] == ""


@pytest.mark.parametrize(
    ("scores", "prediction", "tied", "correct"),
    [
        ([1.0, 0.0, 0.0], 0, 1, 1.0),
        ([1.0, 1.0, 0.0], 0, 2, 1 / 2),
        ([1.0, 1.0, 1.0], 0, 3, 1 / 3),
        ([0.0, 1.0, 1.0], 1, 2, 0.0),
        ([1.0, -math.inf, 0.0], 0, 1, 1.0),
        ([1.0, math.nan, 0.0], None, 0, 0.0),
    ],
)
def test_a_tie_is_credited_in_parts_and_a_nan_with_nothing(
    scores: list[float], prediction: int | None, tied: int, correct: float
) -> None:
    (row,) = prediction_rows("dev", [WHO], [scores])
    assert (row["prediction"], row["tied"], row["correct"]) == (prediction, tied, correct)


def test_a_score_that_is_no_number_is_null_and_the_prediction_tells_which() -> None:
    rows = prediction_rows("dev", [WHO, WHO], [[-math.inf, 1.5], [math.nan, 1.5]])
    found = [json.loads(json_text(row), parse_constant=pytest.fail) for row in rows]
    assert [row["scores"] for row in found] == [[None, 1.5], [None, 1.5]]
    assert [row["prediction"] for row in found] == [1, None]  # -inf is the lowest score


def test_the_choice_mask_says_which_choices_there_are_not_their_scores() -> None:
    batch = {
        "item": torch.tensor([4, 2, -1]),
        "scores": torch.tensor(
            [[-math.inf, 1.0, -math.inf], [math.nan, 2.0, 3.0], [0.0, 0.0, 0.0]]
        ),
        "choice_mask": torch.tensor([[True, True, False], [True, True, True], [True] * 3]),
    }
    found = scores_by_item(batch)
    assert found[4] == [-math.inf, 1.0]
    assert found[2] == pytest.approx([math.nan, 2.0, 3.0], nan_ok=True)
    assert set(found) == {4, 2}
