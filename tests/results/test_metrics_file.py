from __future__ import annotations

from pathlib import Path

import pytest

from probelight.results.metrics_file import read_metrics, write_metrics

LOGGED = [(0, "0", "train/loss", 0.1), (3, "", "=1+1", -2.5), (4, "1", "a,b\n'x'", 1e-300)]


def test_values_are_written_one_a_line_and_no_cell_is_a_formula(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.csv"
    write_metrics(path, LOGGED)
    lines = path.read_text().splitlines()
    assert lines[:3] == ["step,epoch,metric,value", "0,0,train/loss,0.1", "3,,'=1+1,-2.5"]
    write_metrics(path, LOGGED[:1])
    assert path.read_text().splitlines() == lines[:2]


def test_what_was_written_comes_back_to_the_last_digit(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    write_metrics(path, LOGGED)
    assert read_metrics(path) == LOGGED
    write_metrics(path, [])
    assert read_metrics(path) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "step,epoch\n",
        "step,epoch,metric,value\n3,0,train/loss",
        "step,epoch,metric,value\nx,,a,1",
        'step,epoch,metric,value\n3,0,"a,1',
    ],
    ids=["empty", "other columns", "a line cut off", "no step", "a cell cut off"],
)
def test_a_damaged_file_is_named_with_what_to_do(text: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"^{path}: its lines .*; remove {tmp_path} ") as refused:
        read_metrics(path)
    assert "\n" not in str(refused.value)
