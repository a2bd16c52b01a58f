from __future__ import annotations

from probelight.reports.kit.forms.fitting import fitting, num_telling


def test_what_does_not_fit_goes_on_behind_the_first_columns() -> None:
    assert list(fitting([5, 4, 4, 4], 1, 14)) == [[0, 1, 2], [0, 3]]
    assert list(fitting([5, 4, 4, 4], 1, 18)) == [[0, 1, 2, 3]]
    # Two that would take more than half are one; a column that never fits is not left out.
    assert list(fitting([6, 6, 30, 2], 2, 14)) == [[0, 1], [0, 2], [0, 3]]
    assert list(fitting([5], 1, 3)) == [[0]]


def test_rows_are_told_apart_by_their_first_columns() -> None:
    assert num_telling([["a", "x"], ["b", "x"]]) == 1
    assert num_telling([["a", "x"], ["a", "y"]]) == 2
    assert num_telling([["a", "x"], ["a", "x"]]) == 1
    assert num_telling([]) == 1
