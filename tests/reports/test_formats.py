from __future__ import annotations

import csv
import io
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from probelight.reports import table as kit
from probelight.reports.formats import escaped, print_table, to_csv, to_latex, to_markdown
from probelight.reports.table import Cell, Column, Table
from tests.fixtures.report import present

SCORES = [
    {"probe": "p", "model": "a", "accuracy": 0.5, "_runs": "run-1"},
    {"probe": "q", "model": "a", "accuracy": 0.25, "_runs": "run-2"},
    {"probe": "p", "model": "b", "accuracy": 0.75, "_runs": ("run-3", "run-0")},
]
PROBE, MODEL = kit.text("probe", "probe"), kit.text("model", "model")


def table_of(scores: Any, columns: list[Column], **more: Any) -> Table:
    return present(kit.table("t", "A table", "note", scores, columns, **more))


def test_csv_has_numbers_in_full_and_whole_ones_whole() -> None:
    scores = [{"probe": "a|b", "score": 1 / 3, "n": 3}, {"probe": "c", "score": None, "n": None}]
    rows = ["probe,score,n", f"a|b,{1 / 3!r},3", "c,,"]
    assert to_csv(table_of(scores, [PROBE])).splitlines() == rows
    frame = pd.DataFrame(scores).astype({"n": "Int64"})
    assert to_csv(table_of(frame, [PROBE])) == to_csv(table_of(scores, [PROBE]))


def test_no_cell_of_a_csv_is_a_formula() -> None:
    scores = [{"probe": "=cmd()", "gap": -0.5}, {"probe": "a,b", "gap": 0.5}]
    rows = list(csv.reader(to_csv(table_of(scores, [PROBE])).splitlines()))
    assert rows == [["probe", "gap"], ["'=cmd()", "-0.5"], ["a,b", "0.5"]]


def test_markdown_is_aligned_and_escaped() -> None:
    scores = [
        {**SCORES[0], "probe": "a|b", "split": "dev", "ci_low": 0.25, "ci_high": 0.625},
        {**SCORES[1], "probe": "c", "split": None, "ci_low": None, "ci_high": None},
    ]
    columns = [kit.text("probe", "probe", "split"), kit.accuracy("accuracy %", group="m")]
    assert to_markdown(table_of(scores, columns)).splitlines() == [
        "| probe      |    m: accuracy % |",
        "| ---------- | ---------------: |",
        "| a\\|b (dev) | 50.0 (25.0–62.5) |",
        "| c          |             25.0 |",
    ]


# Tables for LaTeX.


PROBES = [
    {"probe": "a_b", "split": "dev", "model": "m_1", "accuracy": 0.613, "num_items": 60},
    {"probe": "[c]", "split": None, "model": "m_1", "accuracy": 0.05, "num_items": None},
]
INTERVALS = [{"ci_low": 0.573, "ci_high": 0.651}, {"ci_low": None, "ci_high": None}]
RECORDS = [{**score, **interval} for score, interval in zip(PROBES, INTERVALS, strict=True)]
COLUMNS = [
    kit.text("probe", "probe", "split"),
    kit.accuracy("accuracy %"),
    kit.whole("n", "num_items"),
]


def latex_of(records: list[dict[str, object]], columns: list[Column], note: str = "") -> str:
    table = present(kit.table("some_scores", "Scores of 100%", note, records, columns))
    return to_latex(table)


def test_a_table_is_a_tabular_with_small_intervals() -> None:
    assert latex_of(RECORDS, COLUMNS, "Read it so.").splitlines() == [
        r"% \usepackage{booktabs}",
        r"% \caption{Scores of 100\%}\label{tab:some_scores}",
        "% Read it so.",
        r"\begin{tabular}{@{}lrr@{}}",
        r"\toprule",
        r"probe & accuracy \% & n \\",
        r"\midrule",
        r"a\_b {\scriptsize (dev)} & 61.3 {\scriptsize (57.3--65.1)} & 60 \\",
        r"{[}c] & 5.0 & -- \\",
        r"\bottomrule",
        r"\end{tabular}%",
    ]


def test_headings_of_groups_have_rules_of_their_width() -> None:
    records = [{**record, "model": model} for record in RECORDS for model in ("m_1", "m_2")]
    table = kit.table(
        "t", "T", "", records, COLUMNS[:1], rows="probe", across="model", each=COLUMNS[1:]
    )
    assert table is not None
    lines = to_latex(table).splitlines()
    assert lines[2:7] == [
        r"\begin{tabular}{@{}lrrrr@{}}",
        r"\toprule",
        r" & \multicolumn{2}{c}{m\_1} & \multicolumn{2}{c}{m\_2} \\",
        r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}",
        r"probe & accuracy \% & n & accuracy \% & n \\",
    ]
    # Headings that are the same twice, without a group between them, stay two.
    twice = Column("n", lambda row: "1"), Column("n", lambda row: "2")
    assert "\nn & n \\\\\n" in latex_of(RECORDS, list(twice))


def test_many_rows_are_a_longtable_with_its_caption() -> None:
    latex = latex_of([{"probe": f"p{n}", "what": "word " * 20} for n in range(40)],
                 [kit.text("probe", "probe", code=True), kit.prose("what", "what")])  # fmt: skip
    assert r"% \usepackage{booktabs,longtable,array}" in latex
    assert r"\begin{longtable}{@{}l>{\raggedright\arraybackslash}p{18em}@{}}" in latex
    assert latex.count(r"\caption{Scores of 100\%} \label{tab:some_scores}") == 1
    assert r"\texttt{p0} & word word" in latex
    assert latex.count("\n\\texttt{p") == 40


