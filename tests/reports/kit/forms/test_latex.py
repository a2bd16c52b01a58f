from __future__ import annotations

from probelight.reports.kit.forms.latex import to_latex
from probelight.reports.kit.table import Cell, Heading, Table


def table(*headings: Heading, rows: tuple[tuple[Cell, ...], ...], note: str = "") -> Table:
    return Table("some_scores", "Scores of 100%", note, headings, rows, ())


def test_a_table_is_a_tabular_with_grouped_headings_and_small_intervals() -> None:
    made = table(
        Heading("probe", "left"),
        Heading("accuracy %", group="m_1"),
        Heading("n", group="m_1"),
        rows=(
            (Cell("a_b", "dev"), Cell("61.3", "57.3–65.1"), Cell("60")),
            (Cell("[c]"), Cell("5.0"), Cell("–")),
        ),
        note="Read it so.",
    )
    assert to_latex(made).splitlines() == [
        r"% \usepackage{booktabs}",
        r"% \caption{Scores of 100\%}\label{tab:some_scores}",
        "% Read it so.",
        r"\begin{tabular}{@{}lr@{\ }lr@{}}",
        r"\toprule",
        r" & \multicolumn{3}{c}{m\_1} \\".replace(r"\\", r"\tabularnewline"),
        r"\cmidrule(lr){2-4}",
        r"probe & \multicolumn{2}{c}{accuracy \%} & n \tabularnewline",
        r"\midrule",
        r"a\_b {\scriptsize (dev)} & 61.3 & {\scriptsize (57.3--65.1)} & 60 \tabularnewline",
        r"{[}c] & 5.0 &  & -- \tabularnewline",
        r"\bottomrule",
        r"\end{tabular}%",
    ]


def test_a_wide_table_has_its_details_below_and_is_scaled_to_the_line() -> None:
    headings = [Heading("probe", "left"), *(Heading("accuracy %", group=str(n)) for n in range(6))]
    made = to_latex(table(*headings, rows=((Cell("p"), *[Cell("61.3", "57.3–65.1")] * 6),)))
    assert r"% \usepackage{booktabs,graphicx}" in made
    assert r"{!}{%" in made
    assert r"\end{tabular}}%" in made
    assert r"p & 61.3 & 61.3 & 61.3 & 61.3 & 61.3 & 61.3 \tabularnewline" in made
    assert " & ".join(["", *[r"{\scriptsize (57.3--65.1)}"] * 6]) in made
    assert r"\shortstack[r]{\strut accuracy\\\%}" in made


def test_columns_that_would_be_too_small_go_on_in_a_further_tabular() -> None:
    headings = [Heading("probe", "left"), *(Heading(f"number-{n:02}") for n in range(30))]
    row = (Cell("p"), *(Cell(str(n)) for n in range(30)))
    made = to_latex(table(*headings, rows=(row,)))
    assert made.count(r"\begin{tabular}") == 3
    assert all(made.count(f"number-{n:02}") == 1 for n in range(30))
    assert made.count("p & ") == 3


def test_rows_are_numbered_where_what_is_repeated_does_not_tell_them_apart() -> None:
    headings = [Heading("model", "left"), *(Heading(f"number-{n:02}") for n in range(30))]
    row = (Cell("m"), *(Cell(str(n)) for n in range(30)))
    made = to_latex(table(*headings, rows=(row, row)))
    assert made.count(r"\begin{tabular}") == 3
    assert made.count("\n1 & ") == made.count("\n2 & ") == 3
    assert made.count("& m &") == 2
    assert made.count("row & ") == 3


def test_many_lines_are_a_longtable_with_its_own_caption() -> None:
    rows = tuple((Cell(f"p{n}"), Cell("word " * 20)) for n in range(20))
    made = to_latex(table(Heading("probe", "left"), Heading("said", "left", prose=True), rows=rows))
    assert r"% \usepackage{booktabs,longtable}" in made
    assert made.count(r"\caption{Scores of 100\%}\label{tab:some_scores}") == 1
    assert r"\begin{longtable}{@{}lp{18em}@{}}" in made
    assert r"p0 & \raggedright word word" in made


def test_a_long_code_may_break_in_its_cell() -> None:
    made = to_latex(table(Heading("sha", "left", code=True), rows=((Cell("ab" * 20),),)))
    assert r"\begin{tabular}{@{}p{18em}@{}}" in made
    pieces = r"\allowbreak ".join(["abababab"] * 5)
    assert rf"\raggedright \texttt{{{pieces}}} \tabularnewline" in made


def test_lines_that_are_scaled_down_take_less_of_a_page() -> None:
    def made(num_columns: int) -> str:
        headings = [Heading("probe", "left"), *[Heading("number-00")] * num_columns]
        rows = tuple((Cell(f"p{n}"), *[Cell("5")] * num_columns) for n in range(50))
        return to_latex(table(*headings, rows=rows))

    # 7 + 11 * 9 characters are 66 / 106 of the size: 50 lines are as high as 31.
    assert r"\resizebox" in made(9)
    assert r"\begin{longtable}" in made(5)


def test_what_no_font_has_is_counted() -> None:
    made = to_latex(table(Heading("probe", "left"), rows=((Cell("中文"),),)))
    assert "% 2 characters that LaTeX's own fonts lack stand as U+ and a code." in made


def test_a_table_without_rows_has_its_headings() -> None:
    assert r"\midrule" in to_latex(table(Heading("probe", "left"), rows=()))
