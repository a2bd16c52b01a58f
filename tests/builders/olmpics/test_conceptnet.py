from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

from probelight.builders.olmpics.property_conjunction import Edge, read_conceptnet
from probelight.io.errors import RecordError

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
