from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from typing import Any

import pytest

from probelight.io.escaping import visible
from probelight.reports.build import build_report
from probelight.reports.explorer.section import Explorer, explorer
from probelight.results.load import Results


def unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text, validate=True)))


def index_of(made: Explorer) -> Any:
    found = re.search(r'<script type="application/json" id="items-index">(.*?)</script>', made.html)
    assert found
    return json.loads(found[1])


def parts_of(html: str) -> list[Any]:
    found = re.findall(
        r'<script type="application/octet-stream" id="items-part-(\d+)">(.*?)<', html
    )
    assert [int(number) for number, _ in found] == list(range(len(found)))
    return [unpacked(text) for _, text in found]


def test_the_page_holds_every_item_and_answer(answered: Results) -> None:
    made = explorer(answered)
    assert made.files == {}
    parts = parts_of(made.html)
    [probe, *_] = index_of(made)["probes"]
    items = parts[probe["part"]]
    assert items["question"] == [f"Question {place}?" for place in range(4)]
    assert items["choices"] == [["a", "b"]] * 4
    assert (items["group"], items["hops"]) == (["c0", "c0", "c1", "c1"], [0, 1, 0, 1])
    assert "expected" not in items
    [model] = probe["models"]
    sheets = parts[model["part"]]
    assert [sheet["items"] for sheet in sheets] == [{"row": [0, 4]}] * 4
    after, before = model["shown"]
    assert model["sheets"][after]["label"].startswith("after 100 examples")
    assert model["sheets"][before]["label"] == "before inoculation"
    assert sheets[after]["answers"]["said"] == [1, 0, 0, 0]


def test_beyond_a_size_the_data_are_files_beside_the_page(answered: Results) -> None:
    inside = explorer(answered)
    size = sum(map(len, re.findall(r'id="items-part-\d+">(.*?)<', inside.html)))
    assert explorer(answered, size) == inside
    beside = explorer(answered, size - 1)
    assert parts_of(beside.html) == []
    assert index_of(beside) == index_of(inside) | {"folder": "items"}
    calls = [re.fullmatch(r'probelightItems\((\d+),"(.*)"\);\n', t) for t in beside.files.values()]
    assert [unpacked(call[2]) for call in calls if call] == parts_of(inside.html)
    assert list(beside.files) == [f"items/{number}.js" for number in range(len(calls))]


def test_texts_are_data(answered: Results) -> None:
    html = explorer(answered).html
    assert html.count("<script") == html.count("</script>") == 2 + len(parts_of(html))
    assert "<img" not in html
    assert visible(html) == html
    words = parts_of(html)[index_of(explorer(answered))["probes"][1]["models"][0]["part"]]
    said = words[0]["answers"]["words"][0][1]
    assert said == "</script><img src=x onerror=alert(1)>\\u2028<!-- \\ud800"
    hostile = tuple(
        replace(run, probe="</script><img>", model="<!--<script>") for run in answered.runs
    )
    html = explorer(replace(answered, runs=hostile)).html
    assert html.count("<script") == html.count("</script>") == 2 + len(parts_of(html))
    assert "<img" not in html


def test_without_answers_there_is_no_section(answered: Results) -> None:
    assert explorer(replace(answered, folder=None)) == Explorer(explorer(answered).html[:0], {})


def test_runs_that_are_not_shown_are_named(answered: Results) -> None:
    assert "left no answers in predictions.jsonl" in explorer(answered).html


def test_the_report_writes_the_files(answered: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    made = explorer(answered, 0)
    monkeypatch.setattr(
        "probelight.reports.explorer.section.explorer", lambda results: explorer(results, 0)
    )
    assert answered.folder
    page = build_report(answered.folder)
    found = {path.name: path.read_text("utf-8") for path in (page.parent / "items").iterdir()}
    assert {f"items/{name}": text for name, text in found.items()} == made.files
    text = page.read_text("utf-8")
    assert text.index('<section id="items">') < text.index('<section id="provenance">')
    assert '<a href="#items">' in text