def test_what_no_font_has_is_counted() -> None:
    latex = latex_of([{"probe": "中文"}], [kit.text("probe", "probe")])
    assert "% 2 characters that LaTeX's own fonts lack are written as U+ and a code." in latex


def test_a_table_without_rows_has_its_headings() -> None:
    empty = Table("t", "T", "", tuple(COLUMNS), (), pd.DataFrame())
    assert r"probe & accuracy \% & n \\" in to_latex(empty)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a & b, 5% of $x #1 {a_b}", r"a \& b, 5\% of \$x \#1 \{a\_b\}"),
        ("~ ^ \\ < > |", r"\textasciitilde{} \textasciicircum{} \textbackslash{} "
         r"\textless{} \textgreater{} \textbar{}"),
        ("\\\\ \\input{x}", r"\textbackslash{}\textbackslash{} \textbackslash{}input\{x\}"),
        ("40.7–59.3, −1.6 ± 2 × 3 ≥ 0", r"40.7--59.3, $-$1.6 $\pm$ 2 $\times$ 3 $\geq$ 0"),
        ("a → b α Σ ς λ Ω Α ο", r"a $\rightarrow$ b $\alpha$ $\Sigma$ $\varsigma$ $\lambda$ "
         r"$\Omega$ A $o$"),
        ("✓ ↗ ○ 5°", r"$\surd$ $\nearrow$ $\circ$ 5$^\circ$"),
        ("é É ç ü ø ß Å", r"\'{e} \'{E} \c{c} \"{u} \o{} \ss{} \r{A}"),
        ("“a” ‘b’ … a\u00a0b", r"``a'' `b' \ldots{} a~b"),
        ("cafe\u0301", r"caf\'{e}"),
        ("--model [MASK] * `a`", r"-{}-model {[}MASK] {*} {`}a{`}"),
        ("中 😀", r"\texttt{U+4E2D} \texttt{U+1F600}"),
        ("a\nb\x1b", r"a b\textbackslash{}x1b"),
        ('"', r"{\char34}"),
        ("", ""),
    ],
)  # fmt: skip
def test_nothing_of_a_text_acts_and_all_of_it_is_seen(text: str, latex: str) -> None:
    assert escaped(text) == latex
    assert latex.isascii()


# Tables in a terminal.


def printed(table: Table, width: int) -> str:
    page = io.StringIO()
    print_table(table, Console(width=width, file=page))
    return page.getvalue()


def table(columns: list[Column], rows: list[list[Cell]]) -> Table:
    return Table("t", "A table", "", tuple(columns), tuple(map(tuple, rows)), pd.DataFrame())


def wide(num_rows: int, num_columns: int) -> Table:
    heads = [Column("model", str, "left")]
    heads += [Column(f"c{i} %", str, group="g") for i in range(num_columns)]
    row = [Cell("a model with a name", "dev")]
    row += [Cell(f"{10 + i}.0", "10.0–20.0") for i in range(num_columns)]
    return table(heads, [row] * num_rows)


def test_a_table_that_fits_has_its_details_beside_the_numbers() -> None:
    text = printed(wide(6, 2), 120)
    assert "10.0 10.0–20.0" in text
    assert "continued" not in text


def test_a_few_wide_rows_are_turned_on_their_side() -> None:
    text = printed(wide(2, 9), 80)
    assert text.count("g c8 %") == 1
    assert "18.0 10.0–20.0" in text


@pytest.mark.parametrize("width", [60, 80, 100])
def test_many_wide_rows_go_on_in_further_tables_and_nothing_is_cut(width: int) -> None:
    text = printed(wide(6, 9), width)
    assert "A table (continued)" in text
    assert "…" not in text
    assert all(text.count(f"{10 + i}.0 ") == 6 for i in range(1, 9))
    assert text.count("10.0–20.0") == 6 * 9
    assert max(map(len, text.splitlines())) <= width


def test_headings_fold_between_their_words_and_not_within() -> None:
    groups = ["BERT-B (paper)"] * 2 + ["BERT-L (paper)"] * 2 + ["bert-base-uncased"] * 2
    heads = [
        Column("set", str, "left"),
        *(Column("prefers %", str, group=group) for group in groups),
    ]
    cells = [Cell("NEG-136-SIMP", "affirmative"), *[Cell("75.0")] * 4, *[Cell("75.0 (12/16)")] * 2]
    text = printed(table(heads, [cells] * 6), 100)
    assert text.count("bert-base-uncased") == 2
    assert text.count("NEG-136-SIMP") == 6
    assert max(map(len, text.splitlines())) <= 100


def test_columns_that_tell_rows_apart_stand_in_each_of_the_tables() -> None:
    heads = [Column(name, str, "left") for name in ("probe", "model")]
    heads += [Column(f"c{i} %", str) for i in range(9)]
    rows = [
        [Cell(probe), Cell(model), *[Cell("10.0", "10.0–20.0")] * 9]
        for probe in ("ages", "types", "kinds")
        for model in ("bert", "gpt")
    ]
    text = printed(table(heads, rows), 80)
    num_tables = text.count("A table")
    assert num_tables > 1
    assert text.count(" bert ") == text.count(" gpt ") == 3 * num_tables
    assert text.count("10.0–20.0") == 6 * 9
    # The same model twice in a probe: nothing tells the rows apart, and the first column is enough.
    text = printed(table(heads, [rows[0]] * 6), 80)
    assert text.count(" bert ") == 6
