from __future__ import annotations

import json

from probelight.reports.explorer.data import Item, everything
from probelight.results.load import Results


def test_an_item_is_held_once_a_probe(answered: Results) -> None:
    probes, _ = everything(answered)
    assert list(probes) == ["hypernymy", "role", "science"]
    asked = probes["hypernymy"]
    assert [item.id for item in asked.items] == ["q0", "q1", "q2", "q3"]
    assert asked.facts[3] == ("c1", 1, None, None)
    assert [(sheet.label, sheet.places) for sheet in asked.sheets["m"]] == [
        ("zero shot", (0, 1, 2, 3)),
        ("before inoculation", (0, 1, 2, 3)),  # once, whatever the doses
        ("after 50 examples, seed 0, learning rate 2e-5", (0, 1, 2, 3)),
        ("after 100 examples, seed 0, learning rate 2e-5", (0, 1, 2, 3)),
    ]


def test_answers_are_columns_with_three_significant_digits(answered: Results) -> None:
    sheet = everything(answered).probes["hypernymy"].sheets["m"][0]
    assert json.loads(sheet.answers) == {
        "scores": [[1.23, -2], [None, 0.5], [1, 1], [None, 1]],
        "said": [0, 1, 0, None],
        "counts": [[2, 2, 0.5], [3, 0, 0]],
    }


def test_empty_answers_that_pad_a_question_make_no_other_item(answered: Results) -> None:
    science = everything(answered).probes["science"]
    [item] = science.items
    assert item.choices == ("a", "b")
    [first, _] = science.sheets["m"]
    assert json.loads(first.answers)["scores"] == [[1, 0, -1]]
    assert first.label == "after 50 examples of hypernymy, seed 0, learning rate 2e-5"


def test_what_one_run_knows_of_an_item_holds_for_all(answered: Results) -> None:
    asked = everything(answered).probes["hypernymy"]
    item = next(iter(asked.items))
    assert asked.place(item, (None, None, "random", 2)) == 0
    assert asked.facts[0] == ("c0", 0, "random", 2)


def test_contexts_have_words_instead_of_choices(answered: Results) -> None:
    role = everything(answered).probes["role"]
    assert list(role.items) == [Item("", 1, "He is not a", ("dog",), None, ("cat",))]
    columns = json.loads(role.sheets["m"][0].answers)
    assert columns["scores"] == [[0.0123]]
    assert columns["words"][0][0] == "cat"


def test_runs_that_cannot_be_shown_are_named(answered: Results) -> None:
    damaged, silent = everything(answered).unread
    assert damaged.startswith(
        "Not shown: runs/cut-378bfce5cda2/predictions.jsonl: not a whole JSON"
    )
    assert silent == "1 run (zero shot) left no answers in predictions.jsonl."
