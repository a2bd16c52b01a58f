"""The tables, the figure and the paragraph of what models scored before any training."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from probelight.reports.sections import filled_sections, printed
from probelight.reports.table import Cell
from probelight.reports.zero_shot.calibration import calibration_figure
from probelight.reports.zero_shot.consistency import unread_runs
from probelight.reports.zero_shot.scores import (
    ranks_table,
    zero_shot_figure,
    zero_shot_sentences,
    zero_shots,
)
from probelight.results.load import load_results
from tests.fixtures import subsets
from tests.fixtures.items import write_lines
from tests.fixtures.report import labels, named, present, records, tables, texts_of
from tests.fixtures.results import accuracy, write_run, zero_shot_rows

# Right of 10 pairs, by sums and by means per token.
COUNTS = {"order": (10, 9), "agreement": (0, 1), "islands": (6, 6), "gaps": (9, 5)}


def test_models_of_one_name_are_named_by_weights_or_by_run(tmp_path: Path) -> None:
    for sha in ("aaaaaaaaaaaa", "bbbbbbbbbbbb"):
        write_run(tmp_path, sha, zero_shot_rows("p", 5, 10, 2), model_sha256=sha)
    paths = [write_run(tmp_path, name, zero_shot_rows("q", 5, 10, 2)) for name in ("x", "y")]
    assert zero_shots(load_results(tmp_path)).model.tolist() == [
        "dictionary-lm (aaaaaaaa)",
        "dictionary-lm (bbbbbbbb)",
        *(f"dictionary-lm ({path.name})" for path in paths),
    ]


def test_chance_goes_by_the_real_choices(tmp_path: Path) -> None:
    rows = zero_shot_rows("p", 5, 10, 5)
    rows.append({**rows[1], "metric": "floor", "value": 0.25})
    write_run(tmp_path, "a", rows)
    table = tables(tmp_path)["zero_shot"]
    assert labels(table)[1:] == [
        "chance", "majority",
        "dictionary-lm: accuracy %", "dictionary-lm: macro %", "dictionary-lm: n",
        "dictionary-lm: chance with empty choices", "dictionary-lm: against chance",
    ]  # fmt: skip
    assert (table.rows[0][1].text, table.rows[0][6].text) == ("25.0", "20.0")
    assert "Models may also pick empty choices; verdicts use chance without these." in table.note


def test_zero_shot_row_by_hand(demo_folder: Path) -> None:
    table = tables(demo_folder)["zero_shot"]
    (row,) = [row for row in table.rows if row[0].text == "taxonomy_conjunction"]
    # 367 of 599 = 0.61269; Wilson: centre 0.61197, half width 0.03888.
    assert row == (
        Cell("taxonomy_conjunction", "dev"), Cell("33.3"), Cell("34.3"),
        Cell("61.3", "57.3–65.1"), Cell("60.9"), Cell("599"), Cell("above"),
    )  # fmt: skip
    (record,) = [r for r in records(table) if r["probe"] == "taxonomy_conjunction"]
    assert record["accuracy"] == 367 / 599
    assert record["ci_low"] == pytest.approx(0.61197 - 0.03888, abs=1e-4)


def test_zero_shot_has_columns_for_each_model(tmp_path: Path) -> None:
    write_run(tmp_path, "a", zero_shot_rows("p", 5, 10, 2, model="m1"))
    write_run(tmp_path, "b", zero_shot_rows("q", 1, 1, 2, model="m2"))
    write_run(tmp_path, "c", zero_shot_rows("q", 1_000_000, 2_000_000, 2, model="m1"))
    table = tables(tmp_path)["zero_shot"]
    of_first = ["m1: accuracy %", "m1: macro %", "m1: n", "m1: against chance"]
    assert labels(table)[3:8] == [*of_first, "m2: accuracy %"]
    first, second = table.rows
    assert [cell.text for cell in first[7:]] == ["–"] * 4  # m2 was not asked p
    assert second[3:6] == (Cell("50.0", "49.9–50.1"), Cell("49.6"), Cell("2,000,000"))
    # One item, right: Wilson's interval reaches down to 1 / (1 + z^2) = 20.7%.
    assert second[7] == Cell("100.0", "20.7–100.0")


@pytest.mark.parametrize(
    ("metric", "label", "note"),
    [
        ("tied_share", "ties", "each counts 1/n"),
        ("near_tied_share", "near-ties", "less than 0.0001 above the second"),
    ],
)
def test_ties_have_a_column_where_there_are_any(
    metric: str, label: str, note: str, tmp_path: Path
) -> None:
    rows = zero_shot_rows("p", 5, 10, 2, model="m1")
    write_run(tmp_path, "a", [*rows, {**rows[1], "metric": metric, "value": 0.0}])
    assert f"m1: {label} %" not in labels(tables(tmp_path)["zero_shot"])
    rows = zero_shot_rows("q", 5, 10, 2, model="m1")
    write_run(tmp_path, "b", [*rows, {**rows[1], "metric": metric, "value": 0.125}])
    table = tables(tmp_path)["zero_shot"]
    assert labels(table)[3:] == [
        "m1: accuracy %", "m1: macro %", "m1: n", "m1: against chance", f"m1: {label} %"
    ]  # fmt: skip
    assert [row[-1].text for row in table.rows] == ["0.0", "12.5"]
    assert [record[metric] for record in records(table)] == [0.0, 0.125]
    assert note in table.note


def test_other_ways_of_scoring_are_named(tmp_path: Path) -> None:
    rows = zero_shot_rows("p", 5, 10, 5)
    write_run(tmp_path, "a", [{**row, "mode": "pseudo_log_likelihood"} for row in rows])
    table = tables(tmp_path)["zero_shot"]
    assert table.rows[0][0] == Cell("p", "dev")
    assert "pseudo log likelihood" in [cell.text for cell in table.rows[0]]
    causal_rows = [{**row, "model": "b", "mode": "causal_likelihood"} for row in rows]
    write_run(tmp_path, "b", causal_rows)
    table = tables(tmp_path)["zero_shot"]
    assert table.rows[0][0] == Cell("p", "dev")
    modes = [cell.text for cell in table.rows[0] if "likelihood" in cell.text]
    assert sorted(modes) == ["causal likelihood", "pseudo log likelihood"]


def test_ranks_are_in_another_table(tmp_path: Path) -> None:
    rows = zero_shot_rows("age", 30, 60, 2)
    fields = {key: rows[0][key] for key in ("protocol", "model", "probe", "split")}
    rows.append({**fields, "metric": "median_gold_rank", "value": 1234.5, "num_items": 60})
    rows.append({**accuracy(15, 60, **fields), "metric": "gold_in_top10"})
    rows.append({**accuracy(6, 60, **fields), "metric": "all_in_top10"})
    write_run(tmp_path, "zero_shot-age", rows)
    write_run(tmp_path, "zero_shot-other", zero_shot_rows("other", 30, 60, 2))
    table = present(ranks_table(load_results(tmp_path)))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["age", "dictionary-lm", "1,234.5", "25.0", "10.0", "60"]
    ]
    assert records(table)[0]["all_in_top10"] == 0.1


def test_templates_perturbations_and_controls_are_parts(tmp_path: Path) -> None:
    rows = zero_shot_rows("p", 5, 10, 2, templates={"both": (3, 4)})
    changed = {**rows[0], "perturbation": "birth years", "value": 0.1}
    control = {**rows[0], "control": "no_language", "value": 0.2}
    write_run(tmp_path, "one", [changed, *rows, control])
    by_name = tables(tmp_path)
    assert [record["accuracy"] for record in records(by_name["zero_shot"])] == [0.5]
    assert [(row["part"], row["accuracy"]) for row in records(by_name["zero_shot_parts"])] == [
        ("birth years", 0.1), ("template=both", 0.75), ("no_language", 0.2)
    ]  # fmt: skip


def pairs(model: str = "m1") -> list[dict[str, Any]]:
    """The rows that a run leaves: the accuracy of each paradigm by two rules."""
    common = {
        "protocol": "zero_shot", "model": model, "probe": "blimp", "control": "standard",
        "mode": "pseudo_log_likelihood", "split": "test",
    }  # fmt: skip
    by_mean = {**common, "scoring": "mean_token"}
    rows = [
        accuracy(25, 40, **common),
        {**common, "metric": "chance", "value": 0.5, "num_items": 40},
        accuracy(21, 40, **by_mean),
    ]
    for name, counts in COUNTS.items():
        for right, columns in zip(counts, (common, by_mean), strict=True):
            rows.append(accuracy(right, 10, **columns, subset=subsets.paradigm(name)))
    return rows


def test_paradigms_are_rows_after_the_whole_and_models_columns(tmp_path: Path) -> None:
    write_run(tmp_path, "a", pairs())
    write_run(tmp_path, "b", pairs("m2"))
    by_name = tables(tmp_path)
    table = by_name["minimal_pairs"]
    assert labels(table) == [
        "UID", "n", "m1: accuracy %", "m1: mean_token %", "m2: accuracy %", "m2: mean_token %"
    ]  # fmt: skip
    assert [row[0].text for row in table.rows] == ["all", "agreement", "gaps", "islands", "order"]
    # 9 of 10: Wilson's interval is (0.5958, 0.9821); 5 of 10: (0.2366, 0.7634).
    gaps = (Cell("90.0", "59.6–98.2"), Cell("50.0", "23.7–76.3"))
    assert table.rows[2] == (Cell("gaps", "blimp, test"), Cell("10"), *gaps, *gaps)
    assert [cell.text for cell in table.rows[0][1:4]] == ["40", "62.5", "52.5"]
    assert len(records(table)) == 10
    assert records(table)[4]["uid"] == "order"
    assert records(table)[4]["mean_token_accuracy"] == 0.9
    # They are no parts of a probe like its templates, and one row a probe stays the whole.
    assert "zero_shot_parts" not in by_name
    assert len(by_name["zero_shot"].rows) == 1


def test_paradigms_are_counted_by_their_verdicts(tmp_path: Path) -> None:
    write_run(tmp_path, "a", pairs())
    assert zero_shot_sentences(load_results(tmp_path)).endswith(
        "Of the 4 kinds of minimal pairs of blimp, m1 is above chance on 2 and below it on 1."
    )


def test_the_figure_has_chance_levels_and_the_best_first(demo_folder: Path) -> None:
    demo = load_results(demo_folder)
    texts = texts_of(zero_shot_figure(demo))
    assert texts.count("chance 50.0") == 3
    assert {"61.3", "57.3–65.1"} <= {*texts}
    # Sorted by the distance from chance, the best first.
    probes = [text for text in texts if text.replace(" ", "_") in {r.probe for r in demo.runs}]
    assert probes[0] == "taxonomy conjunction"
    assert probes[-1] == "objects comparison"


@pytest.mark.thorough
def test_the_page_has_every_answer_share_and_the_terminal_what_is_read_first(
    demo_folder: Path,
) -> None:
    results = load_results(demo_folder)
    [section] = [s for s in filled_sections(results) if s.name == "before"]
    assert [figure.name for figure in section.figures] == ["zero_shot"]
    names = [table.name for table in section.tables]
    assert names == ["zero_shot", "zero_shot_parts", "predicted_shares"]  # no pairs, ranks or rules
    on_terminal = [table.name for table in printed("zero_shot", results)]
    assert on_terminal == ["zero_shot", "zero_shot_parts"]


def test_the_paragraph_has_the_verdict_of_each_probe(demo_folder: Path) -> None:
    assert zero_shot_sentences(load_results(demo_folder)) == (
        "Before any training, dictionary-lm was above chance on taxonomy_conjunction; no better "
        "than always giving the most frequent answer on always_never; not clearly above chance on "
        "age_comparison, antonym_negation and multihop_composition; below chance on "
        "objects_comparison."
    )


def test_what_another_program_measured_comes_first(tmp_path: Path) -> None:
    rows = zero_shot_rows("taxonomy_conjunction", 367, 599, 3)
    write_run(tmp_path, "a", [{**row, "kind": "imported"} for row in rows])
    assert zero_shot_sentences(load_results(tmp_path)) == (
        "It is not known whether imported models were trained on similar items before. In "
        "the imported scores, dictionary-lm was above chance on taxonomy_conjunction."
    )


def test_a_model_that_always_says_the_same_is_named(tmp_path: Path) -> None:
    rows = zero_shot_rows("age_comparison", 250, 500, 2)
    shares = {subsets.answered("choice 1"): 0.95, subsets.answered("choice 2"): 0.05}
    rows = [{**row, "value": shares.get(row.get("subset"), row["value"])} for row in rows]
    write_run(tmp_path, "a", rows)
    assert zero_shot_sentences(load_results(tmp_path)).endswith(
        "Almost always the same answer: “choice 1” from dictionary-lm on age_comparison."
    )


def test_many_models_are_not_all_named(tmp_path: Path) -> None:
    for number in range(8):
        write_run(tmp_path, f"m{number}", zero_shot_rows("p", 5, 10, 2, model=f"m{number}"))
    sentences = zero_shot_sentences(load_results(tmp_path))
    assert sentences.count("Before any training") == 6
    assert sentences.endswith("The table has 2 more models.")


# Accuracy by rule, the items that flip between rules, and some of them, by hand.


RULES = ("sum", "mean_char", "pmi")
# Of four items the choices that are best by the own score and by each rule.
BEST = [[[0], [0], [1], [0]], [[1], [1], [1], [1]], [[0], [0, 1], [0], [1]], [[1], [1], [1], []]]


def line(number: int, best: list[list[int]]) -> dict[str, Any]:
    best_own, *best_by_rule = best
    by_rule = {r: {"scores": [], "best": b} for r, b in zip(RULES, best_by_rule, strict=True)}
    fields = {"id": f"q{number}", "question": f"Item {number} [MASK]", "choices": ["x", "y"]}
    fields |= {"set": "p", "position": number + 1, "scores": [0.0, 0.0], "prediction": best_own[0]}
    fields |= {"tied": 1, "correct": float(best_own == [0])}
    return {**fields, "answer": 0, "best": best_own, "by_rule": by_rule}


def write_rules(folder: Path, probe: str = "p") -> None:
    """Write a run of four items with each rule's numbers."""
    rows = zero_shot_rows(probe, 2, 4, 2, model="m")
    more = [
        {**rows[0], "scoring": rule, "metric": metric, "value": value}
        for rule, share in zip(RULES, (0.25, 0.5, 0.75), strict=True)
        for metric, value in (("accuracy", share), ("flipped_share", 1 - share))
    ]
    run = write_run(folder, f"by-rule-{probe}", [*rows, *more])
    write_lines(run, [line(number, best) for number, best in enumerate(BEST)])


