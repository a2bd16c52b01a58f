from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probelight.reports import diagnostics
from probelight.reports.formats import to_csv, to_markdown
from probelight.results.load import load_results
from tests.fixtures import subsets
from tests.fixtures.diagnostics import results_of, share
from tests.fixtures.report import named, present, records, texts, texts_of
from tests.fixtures.results import accuracy, write_run

ROLE: dict[str, Any] = {"probe": "role"}
SIMP: dict[str, Any] = {"probe": "neg_simp"}


def test_runs_are_set_by_set_and_those_of_one_name_have_their_folder(tmp_path: Path) -> None:
    runs = [[share(1, 2, probe=probe)] for probe in ("neg_nat", "neg_nat", "role", "cprag")]
    labelled = diagnostics.labelled_runs(results_of(tmp_path, *runs))
    assert [run.probe for run, _ in labelled] == ["cprag", "role", "neg_nat", "neg_nat"]
    namesakes = [f"m ({run.path})" for run, _ in labelled[2:]]
    assert [label for _, label in labelled] == ["m", "m", *namesakes]


def test_numbers_are_set_by_set_and_quarters_by_their_cloze_value(tmp_path: Path) -> None:
    rows = [
        share(1, 2, "sensitivity", **ROLE, perturbation="generic_both"),
        share(1, 5, "sensitivity", **ROLE, subset=subsets.cloze(0.77)),
        share(2, 5, "sensitivity", **ROLE, subset=subsets.cloze(0.17)),
        share(1, 3, "sensitivity"),
        share(1, 3, "accuracy@10"),
        share(4, 34, "accuracy@5", perturbation="shuffled"),
        share(1, 34, "accuracy@5_sd", perturbation="shuffled") | {"value": 0.02},
    ]
    results = results_of(tmp_path, rows)
    headings = [("accuracy@5", "@5 %"), ("accuracy@10", "@10 %")]  # as numbers, not as texts
    assert [*diagnostics.at_each_k(results, "accuracy").items()] == headings
    frame = diagnostics.diagnosed(results)
    assert frame[frame.metric == "sensitivity"].condition.to_list() == [
        "", "cloze <=.17", "cloze <=.77", "generic object, subject",
    ]  # fmt: skip
    # One good word and two bad ones on CPRAG-102.
    assert frame.chance.to_list() == [pytest.approx(1 / 3)] * 3 + [0.5] * 3
    assert frame.set_index("metric").sd["accuracy@5"] == 0.02


def test_accuracies_of_each_part_of_a_set(tmp_path: Path) -> None:
    cprag = [
        share(8, 34),
        share(4, 18, subset=subsets.constraint("high")),
        share(18, 34, "accuracy@5"),
        share(1, 34, "sensitivity"),
    ]
    role = [
        share(2, 17, **ROLE, subset=subsets.cloze(0.77)),
        share(3, 25, **ROLE, subset=subsets.cloze(0.166666667)),
        share(13, 88, **ROLE),
    ]
    table = present(diagnostics.accuracy_table(results_of(tmp_path, cprag, role)))
    assert texts(table) == [
        ["CPRAG-102", "23.5 (8/34)", "52.9 (18/34)"],
        ["CPRAG-102", "22.2 (4/18)", "–"],
        ["ROLE-88", "14.8 (13/88)", "–"],
        ["ROLE-88", "12.0 (3/25)", "–"],
        ["ROLE-88", "11.8 (2/17)", "–"],
    ]
    assert named(table, 0)["m: @1 %"].detail == "12.4–40.0"
    assert [line[0].detail for line in table.rows][1:4:2] == ["high constraint", "cloze <=.17"]
    first = records(table)[0]
    assert (first["accuracy@1"], first["num_items"]) == (8 / 34, 34)
    assert "cloze" in to_markdown(table)
    assert to_csv(table).startswith("model,probe,subset,perturbation,num_items,")


def test_a_mean_over_shuffles_has_its_spread_and_no_count(tmp_path: Path) -> None:
    shuffled: dict[str, Any] = {"perturbation": "shuffled"}
    spread = share(1, 34, "accuracy@1_sd", **shuffled) | {"value": 0.031}
    rows = [share(8, 34), share(5, 34, **shuffled), spread]
    rows.append(share(5, 34, perturbation="another_one"))
    table = present(diagnostics.accuracy_table(results_of(tmp_path, rows)))
    assert texts(table) == [
        ["CPRAG-102", "23.5 (8/34)"],
        ["CPRAG-102", "14.7 ± 3.1"],
        ["CPRAG-102", "14.7 (5/34)"],
    ]
    assert [line[0].detail for line in table.rows] == ["", "1st sentence shuffled", "another one"]
    assert records(table)[1]["accuracy@1_sd"] == 0.031


