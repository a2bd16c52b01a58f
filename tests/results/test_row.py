from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from probelight.io.documents import typed
from probelight.results.row import RESULT_COLUMNS, TEXTS, Row, Subset, write_results
from tests.fixtures import subsets
from tests.fixtures.rows import read_results


def test_columns_are_the_contract_in_its_order() -> None:
    assert ",".join(RESULT_COLUMNS) == (
        "protocol,model,probe,control,mode,scoring,num_train,dose,extra,learning_rate,epoch,seed,split,"
        "subset,perturbation,metric,value,ci_low,ci_high,num_items,num_groups,role,kind,run_dir"
    )


def test_written_numbers_come_back_in_full_and_are_finite(tmp_path: Path) -> None:
    path = tmp_path / "out" / "results.csv"
    row = Row(
        metric="accuracy", value=1 / 3, num_items=3, subset=subsets.source_set('a, "b"'), seed=None
    )
    write_results(path, [row, Row(value=np.float64(0.1))])
    first, second = read_results(path)
    assert list(first) == list(RESULT_COLUMNS)
    assert float(first["value"]) == 1 / 3
    assert (first["num_items"], first["subset"], first["seed"]) == ("3", 'a, "b"', "")
    assert second["value"] == "0.1"
    write_results(path, [])
    assert path.read_text() == ",".join(RESULT_COLUMNS) + "\n"
    with pytest.raises(ValueError, match="row 2: ci_low is nan"):
        write_results(tmp_path / "x.csv", [Row(value=1), Row(value=0.5, ci_low=math.nan)])
    assert not (tmp_path / "x.csv").exists()


def test_a_row_comes_back_from_json_as_it_was() -> None:
    row = Row(metric="m", value=0.25, seed=0, subset=subsets.choices("a", "b"), role="model")
    written = json.loads(json.dumps(row.to_json()))
    assert set(written) == {"metric", "value", "seed", "subset", "role"}
    assert typed(Row, written, "r") == row


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([], "row 3: it must be a mapping of keys to values"),
        ({"metric": "m"}, "row 3: `value` must be a finite number, not nan"),
        ({"value": "0.5"}, "row 3: `value` must be a number, not '0.5'"),
        ({"value": True}, "row 3: `value` must be a number, not True"),
        ({"value": math.inf}, "row 3: `value` must be a finite number, not inf"),
        ({"value": 1, "dose": [2]}, r"row 3: `dose` must be a whole number, not \[2\]"),
        ({"value": 1, "metrik": 1}, r"row 3: `metrik` is no key \(did you mean 'metric'\?\)"),
        ({"value": 1, "metric": 2}, "row 3: `metric` must be text in quotes, not 2"),
        ({"value": 1, "role": "rival"}, "row 3: `role` must be .*'control', not 'rival'"),
        ({"value": 1, "subset": "template=a"}, "row 3: `subset` is 'template=a', which names no"),
    ],
)
def test_a_cell_that_is_not_what_it_should_be_is_named(cells: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        typed(Row, cells, "row 3")


def test_reading_results_needs_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys, probelight.reports.build, probelight.results.load, probelight.results.row;"
        "print([m for m in ('torch', 'transformers', 'pytorch_lightning', 'matplotlib')"
        " if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


AS_BEFORE: list[tuple[Subset, dict[str, object], str]] = [  # what result.json and results.csv hold
    (subsets.answer_part("word", "entity"), {"of": "word", "part": "entity"}, "word=entity"),
    (subsets.template("has"), {"name": "has"}, "template=has"),
    (subsets.choices("older", "younger"), {"words": ["older", "younger"]}, "pair=older/younger"),
    (subsets.UNTOUCHED, {}, "group not in train"),
    (subsets.clusters(5), {"size": 5}, "clusters of 5"),
    (
        subsets.difficulty(0, "a: b", 0),
        {"hops": 0, "distractor_type": "a: b", "distractor_hops": 0},
        "hops=0 distractors=a: b:0",
    ),
    (subsets.source_set("openbookqa"), {"name": "openbookqa"}, "openbookqa"),
    (subsets.paradigm("wh_island"), {"name": "wh_island"}, "UID=wh_island"),
    (subsets.answered("choice 1"), {"answer": "choice 1"}, "choice 1"),
    (subsets.wording("paper"), {"name": "paper"}, "wording=paper"),
    (subsets.nearer_distractor(True), {"exists": True}, "with a nearer distractor"),
    (subsets.nearer_distractor(False), {"exists": False}, "without"),
    (subsets.one_model("embedded (x)"), {"label": "embedded (x)"}, "embedded (x)"),
    (subsets.versus("a", "b"), {"first": "a", "second": "b"}, "a − b"),
    (subsets.constraint("high"), {"level": "high"}, "high constraint"),
    (subsets.cloze(0.166666667), {"upper": 0.166666667}, "cloze <=.17"),
    (subsets.article("an"), {"word": "an"}, "behind an"),
    (subsets.statements("", "natural"), {"polarity": "", "naturalness": "natural"}, "natural"),
    (
        subsets.statements("negative", "less natural"),
        {"polarity": "negative", "naturalness": "less natural"},
        "negative less natural",
    ),
]


@pytest.mark.parametrize(("subset", "fields", "text"), AS_BEFORE)
def test_a_part_has_a_text_and_is_written_as_earlier_versions_wrote_it(
    subset: Subset, fields: dict[str, object], text: str
) -> None:
    written = json.loads(json.dumps(subset.to_json()))
    assert written == {"kind": subset.kind, **fields}
    assert subset.text == text
    assert Subset.from_json(written) == subset


def test_every_kind_without_a_text_in_the_file_is_tried() -> None:
    assert {subset.kind for subset, _, _ in AS_BEFORE} == TEXTS.keys()


def test_parts_of_a_new_kind_and_statements_of_a_polarity_alone() -> None:
    part = Subset.of("length", "up to 5 words", most=5)
    assert part.to_json() == {"kind": "length", "most": 5, "text": "up to 5 words"}
    assert Subset.from_json(part.to_json()) == part
    assert part["most"] == 5
    part = Subset.from_json({"kind": "statements", "polarity": "affirmative"})
    assert part == subsets.statements("affirmative")


@pytest.mark.parametrize(
    "value",
    [
        *("template=has", {}, {"kind": "template"}, {"kind": "nothing"}),
        {"kind": "untouched", "x": 1},
        {"kind": "clusters", "size": "5"},
        {"kind": "clusters", "size": True},
        {"kind": "cloze", "upper": math.inf},
        {"kind": "choices", "words": ["a", 1]},
        {"kind": "new", "text": "new", "inner": {}},
        {"kind": "new", "text": 1},
    ],
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="names no part of a set"):
        Subset.from_json(value)
