from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from probelight.builders.sources.gcide import gnu_files, is_gnu, read_gcide, read_gnu_gcide

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


@pytest.fixture(params=["gcide.dict", "gcide.dict.dz"])
def page(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / request.param
    text = PAGE.encode("latin-1")
    path.write_bytes(gzip.compress(text) if path.suffix == ".dz" else text)
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


def test_senses_with_letters_in_brackets_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "gcide.dict"
    path.write_text(
        'Salad \\Sal"ad\\, n.\n   1. A dish named for C[ae]sar.\n   [1913 Webster]\n\n'
        "   2. A dish of herbs [raw].\n   [1913 Webster]\n"
    )
    texts = [sense.definition for sense in read_gcide(path)]
    assert texts == ["A dish named for Csar", "A dish of herbs"]
    assert [s.definition for s in read_gcide(path, spelled_out=False)] == ["A dish of herbs"]


GIFT = """
<-- p. 625 pr=ABC --><p><centered><point26>G.</point26></centered><br/
[<source>1913 Webster</source>]</p>

<p><ent>Gift</ent><br/
<hw>Gift</hw> <pr>(g<icr/ft)</pr>, <pos>n.</pos> <ety>[OE. <ets>gift</ets>, fr. <ets>gifan</ets> to
give. See <er>Give</er>, <pos>v. t.</pos>]</ety> <sn>1.</sn> <def>Anything given; a
present.</def><br/
[<source>1913 Webster</source>]</p>

<p><q>Shall I receive by <qex>gift</qex>, what of my own?</q> <rj><qau>Milton.</qau></rj><br/
[<source>1913 Webster</source>]</p>

<p><sn>2.</sn> <fld>(Law)</fld> <sd>(a)</sd> <def>A transfer; <as>as, a <ex>gift</ex> of land; a
deed of <ex>gift</ex>.</as></def> <sd>(b)</sd> <def>The right to give; as a benefice & so
on.</def> <ldquo/The <xex>gift</xex> of a living.<rdquo/ <rj><au>Hume.</au></rj><br/
[<source>1913 Webster</source>]</p>

<p><cs><col><b>Gift rope</b></col> <fld>(Naut)</fld>, <cd>a rope for towing; <as>as, to throw a
<ex>gift rope</ex></as>.</cd></cs><br/
[<source>1913 Webster</source>]</p>

<p><ent>Gift</ent><br/
<hw>Gift</hw>, <pos>v. t.</pos> <vmorph>[<pos>imp. & p. p.</pos> <conjf>Gifted</conjf>.]</vmorph>
<def>To endow with some power.</def> -- <def2><pos>adv.</pos> <def>As a prot<eacute/g<eacute/ of
C<ae/sar's, at 45<deg/.</def></def2><br/
[<source>1913 Webster</source>]</p>

<p><ent>Gifted</ent><br/
<hw>gift"ed</hw> <pos>adj.</pos> <def>A.</def> <def>having talent.</def><br/
[<source>1913 Webster</source> <source>+PJC</source>]</p>

<p><ent>Untagged</ent><br/
<hw>Untagged</hw>, <pos>a.</pos> <def>Without a known source.</def></p>
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "CIDE.G").write_text(GIFT)
    (tmp_path / "CIDE.A.gz").write_bytes(
        gzip.compress(
            "<p><ent>Apt</ent><br/\n<hw>Apt</hw>, <pos>a.</pos> <def>Fit; caf\u00e9.</def><br/\n"
            "[<source>1913 Webster</source>]</p>\n".encode("latin-1")
        )
    )
    (tmp_path / "README").write_text("<p><ent>No</ent><def>Not read.</def></p>")
    return tmp_path


def test_senses_of_gnu_with_definitions_and_usages(folder: Path) -> None:
    senses = list(read_gnu_gcide(folder))
    assert [(s.word, s.part_of_speech, s.number, s.definition) for s in senses] == [
        ("Apt", "a", 1, "Fit; caf\u00e9"),
        ("Gift", "n", 1, "Anything given; a present"),
        ("Gift", "n", 2, "A transfer"),
        ("Gift", "n", 3, "The right to give; as a benefice & so on"),
        ("Gift", "v", 4, "To endow with some power"),
        ("Gift", "adv", 5, "As a prot\u00e9g\u00e9 of C\u00e6sar's, at 45\u00b0"),
    ]
    assert [s.examples for s in senses if s.examples] == [
        ("a gift of land", "a deed of gift"),
        ("The gift of a living",),
    ]


def test_the_source_of_a_paragraph_is_asked_for(folder: Path) -> None:
    senses = [s for s in read_gnu_gcide(folder, None) if s.source != "1913 Webster"]
    assert [(s.word, s.part_of_speech, s.source) for s in senses] == [
        ("Gifted", "adj", "1913 Webster +PJC")
    ]


def test_one_file_or_all(folder: Path) -> None:
    assert [path.name for path in gnu_files(folder)] == ["CIDE.A.gz", "CIDE.G"]
    assert {s.word for s in read_gnu_gcide(folder / "CIDE.G")} == {"Gift"}
    assert is_gnu(folder)
    assert is_gnu(folder / "CIDE.A.gz")
    assert not is_gnu(folder / "gcide.dict.dz")
