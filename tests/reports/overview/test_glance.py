from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.patches import FancyArrowPatch

from probelight.reports.build import inline_svg, to_html
from probelight.reports.inoculation.runs import Dose, dose_lines
from probelight.reports.overview import glance
from probelight.reports.overview.examples import Example, forgotten_example
from probelight.reports.overview.glance import arrows_figure, grid, verdicts_table
from probelight.reports.overview.skills import verdicts
from probelight.reports.table import Cell
from probelight.results.load import RunSet, load_results
from tests.fixtures import subsets
from tests.fixtures.diagnostics import share
from tests.fixtures.grids import write_grid
from tests.fixtures.items import write_lines
from tests.fixtures.report import present, records, texts_of
from tests.fixtures.results import inoculation_rows, write_run, zero_shot_rows


def test_every_kind_of_skill_has_a_heading(tmp_path: Path) -> None:
    write_run(tmp_path, "a", zero_shot_rows("p", 40, 100, 2))
    write_run(tmp_path, "b", inoculation_rows())
    write_run(tmp_path, "c", [share(25, 34, "sensitivity")])
    write_grid(tmp_path, "A", [15, 25, 35], lambda i, j: 1.0)
    page = to_html(load_results(tmp_path), [])
    assert re.findall('<th class="kind"[^>]*>([^<]*)<', page) == [
        "As it is, and after training on examples of the probe",
        "Every pair of values",
        "Inoculation: trained on another task, then on examples of the probe",
        "Prefers the correct completion",
    ]


def test_nothing_that_can_be_judged_gives_no_grid(tmp_path: Path) -> None:
    write_run(tmp_path, "d", [share(8, 34)])
    assert grid(load_results(tmp_path)) is None


def test_the_grid_as_a_table(demo_folder: Path) -> None:
    table = present(verdicts_table(load_results(demo_folder)))
    assert table.rows[0] == (
        Cell("age comparison", "dev"),
        Cell("↗ learned it", "after 500 examples 85.1, without language 62.3"),
    )
    record = records(table)[-1]
    assert record["probe"] == "hypernymy"
    assert (record["verdict"], record["in_part"]) == ("cannot tell", False)  # without a control
    assert (record["first_number"], record["first_value"]) == ("after 1,000 examples", 0.553)
    assert record["gain"] == "gain +26.2 points"  # its runs did not record what each item counted
    assert record["cost"] == "cost +3.8 points (+0.8 to +6.8)"
    assert "Cannot tell: " in table.note


# The example of a row.


SIMP: dict[str, Any] = {"metric": "sensitivity", "probe": "neg_simp"}
STATEMENTS = [
    share(18, 18, **SIMP, subset=subsets.statements("affirmative")),
    share(0, 18, **SIMP, subset=subsets.statements("negative")),
]


def item(question: str, scores: list[float | None], answer: int = 0, **more: Any) -> dict[str, Any]:
    choices = [f"c{number}" for number in range(len(scores))]
    numbers = [score for score in scores if score is not None]
    prediction = scores.index(max(numbers)) if numbers else None
    fields = {"set": "p", "id": f"#{question}", "position": 1, "question": question}
    fields |= {"choices": choices, "scores": scores, "prediction": prediction, "answer": answer}
    return fields | {"tied": 1, "correct": float(prediction == answer), **more}


def context(text: str, probability: float | None, words: str, expected: str = "") -> dict[str, Any]:
    fields: dict[str, Any] = {"context": text, "target": "t", "predictions": words.split()}
    return {**fields, "expected": expected.split(), "probability": probability}


def write_answers(folder: Path, *lines: dict[str, Any], model: str = "m") -> None:
    """Write a zero-shot run of the probe p with its predictions."""
    write_lines(write_run(folder, model, zero_shot_rows("p", 40, 100, 2, model=model)), [*lines])


def examples(folder: Path) -> list[Example | None]:
    overview = present(grid(load_results(folder)))
    firsts = [next(iter(of_row), None) for *_, of_row in overview["rows"]]
    assert overview["has_examples"] == any(firsts)
    return firsts


def the_example(folder: Path) -> Example:
    [example] = examples(folder)
    return present(example)


