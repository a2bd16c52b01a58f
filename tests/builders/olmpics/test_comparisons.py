from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from probelight.builders.catalogue import builder_of
from probelight.builders.hygiene import check_records, check_splits
from probelight.builders.olmpics.comparisons import (
    OBJECTS_PATH,
    AgeSettings,
    MultihopSettings,
    ObjectsSettings,
    build_ages,
    build_multihop,
    build_objects,
    read_objects,
)
from probelight.builders.olmpics.frame import article
from probelight.io.errors import RecordError
from probelight.probes.record import Record

SMALL = {"num_train": 200, "num_dev": 40, "num_test": 100}


def numbers(record: Record) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", record.stem)]


def found_arguments(probe: str, record: Record) -> list[str]:
    """The arguments that exactly one of a builder's patterns finds in the whole stem."""
    patterns = builder_of(probe).config["arguments"]
    every = patterns.values() if isinstance(patterns, dict) else [patterns]
    [match] = [m for pattern in every if (m := re.fullmatch(pattern, record.stem))]
    return [group for group in match.groups() if group]


@pytest.mark.parametrize(
    ("panel", "high_is"), [("A", "older"), ("B", "younger"), ("C", "older"), ("D", "younger")]
)
def test_the_older_is_gold_as_the_sentence_says(panel: Any, high_is: str) -> None:
    ranges = ((1920, 1976), (1977, 2000)) if panel in "BC" else ((43, 120), (15, 38))
    probe = build_ages(AgeSettings(perturbation=panel, **SMALL))
    assert list(probe) == ["train", "dev", "test"]
    assert [len(rows) for rows in probe.values()] == [200, 40, 100]
    low_is = "younger" if high_is == "older" else "older"
    for split, rows in probe.items():
        low, high = ranges[split != "train"]
        for record in rows:
            a, b = numbers(record)
            assert record.gold == (high_is if a > b else low_is)
            assert low <= min(a, b) < max(a, b) <= high
            assert record.meta["arguments"] == [a, b]
            assert found_arguments("age_comparison", record) == [str(a), str(b)]
            assert ("born" in record.stem) == (panel in "BD")
        golds = Counter(record.gold for record in rows)
        assert golds["older"] == golds["younger"]
        assert check_records(rows) == []
    assert check_splits(probe) == []
    pairs = [{frozenset(numbers(r)) for r in rows} for rows in probe.values()]
    assert [len(ages) for ages in pairs] == [100, 20, 50]
    assert not pairs[1] & pairs[2]


def test_released_wording_or_the_papers_with_articles() -> None:
    stems = {
        "released": "A 21 year old person age is [MASK] than an 18 year old person .",
        "paper": "An 18 year old person is [MASK] than me in age, If I am a 35 year old person.",
    }
    for wording, stem in stems.items():
        settings: Any = {"num_train": 2, "num_dev": 600, "wording": wording}
        rows = build_ages(AgeSettings(**settings))["dev"]
        assert len(rows) == 24 * 23
        assert stem in {record.stem for record in rows}
        for record in rows:
            assert [*map(int, found_arguments("age_comparison", record))] == numbers(record)


def test_the_oldest_of_three_is_gold_and_answers_are_even() -> None:
    probe = build_multihop(MultihopSettings(num_train=60, num_dev=30, num_test=90))
    for rows in probe.values():
        for record in rows:
            three = numbers(record)
            assert len(set(three)) == 3
            assert [*map(int, found_arguments("multihop_composition", record))] == three
            assert record.meta["arguments"] == three
            assert record.gold == ("first", "second", "third")[three.index(max(three))]
        assert len(set(Counter(r.gold for r in rows).values())) == 1
    assert [len(rows) for rows in probe.values()] == [60, 30, 90]


OBJECTS = """\
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
    path.write_text(OBJECTS)
    return path


def test_pairs_are_far_apart_and_in_both_orders(small: Path) -> None:
    probe = build_objects(ObjectsSettings(objects_path=str(small)))
    # Elephant and horse, pen and egg are within a factor of three.
    stem = "The size of {} is usually much [MASK] than the size of {} ."
    expected: dict[str, str] = {}
    for large in ("an elephant", "a horse"):
        expected[stem.format("an ant", large)] = "smaller"
        expected[stem.format(large, "an ant")] = "larger"
    assert {record.stem: record.gold for record in probe["train"]} == expected
    pairs = {tuple(sorted(record.meta["arguments"])) for record in probe["dev"]}
    assert pairs == {("city", "pen"), ("city", "egg")}
    near = build_objects(ObjectsSettings(objects_path=str(small), min_ratio=2.0))
    assert len(near["train"]) == len(near["dev"]) == 6


@pytest.mark.thorough
def test_our_own_list_gives_the_papers_sizes_and_every_answer_follows_from_it() -> None:
    objects = read_objects(OBJECTS_PATH)
    assert {kind: len(names) for kind, names in objects.items()} == {"animal": 122, "object": 112}
    paper = ("nail", "pen", "laptop", "table", "house", "airplane", "city", "sun")
    assert [name for name in objects["object"] if name in paper] == list(paper)
    probe = build_objects(ObjectsSettings(num_test=300))
    assert [len(rows) for rows in probe.values()] == [4_000, 500, 300]
    for split, rows in probe.items():
        for record in rows:
            arguments = found_arguments("objects_comparison", record)
            assert arguments == record.meta["arguments"]
            of_kind = objects["animal" if split == "train" else "object"]
            first, second = (of_kind[name] for name in arguments)
            assert record.gold == ("larger" if first > second else "smaller")
            assert max(first / second, second / first) >= 2.999
        assert check_records(rows) == []
    assert check_splits(probe) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{OBJECTS}bee,0.01,animal", ":8: 3 cell(s), where the header has 4"),
        (f"{OBJECTS}bee,0.01,animal,", ":8: a cell is empty; write object, metres, kind, source"),
        (f"{OBJECTS}ant,0.01,animal,a book", ":8: 'ant' is repeated"),
        (f"{OBJECTS}bee,small,animal,a book", ":8: the size is 'small'; write a number of metres"),
        (f"{OBJECTS}bee,nan,animal,a book", ":8: the size is 'nan'"),
        (f"{OBJECTS}bee,-1,animal,a book", ":8: the size is '-1'"),
        (f"{OBJECTS}bee,0.01,insect,a book", ":8: the kind is 'insect'; write animal or object"),
        ("ant,0.005,animal,a book\n" * 2, ":1: the header must be object,metres,kind,source"),
        ("", ":1: a header and rows are needed"),
        ("\n".join(OBJECTS.splitlines()[:4]), ": fewer than two lines of the kind object"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(small: Path, text: str, message: str) -> None:
    small.write_text(text)
    with pytest.raises(RecordError, match=re.escape(f"{small}{message}")):
        read_objects(small)


def test_the_article_of_numbers_goes_by_their_sound() -> None:
    for word in "8 11 18 80 apple uncle hour".split():
        assert article(word) == "an"
    for word in "110 21 ferry uniform hound".split():
        assert article(word) == "a"
