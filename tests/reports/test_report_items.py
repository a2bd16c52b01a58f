from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from typing import Any

import pytest

from probelight.io.escaping import visible
from probelight.reports import build
from probelight.reports.build import build_report, to_html
from probelight.reports.items import MOST_IN_PAGE, Item, Items, items_of, read_probes
from probelight.results.load import RunSet
from tests.fixtures.report import present


def unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text, validate=True)))


def items_in(results: RunSet, most_in_page: int = MOST_IN_PAGE) -> Items:
    return present(items_of(results, most_in_page))


def test_an_item_is_held_once_a_probe(answered: RunSet) -> None:
    probes, _ = read_probes(answered)
    assert list(probes) == ["hypernymy", "role", "science"]
    hypernymy = probes["hypernymy"]
    assert [item.id for item in hypernymy.items] == ["q0", "q1", "q2", "q3"]
    assert [*hypernymy.notes.values()][3] == ("c1", 1, None, None)
    assert [(sheet.label, sheet.item_indices) for sheet in hypernymy.sheets["m"]] == [
        ("zero shot", (0, 1, 2, 3)),
        ("before inoculation", (0, 1, 2, 3)),  # once, whatever the doses
        ("after 50 examples, seed 0, learning rate 2e-5", (0, 1, 2, 3)),
        ("after 100 examples, seed 0, learning rate 2e-5", (0, 1, 2, 3)),
    ]
    assert json.loads(hypernymy.sheets["m"][0].answers) == {  # three significant digits
        "scores": [[1.23, -2], [None, 0.5], [1, 1], [None, 1]],
        "said": [0, 1, 0, None],
        "counts": [[2, 2, 0.5], [3, 0, 0]],
    }
    item = next(iter(hypernymy.items))
    assert hypernymy.index_of(item, (None, None, "random", 2)) == 0
    assert hypernymy.notes[item] == ("c0", 0, "random", 2)  # what one run knows holds for all


def test_empty_answers_that_pad_a_question_make_no_other_item(answered: RunSet) -> None:
    science = read_probes(answered)[0]["science"]
    [item] = science.items
    assert item.choices == ("a", "b")
    [first, _] = science.sheets["m"]
    assert json.loads(first.answers)["scores"] == [[1, 0, -1]]
    assert first.label == "after 50 examples of hypernymy, seed 0, learning rate 2e-5"


def test_contexts_have_words_instead_of_choices(answered: RunSet) -> None:
    role = read_probes(answered)[0]["role"]
    assert list(role.items) == [Item("", 1, "He is not a", ("dog",), None, ("cat",))]
    columns = json.loads(role.sheets["m"][0].answers)
    assert columns["scores"] == [[0.0123]]
    assert columns["words"][0][0] == "cat"


def test_runs_that_cannot_be_shown_are_named(answered: RunSet) -> None:
    damaged, silent = items_in(answered).unread
    at = "runs/cut-378bfce5cda2/predictions.jsonl"
    assert damaged.startswith(f"Not shown: {at}: not a whole JSON")
    assert silent == "1 run (zero shot) kept no answers in predictions.jsonl."
    assert silent in to_html(answered, [], items_in(answered))


def test_the_page_holds_every_item_and_answer(answered: RunSet) -> None:
    items = items_in(answered)
    assert items.files == {}
    assert items.num_items == 6
    chunks = [unpacked(chunk) for chunk in items.chunks]
    [probe, *_] = items.index["probes"]
    columns = chunks[probe["part"]]
    assert columns["question"] == [f"Question {number}?" for number in range(4)]
    assert columns["choices"] == [["a", "b"]] * 4
    assert (columns["group"], columns["hops"]) == (["c0", "c0", "c1", "c1"], [0, 1, 0, 1])
    assert "expected" not in columns
    [model] = probe["models"]
    sheets = chunks[model["part"]]
    assert [sheet["items"] for sheet in sheets] == [{"row": [0, 4]}] * 4
    end, start = model["shown"]
    assert model["sheets"][end]["label"].startswith("after 100 examples")
    assert model["sheets"][start]["label"] == "before inoculation"
    assert sheets[end]["answers"]["said"] == [1, 0, 0, 0]
    html = to_html(answered, [], items)
    assert re.findall(r'octet-stream" id="items-part-\d+">(.*?)<', html) == list(items.chunks)


def test_beyond_a_size_the_data_are_files_next_to_the_page(answered: RunSet) -> None:
    inside = items_in(answered)
    size = sum(map(len, inside.chunks))
    assert items_in(answered, size) == inside
    outside = items_in(answered, size - 1)
    assert outside.chunks == ()
    assert outside.index == {**inside.index, "folder": "items"}
    assert list(outside.files) == [f"items/{number}.js" for number in range(len(inside.chunks))]
    calls = [re.fullmatch(r'probelightItems\(\d+,"(.*)"\);\n', t) for t in outside.files.values()]
    assert [call[1] for call in calls if call] == list(inside.chunks)


def test_texts_are_data(answered: RunSet) -> None:
    items = items_in(answered)
    [sheet, *_] = unpacked(items.chunks[items.index["probes"][1]["models"][0]["part"]])
    hostile = "</script><img src=x onerror=alert(1)>\\u2028<!-- \\ud800"
    assert sheet["answers"]["words"][0][1] == hostile
    names = {"probe": "</script><img>", "model": "<!--<script>"}
    renamed = replace(answered, runs=tuple(replace(run, **names) for run in answered.runs))
    for results in (answered, renamed):
        html = to_html(results, [], items_in(results))
        assert html.count("<script") == html.count("</script>") == 2 + len(items_in(results).chunks)
        assert "<img" not in html
        assert visible(html) == html


def test_without_answers_there_is_no_section(answered: RunSet) -> None:
    assert items_of(replace(answered, folder=None)) is None
    assert 'id="items"' not in to_html(answered, [])


@pytest.mark.thorough
def test_the_report_writes_the_files(answered: RunSet, monkeypatch: pytest.MonkeyPatch) -> None:
    items = items_in(answered, 0)
    monkeypatch.setattr(build, "items_of", lambda results: items_of(results, 0))
    assert answered.folder
    page = build_report(answered.folder)
    files = {path.name: path.read_text("utf-8") for path in (page.parent / "items").iterdir()}
    assert {f"items/{name}": text for name, text in files.items()} == items.files
    text = page.read_text("utf-8")
    assert re.findall('<section id="(overview|items|before)"', text) == [
        "overview",
        "items",
        "before",
    ]
    assert '<a href="#items">' in text