# How far the right one, c0, is ahead: 2, −1, 0.5, and not known.
ITEMS = [item("far", [3, 1]), item("lost", [0, 1]), item("near", [1.5, 1]), item("nan", [None, 1])]


def test_the_example_is_the_item_of_the_median_margin(tmp_path: Path) -> None:
    write_answers(tmp_path, *ITEMS)
    assert the_example(tmp_path) == Example(
        question="near",
        choices=(("c0", True, ("m",)), ("c1", False, ())),
        when="before training",
        silent=(),
        more_choices=0,
        more_models=0,
        address="#items?probe=p&model=m&item=%23near@1",
    )


def test_of_four_margins_the_lower_of_the_two_in_the_middle_counts(tmp_path: Path) -> None:
    write_answers(tmp_path, *ITEMS[:3], item("x", [2, 1]))
    assert the_example(tmp_path).question == "near"


def test_other_models_answer_the_same_item(tmp_path: Path) -> None:
    for number in range(6):
        # The second model gets it wrong, and the third says nothing.
        scores: list[list[float | None]] = [[1.5, 1], [0, 1], [None, None]]
        near = item("near", scores[min(number, 2)])
        write_answers(tmp_path, *ITEMS[:2], near, model=f"m{number}")
    example = the_example(tmp_path)
    assert [models for *_, models in example.choices] == [("m0",), ("m1",)]
    assert (example.silent, example.more_models) == (("m2", "m3"), 2)


def test_a_long_item_is_cut_but_for_what_is_asked_and_answered(tmp_path: Path) -> None:
    write_answers(tmp_path, item("ä" * 300 + " what?", [0, 0, 0, 0, 0, 0, 0, 1], answer=6))
    example = the_example(tmp_path)
    assert len(example.question) <= 260
    assert example.question.endswith("what?")
    assert [text for text, *_ in example.choices] == ["c0", "c1", "c2", "c3", "c6", "c7"]
    assert example.more_choices == 2


def test_what_an_inoculation_taught_is_shown_as_answered_after_it(tmp_path: Path) -> None:
    fields = {"original_task": "definitions"}
    run = write_run(tmp_path, "a", inoculation_rows(probe_correct=(200, 440)), **fields)
    first = item("q", [0, 1], set="report_probe_before")
    original = item("original", [0, 1], set="report_original")
    write_lines(run, [first, original, item("q", [1, 0], set="report_probe")])
    example = the_example(tmp_path)  # without a control nothing was learned
    assert (example.question, example.when) == ("q", "before inoculation")
    assert example.choices[1] == ("c1", False, ("dictionary-lm",))
    rows = [{**row, "control": "choice_only"} for row in inoculation_rows(probe_correct=(200, 210))]
    write_run(tmp_path, "b", rows, **fields)
    example = the_example(tmp_path)
    assert (example.question, example.when) == ("q", "after 100 examples")
    assert example.choices[0] == ("c0", True, ("dictionary-lm",))


def test_a_skill_that_is_known_has_an_item_that_is_right_and_one_that_is_wrong(
    tmp_path: Path,
) -> None:
    random = zero_shot_rows("p", 50, 100, 2, model="m (random weights)")
    write_run(tmp_path, "random", random)
    run = write_run(tmp_path, "m", zero_shot_rows("p", 90, 100, 2, model="m"))
    write_lines(run, ITEMS)
    overview = present(grid(load_results(tmp_path)))
    [(_, [verdict], examples_of_row)] = overview["rows"]
    assert verdict.word == "knew it"
    assert [(e.title, e.question) for e in examples_of_row] == [
        ("m gets this right", "near"),
        ("m gets this wrong", "lost"),
    ]