def test_accuracies_are_side_by_side(tmp_path: Path) -> None:
    write_rules(tmp_path)
    write_run(tmp_path, "b", zero_shot_rows("q", 2, 4, 2, model="m"))  # no rules were asked for
    by_name = tables(tmp_path)
    table = by_name["zero_shot_rules"]
    assert labels(table) == [
        "probe", "model", "chance", "own score: accuracy %", "sum: accuracy %", "sum: flipped %",
        "mean_char: accuracy %", "mean_char: flipped %", "pmi: accuracy %", "pmi: flipped %",
    ]  # fmt: skip
    assert len(table.rows) == 1
    row = named(table, 0)
    assert row["own score: accuracy %"].text == "50.0"
    assert [row[f"{rule}: accuracy %"].text for rule in RULES] == ["25.0", "50.0", "75.0"]
    assert [row[f"{rule}: flipped %"].text for rule in RULES] == ["75.0", "50.0", "25.0"]
    assert [r["rule"] for r in records(table)] == ["own score", *RULES]
    # The other tables go by the own score alone.
    assert [r["accuracy"] for r in records(by_name["zero_shot"])] == [0.5, 0.5]
    assert "zero_shot_parts" not in by_name


def test_items_that_flip_are_counted_for_each_two_rules(tmp_path: Path) -> None:
    write_rules(tmp_path)
    table = tables(tmp_path)["zero_shot_flips"]
    assert labels(table) == ["probe", "model", "n", "rule", *RULES]
    # A tie is another answer than one of its choices, and so is none at all.
    assert [[cell.text for cell in row[3:]] for row in table.rows] == [
        ["own score", "1", "1", "2"],
        ["sum", "–", "2", "2"],
        ["mean_char", "–", "–", "3"],
    ]
    assert len(records(table)) == 6  # each two rules once
    assert records(table)[0] == {
        "model": "m", "probe": "p", "rule": "own score", "other_rule": "sum", "num_flipped": 1,
        "num_items": 4,
    }  # fmt: skip


