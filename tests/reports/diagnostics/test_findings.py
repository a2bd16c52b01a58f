from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probelight.reports.diagnostics.findings import expectations
from tests.fixtures import subsets
from tests.fixtures.diagnostics import results_of, share

WriteRun = Callable[..., Path]


def test_a_paragraph_a_model_beside_the_papers(tmp_path: Path, write_run: WriteRun) -> None:
    rows = [
        share(8, 34),
        share(25, 34, "sensitivity"),
        share(15, 34, "sensitivity_margin"),
        share(3, 34, perturbation="shuffled"),
        share(70, 88, probe="role"),
        share(1, 3, "repeated_subject", probe="role"),
        share(40, 100, "negation_sensitivity", probe="neg_1500_simp_gen"),
    ]
    [sentence] = expectations(results_of(tmp_path, write_run, rows))
    assert sentence == (
        "The first word of m is one that people expect in 23.5% (8/34, 12.4–40.0, as BERT-B in "
        "the paper) of CPRAG-102 and 79.5% (70/88, 70.0–86.7, above BERT-B's 14.8%) of ROLE-88. "
        "In 33.3% (1/3, 6.1–79.2) of its errors on ROLE-88 it repeats the subject. "
        "It prefers the good completion in 73.5% (25/34, 56.9–85.4, above chance, 33.3%, by more "
        "than 0.01 in 44.1%) of CPRAG-102. "
        "“Not” changes its first word in 40.0% (40/100, 30.9–49.8) of NEG-1500-SIMP-GEN."
    )


def test_perturbed_contexts_and_fewer_of_them_than_the_paper_has(
    tmp_path: Path, write_run: WriteRun
) -> None:
    rows = [
        share(5, 23),
        share(12, 23, "accuracy@5"),
        share(8, 23, "accuracy@5", perturbation="shuffled"),
        share(7, 23, "accuracy@5", perturbation="truncated"),
    ]
    [sentence] = expectations(results_of(tmp_path, write_run, rows))
    assert sentence == (
        "The first word of m is one that people expect in 21.7% (5/23, 9.7–41.9) of CPRAG-102. "
        "An expected word is among its first five in 52.2% (12/23, 33.0–70.8) of CPRAG-102, and "
        "of its perturbed contexts in 34.8% (1st sentence shuffled) and 30.4% (2nd sentence cut)."
    )


@pytest.mark.parametrize(
    ("affirmative", "negative", "verdict"),
    [
        (18, 0, "it goes by the noun, as if “not” were not there"),
        (18, 18, "it is sensitive to negation"),
        (18, 9, "that does not show that it is sensitive to negation"),
        (9, 18, "that does not show that it is sensitive to negation"),
        (0, 18, "it goes against the noun, with “not” and without"),
    ],
)
def test_sensitivity_to_negation_takes_both_polarities(
    affirmative: int, negative: int, verdict: str, tmp_path: Path, write_run: WriteRun
) -> None:
    simp: dict[str, Any] = {"metric": "sensitivity", "probe": "neg_simp"}
    rows = [
        share(affirmative, 18, **simp, subset=subsets.statements("affirmative")),
        share(negative, 18, **simp, subset=subsets.statements("negative")),
        share(6, 22, "unchanged_by_not", probe="neg_simp"),
    ]
    [sentence] = expectations(results_of(tmp_path, write_run, rows))
    assert sentence.startswith("m: On NEG-136-SIMP it prefers the true word in ")
    assert f"of their negations: {verdict}. “Not” leaves its first word" in sentence


def test_natural_negation_and_one_polarity_alone(tmp_path: Path, write_run: WriteRun) -> None:
    rows = [
        share(8, 18, "sensitivity", probe="neg_simp", subset=subsets.statements("affirmative")),
        share(12, 16, "sensitivity", probe="neg_nat", subset=subsets.statements("", "natural")),
        share(6, 16, "sensitivity", probe="neg_nat", subset=subsets.statements("", "less natural")),
    ]
    assert expectations(results_of(tmp_path, write_run, rows)) == [
        "m: On NEG-136-NAT it prefers the true word in 75.0% (12/16, 50.5–89.8) where negation is "
        "natural and 37.5% (6/16, 18.5–61.4) where negation is less natural."
    ]


def test_nothing_is_said_of_nothing(tmp_path: Path, write_run: WriteRun) -> None:
    rows = [share(8, 18, "article_obedience", probe="neg_simp")]
    assert expectations(results_of(tmp_path, write_run, rows)) == []
    more = [share(1, 2, model="alone", probe="neg_simp", subset=subsets.statements("negative"))]
    assert expectations(results_of(tmp_path / "more", write_run, more)) == []