def test_what_inoculation_made_a_model_forget_was_right_before_and_is_wrong_after(
    tmp_path: Path,
) -> None:
    run = write_run(tmp_path, "a", inoculation_rows(), original_task="definitions")
    start = {"kept": 3.0, "sure": 9.0, "middle": 2.0, "hardly": 1.5}
    lines = [item(name, [s, 1], set="report_original_before") for name, s in start.items()]
    lines += [item("never", [0, 1], set="report_original_before")]
    end = {"kept": 3.0, "sure": 0.0, "middle": 0.0, "hardly": 0.5, "never": 0.0}
    lines += [item(name, [s, 1], set="report_original") for name, s in end.items()]
    write_lines(run, lines)
    [verdict] = verdicts(load_results(tmp_path))
    lost = present(forgotten_example(load_results(tmp_path), verdict))
    assert (lost.title, lost.question) == ("dictionary-lm forgot this (original task)", "middle")
    assert lost.choices == (("c0", True, ()), ("c1", False, ("dictionary-lm",)))
    assert lost.when == "after 100 examples"


def test_statements_and_negations_have_a_context_of_their_own(tmp_path: Path) -> None:
    run = write_run(tmp_path, "a", STATEMENTS)
    is_, is_not = context("A trout is a", 0.5, "fish b c d", "fish"), "A trout is not a"
    write_lines(run, [is_, context(is_not, 0.3, "fish b"), is_, context(is_not, 0.1, "fish b")])
    [statement, negation] = examples(tmp_path)
    assert statement == Example(
        question="A trout is a ___",
        choices=(("fish", True, ("m",)), ("b", False, ()), ("c", False, ())),
        when="before training",
        silent=(),
        more_choices=0,
        more_models=0,
        address="#items?probe=neg_simp&model=m&item=@1",
    )
    assert present(negation).question == "A trout is not a ___"
    assert present(negation).address.endswith("item=@2")


def test_several_models_say_one_word_each_of_the_context_in_the_middle(tmp_path: Path) -> None:
    for model, words in (("m", "b c"), ("n", "")):
        run = write_run(tmp_path, model, [share(25, 34, "sensitivity", model=model)])
        texts = [("low", 0.1), ("high", 0.9), ("middle", 0.5), ("none", None)]
        write_lines(run, [context(text, p, words, "good") for text, p in texts])
    example = the_example(tmp_path)
    assert example.question == "middle ___"
    assert example.choices == (("b", False, ("m",)), ("good", True, ()))
    assert example.silent == ("n",)


def test_missing_or_damaged_answers_are_no_example(tmp_path: Path) -> None:
    run = write_run(tmp_path, "a", STATEMENTS)
    assert examples(tmp_path) == [None, None]
    (run / "predictions.jsonl").write_text('{"context": ')
    (write_run(tmp_path, "b", inoculation_rows()) / "predictions.jsonl").write_text('{"set": "p"')
    assert examples(tmp_path) == [None, None, None]


Inoculated = Callable[..., RunSet]


def whiskers_of(dose: Dose) -> list[tuple[int, float, float, bool]]:
    ends = present(glance.ends_of(dose))
    return glance.whiskers_of(dose, ends[0])


def test_an_arrow_a_dose_that_leads_to_its_section(inoculated: Inoculated) -> None:
    results = inoculated({"dose": 100}, {"dose": 2000, "probe_correct": (200, 500)})
    figure = arrows_figure(results)
    assert {"k = 100", "k = 2k", "chance 20.0"} <= set(texts_of(figure))
    assert figure is not None
    page = inline_svg(figure)
    assert set(re.findall(r'<a href="([^"]*)"', page)) == {"#inoculation"}
    assert '<use href="#arrows-' in re.sub(r"<use[^>]*? href", "<use href", page)
    assert page.startswith('<svg role="group"')  # an image may hold nothing that can be followed


def test_models_and_probes_are_told_apart_by_a_legend(inoculated: Inoculated) -> None:
    results = inoculated({"probe": "hypernymy"}, {"probe": "hyponymy"})
    assert {"hypernymy", "hyponymy"} <= set(texts_of(arrows_figure(results)))
    more = inoculated({"probe": "hypernymy", "model": "other_one"})
    assert {"dictionary-lm", "other_one"} <= set(texts_of(arrows_figure(more)))


def test_many_arrows_have_no_labels_and_the_rest_is_said(
    inoculated: Inoculated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glance, "MOST", 2)
    monkeypatch.setattr(glance, "MOST_LABELLED", 1)
    figure = present(arrows_figure(inoculated(*({"dose": dose} for dose in (1, 2, 3)))))
    assert not [text for text in texts_of(figure) if text.startswith("k =")]
    assert figure.caption.endswith("The first 2 of 3 are drawn.")


