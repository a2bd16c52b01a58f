from __future__ import annotations

from collections import Counter

import pytest

from probelight.reports.kit.published import (
    DiagnosticKey,
    ScoreKey,
    published_curves,
    published_diagnostics,
    published_probes,
    published_size_errors,
    published_sizes,
    published_templates,
    short_name,
)


def test_curves_of_all_tables_are_there() -> None:
    rows = published_curves()
    tables = Counter((row.table, row.probe, row.num_choices) for row in rows)
    assert set(tables.values()) == {6}
    assert sorted(tables) == [
        (2, "age_comparison", 2),
        (3, "objects_comparison", 2),
        (5, "always_never", 5),
        (7, "antonym_negation", 2),
        (8, "property_conjunction", 3),
        (9, "taxonomy_conjunction", 3),
        (10, "encyclopedic_composition", 3),
        (11, "multihop_composition", 3),
    ]


def test_rows_as_printed_in_the_paper() -> None:
    rows = {(row.table, row.model): row.scores for row in published_curves()}
    assert rows[2, "roberta-large"] == {
        ScoreKey("zero_shot"): 0.98,
        ScoreKey("ws", "mlp"): 0.98,
        ScoreKey("max", "mlp"): 1.0,
        ScoreKey("ws", "linear"): 0.97,
        ScoreKey("max", "linear"): 1.0,
        ScoreKey("langsense_pert"): 0.31,
        ScoreKey("langsense_nolang"): 0.51,
    }
    assert rows[8, "esim_baseline"] == {
        ScoreKey("ws", "full"): 0.39,
        ScoreKey("max", "full"): 0.49,
        ScoreKey("langsense_pert"): 0.0,
        ScoreKey("langsense_nolang"): 0.0,
    }
    assert ScoreKey("ws", "linear") not in rows[11, "mlm_baseline"]
    assert rows[11, "mlm_baseline"][ScoreKey("max", "mlp")] == 0.48


def test_diagnostics_as_printed_in_the_paper() -> None:
    known = published_diagnostics()
    assert len(known) == 52 + 24 + 8 + 4  # perturbed, their spread, in the text
    assert {key.model for key in known} == {"bert-base-uncased", "bert-large-uncased"}
    large = "bert-large-uncased"
    assert known[DiagnosticKey(large, "cprag", "sensitivity_margin")] == 0.588
    assert known[DiagnosticKey(large, "role", "accuracy@5", "cloze <=.77")] == 0.529
    assert known[DiagnosticKey(large, "neg_simp", "sensitivity", "negative")] == 0.0
    assert known[DiagnosticKey(large, "neg_simp", "sensitivity_margin", "affirmative")] == 1.0
    assert known[DiagnosticKey(large, "role", "accuracy@5", "", "generic_both")] == pytest.approx(
        0.148
    )
    shuffled = [DiagnosticKey(large, "cprag", metric, "", "shuffled+truncated")
                for metric in ("accuracy@1", "accuracy@1_sd")]  # fmt: skip
    assert [known[key] for key in shuffled] == [0.1, 0.03]
    natural = [DiagnosticKey(large, "neg_nat", "sensitivity", f"{polarity}natural")
               for polarity in ("", "affirmative ", "negative ")]  # fmt: skip
    assert [known[key] for key in natural] == [0.875, 0.75, 1.0]


def test_table_4_and_6() -> None:
    sizes = published_sizes()
    assert len(sizes) == 8 * 7
    # "Errors are concentrated around the diagonal, and when we compare objects to sun".
    wrong = published_size_errors()
    assert {second for _, second in wrong} == {"nail", "table", "airplane", "city", "sun"}
    assert len([pair for pair in wrong if pair[1] == "sun"]) == 4
    assert [row.accuracy for row in published_templates()] == [0.75, 0.68, 0.61, 0.47, 0.41, 0.3]


def test_expert_probes() -> None:
    rows = {(row.group, row.model, row.probe): row for row in published_probes()}
    assert len(rows) == 80
    best = rows["inoculated", "roberta", "hyponymy"]
    assert (best.dev_accuracy, best.test_accuracy) == (0.812, 0.894)
    assert best.original_task_change == pytest.approx(-0.0164)
    assert rows["human", "human", "definitions"].dev_accuracy is None


def test_short_names_keep_what_stands_behind() -> None:
    assert short_name("bert-large-uncased-whole-word-masking") == "BERT-WWM"
    assert short_name("roberta-large (random weights)") == "RoBERTa-L (random weights)"
    assert short_name("MLM-baseline (word_vectors)") == "MLM-baseline (word_vectors)"
    assert short_name("embedded (random weights)") == "embedded (random weights)"
