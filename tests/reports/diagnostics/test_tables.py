from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from probelight.reports.diagnostics.tables import (
    accuracy_table,
    first_words_table,
    sensitivity_table,
    survival_table,
)
from probelight.reports.kit.forms.plain import to_csv, to_markdown
from probelight.reports.kit.table import Table
from tests.fixtures import subsets
from tests.fixtures.diagnostics import results_of, share
from tests.fixtures.report import labels, named

WriteRun = Callable[..., Path]
ROLE: dict[str, Any] = {"probe": "role"}
SIMP: dict[str, Any] = {"probe": "neg_simp"}


def texts(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[cell.text for cell in line] for line in table.rows]


def test_accuracies_stand_beside_the_papers_models(tmp_path: Path, write_run: WriteRun) -> None:
    results = results_of(
        tmp_path,
        write_run,
        [
            share(8, 34),
            share(4, 18, subset=subsets.constraint("high")),
            share(18, 34, "accuracy@5"),
            share(1, 34, "sensitivity"),
        ],
        [
            share(2, 17, **ROLE, subset=subsets.cloze(0.77)),
            share(3, 25, **ROLE, subset=subsets.cloze(0.166666667)),
            share(13, 88, **ROLE),
        ],
    )
    table = accuracy_table(results)
    assert table is not None
    # Quarters stand by their cloze value, whatever the order of the rows.
    assert texts(table) == [
        ["CPRAG-102", "23.5", "52.9", "35.3", "52.9", "23.5 (8/34)", "52.9 (18/34)"],
        ["CPRAG-102", "–", "–", "–", "–", "22.2 (4/18)", "–"],
        ["ROLE-88", "14.8", "27.3", "13.6", "37.5", "14.8 (13/88)", "–"],
        ["ROLE-88", "12.0", "24.0", "8.0", "28.0", "12.0 (3/25)", "–"],
        ["ROLE-88", "11.8", "41.1", "29.4", "52.9", "11.8 (2/17)", "–"],
    ]
    assert labels(table)[1] == "BERT-B (paper): @1 %"
    assert named(table, 0)["m: @1 %"].detail == "12.4–40.0"
    assert [line[0].detail for line in table.rows][1:4:2] == ["high constraint", "cloze <=.17"]
    first = table.records[0]
    assert (first["accuracy@1"], first["num_items"]) == (8 / 34, 34)
    assert first["bert-large-uncased_accuracy@1"] == 0.353
    assert "cloze" in to_markdown(table)
    assert to_csv(table).startswith("model,probe,subset,perturbation,num_items,")


def test_a_mean_over_shuffles_has_its_spread_and_no_count(
    tmp_path: Path, write_run: WriteRun
) -> None:
    shuffled: dict[str, Any] = {"perturbation": "shuffled"}
    spread = share(1, 34, "accuracy@1_sd", **shuffled) | {"value": 0.031}
    rows = [share(8, 34), share(5, 34, **shuffled), spread]
    rows.append(share(5, 34, perturbation="another_one"))
    table = accuracy_table(results_of(tmp_path, write_run, rows))
    assert texts(table) == [
        ["CPRAG-102", "23.5", "35.3", "23.5 (8/34)"],
        ["CPRAG-102", "14.1 ± 3.1", "17.4 ± 3.5", "14.7 ± 3.1"],
        ["CPRAG-102", "–", "–", "14.7 (5/34)"],
    ]
    assert table is not None
    assert [line[0].detail for line in table.rows] == ["", "1st sentence shuffled", "another one"]
    assert table.records[1]["accuracy@1_sd"] == 0.031
    assert table.records[1]["bert-base-uncased_accuracy@1_sd"] == 0.031


def test_what_survives_stands_in_a_table_of_its_own(tmp_path: Path, write_run: WriteRun) -> None:
    shuffled: dict[str, Any] = {"perturbation": "shuffled"}
    rows = [
        share(8, 34),
        share(4, 8, "survival@1", **shuffled) | {"value": 0.51},
        share(12, 18, "survival@5", **shuffled),
    ]
    results = results_of(tmp_path, write_run, rows)
    table = survival_table(results)
    assert texts(table) == [["CPRAG-102", "51.0 (n = 8)", "66.7 (12/18)"]]
    assert table is not None
    assert (table.rows[0][0].detail, table.records[0]["survival@1"]) == (
        "1st sentence shuffled",
        0.51,
    )
    assert first_words_table(results) is None


def test_sensitivities_with_and_without_the_margin(tmp_path: Path, write_run: WriteRun) -> None:
    negative = subsets.statements("negative")
    rows = [
        share(18, 36, "sensitivity", **SIMP),
        share(0, 18, "sensitivity", **SIMP, subset=negative),
        share(0, 18, "sensitivity_margin", **SIMP, subset=negative),
    ]
    table = sensitivity_table(results_of(tmp_path, write_run, rows))
    assert texts(table) == [
        ["NEG-136-SIMP", "–", "–", "50.0 (18/36)", "–"],
        ["NEG-136-SIMP", "0.0", "0.0", "0.0 (0/18)", "0.0 (0/18)"],
    ]


def test_what_else_was_measured_stands_in_the_third_table(
    tmp_path: Path, write_run: WriteRun
) -> None:
    rows = [
        share(8, 34),
        share(42, 44, "article_obedience", **SIMP),
        share(8, 8, "article_obedience", **SIMP, subset=subsets.article("an")),
        share(11, 11, "repeated_subject", **SIMP),
        share(1, 2, "some_new_measure", perturbation="shuffled"),
    ]
    table = first_words_table(results_of(tmp_path, write_run, rows))
    assert texts(table) == [
        ["CPRAG-102", "some new measure", "50.0 (1/2)"],
        ["NEG-136-SIMP", "first word that “a” or “an” asks for", "95.5 (42/44)"],
        ["NEG-136-SIMP", "first word that “a” or “an” asks for", "100.0 (8/8)"],
        ["NEG-136-SIMP", "errors that repeat the subject", "100.0 (11/11)"],
    ]
    assert table is not None
    assert [line[0].detail for line in table.rows[:3]] == ["1st sentence shuffled", "", "behind an"]


def test_without_the_papers_sets_it_is_not_named(tmp_path: Path, write_run: WriteRun) -> None:
    rows = [share(5, 770, f"accuracy@{k}", probe="neg_1500_simp_gen") for k in (10, 5)]
    table = accuracy_table(results_of(tmp_path, write_run, rows))
    assert table is not None
    assert labels(table) == ["set", "m: @5 %", "m: @10 %"]
    assert "Paper" not in table.note


def test_models_stand_side_by_side_and_outputs_of_one_name_apart(
    tmp_path: Path, write_run: WriteRun
) -> None:
    runs = [[share(right, 4, model=model)] for model, right in (("m", 1), ("m", 2), ("other", 3))]
    table = accuracy_table(results_of(tmp_path, write_run, *runs))
    assert table is not None
    [*_, first, second, other] = [heading.group for heading in table.columns]
    assert other == "other"
    assert first.startswith("m (runs/run0-")
    assert second.startswith("m (runs/run1-")
    [cells] = texts(table)
    assert cells[-3:] == ["25.0 (1/4)", "50.0 (2/4)", "75.0 (3/4)"]


def test_nothing_without_diagnostics(tmp_path: Path, write_run: WriteRun) -> None:
    results = results_of(tmp_path, write_run, [share(1, 2) | {"protocol": "zero_shot"}])
    assert accuracy_table(results) is None
    assert sensitivity_table(results) is None
    assert first_words_table(results) is None
