from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.errors import RecordError
from probelight.results.importers.plain import read, read_gold

OBJECTS = '{"id": 1, "text": "A cat is an", "scores": {"animal": 0.9, "plant": 1e-9}, "by": "m"}\n'
LISTS = '{"id": "2", "candidates": ["plant", "cät"], "scores": [0.7, "0.3"], "gold": " cät"}\n'
LONG = "ID,candidate,score,gold\n1,animal,0.9,\n1,plant,0.1,\n2,plant,0.7,cät\n2,cät,0.3,cät\n"
WIDE = "id,animal,plant,cät,Gold\n1,0.9,0.1,,\n2,,0.7,0.3,cät\n"


def written(folder: Path, text: str, name: str = "scores.jsonl") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_of_json(tmp_path: Path) -> None:
    path = written(tmp_path, f"{OBJECTS}\n{LISTS}")
    found = read(path)
    first, second = found.answers
    assert (first.where, first.id, first.texts) == (f"{path}:1", "1", ("A cat is an",))
    assert (first.choices, first.scores, first.gold) == (("animal", "plant"), (0.9, 1e-9), None)
    assert (second.where, second.texts, second.gold) == (f"{path}:3", (), 1)
    assert (second.choices, second.scores) == (("plant", "cät"), (0.7, 0.3))
    assert found.notices == ("keys that are not read: by",)


@pytest.mark.parametrize("text", [LONG, WIDE])
def test_tables(text: str, tmp_path: Path) -> None:
    first, second = read(written(tmp_path, text, "scores.csv")).answers
    assert (first.id, first.choices, first.scores) == ("1", ("animal", "plant"), (0.9, 0.1))
    assert (second.choices, second.scores, second.gold) == (("plant", "cät"), (0.7, 0.3), 1)
    assert first.gold is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OBJECTS.replace("scores", "score"), ":1: `scores` is missing .did you mean 'score'"),
        (OBJECTS.replace("0.9", "NaN"), ":1: invalid JSON: NaN is not a JSON value"),
        (OBJECTS.replace("0.9", "true"), ":1: the score of 'animal' is True"),
        (OBJECTS.replace("0.9", "null"), ":1: the score of 'animal' is None"),
        (OBJECTS.replace("plant", "animal"), ":1: the key 'animal' is given twice"),
        (OBJECTS.replace('"text"', '"question": "x", "text"'), "text and question are the same"),
        (LISTS.replace("0.7, ", ""), ":1: 2 candidates, but 1 scores"),
        (LISTS.replace(" cät", "dog"), ":1: the gold 'dog' is none of the candidates"),
        (LISTS.replace('"plant", ', "1, "), ":1: a candidate is a number"),
        (LISTS.replace('"id": "2", ', ""), ":1: neither `id` nor `text` names the item"),
        ('{"id": "1", "scores": {"a": 1}}', r":1: 1 candidate\(s\); at least 2"),
        ('{"id": "1", "scores": 1}', ":1: `scores` is a number and `candidates` missing"),
        ('{"id": "1", "candidates": [], "scores": []}', r":1: 0 candidate\(s\); at least 2"),
        ("\n", ":1: the file is empty"),
        ("[]", ":1: a list, where an object"),
        (LONG.replace("score", "scor"), ":1: no column for the score .did you mean 'scor'"),
        (LONG.replace("1,plant", "1,animal"), ":3: its item has this choice at .*:2 too"),
        (LONG.replace("0.3,cät", "0.3,plant"), ":5: its item has another text or gold at .*:4"),
        (WIDE.replace("plant", "animal"), ":1: two columns are called the same"),
        (WIDE.replace("0.1", "m"), ":2: the score of 'plant' is 'm'"),
        (WIDE.replace("0.9,0.1", ","), r":2: 0 candidate\(s\); at least 2"),
        (WIDE.replace("1,0.9", ",0.9"), ":2: neither `id` nor `text` names the item"),
    ],
)
def test_odd_files_are_refused(text: str, said: str, tmp_path: Path) -> None:
    is_table = text.partition("\n")[0].lower().startswith("id,")
    with pytest.raises(RecordError, match=said):
        read(written(tmp_path, text, *["scores.csv"] * is_table))


def test_golds_of_a_second_file(tmp_path: Path) -> None:
    path = written(tmp_path, '{"text": "A  cat", "gold": "x"}\n{"id": 2, "gold": "y"}\n')
    found = read_gold(path)
    assert found.right == {"A cat": ("x", f"{path}:1"), "2": ("y", f"{path}:2")}
    # The same gold twice is no conflict.
    table = written(tmp_path, "id,gold\n1,x\n2,y\n1,x \n", "gold.csv")
    assert read_gold(table).right["2"] == ("y", f"{table}:3")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,gold\n1,x\n1,y\n", ":3: '1' has another gold, 'x', at .*:2"),
        ("id,gold\n1,\n", ":2: `gold` is missing"),
        ("name,gold\n1,x\n", ":2: `id` or `text` is missing"),
    ],
)
def test_odd_golds_are_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=said):
        read_gold(written(tmp_path, text, "gold.csv"))
