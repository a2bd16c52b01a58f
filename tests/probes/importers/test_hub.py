from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pytest

from probelight.io.download import DownloadError
from probelight.io.errors import RecordError
from probelight.probes.catalog import HubSource, ProbeConfig
from probelight.probes.importers.items import read_hub
from probelight.probes.record import Record
from probelight.probes.source import load_probe

ARC = {
    "id": "Mercury_1", "question": "Which?", "answerKey": "3",
    "choices": {"text": ["a", "b", "c"], "label": ["1", "2", "3"]},
}  # fmt: skip
OPENBOOKQA = {
    "id": "7-980", "question_stem": "The sun is", "answerKey": "A",
    "choices": {"text": ["hot", "cold"], "label": ["A", "B"]},
}  # fmt: skip
SCIQ = {
    "question": "What gas?", "distractor1": "argon", "distractor2": "neon", "distractor3": "xenon",
    "correct_answer": "oxygen", "support": "",
}  # fmt: skip
RACE = {
    "example_id": "high1.txt", "article": "It rained.", "answer": "B",
    "question": "The weather was _ .", "options": ["dry", "wet", "hot", "cold"],
}  # fmt: skip


def hub(folder: Path, *rows: dict[str, Any]) -> HubSource:
    folder.mkdir(exist_ok=True)
    (folder / "train.json").write_text("\n".join(json.dumps(row) for row in rows))
    return HubSource(str(folder), {"train": "train"})


def read(
    source: HubSource, folder: Path, offline: bool | None = None, **config: Any
) -> tuple[Record, ...]:
    probe = replace(ProbeConfig("p", "mc_qa", 5, 0.2, hub=source), **config)
    return read_hub(probe, "train", cache_dir=folder / "cache", offline=offline).records


def race(question: str, choice: str) -> Record:
    choices = tuple(choice.format(word) for word in RACE["options"])
    meta = {"source": "high1.txt", "question": question}
    return Record("p-1", "It rained.", choices, 1, meta, 1)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (ARC, Record("Mercury_1", "Which?", ("a", "b", "c"), 2, {}, 1)),
        (OPENBOOKQA, Record("7-980", "The sun is", ("hot", "cold"), 0, {}, 1)),
        (RACE, race("The weather was _ .", "The weather was {} .")),
        (RACE | {"question": "And now?"}, race("And now?", "And now? {}")),
    ],
)
def test_known_layouts_are_records(tmp_path: Path, row: dict[str, Any], expected: Record) -> None:
    assert read(hub(tmp_path / "data", row), tmp_path) == (expected,)


def test_sciq_answers_are_not_always_first(tmp_path: Path) -> None:
    rows = [SCIQ | {"question": f"Which gas {number}?"} for number in range(200)]
    records = read(hub(tmp_path / "data", *rows), tmp_path)
    assert all(record.gold == "oxygen" for record in records)
    assert all(sorted(r.choices) == ["argon", "neon", "oxygen", "xenon"] for r in records)
    places = [sum(record.answer == index for record in records) for index in range(4)]
    assert min(places) > 30
    assert records == read(hub(tmp_path / "again", *rows), tmp_path)


def test_a_malformed_row_is_named_with_the_way_to_leave_it_out(tmp_path: Path) -> None:
    source = hub(tmp_path / "data", SCIQ, SCIQ | {"distractor1": "oxygen"})
    with pytest.raises(
        RecordError, match=r"train:2: the gold .* twice.*`leave_out: \{train: \[2\]"
    ):
        read(source, tmp_path)
    assert [record.position for record in read(source, tmp_path, leave_out={"train": (2,)})] == [1]


def test_unknown_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        RecordError, match=r"data, split train:1: no column for the gold: .* There are text$"
    ):
        read(hub(tmp_path / "data", {"text": "x"}), tmp_path)


def test_offline_asks_nobody_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups = []
    monkeypatch.setattr("socket.getaddrinfo", lambda *address, **_: lookups.append(address))
    # As in a process that was started without HF_HUB_OFFLINE.
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(DownloadError, match=r"no/such: could not be loaded from the local c.*--m"):
        read(HubSource("no/such", {"train": "train"}), tmp_path, offline=True)
    assert lookups == []
    assert not datasets.config.HF_HUB_OFFLINE


def test_a_probe_on_the_hub_needs_only_its_config(tmp_path: Path) -> None:
    source = hub(tmp_path / "data", ARC, ARC)
    config = tmp_path / "mine.yaml"
    config.write_text(
        f"setup: mc_qa\nnum_choices: 4\nchance: 0.25\n"
        f"hub: {{repo: '{source.repo}', splits: {{train: train}}}}\nleave_out: {{train: []}}\n"
    )
    with pytest.raises(RecordError, match="train:2: line 1 has the id 'Mercury_1' too"):
        load_probe(config, "train", cache_dir=tmp_path / "cache")
    config.write_text(config.read_text() + "ids_repeat: true\n")
    data = load_probe(config, "train", cache_dir=tmp_path / "cache")
    assert (len(data.records), data.notices) == (2, ("1 ids repeat",))
    [file] = data.files
    assert (file.path, file.num_items) == (f"hub:{source.repo}/train", 2)


def test_rows_of_blimp_are_minimal_pairs(tmp_path: Path) -> None:
    row = {"sentence_good": "a b", "sentence_bad": "b a", "UID": "order", "pairID": "3"}
    records = read(hub(tmp_path / "data", row), tmp_path, setup="minimal_pair")
    assert records == (Record("order-3", "", ("a b", "b a"), 0, {"paradigm": "order"}, 1),)


def test_a_named_layout_needs_its_columns(tmp_path: Path) -> None:
    row = {"ctx": "A cat", "endings": ["sits.", "flies."], "label": "0"}
    source = hub(tmp_path / "data", row)
    assert read(source, tmp_path)[0].choices == ("sits.", "flies.")
    with pytest.raises(RecordError, match="no column activity_label, ctx_a, ctx_b, which the lay"):
        read(source, tmp_path, layout="hellaswag")


def test_a_gold_that_is_two_choices_is_allowed_where_the_config_says_so(tmp_path: Path) -> None:
    rows = [{"question": f"{n}?", "choices": ["0", "1", "1"], "answer": n} for n in (0, 1)]
    source = hub(tmp_path / "data", *rows)
    with pytest.raises(RecordError, match="train:2: the gold choice '1' appears twice"):
        read(source, tmp_path, gold="index")
    probe = ProbeConfig("p", "mc_qa", 5, 0.2, hub=source, gold="index", golds_repeat=True)
    items = read_hub(probe, "train", cache_dir=tmp_path / "cache")
    assert [record.answer for record in items.records] == [0, 1]
    assert any("1 items have the gold as two choices" in notice for notice in items.notices)
