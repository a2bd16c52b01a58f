"""GCIDE as GNU gives it out: the marked-up files CIDE.A to CIDE.Z, as they are or gzipped."""

from __future__ import annotations

import gzip
import html
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from probelight.build.sources.gcide import PUBLIC_DOMAIN_SOURCE, Sense, part_of_speech_in

_FILE = re.compile(r"^CIDE\.[A-Z](\.gz)?$")
_COMMENT = re.compile(r"<!?--.*?-->", re.DOTALL)
_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_ENTRY = re.compile(r"<ent>(.*?)</ent>", re.DOTALL)
_TAG = re.compile(r"<source>(.*?)</source>", re.DOTALL)
# What stands beside the senses of the headword: its history, forms, word combinations, quotations.
_BESIDE = re.compile(
    r"<(ety|vmorph|amorph|plu|wordforms|altsp|cs|mhw|note|q|syn|ant|usage|illu)>.*?</\1>", re.DOTALL
)
# A definition, and up to the next one, or the next part of speech, what is quoted for it.
_DEFINED = re.compile(
    r"<pos>(?P<pos>.*?)</pos>|<def>(?P<text>.*?)</def>(?P<after>.*?)(?=<pos>|<def>|$)", re.DOTALL
)
_USAGE = re.compile(r"<as>(.*?)</as>", re.DOTALL)
_QUOTED = re.compile(r"<ldquo/(.*?)<rdquo/", re.DOTALL)
_LETTER = re.compile(r"<([A-Za-z0-9?]+)/")
_MARKUP = re.compile(r"</?[a-z][\w.]*>|\\'[0-9a-f]{2}")
_ACCENTS = {
    "acute": "\u0301",
    "grave": "\u0300",
    "circ": "\u0302",
    "cir": "\u0302",
    "um": "\u0308",
    "til": "\u0303",
    "mac": "\u0304",
    "cr": "\u0306",
    "ring": "\u030a",
    "dot": "\u0307",
    "sdot": "\u0323",
    "cced": "\u0327",
    "car": "\u030c",
}
_LETTERS = {
    "ae": "\u00e6",
    "AE": "\u00c6",
    "oe": "\u0153",
    "OE": "\u0152",
    "cced": "\u00e7",
    "and": "and",
    "or": "or",
    "br": " ",
}


def is_gnu(path: Path) -> bool:
    """Whether a path is one of GNU's files or a folder, not a file of dictd's."""
    return path.is_dir() or bool(_FILE.match(path.name))


def gnu_files(path: Path) -> list[Path]:
    """The files that `read_gnu_gcide` reads, in the order of the alphabet."""
    return sorted(p for p in path.iterdir() if _FILE.match(p.name)) if path.is_dir() else [path]


def read_gnu_gcide(path: Path | str, source: str | None = PUBLIC_DOMAIN_SOURCE) -> Iterator[Sense]:
    """Reads the senses of GNU's files in the order of the files.

    Definitions of one paragraph are senses of their own; dictd's form runs them together.

    Args:
        path: The folder of `gcide-0.53`, for example, or one of its files.
        source: Keep only paragraphs whose tag is exactly this; None keeps all that have one.

    Raises:
        FileNotFoundError: If no such file is there, with where they are.
    """
    path = Path(path)
    files = gnu_files(path) if path.exists() else []
    if not files:
        raise FileNotFoundError(
            f"{path}: no file CIDE.A to CIDE.Z. Unpack https://ftp.gnu.org/gnu/gcide/ there, or "
            "on Debian: apt-get install dict-gcide, and give its gcide.dict.dz"
        )
    numbers = dict[str, int]()
    for one in files:
        word = part_of_speech = ""
        for match in _PARAGRAPH.finditer(_COMMENT.sub("", _text(one))):
            paragraph = match[1]
            if entry := _ENTRY.search(paragraph):
                word, part_of_speech = _plain(entry[1]), ""
            tag = " ".join(_TAG.findall(paragraph))
            kept = bool(word and tag) and source in (None, tag)
            for found in _DEFINED.finditer(_BESIDE.sub(" ", paragraph)):
                if found["text"] is None:
                    part_of_speech = part_of_speech_in(_plain(found["pos"]))
                elif kept and len(definition := _plain(_before_usage(found["text"]))) >= 3:
                    numbers[word] = numbers.get(word, 0) + 1
                    quoted = _QUOTED.findall(found["text"] + found["after"])
                    usages = (*_usages(found["text"]), *map(_plain, quoted))
                    yield Sense(word, part_of_speech, numbers[word], definition, usages, tag)


def _text(path: Path) -> str:
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")  # before version 0.51


def _before_usage(definition: str) -> str:
    """What stands after the usages belongs to another sense, or to none."""
    return definition.partition("<as>")[0]


def _usages(definition: str) -> Iterator[str]:
    for usages in _USAGE.findall(definition):
        for usage in _plain(usages).removeprefix("as").lstrip(" ,").split(";"):
            if len(usage.split()) > 1:
                yield usage.strip(" .,")


def _plain(text: str) -> str:
    """Text without markup, `<eacute/` and the like as the letters that they stand for."""
    text = _MARKUP.sub("", _LETTER.sub(lambda found: _letter(found[1]), text))
    return re.sub(r"\s+", " ", text).strip(" .,;:")


def _letter(name: str) -> str:
    if name in _LETTERS:
        return _LETTERS[name]
    if accent := _ACCENTS.get(name[1:]):
        return unicodedata.normalize("NFC", name[0] + accent)
    shown = html.unescape(f"&{name};")
    return "" if shown.startswith("&") else shown