def test_some_items_are_shown_with_each_rules_answer(tmp_path: Path) -> None:
    write_rules(tmp_path)
    table = tables(tmp_path)["zero_shot_flipped_items"]
    assert [record["id"] for record in records(table)] == ["q0", "q2", "q3"]
    assert table.rows[1] == (
        Cell("p", "m"), Cell("Item 2 [MASK]"), Cell("x"), Cell("x", "right"), Cell("x, y"),
        Cell("x", "right"), Cell("y"),
    )  # fmt: skip
    assert records(table)[2]["pmi"] == "–"


def test_of_many_probes_each_shows_some_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from probelight.reports.zero_shot import consistency

    monkeypatch.setattr(consistency, "MOST_EXAMPLES", 3)
    for probe in "pq":
        write_rules(tmp_path, probe)
    table = tables(tmp_path)["zero_shot_flipped_items"]
    assert [(r["probe"], r["id"]) for r in records(table)] == [("p", "q0"), ("q", "q0")]


def test_without_rules_or_predictions_there_is_no_table(tmp_path: Path) -> None:
    rows = zero_shot_rows("p", 2, 4, 2, model="m")
    # As minimal pairs have it without being asked: no item was compared.
    write_run(tmp_path, "a", [*rows, {**rows[0], "scoring": "mean_token", "value": 0.25}])
    assert not {"zero_shot_rules", "zero_shot_flips"} & set(tables(tmp_path))
    write_rules(tmp_path, "q")
    [path] = tmp_path.rglob("predictions.jsonl")
    path.unlink()
    by_name = tables(tmp_path)
    assert "zero_shot_rules" in by_name
    assert not {"zero_shot_flips", "zero_shot_flipped_items"} & set(by_name)
    names = [table.name for table in printed("zero_shot", load_results(tmp_path))]
    assert names == ["zero_shot", "zero_shot_rules"]


