from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from probelight.io.typed import typed
from probelight.results.row import RESULT_COLUMNS, Row, write_results
from probelight.results.subset import ChoiceSet, SourceSet
from tests.fixtures.rows import read_results


def test_columns_are_the_contract_in_its_order() -> None:
    assert ",".join(RESULT_COLUMNS) == (
        "protocol,model,probe,control,mode,num_train,dose,extra,learning_rate,epoch,seed,split,"
        "subset,perturbation,metric,value,ci_low,ci_high,num_items,num_groups,role,kind,run_dir"
    )


def test_written_numbers_come_back_in_full(tmp_path: Path) -> None:
    path = tmp_path / "out" / "results.csv"
    row = Row(metric="accuracy", value=1 / 3, num_items=3, subset=SourceSet('a, "b"'), seed=None)
    write_results(path, [row, Row(value=np.float64(0.1))])
    first, second = read_results(path)
    assert list(first) == list(RESULT_COLUMNS)
    assert float(first["value"]) == 1 / 3
    assert (first["num_items"], first["subset"], first["seed"]) == ("3", 'a, "b"', "")
    assert second["value"] == "0.1"


def test_no_rows_leave_the_header(tmp_path: Path) -> None:
    write_results(tmp_path / "results.csv", [])
    assert (tmp_path / "results.csv").read_text() == ",".join(RESULT_COLUMNS) + "\n"
    assert read_results(tmp_path / "results.csv") == []


def test_number_that_is_not_finite_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="row 2: ci_low is nan"):
        write_results(tmp_path / "results.csv", [Row(value=1), Row(value=0.5, ci_low=math.nan)])
    assert not list(tmp_path.iterdir())


def test_a_row_comes_back_from_json_as_it_was() -> None:
    row = Row(metric="m", value=0.25, seed=0, subset=ChoiceSet(("a", "b")), role="model")
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
