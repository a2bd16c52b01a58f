"""Items in memory as files that the readers of items take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from probelight.io.errors import RecordError
from probelight.probes.importers.objects import write_items
from probelight.probes.record import Record
from probelight.probes.source import guessed_setup, load_file

WHALE = {"sentence": "A whale is [MASK] than a mouse.", "choices": ["larger", "smaller"]}
CAT = ("What is a cat?", ["a tree", "an animal", "a stone"])
HUB = {"label": ["A", "B", "C"], "text": CAT[1]}


@pytest.mark.parametrize(
    ("row", "stem", "choices", "gold"),
    [
        ({**WHALE, "answer": "larger"}, WHALE["sentence"], WHALE["choices"], 0),
        ({**WHALE, "label": 1}, WHALE["sentence"], WHALE["choices"], 1),
        ({**WHALE, "gold": "B"}, WHALE["sentence"], WHALE["choices"], 1),
        (
            {**WHALE, "sentence": "A whale is ____ than a mouse.", "answer": 0},
            *(WHALE["sentence"], WHALE["choices"], 0),
        ),
        ({"question": CAT[0], "choices": CAT[1], "answer": "an animal"}, *CAT, 1),
        ({"question": CAT[0], "choices": HUB, "answerKey": "C"}, *CAT, 2),
        (
            {
                "question": {
                    "stem": CAT[0],
                    "choices": [
                        {"label": "1", "text": "a tree"},
                        {"label": "2", "text": "an animal"},
                    ],
                },
                "answerKey": 2,
            },
            *(CAT[0], CAT[1][:2], 1),
        ),
    ],
)
def test_a_row_of_each_form_is_the_item_that_it_says(
    row: dict[str, Any], stem: str, choices: list[str], gold: int, tmp_path: Path
) -> None:
    [record] = read(tmp_path, [row])
    assert (record.stem, [*record.choices], record.answer) == (stem, choices, gold)


def read(tmp_path: Path, rows: list[dict[str, Any]]) -> tuple[Record, ...]:
    path = tmp_path / "items.jsonl"
    setup = write_items(path, rows)
    assert guessed_setup(path) == setup
    return load_file(path, setup).records


def test_ids_and_facts_are_kept_and_a_minimal_pair_is_one(tmp_path: Path) -> None:
    row = {**WHALE, "answer": 0, "id": "whale", "cluster": "sizes", "hops": 2}
    [record] = read(tmp_path, [row])
    assert (record.id, record.meta) == ("whale", {"cluster": "sizes", "hops": 2})
    [pair] = read(tmp_path, [{"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps."}])
    assert (pair.stem, pair.choices, pair.answer) == ("", ("Cats sleep.", "Cats sleeps."), 0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no items were given"),
        ([WHALE], "item 1: its keys are sentence, choices; write it as"),
        ([{**WHALE, "answer": 0}, "whale"], "item 2: it is a str, not a dict"),
        ([{**WHALE, "choices": ["a"] * 6, "answer": 0}], "item 1: 6 choices; 2 to 5 are needed"),
        ([{"stem": 3, "choices": ["a", "b"], "answer": 0}], "item 1: its keys are stem"),
        ([{**WHALE, "answer": "huge"}], "item 1: its answer 'huge' is not one of its"),
        ([{**WHALE, "answer": True}], "item 1: its answer True is not one of its"),
        ([{**WHALE, "answer": "AB"}], "item 1: its answer 'AB' is not one of its choices, nor 0"),
        (
            [{**WHALE, "answer": 0}, {"question": CAT[0], "choices": CAT[1], "answer": 0}],
            "item 2: it is mc_qa, but item 1 is mc_mlm; make them two probes",
        ),
    ],
)
def test_what_is_no_item_is_named_by_its_number(
    rows: list[Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(RecordError, match=message):
        write_items(tmp_path / "items.jsonl", rows)
    assert not [*tmp_path.iterdir()]


def test_a_data_frame_is_its_rows(tmp_path: Path) -> None:
    rows = [{**WHALE, "answer": 1}, {**WHALE, "answer": 0}]
    path = tmp_path / "items.jsonl"
    write_items(path, pd.DataFrame(rows).assign(choices=[np.array(WHALE["choices"])] * 2))
    assert [record.answer for record in load_file(path, "mc_mlm").records] == [1, 0]
