from __future__ import annotations

import bz2
import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from probelight import cli
from probelight.builders.hygiene import check_records, check_splits
from probelight.builders.olmpics.property_conjunction import (
    PROPERTY_CONJUNCTION,
    ConjunctionSettings,
    Edge,
    Property,
    build_conjunction,
    check_properties,
    gather_properties,
    read_conceptnet,
    share_a_word,
)
from probelight.io.errors import RecordError
from probelight.io.files import sha256_of
from probelight.probes.controls import vary
from probelight.probes.source import load_probe

PLACES, USES = ("desk", "garden", "kitchen", "sea"), ("writing", "eating", "reading", "fishing")
SIZES = {"num_train": 8, "num_dev": 4, "num_test": 0, "min_statements": 1}


def edges() -> list[Edge]:
    """Of every place and use three things that have both: thing 0..47, named by letters."""
    statements = []
    for number in range(48):
        name = f"thing{chr(97 + number // 10)}{chr(97 + number % 10)}"
        statements.append(Edge("AtLocation", name, PLACES[number % 4], 2.0))
        statements.append(Edge("UsedFor", name, USES[number // 4 % 4], 3.0))
    return statements


def line(edge: Edge) -> str:
    start, end = (f"/c/en/{text.replace(' ', '_')}" for text in (edge.start, edge.end))
    return f'/a/[...]\t/r/{edge.relation}\t{start}\t{end}\t{{"weight": {edge.weight}}}\n'


def write_source(folder: Path, statements: Sequence[Edge]) -> str:
    path = folder / "assertions.csv.gz"
    path.write_bytes(gzip.compress("".join(map(line, statements)).encode()))
    return str(path)


def test_a_hint_that_a_concept_has_a_property() -> None:
    graph = gather_properties(
        [
            Edge("UsedFor", "pen", "writing", 2.0),
            Edge("Synonym", "biro", "pen", 0.5),
            Edge("IsA", "quill", "old pen", 1.0),
            Edge("IsA", "old pen", "pen", 1.0),
            Edge("Synonym", "writing", "penmanship", 1.0),
            Edge("RelatedTo", "writing", "author", 0.1),
            Edge("AtLocation", "pen", "pen case", 4.0),
            Edge("AtLocation", "spoon", "hand", 1.5),
            Edge("IsA", "pen", "tool", 0.5),
            Edge("IsA", "brush", "tool", 0.5),
        ],
        min_weight=2.0,
    )
    writing = Property("UsedFor", "writing")
    assert dict(graph.holders) == {writing: ["pen"]}  # a pen case has the pen in its name
    having = ["pen", "biro", "quill", "author", "penmanship", "writing desk", "brush"]
    assert [name for name in [*having, "spoon", "hand"] if graph.may_have(name, writing)] == having
    assert graph.are_kin("biro", "pen")
    assert graph.are_kin("pen", "old pen")
    assert not graph.are_kin("spoon", "pen")
    assert graph.num_statements["pen"] == 5
    assert share_a_word("a pair of pens", "the pen")
    assert not share_a_word("part of", "bit of")
    assert str(writing) == "usually used for writing"


def test_what_one_of_a_wide_kind_has_says_nothing_of_the_others() -> None:
    pen = [Edge("UsedFor", "pen", "writing", 2.0), Edge("IsA", "pen", "tool", 1.0)]
    pen.append(Edge("RelatedTo", "pen", "ink", 2.0))
    writing = Property("UsedFor", "writing")
    for number, has in ((99, True), (100, False)):
        tools = [Edge("IsA", f"tool {n}", "tool", 1.0) for n in range(number)]
        properties = gather_properties([*pen, *tools, *tools], 2.0)
        assert properties.may_have("tool 0", writing) is has
        assert not properties.may_have("tool 0", Property("RelatedTo", "ink"))


def test_each_wrong_answer_has_one_property(tmp_path: Path) -> None:
    settings = ConjunctionSettings(source=write_source(tmp_path, edges()), **SIZES)
    probe = build_conjunction(settings)
    has = {(edge.start, edge.relation, edge.end) for edge in edges()}
    assert {split: len(records) for split, records in probe.items()} == {"train": 8, "dev": 4}
    for record in [*probe["train"], *probe["dev"]]:
        location = next(name for name in PLACES if f"usually located at {name}" in record.stem)
        use = next(name for name in USES if f"usually used for {name}" in record.stem)
        properties = ("AtLocation", location), ("UsedFor", use)
        truths = [tuple((name, *prop) in has for prop in properties) for name in record.choices]
        assert truths[record.answer] == (True, True)
        assert sorted(truths) == [(False, True), (True, False), (True, True)]
        place_is_first = record.stem.startswith("What is usually located at")
        first = record.choices.index(record.meta["first_distractor"])
        assert truths[first] == (place_is_first, not place_is_first)
    concepts = [{name for r in records for name in r.choices} for records in probe.values()]
    assert concepts[0].isdisjoint(concepts[1])
    assert not check_splits(probe)
    assert not check_records(probe["train"])
    assert check_properties(settings, probe["train"]) == []
    record = probe["train"][0]
    swapped = replace(record, answer=record.choices.index(record.wrong[0]))
    checks = [finding.check for finding in check_properties(settings, [swapped])]
    assert checks[0] == "a right answer is wrong (ConceptNet)"
    assert "a wrong answer is right (ConceptNet)" in checks[1:]


def test_a_weak_statement_is_no_property_but_forbids_a_wrong_answer(tmp_path: Path) -> None:
    weak = [Edge("RelatedTo", f"thing{a}{b}", "sea", 0.1) for a in "abcde" for b in "abcdefghij"]
    source = write_source(tmp_path, [*edges(), *weak])
    probe = build_conjunction(ConjunctionSettings(source=source, **SIZES | {"num_dev": 2}))
    stems = [record.stem for records in probe.values() for record in records]
    assert not any("located at sea" in stem for stem in stems)  # nothing surely lacks it


def test_the_command_builds_the_same_bytes_and_the_variant(tmp_path: Path) -> None:
    line = ["probes", "build", PROPERTY_CONJUNCTION.name]
    line += [f"--{name}={value}" for name, value in SIZES.items()]
    line += [f"--source={write_source(tmp_path, edges())}", "--seed=3"]
    for folder in ("a", "b"):
        assert cli.main([*line, f"--output_dir={tmp_path / folder}"]) == 0
    files = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.*")]
    assert len(files) == 4
    for name in files:
        assert sha256_of(tmp_path / "a" / name) == sha256_of(tmp_path / "b" / name)
    data = load_probe(str(tmp_path / "a/property_conjunction/property_conjunction.yaml"), "dev")
    for record, varied in zip(data.records, vary(data, "but_not").records, strict=True):
        assert varied.stem == record.stem.replace(" and is ", " but is not ")
        assert varied.gold == record.meta["first_distractor"]


FACTS = '{"dataset": "/d/conceptnet/4/en", "license": "cc:by-sa/4.0", "weight": 2.828}'
LINES = (
    "/a/[/r/Antonym/,/c/ab/агыруа/n/,/c/ab/аҧсуа/]\t/r/Antonym\t/c/ab/агыруа/n\t/c/ab/аҧсуа\t{}",
    f"/a/[...]\t/r/UsedFor\t/c/en/fountain_pen/n/wn/artifact\t/c/en/writing\t{FACTS}",
    f"/a/[...]\t/r/UsedFor\t/c/fr/stylo\t/c/en/writing\t{FACTS}",
    '/a/[...]\t/r/ExternalURL\t/c/en/pen\thttp://dbpedia.org/resource/Pen\t{"weight": 1.0}',
    '/a/[...]\t/r/AtLocation\t/c/en/pen\t/c/en/desk/n\t{"weight": 1.0, "surfaceText": "[[a pen]]"}',
)


def write_file(path: Path, *lines: str) -> Path:
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return path


def test_english_statements_of_the_relations_asked_for(tmp_path: Path) -> None:
    path = write_file(tmp_path / "assertions.csv.gz", *LINES)
    used = Edge("UsedFor", "fountain pen", "writing", 2.828)
    at = Edge("AtLocation", "pen", "desk", 1)
    assert list(read_conceptnet(path, ["UsedFor", "AtLocation"])) == [used, at]
    assert list(read_conceptnet(path, ["AtLocation"])) == [at]
    path.write_bytes(bz2.compress(gzip.decompress(path.read_bytes())))
    assert list(read_conceptnet(path, ["AtLocation"])) == [at]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/a/[...]\t/r/UsedFor\t/c/en/pen\t/c/en/writing", "4 columns between tabs; 5"),
        ("", "1 columns between tabs"),
        ("uri\trelation\tstart\tend\tfacts", "'relation' is not a relation"),
        (
            "/a/[...]\t/r/UsedFor\t/c/en/pen\t/c/en/writing\t{}",
            "must be JSON with a \"weight\": '{}'",
        ),
        ("/a/[...]\t/r/UsedFor\t/c/en/pen\t/c/en/writing\t[1", "must be JSON"),
        ('/a/[...]\t/r/UsedFor\t/c/en/pen\t/c/en/writing\t{"weight": NaN}', "must be JSON"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = write_file(tmp_path / "assertions.csv.gz", *LINES, line)
    with pytest.raises(RecordError, match=r"assertions\.csv\.gz:6: ") as caught:
        list(read_conceptnet(path, ["UsedFor"]))
    assert message in str(caught.value)
