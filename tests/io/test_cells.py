from __future__ import annotations

import pytest

from probelight.io.cells import cells_of, delimiter_of
from probelight.io.errors import RecordError


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [("a.csv", ","), ("a.TSV", "\t"), ("a.tsv.gz", "\t"), ("a.jsonl", None), ("csv", None)],
)
def test_the_ending_says_what_parts_the_cells(name: str, delimiter: str | None) -> None:
    assert delimiter_of(name) == delimiter


def test_quotation_marks_hold_commas_in_one_form_and_are_text_in_the_other() -> None:
    assert cells_of('"a, b",c ', ",") == ["a, b", "c"]
    assert cells_of('"a, b"\tc', "\t") == ['"a, b"', "c"]


def test_marks_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RecordError, match="each pair is on one line"):
        cells_of('"a, b', ",", "pair")
