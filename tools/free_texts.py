"""Free texts in Debian's packages: running prose for pre-training, in short documents.

Every text is in the public domain; `FREE_TEXTS` names each with the package that holds it.
"""

from __future__ import annotations

import gzip
import html
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

from tools.documents import Document

_DOCUMENT = 450  # characters: about 110 pieces, within one training example


@dataclass(frozen=True)
class FreeText:
    """A text in the public domain, and where a Debian package installs it."""

    title: str
    package: str
    path: str  # from the root folder of the installed packages
    pattern: str = r"(.*)"  # the text is the first group of each match


_GO = "usr/share/gocode/src/github.com"
_GUTENBERG = (
    r"\*\*\* ?START OF THIS PROJECT GUTENBERG[^\n]*(.*?)"
    r"(?:\*\*\* ?END OF THIS PROJECT|End of (?:the )?Project)"
)
FREE_TEXTS = {
    "world_english_bible": FreeText(
        "The World English Bible",
        "sword-text-web",
        "usr/share/sword/modules/texts/ztext/engWEB2015eb",
    ),
    "austen": FreeText(
        "Jane Austen, six novels",
        "r-cran-janeaustenr",
        "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb",
    ),
    "poe": FreeText(
        "Edgar Allan Poe, The Works",
        "liblingua-stem-perl",
        "usr/share/doc/liblingua-stem-perl/examples/collected_works_poe.txt",
        r"\*END\*THE SMALL PRINT[^\n]*(.*?)End of The Project Gutenberg",  # five volumes
    ),
    "moby_dick": FreeText(
        "Herman Melville, Moby Dick",
        "golang-github-colinmarc-hdfs-dev",
        f"{_GO}/colinmarc/hdfs/testdata/mobydick.txt",
        _GUTENBERG,
    ),
    "sherlock_holmes": FreeText(
        "Arthur Conan Doyle, The Adventures of Sherlock Holmes",
        "golang-github-jdkato-prose-dev",
        f"{_GO}/jdkato/prose/testdata/sherlock.txt",
        _GUTENBERG,
    ),
    "tom_sawyer": FreeText(
        "Mark Twain, The Adventures of Tom Sawyer",
        "golang-github-pierrec-lz4-dev",
        f"{_GO}/pierrec/lz4/testdata/Mark.Twain-Tom.Sawyer_long.txt",
        r"\A(.*?part of their lives at present\.)",  # the file repeats the book
    ),
    "alice": FreeText(
        "Lewis Carroll, Alice's Adventures in Wonderland",
        "pyro4-examples",
        "usr/share/doc/pyro4/examples/distributed-computing2/alice.zip",
        _GUTENBERG,
    ),
    "jargon_file": FreeText(
        "The Jargon File",
        "dict-jargon",
        "usr/share/dictd/jargon.dict.dz",
        r"(\n0\n.*)",  # what is before the first entry is about the file
    ),
}


def free_text_documents(name: str, root: Path | str = "/") -> Iterator[Document]:
    """Yield a text as documents of some sentences each, in the order of the text.

    Args:
        name: Of `FREE_TEXTS`.
        root: The folder under which the packages are installed or unpacked.

    Raises:
        FileNotFoundError: Naming the package that holds the missing file.
        ValueError: If nothing in the file matches the text's pattern.
    """
    free_text = FREE_TEXTS[name]
    path = Path(root) / free_text.path
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: no such file. On Debian: apt-get install {free_text.package}"
        )
    passages = re.findall(free_text.pattern, _plain_text(path), re.DOTALL)
    if not passages:
        raise ValueError(f"{path}: no text matches {free_text.pattern}; is this another edition?")
    sentences: list[str] = []
    number = 0
    for paragraph in re.split(r"\n\s*\n", "\n\n".join(passages)):
        for sentence in _sentences(paragraph):
            sentences.append(sentence)
            if sum(map(len, sentences)) >= _DOCUMENT:
                yield Document(f"{name}:{number}", name, tuple(sentences), in_order=True)
                sentences, number = [], number + 1
    if sentences:
        yield Document(f"{name}:{number}", name, tuple(sentences), in_order=True)


_STRAIGHT = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "—": " -- ", "_": "", "*": ""})
_SENTENCE_END = re.compile(
    r"""(?<=[.!?])(?<!\b(?:Mr|Dr|St)\.)(?<!\bMrs\.)["')]*\s+(?=["'(]*[A-Z])"""
)


def _sentences(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph with straight quotes; none of a heading or a table."""
    text = re.sub(r"\s+", " ", paragraph.translate(_STRAIGHT)).strip()
    if len(text.split()) < 3 or text.upper() == text:
        return []
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    sentences = [text[a:b].strip() for a, b in pairwise([0, *ends, len(text)])]
    # Long ones are cut where a reader would pause, so that each fits a training example.
    clauses = (re.split(r"(?<=[;:]) ", s) if len(s) > _DOCUMENT else [s] for s in sentences)
    return [clause for clause in chain.from_iterable(clauses) if clause]


def _plain_text(path: Path) -> str:
    """Return the text of a file, or of a SWORD module's folder, without its markup."""
    if path.is_dir():
        return "\n\n".join(_sword_books(path))
    content = path.read_bytes()
    match path.suffix:
        case ".zip":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = b"\n\n".join(map(archive.read, archive.namelist()))
        case ".dz":
            content = gzip.decompress(content)
        case ".rdb":
            return "\n\n".join("\n".join(_r_strings(content)) for content in _r_objects(content))
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return content.decode("latin-1").replace("\r\n", "\n")


def _sword_books(folder: Path) -> Iterator[str]:
    """Yield each book of a zText module: blocks by (offset, packed size, size), in OSIS."""
    for testament in ("ot", "nt"):
        blocks = (folder / f"{testament}.bzs").read_bytes()
        packed = (folder / f"{testament}.bzz").read_bytes()
        for offset, size, _ in struct.iter_unpack("<III", blocks):
            if size:
                book = zlib.decompress(packed[offset : offset + size]).decode()
                book = re.sub(r"<(note|title)\b.*?</\1>", "", book, flags=re.DOTALL)
                book = re.sub(r"<(div|lg|l|chapter)\b[^>]*/>", "\n\n", book)
                yield html.unescape(re.sub(r"<[^>]+>", " ", book)).replace(" ,", ",")


def _r_objects(content: bytes) -> Iterator[bytes]:
    """Yield the objects of R's lazy-load database: each its size, then zlib."""
    while content:
        size = struct.unpack(">I", content[:4])[0]
        unpacker = zlib.decompressobj()
        yield (unpacked := unpacker.decompress(content[4:]))
        if len(unpacked) != size:
            raise ValueError(f"an object has {len(unpacked)} of {size} bytes: the file is cut off")
        content = unpacker.unused_data


def _r_strings(content: bytes) -> Iterator[str]:
    """Yield the strings of a character vector in R's XDR serialisation, version 3."""
    encoding = struct.unpack(">I", content[14:18])[0]
    kind, count = struct.unpack(">II", content[18 + encoding : 26 + encoding])
    if kind != 0x10:
        raise ValueError(f"an R object of type {kind}, not a character vector")
    offset = 26 + encoding
    for _ in range(count):
        length = max(0, struct.unpack(">i", content[offset + 4 : offset + 8])[0])
        yield content[offset + 8 : offset + 8 + length].decode()
        offset += 8 + length