def test_what_survives_has_a_table_of_its_own(tmp_path: Path) -> None:
    shuffled: dict[str, Any] = {"perturbation": "shuffled"}
    rows = [
        share(8, 34),
        share(4, 8, "survival@1", **shuffled) | {"value": 0.51},
        share(12, 18, "survival@5", **shuffled),
    ]
    results = results_of(tmp_path, rows)
    table = present(diagnostics.survival_table(results))
    assert texts(table) == [["CPRAG-102", "51.0 (n = 8)", "66.7 (12/18)"]]
    assert table.rows[0][0].detail == "1st sentence shuffled"
    assert records(table)[0]["survival@1"] == 0.51
    assert diagnostics.first_words_table(results) is None


def test_sensitivities_with_and_without_the_margin(tmp_path: Path) -> None:
    negative = subsets.statements("negative")
    rows = [
        share(18, 36, "sensitivity", **SIMP),
        share(0, 18, "sensitivity", **SIMP, subset=negative),
        share(0, 18, "sensitivity_margin", **SIMP, subset=negative),
    ]
    table = diagnostics.sensitivity_table(results_of(tmp_path, rows))
    assert texts(table) == [
        ["NEG-136-SIMP", "50.0 (18/36)", "–"],
        ["NEG-136-SIMP", "0.0 (0/18)", "0.0 (0/18)"],
    ]


def test_what_else_was_measured_is_in_the_third_table(tmp_path: Path) -> None:
    rows = [
        share(8, 34),
        share(42, 44, "article_obedience", **SIMP),
        share(8, 8, "article_obedience", **SIMP, subset=subsets.article("an")),
        share(11, 11, "repeated_subject", **SIMP),
        share(1, 2, "some_new_measure", perturbation="shuffled"),
        share(1, 2, "some_new_measure_sd", perturbation="shuffled") | {"value": 0.07},
    ]
    table = present(diagnostics.first_words_table(results_of(tmp_path, rows)))
    assert texts(table) == [
        ["CPRAG-102", "some new measure", "50.0 ± 7.0"],
        ["NEG-136-SIMP", "first word that “a” or “an” asks for", "95.5 (42/44)"],
        ["NEG-136-SIMP", "first word that “a” or “an” asks for", "100.0 (8/8)"],
        ["NEG-136-SIMP", "errors that repeat the subject", "100.0 (11/11)"],
    ]
    assert [line[0].detail for line in table.rows[:3]] == ["1st sentence shuffled", "", "behind an"]


def test_models_are_next_to_each_other_and_outputs_of_one_name_apart(tmp_path: Path) -> None:
    runs = [[share(right, 4, model=model)] for model, right in (("m", 1), ("m", 2), ("other", 3))]
    table = present(diagnostics.accuracy_table(results_of(tmp_path, *runs)))
    groups = [column.group[:12] for column in table.columns[-3:]]
    assert groups == ["m (runs/run0", "m (runs/run1", "other"]
    assert texts(table, first=1) == [["25.0 (1/4)", "50.0 (2/4)", "75.0 (3/4)"]]
    assert len(table.runs[0]) == 3


def test_a_run_on_no_diagnostic_set_is_named(tmp_path: Path) -> None:
    results = results_of(tmp_path, [share(1, 2, probe="age_comparison")])
    [run] = results.runs
    notice = f"Not shown: {run.path}, because its record names no diagnostic set."
    assert diagnostics.diagnostics_summary(results) == notice
    assert diagnostics.accuracy_table(results) is None


def test_the_paragraph_has_verdicts_against_chance(tmp_path: Path) -> None:
    rows = [share(25, 34, "sensitivity"), share(20, 44, "sensitivity", **ROLE)]
    model_o = [share(1, 34, "sensitivity", model="o"), share(1, 34, model="o")]
    assert diagnostics.diagnostics_summary(results_of(tmp_path, rows[:1], rows[1:], model_o)) == (
        "Preference for good completions is above chance: m on CPRAG-102. "
        "Preference for good completions is below chance: o on CPRAG-102. "
        "Preference for good completions is not clearly above chance: m on ROLE-88."
    )


@pytest.mark.parametrize(
    ("affirmative", "negative", "verdict"),
    [
        (18, 0, "Follows the noun and ignores “not”"),
        (18, 18, "Sensitive to negation"),
        (18, 9, "Not clearly sensitive to negation"),
        (9, 18, "Not clearly sensitive to negation"),
        (0, 18, "Goes against the noun, with and without “not”"),
    ],
)
def test_sensitivity_to_negation_takes_both_polarities(
    affirmative: int, negative: int, verdict: str, tmp_path: Path
) -> None:
    rows = [
        share(affirmative, 18, "sensitivity", **SIMP, subset=subsets.statements("affirmative")),
        share(negative, 18, "sensitivity", **SIMP, subset=subsets.statements("negative")),
    ]
    assert diagnostics.diagnostics_summary(results_of(tmp_path, rows)) == (
        f"{verdict}: m on NEG-136-SIMP."
    )
    assert diagnostics.diagnostics_summary(results_of(tmp_path / "alone", rows[:1])) == ""