def test_damaged_predictions_are_named_and_the_accuracies_shown(tmp_path: Path) -> None:
    write_rules(tmp_path)
    [path] = tmp_path.rglob("predictions.jsonl")
    first, second, *_ = path.read_text().splitlines()
    start, _, end = second.rpartition('"best": [1]')
    path.write_text(f'{first}\n{start}"best": [7]{end}\n')
    results = load_results(tmp_path)
    assert unread_runs(results).startswith("Left out of the tables by rule: ")
    assert "predictions.jsonl:2: a rule's best choice does not exist" in unread_runs(results)
    by_name = tables(tmp_path)
    assert "zero_shot_rules" in by_name
    assert not {"zero_shot_flips", "zero_shot_flipped_items"} & set(by_name)


def test_rules_with_another_verdict_are_named(tmp_path: Path) -> None:
    rows = zero_shot_rows("p", 45, 50, 2, model="m")
    by_rule = [
        {**rows[0], "scoring": rule, "metric": metric, "value": 0.5, "ci_low": low, "ci_high": 0.9}
        for rule, low in (("sum", 0.7), ("mean_char", 0.4), ("pmi", 0.3))
        for metric in ("accuracy", "flipped_share")
    ]
    write_run(tmp_path, "a", [*rows, *by_rule])
    assert tables(tmp_path)["zero_shot_rules"].note.endswith(
        "Rules disagree about chance: m on p dev: above chance with its own score, not clearly "
        "above chance with mean_char and pmi."
    )


