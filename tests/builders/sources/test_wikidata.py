from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probelight.builders.sources.wikidata import Facts, read_wikidata
from probelight.io.errors import RecordError

Statement = dict[str, Any]


def item(number: int, **more: Any) -> Statement:
    """A statement as the dump has it: "id" is missing in old ones."""
    value = {"entity-type": "item", "numeric-id": number}
    snak = {"snaktype": "value", "datavalue": {"value": value, "type": "wikibase-entityid"}}
    return {"mainsnak": snak, "type": "statement", "rank": "normal", **more}


def date(text: str, precision: int) -> Statement:
    value = {"time": text, "timezone": 0, "precision": precision}
    snak = {"snaktype": "value", "datavalue": {"value": value, "type": "time"}}
    return {"mainsnak": snak, "type": "statement", "rank": "normal"}


def entity(id: str, name: str, claims: Any = (), **more: Any) -> str:
    labels = {"de": {"language": "de", "value": "x"}, "en": {"language": "en", "value": name}}
    row = {"type": "item", "id": id, "labels": labels, "claims": claims or [], "sitelinks": []}
    return json.dumps(row | more, ensure_ascii=False)


UNKNOWN = {"mainsnak": {"snaktype": "somevalue"}, "rank": "normal"}
LENNON = entity(
    "Q1203",
    "John Lennon",
    {"P463": [item(1299), item(7, rank="deprecated"), UNKNOWN, item(1299)], "P21": [item(6)]},
    sitelinks={"enwiki": {}, "dewiki": {}},
)
BEATLES = entity(
    "Q1299",
    "The Beatles",
    {"P571": [date("+1960-08-00T00:00:00Z", 10), date("+1950-00-00T00:00:00Z", 8)]},
)
STRANGER = entity("Q2", "Nobody", {"P571": [date("+1900-00-00T00:00:00Z", 9)]})
OBSCURE = entity("Q3", "Someone", {"P463": [item(4)]}, sitelinks={"enwiki": {}})
WITHOUT = '{"id":"P463","type":"property","datatype":"wikibase-item","claims":{"P463":[]}}'
MUL = entity("Q6", "", labels={"mul": {"language": "mul", "value": "männlich"}})


def dump(*entities: str) -> bytes:
    return ("[\n" + ",\n".join(entities) + "\n]\n").encode()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_a_dump_is_read_for_links_then_for_what_they_link(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "dump"
    path.write_bytes(pack(dump(MUL, BEATLES, LENNON, STRANGER, OBSCURE, WITHOUT)))
    wikidata = read_wikidata(path, ["P463", "P21"], ["P571"], min_sitelinks=2)
    assert wikidata == Facts(
        {
            "P463": {"Q1203": ["Q1299"]},
            "P21": {"Q1203": ["Q6"]},
            "P571": {"Q1299": ["+1960-08-00T00:00:00Z"]},
        },
        {"Q6": "männlich", "Q1299": "The Beatles", "Q1203": "John Lennon"},
    )
    assert wikidata.values_of("Q3", "P463") == []
    assert wikidata.years("Q1299", "P571") == {"1960"}


def test_years_of_dates() -> None:
    dates = ["+0987-01-01T00:00:00Z", "1960", "-0044-03-15T00:00:00Z", "1969-01-02", "soon"]
    assert Facts({"P571": {"Q1": dates}}).years("Q1", "P571") == {"987", "1960", "1969"}


HEADER = "subject\tsubject_label\tproperty\tobject\tobject_label\n"
PLAIN = (
    HEADER
    + "Q1203\tJohn Lennon\tP463\tQ1299\tThe Beatles\n"
    + "Q1299\tThe Beatles\tP571\t1960-01-01T00:00:00Z\t\n"
    + "Q1299\tThe Beatles\tP999\tQ5\tno\n"
)
SERVICE = (
    "?object\t?property\t?subject\t?subject_label\t?object_label\t?more\n"
    "<http://www.wikidata.org/entity/Q1299>\t<http://www.wikidata.org/prop/direct/P463>\t"
    '<http://www.wikidata.org/entity/Q1203>\t"John Lennon"@en\t"The Beatles"@en\t1\n'
    '"1960-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>\t'
    "wdt:P571\twd:Q1299\tQ1299\t1960-01-01T00:00:00Z\t2\n"
)


@pytest.mark.parametrize("text", [PLAIN, SERVICE])
def test_a_table_of_triples(tmp_path: Path, text: str) -> None:
    path = tmp_path / "triples.tsv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    wikidata = read_wikidata(path, ["P463"], ["P571"], min_sitelinks=9)
    assert wikidata == Facts(
        {"P463": {"Q1203": ["Q1299"]}, "P571": {"Q1299": ["1960-01-01T00:00:00Z"]}},
        {"Q1203": "John Lennon", "Q1299": "The Beatles"},
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"dump: the file is empty"),
        (b"[\n{}x\n]", r"dump:2: not an entity, one JSON object per line: '\{\}x'"),
        (dump('{"P463"}'), r"dump:2: damaged JSON"),
        (dump('{"labels": {"P463": 1}}'), r'dump:2: an entity without an "id"'),
        (dump(entity("Q1", "x", {"P463": [{"rank": "x"}]})), r"dump:2: Q1 has P463 in an unknown"),
        (dump(LENNON)[:-2], r"dump:2: the dump is cut off, as it has no"),
        (b"John\tplays\n", r"dump:1: no column subject, subject_label, property, object, object_l"),
        (f"{HEADER}Q1\tx\tP1\n".encode(), r"dump:2: 3 columns between tabs; the header has 5"),
        (
            f"{HEADER}Lennon\tx\tP1\tQ1\ty\n".encode(),
            r"dump:2: 'Lennon', 'P1': the subject must be an id",
        ),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "dump").write_bytes(data)
    with pytest.raises(RecordError, match=message):
        read_wikidata(tmp_path / "dump", ["P463"], [])