def write(folder: Path, name: str, probe: str, lines: list[dict[str, Any]]) -> None:
    row = accuracy(1, 2, protocol="diagnose", model=name[0], probe=probe)
    path = write_run(folder, name, [row | {"metric": "accuracy@1"}]) / "predictions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def line(context: str, words: str, *expected: str) -> dict[str, Any]:
    return {"context": context, "expected": expected, "predictions": words.split()}


def test_a_context_has_a_row_and_a_model_a_column(tmp_path: Path) -> None:
    # One that is asked twice expects both words.
    twice = [line("He is a", "b c d e f g", "x"), line("He is a", "b c d e f g", "x", "e")]
    not_a = line("He is not a", "h")
    write(tmp_path, "m-1", "neg_simp", [twice[0], not_a, twice[1]])
    write(tmp_path, "o-1", "neg_simp", [line("He is a", "k", "x", "e"), not_a])
    write(tmp_path, "m-2", "role", [line("She", "l", "z")])
    role, simp = map(present, diagnostics.words_tables(load_results(tmp_path)))
    assert (role.name, simp.name) == ("diagnostics_words_role", "diagnostics_words_neg_simp")
    assert texts(simp) == [
        ["He is a", "x, e", "b, c, d, e, f", "k"],
        ["He is not a", "–", "h", "h"],
    ]
    assert [cell.detail for cell in simp.rows[0]] == ["", "", "e is no. 4", ""]
    headings = [(column.group, column.prose) for column in simp.columns]
    assert headings == [("", True), ("", False), ("m", True), ("o", True)]
    assert records(simp)[0] == {
        "model": "m", "context": "He is a", "expected": "x|e", "words": "b, c, d, e, f",
    }  # fmt: skip


def test_of_large_sets_the_first_contexts_are_shown(tmp_path: Path) -> None:
    lines = [line(f"context {number}", "a", "b") for number in range(1001)]
    write(tmp_path, "m", "role_1500", lines)
    write(tmp_path, "o", "cprag", lines[:100])
    small, large = map(present, diagnostics.words_tables(load_results(tmp_path)))
    assert small.name == "diagnostics_words_cprag"
    for table, number in ((small, "100"), (large, "1,001")):
        assert len(table.rows) == 100
        assert f"100 of {number} different contexts are shown" in table.note


def test_lines_of_an_earlier_version_show_what_they_have(tmp_path: Path) -> None:
    write(tmp_path, "m", "neg_nat", [{"context": "It is", "predictions": ["a"]}])
    write(tmp_path, "o", "neg_nat", [{"context": "It is"}, {"target": "b"}])
    [table] = diagnostics.words_tables(load_results(tmp_path))
    assert texts(table) == [["It is", "a"]]  # of nothing expected, and of no words, is no column


def test_the_figure_has_models_next_to_each_other_and_the_papers(tmp_path: Path) -> None:
    high = subsets.constraint("high")
    rows = [share(8, 34), share(4, 18, subset=high), share(9, 34, "accuracy@5")]
    rows_of_o = [share(5, 34, model="o"), share(3, 34, model="o", perturbation="truncated")]
    figure = present(diagnostics.accuracy_figure(results_of(tmp_path, rows, rows_of_o)))
    texts = texts_of(figure)
    assert {"23.5", "12.4–40.0", "26.5", "14.7", "8.8", "CPRAG-102", "m", "o"} <= {*texts}
    assert {"@1", "@5", "2nd sentence cut, @1", "BERT-B (paper)"} <= {*texts}
    assert "22.2" not in texts  # parts are in the table
    assert "Ettinger" in figure.caption


def test_sensitivities_are_those_of_the_papers_tables(tmp_path: Path) -> None:
    affirmative = subsets.statements("affirmative")
    rows = [
        share(18, 36, "sensitivity", **SIMP),
        share(17, 18, "sensitivity", **SIMP, subset=affirmative),
        share(3, 18, "sensitivity_margin", **SIMP, subset=affirmative),
    ]
    figure = present(diagnostics.sensitivity_figure(results_of(tmp_path, rows)))
    texts = texts_of(figure)
    assert {"affirmative", "94.4", "affirmative, by over 0.01", "16.7"} <= {*texts}
    crosses = [line for line in figure.canvas.axes[0].lines if line.get_marker() in ("x", "+")]
    # Of BERT-B and BERT-L: prefers, and by 0.01.
    assert [line.get_xdata() for line in crosses] == [[100], [100], [94.4], [100]]
    assert "50.0" not in texts


def test_what_depends_on_the_scorer_has_no_figure(tmp_path: Path) -> None:
    results = results_of(tmp_path, [share(1, 2, "unchanged_by_not")])
    assert diagnostics.accuracy_figure(results) is None
    assert diagnostics.sensitivity_figure(results) is None