def test_calibration_is_of_kept_scores(tmp_path: Path) -> None:
    write_rules(tmp_path)
    run = load_results(tmp_path).runs[0].path
    lines = []
    for number, (raw, calibrated) in enumerate([(0.8, 0.9), (0.6, 0.6), (0.8, 0.2), (0.7, None)]):
        answered = line(number, BEST[number])
        # Of probabilities the logarithms are kept, but by the rule `calibrated`.
        answered["scores"] = [math.log(raw), math.log(1 - raw)]
        answered |= {"best": [0], "prediction": 0, "correct": 1.0}
        share = [calibrated, None if calibrated is None else 1 - calibrated]
        best = [] if calibrated is None else [int(calibrated < 0.5)]
        answered["by_rule"] = {"calibrated": {"scores": share, "best": best}}
        lines.append(answered)
    write_lines(tmp_path / run, lines)
    table = tables(tmp_path)["zero_shot_calibration"]
    raw, calibrated = records(table)
    assert (raw["rule"], raw["num_items"], raw["accuracy"]) == ("own score", 4, 1.0)
    assert raw["confidence"] == pytest.approx((0.8 + 0.6 + 0.8 + 0.7) / 4)
    assert raw["ece"] == pytest.approx((0.2 + 0.4 + 0.2 + 0.3) / 4)
    assert raw["brier"] == pytest.approx(2 * (0.04 + 0.16 + 0.04 + 0.09) / 4)
    assert raw["even"] == 0.5
    # The fourth item has no number; the third one's answer, of 80%, is wrong.
    assert (calibrated["rule"], calibrated["num_items"]) == ("calibrated", 3)
    assert calibrated["accuracy"] == pytest.approx(2 / 3)
    assert calibrated["brier"] == pytest.approx(2 * (0.01 + 0.16 + 0.64) / 3)
    drawn = calibration_figure(load_results(tmp_path))
    assert {"own score", "calibrated"} <= {*texts_of(drawn)}
