"""Items in memory: what is a row, and what a file of them holds."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from probelight.io.errors import RecordError
from probelight.probes.importers.items import items_text, read_items
from probelight.probes.source import load_file, load_items

WHALE = {"sentence": "A whale is [MASK] than a mouse.", "choices": ["larger", "smaller"]}
CAT = {"question": "What is a cat?", "choices": ["a tree", "an animal"], "answer": "a tree"}
PAIR = {"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps."}


@pytest.mark.parametrize(
    ("rows", "setup"),
    [([{**WHALE, "answer": 0}], "mc_mlm"), ([CAT], "mc_qa"), ([PAIR], "minimal_pair")],
)
def test_items_are_the_same_in_memory_and_in_the_file_that_is_written_of_them(
    rows: list[dict[str, Any]], setup: str, tmp_path: Path
) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(items_text(rows), encoding="utf-8")
    probes = [load_items(rows), load_file(path)]
    assert {probe.config.setup for probe in probes} == {setup}
    assert probes[0].records == probes[1].records


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no items were given"),
        ({"train": [CAT]}, "dict is not a list of items; give a list or a split"),
        ([CAT, "whale"], "items:2: it is a str, not a dict"),
        ([{**WHALE, "answer": True}], "items:1: `answer` is true or false"),
        ([{**CAT, "cluster": datetime.date(2020, 1, 1)}], "items:1: `cluster` is an object"),
        (
            [{**WHALE, "answer": "larger"}, CAT],
            "items:2 is mc_qa, but items:1 is mc_mlm; make them",
        ),
        ([{**CAT, "question": "A cat is ____ ."}], "items:1: '____' may stand for a mask or be"),
        (  # WinoGrande
            [{"sentence": "A cat is _ .", "option1": "it", "option2": "he", "answer": 2}],
            "items:1: '_' may stand for a mask or be",
        ),
        (
            [{**WHALE, "sentence": "[MASK] or [MASK]", "answer": 0}],
            r"items:1: 2 \[MASK\] in the stem",
        ),
        (pd.DataFrame([["a", "b"]], columns=["gold", "gold"]), "two columns are called 'gold'"),
    ],
)
def test_what_is_no_item_is_named_by_its_number(rows: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        load_items(rows)


def test_a_blank_is_part_of_a_question_where_the_setup_says_so() -> None:
    stem = "A cat is ____ ."
    assert load_items([{**CAT, "question": stem}], "mc_qa").records[0].stem == stem


def test_a_data_frame_is_its_rows() -> None:
    rows = [{**WHALE, "answer": 1, "hops": 2}, {**WHALE, "answer": 0}]
    frame = pd.DataFrame(rows).assign(choices=[np.array(WHALE["choices"])] * 2)
    first, second = read_items(frame, "mc_mlm").records
    assert (first.answer, first.meta, second.answer, second.meta) == (1, {"hops": 2}, 0, {})
