from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from probelight.build.hygiene import check_records, check_splits
from probelight.build.olmpics.objects import (
    OBJECTS_COMPARISON,
    OBJECTS_PATH,
    ObjectsSettings,
    build_objects,
    read_objects,
)
from probelight.io.errors import RecordError

SMALL = """\
object,metres,kind,source
ant,0.005,animal,a book
elephant,6,animal,"a book, ""page 2\"""
horse,2.4,animal,a book
pen,0.15,object,a book
city,45000,object,a book
egg,0.06,object,a book
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "objects.csv"
    path.write_text(SMALL)
    return path


def test_pairs_are_far_apart_and_in_both_orders(small: Path) -> None:
    probe = build_objects(ObjectsSettings(objects_path=str(small)))
    # Elephant and horse, pen and egg are within a factor of three.
    assert {record.stem: record.gold for record in probe["train"]} == {
        f"The size of an ant is usually much [MASK] than the size of {other} .": "smaller"
        for other in ("an elephant", "a horse")
    } | {
        f"The size of {other} is usually much [MASK] than the size of an ant .": "larger"
        for other in ("an elephant", "a horse")
    }
    assert {frozenset(record.meta["arguments"]) for record in probe["dev"]} == {
        frozenset({"city", "pen"}),
        frozenset({"city", "egg"}),
    }
    near = build_objects(ObjectsSettings(objects_path=str(small), min_ratio=2.0))
    assert len(near["train"]) == len(near["dev"]) == 6


def test_our_own_list_gives_the_papers_sizes_and_every_answer_follows_from_it() -> None:
    objects = {one.name: one for one in read_objects(OBJECTS_PATH)}
    assert Counter(one.kind for one in objects.values()) == {"animal": 122, "object": 112}
    paper = ("nail", "pen", "laptop", "table", "house", "airplane", "city", "sun")
    assert [objects[name].metres for name in paper] == sorted(objects[n].metres for n in paper)
    probe = build_objects(ObjectsSettings(num_test=300))
    assert [len(rows) for rows in probe.values()] == [4_000, 500, 300]
    pattern = OBJECTS_COMPARISON.config["arguments"]
    for split, rows in probe.items():
        for record in rows:
            found = re.fullmatch(pattern, record.stem)
            assert found is not None
            first, second = (objects[name] for name in found.groups())
            assert [first.name, second.name] == record.meta["arguments"]
            assert {first.kind, second.kind} == {"animal" if split == "train" else "object"}
            assert record.gold == ("larger" if first.metres > second.metres else "smaller")
            ratio = first.metres / second.metres
            assert max(ratio, 1 / ratio) >= 2.999
        assert check_records(rows) == []
    assert check_splits(probe) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bee,0.01,animal", "3 cells; give object, metres, kind, source"),
        ("bee,0.01,animal,", "3 cells"),
        ("ant,0.01,animal,a book", "'ant' is there twice"),
        ("bee,small,animal,a book", "the size 'small'; give a number of metres above 0"),
        ("bee,nan,animal,a book", "the size 'nan'"),
        ("bee,-1,animal,a book", "the size '-1'"),
        ("bee,0.01,insect,a book", "the kind 'insect'; give animal or object"),
        ("", "0 cells"),
    ],
)
def test_a_malformed_line_is_named(small: Path, line: str, said: str) -> None:
    small.write_text(f"{SMALL}{line}\n")
    with pytest.raises(RecordError, match=re.escape(f"{small}:8: {said}")):
        read_objects(small)


def test_a_file_without_header_or_objects_is_refused(small: Path) -> None:
    small.write_text("ant,0.005,animal,a book\n")
    with pytest.raises(RecordError, match="1: the header is not object,metres,kind,source"):
        read_objects(small)
    small.write_text("")
    with pytest.raises(RecordError):
        read_objects(small)
    small.write_text("\n".join(SMALL.splitlines()[:4]) + "\n")
    with pytest.raises(RecordError, match="fewer than two lines of kind object"):
        read_objects(small)
