"""The GCIDE reader on a page in dictd's format."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from probelight.build.sources.gcide import read_gcide

PAGE = r"""
Gift \Gift\, n. [OE. gift, yift, fr. gifan to
   give; akin to D. & G. gift. See {Give}, v. t.]
   1. Anything given; a present; an
      offering.
      [1913 Webster]

            Shall I receive by gift, what of my own, . . .
            I can command ?                       --Milton.
      [1913 Webster]

   2. (Law) A transfer of property --Bouvier.
      [1913 Webster]

   4. Some quality; power; faculty;
      as, the gift of wit; a gift for speaking.
      [1913 Webster]

   {Gift rope} (Naut), a rope extended to a boat for towing it;
      [1913 Webster]

Gift \Gift\, v. t. [imp. & p. p. {Gifted}.]
   To endow with some power or faculty.
   [1913 Webster]

gifted \gifted\ adj. [Cf. See {gift}[4].]
   1. having unusual talent in some field.
   [PJC]

Untagged \Un*tag"ged\, a.
   Without a known source.

Go \Go\, v. i.
   To move; as, to go home; caf\u00e9.
   [1913 Webster]
""".replace("\\u00e9", "\u00e9")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "gcide.dict"
    path.write_text(PAGE, encoding="latin-1")
    return path


def test_senses_with_definitions_and_usages(page: Path) -> None:
    senses = [sense for sense in read_gcide(page) if sense.word == "Gift"]
    assert [(s.part_of_speech, s.number, s.definition) for s in senses] == [
        ("n", 1, "Anything given; a present; an offering"),
        ("n", 2, "(Law) A transfer of property"),  # subject labels stay
        ("n", 3, "Some quality; power; faculty"),
        ("v", 4, "To endow with some power or faculty"),
    ]
    assert senses[2].examples == ("the gift of wit", "a gift for speaking")
    assert senses[0].examples == ()


def test_only_the_public_domain_source_is_read_unless_asked(page: Path) -> None:
    assert {s.word for s in read_gcide(page)} == {"Gift", "Go"}
    everything = list(read_gcide(page, source=None))
    assert {s.word for s in everything} == {"Gift", "gifted", "Go"}
    assert [s.source for s in everything if s.word == "gifted"] == ["PJC"]


def test_the_packed_file_reads_the_same(page: Path) -> None:
    packed = page.with_suffix(".dz")
    packed.write_bytes(gzip.compress(page.read_bytes()))
    assert list(read_gcide(packed)) == list(read_gcide(page))


def test_a_missing_file_names_the_package(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="apt-get install dict-gcide"):
        list(read_gcide(tmp_path / "gcide.dict.dz"))


def test_senses_with_letters_in_brackets_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "gcide.dict"
    path.write_text(
        'Salad \\Sal"ad\\, n.\n   1. A dish named for C[ae]sar.\n   [1913 Webster]\n\n'
        "   2. A dish of herbs [raw].\n   [1913 Webster]\n"
    )
    texts = [sense.definition for sense in read_gcide(path)]
    assert texts == ["A dish named for Csar", "A dish of herbs"]
    assert [s.definition for s in read_gcide(path, spelled_out=False)] == ["A dish of herbs"]
