from __future__ import annotations

import pytest

from probelight.reports.kit.forms.latex_text import escaped, num_letters


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
        ("✓ ↗ ○", r"$\surd$ $\nearrow$ $\circ$"),
        ("é É ç ü ø ß Å", r"\'{e} \'{E} \c{c} \"{u} \o{} \ss{} \r{A}"),
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


def test_a_code_point_is_as_wide_as_nine_letters() -> None:
    assert [num_letters(text) for text in ("", "aé−", "a中")] == [0, 3, 10]