def test_an_inoculation_that_moved_nothing_has_its_mark_alone(inoculated: Inoculated) -> None:
    still = {"probe_correct": (200, 200), "original_correct": (300, 300)}
    assert "k = 100" in texts_of(arrows_figure(inoculated(still)))


def test_gain_and_cost_each_show_whether_they_can_be_told_from_none(tmp_path: Path) -> None:
    """Of 100 items each: 30 more are right, then 4 more and 4 fewer; of 100 others 2 or 40 fewer.

    The gain of 30 has an interval of about 21 to 39 points, that of none one of about 5 on either
    side; the rows have the cost with 3 points on either side.
    """

    def side(start: str, end: str) -> dict[str, object]:
        groups = list(range(100))
        return {"items": "a", "groups": groups, "before": start, "after": end}

    low, high = "1" * 20 + "0" * 80, "1" * 50 + "0" * 50
    same = "1" * 16 + "0" * 4 + "1" * 4 + "0" * 76
    for dose, end, lost in ((10, high, 40), (20, high, 2), (30, same, 40), (40, same, 2)):
        right = (20, end.count("1"))
        rows = inoculation_rows(
            dose=dose, num_probe=100, probe_correct=right, original_correct=(300, 300 - 5 * lost)
        )
        run = write_run(tmp_path, f"k{dose}", rows, hits_file="hits.json", original_task="o")
        hits = {"probe": side(low, end), "original": side(low, low)}
        (run / "hits.json").write_text(json.dumps(hits))
    line = next(iter(dose_lines(load_results(tmp_path), controls=False).values()))
    by_dose = {dose.dose: whiskers_of(dose) for dose in line}
    is_clear = {k: [is_told for *_, is_told in sides] for k, sides in by_dose.items()}
    assert is_clear == {10: [True, True], 20: [False, True], 30: [True, False], 40: [False, False]}
    # A cost of 2 points, -1 to 5, is at 60 - 5 to 60 + 1.
    (at, *ends, _), _ = by_dose[20]
    assert (at, *ends) == pytest.approx((0, 55.0, 61.0))
    _, (at, low_end, high_end, _) = by_dose[10]
    assert at == 1
    assert 20 + 20 < low_end < 20 + 23
    assert 20 + 37 < high_end < 20 + 41
    figure = present(arrows_figure(load_results(tmp_path)))
    assert figure.canvas is not None
    axis = figure.canvas.axes[0]
    drawn = [patch for patch in axis.patches if isinstance(patch, FancyArrowPatch)]
    assert [patch.get_linestyle() == "-" for patch in drawn] == [True, False, False, False]
    assert [patch.get_fill() for patch in drawn] == [True, False, False, False]
    whiskers = [mark for mark in axis.lines if mark.get_marker() in ("|", "_")]
    solid = [mark.get_linestyle() == "-" for mark in whiskers]
    assert solid == [True, True, False, True, True, False, False, False]
    assert {"interval excludes 0", "interval includes 0"} <= set(texts_of(figure))


def test_a_cost_that_cannot_be_read_has_no_whisker(inoculated: Inoculated) -> None:
    results = inoculated({}, cost_interpretable=False)
    [[dose]] = dose_lines(results, controls=False).values()
    assert whiskers_of(dose) == []  # nor of the gain: the runs did not record their items


def test_without_inoculations_there_is_no_plot(demo_folder: Path, tmp_path: Path) -> None:
    for run in (demo_folder / "runs").glob("inoculation*"):
        run.rename(tmp_path / run.name)
    assert arrows_figure(load_results(demo_folder)) is None


def test_chance_is_that_of_the_real_choices_with_the_other_beside_it(tmp_path: Path) -> None:
    """Five are scored, of which four are real."""
    rows = inoculation_rows()
    report = {**rows[-1], "num_items": None}
    floors = [
        {**report, "metric": f"floor_{task}", "value": 0.25} for task in ("probe", "original")
    ]
    write_run(tmp_path, "padded", rows + floors, original_task="o")
    assert "chance 25.0 (20.0 with empty choices)" in texts_of(
        arrows_figure(load_results(tmp_path))
    )
