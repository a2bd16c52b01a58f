from __future__ import annotations

import pytest

from probelight.reports.kit.forms.latex_columns import laid_out, num_lines
from probelight.reports.kit.table import Cell, Heading, Table


def table(*headings: Heading, row: tuple[Cell, ...]) -> Table:
    return Table("t", "", "", headings, (row,), ())


def test_details_stand_below_their_numbers_where_a_line_has_no_room() -> None:
    made = table(Heading("probe", "left"), Heading("%"), row=(Cell("p"), Cell("61.3", "57–65")))
    # 5 + 2 and, of 8 characters in small type, 4 + 6 + 2.
    assert [column.width for column in laid_out(made, 19, 140)] == [5, 10]
    beside, below = laid_out(made, 19, 140), laid_out(made, 18, 140)
    assert [column.details for column in beside] == ["inside", "beside"]
    assert [column.details for column in below] == ["below", "below"]
    assert [num_lines(columns, made.rows[0]) for columns in (beside, below)] == [1, 2]


@pytest.mark.parametrize("prose", [False, True])
def test_a_column_without_a_word_has_a_width(prose: bool) -> None:
    made = table(Heading("", "left", prose=prose), row=(Cell(""),))
    columns = laid_out(made, 66, 140)
    assert [column.width for column in columns] == [1]
    assert num_lines(columns, made.rows[0]) == 1


def test_what_has_no_blank_may_break() -> None:
    made = table(Heading("said", "left"), row=(Cell("x" * 40 + " 中文" * 3),))
    (column,) = laid_out(made, 66, 140)
    assert column.wraps
    pieces = r"\allowbreak ".join(["x" * 8] * 5)
    code_points = r"\texttt{U+4E2D}\allowbreak \texttt{U+6587}"
    assert column.cells(made.rows[0][0]) == " ".join(
        [rf"\raggedright {pieces}", *[code_points] * 3]
    )
