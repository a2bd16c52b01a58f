from __future__ import annotations

import pandas as pd
import pytest

from probelight.reports.latex import escaped, to_latex
from probelight.reports.table import Column, Table, accuracy, prose, table, text, whole
from tests.fixtures.report import present

SCORES = [
    {"probe": "a_b", "split": "dev", "model": "m_1", "accuracy": 0.613, "num_items": 60},
    {"probe": "[c]", "split": None, "model": "m_1", "accuracy": 0.05, "num_items": None},
]
INTERVALS = [{"ci_low": 0.573, "ci_high": 0.651}, {"ci_low": None, "ci_high": None}]
RECORDS = [{**score, **interval} for score, interval in zip(SCORES, INTERVALS, strict=True)]
COLUMNS = [text("probe", "probe", "split"), accuracy("accuracy %"), whole("n", "num_items")]


def made(records: list[dict[str, object]], columns: list[Column], note: str = "") -> str:
    found = present(table("some_scores", "Scores of 100%", note, records, columns))
    return to_latex(found)


def test_a_table_is_a_tabular_with_small_intervals() -> None:
    assert made(RECORDS, COLUMNS, "Read it so.").splitlines() == [
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
    found = table(
        "t", "T", "", records, COLUMNS[:1], rows="probe", across="model", each=COLUMNS[1:]
    )
    assert found is not None
    lines = to_latex(found).splitlines()
    assert lines[2:7] == [
        r"\begin{tabular}{@{}lrrrr@{}}",
        r"\toprule",
        r" & \multicolumn{2}{c}{m\_1} & \multicolumn{2}{c}{m\_2} \\",
        r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}",
        r"probe & accuracy \% & n & accuracy \% & n \\",
    ]
    # Headings that are the same twice, without a group between them, stay two.
    twice = Column("n", lambda row: "1"), Column("n", lambda row: "2")
    assert "\nn & n \\\\\n" in made(RECORDS, list(twice))


def test_many_rows_are_a_longtable_with_its_caption() -> None:
    latex = made([{"probe": f"p{n}", "what": "word " * 20} for n in range(40)],
                 [text("probe", "probe", code=True), prose("what", "what")])  # fmt: skip
    assert r"% \usepackage{booktabs,longtable,array}" in latex
    assert r"\begin{longtable}{@{}l>{\raggedright\arraybackslash}p{18em}@{}}" in latex
    assert latex.count(r"\caption{Scores of 100\%} \label{tab:some_scores}") == 1
    assert r"\texttt{p0} & word word" in latex
    assert latex.count("\n\\texttt{p") == 40


def test_what_no_font_has_is_counted() -> None:
    latex = made([{"probe": "中文"}], [text("probe", "probe")])
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
