"""GCIDE, the dictionary behind DictionaryQA, in dictd's format or GNU's own (Richardson 2020, 3.2).

dictd has one text file, `gcide.dict.dz`; GNU has marked-up files CIDE.A to CIDE.Z, gzipped or not.
Only paragraphs tagged `[1913 Webster]` are public domain; all that this project ships is made from
those. The others are for users who build a probe for themselves.
"""

from __future__ import annotations

import gzip
import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PATH = Path("/usr/share/dictd/gcide.dict.dz")
PUBLIC_DOMAIN_SOURCE = "1913 Webster"

_SOURCE_TAG = re.compile(r"^\s*\[([^\[\]]+)\](?:\s.*)?$")
_HEAD = re.compile(r"^(\S.*?) \\(.+?)\\")
_SENSE = re.compile(r"^\s+(?:\d+\.|\([a-z]\))\s+")
_PART_OF_SPEECH = re.compile(r"\b(n|a|adj|adv|v|prep|conj|pron|interj)\.")
_BRACKETED = re.compile(r"\[[^\[\]]*\]|\{\s*|\s*\}|\([A-Z][\w. &]*\.\)")
_SPELLED_OUT = re.compile(r"[A-Za-z]\[[^\[\]\s]{1,5}\]|\[[^\[\]\s]{1,5}\][a-z]")
QUOTED_FROM = re.compile(r"--\s?[A-Z(][^;]*?(?=$|\. [A-Z])")


@dataclass(frozen=True)
class Sense:
    """One sense of a GCIDE entry."""

    word: str
    part_of_speech: str  # as printed ("n", "v", "a", "adv"), "" where none is given
    number: int  # from 1, within all entries of the headword
    definition: str  # without etymology and the authors of quotations
    examples: tuple[str, ...]  # usages printed after "as,", or quoted
    source: str  # tag of the paragraph, such as "1913 Webster"


def read_gcide(
    path: Path | str = DEFAULT_PATH,
    source: str | None = PUBLIC_DOMAIN_SOURCE,
    spelled_out: bool = True,
) -> Iterator[Sense]:
    """Read the senses of GCIDE in dictd's format, as it is packed or not, in file order.

    `source` keeps only paragraphs with exactly this tag. Letters spelled out in brackets are cut
    out ("C[ae]sar" is "Csar"), or senses with them left out, without `spelled_out`. A
    FileNotFoundError names the package that holds the file.
    """
    part_of_speech, numbers = "", dict[str, int]()
    for word, paragraph, tag in tagged_paragraphs(path):
        lines = paragraph
        if _HEAD.match(paragraph[0]):
            lines, part_of_speech = _strip_head(paragraph)
        if not word or (source is not None and tag != source) or is_remark(paragraph):
            continue
        if not spelled_out and any(_SPELLED_OUT.search(line) for line in lines):
            continue
        text = _SENSE.sub("", " " + " ".join(line.strip() for line in lines))
        text = _BRACKETED.sub("", QUOTED_FROM.sub("", text)).replace("--", " ")
        definition, *usages = re.split(r"[;:,] as,\s*", text, maxsplit=1)
        definition = re.sub(r"\s+", " ", definition).strip(" .,;:")
        if len(definition) < 3:
            continue
        usages = [usage.strip(" .,;") for text in usages for usage in text.split(";")]
        examples = tuple(re.sub(r"\s+", " ", u) for u in usages if len(u.split()) > 1)
        numbers[word] = numbers.get(word, 0) + 1
        yield Sense(word, part_of_speech, numbers[word], definition, examples, tag)


def tagged_paragraphs(path: Path | str) -> Iterator[tuple[str, list[str], str]]:
    """Yield (headword, lines, tag) of each paragraph; before the first headword it is ""."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no GCIDE file. On Debian: apt-get install dict-gcide. `probes build` can "
            "also read a folder of GNU's own files, from https://ftp.gnu.org/gnu/gcide/"
        )
    word, is_packed = "", path.suffix in {".dz", ".gz"}
    with (gzip.open if is_packed else open)(path, "rt", encoding="latin-1") as file:
        for paragraph, tag in _paragraphs(file):
            if head := _HEAD.match(paragraph[0]):
                word = head.group(1).split(" \\")[0].strip()
            yield word, paragraph, tag


def is_remark(paragraph: Sequence[str]) -> bool:
    """Return whether a paragraph is a collocation or a quotation, not a sense of the headword."""
    return not (_HEAD.match(paragraph[0]) or _SENSE.match(paragraph[0]))


def _paragraphs(lines: Iterator[str]) -> Iterator[tuple[list[str], str]]:
    paragraph: list[str] = []
    for line in lines:
        tag = _SOURCE_TAG.match(line)
        if tag and paragraph:
            yield paragraph, tag.group(1).strip()
            paragraph = []
        elif line.strip():
            if paragraph and not line.startswith(" "):
                paragraph = []  # an entry that ended without a tag has no known source
            paragraph.append(line.rstrip("\n"))
        elif paragraph and not _HEAD.match(paragraph[0]):
            paragraph = []


def _strip_head(paragraph: list[str]) -> tuple[list[str], str]:
    """Drop the lines of pronunciation and etymology; return the rest and the part of speech."""
    first = None
    for index in range(1, len(paragraph)):
        opening = " ".join(paragraph[:index])  # where all brackets of the etymology are closed
        closed = opening.count("[") <= opening.count("]")
        if closed and opening.rstrip().endswith((".", "]", ")")):
            first = index
            break
    head = " ".join(paragraph[: first or 1])
    pos = part_of_speech_in(head.split("\\")[-1])
    return (paragraph[first:] if first is not None else []) or [""], pos


def part_of_speech_in(text: str) -> str:
    """Return the first abbreviated part of speech, without its full stop; "" if none."""
    match = _PART_OF_SPEECH.search(text + ".")
    return match.group(1) if match else ""


_FILE = re.compile(r"^CIDE\.[A-Z](\.gz)?$")
_COMMENT = re.compile(r"<!?--.*?-->", re.DOTALL)
_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_ENTRY = re.compile(r"<ent>(.*?)</ent>", re.DOTALL)
_TAG = re.compile(r"<source>(.*?)</source>", re.DOTALL)
# What comes with the senses of the headword: its history, forms, word combinations, quotations.
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
    """Return whether a path is a folder or one of GNU's files, rather than dictd's."""
    return path.is_dir() or bool(_FILE.match(path.name))


def gnu_files(path: Path) -> list[Path]:
    """Return the files that `read_gnu_gcide` reads, in alphabetical order."""
    return sorted(p for p in path.iterdir() if _FILE.match(p.name)) if path.is_dir() else [path]


def read_gnu_gcide(path: Path | str, source: str | None = PUBLIC_DOMAIN_SOURCE) -> Iterator[Sense]:
    """Read the senses of GNU's files, or of one, in file order; `source` as in `read_gcide`.

    Definitions of one paragraph are separate senses; dictd's form runs them together. A
    FileNotFoundError says where to get missing files.
    """
    path = Path(path)
    files = gnu_files(path) if path.exists() else []
    if not files:
        raise FileNotFoundError(
            f"{path}: no files CIDE.A to CIDE.Z. Unpack https://ftp.gnu.org/gnu/gcide/ there, or "
            "on Debian: apt-get install dict-gcide, and give its gcide.dict.dz"
        )
    numbers = dict[str, int]()
    for file in files:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = content.decode("latin-1")  # before version 0.51
        word = part_of_speech = ""
        for paragraph in _PARAGRAPH.findall(_COMMENT.sub("", text)):
            if entry := _ENTRY.search(paragraph):
                word, part_of_speech = _plain(entry[1]), ""
            tag = " ".join(_TAG.findall(paragraph))
            is_of_source = bool(word and tag) and source in (None, tag)
            for match in _DEFINED.finditer(_BESIDE.sub(" ", paragraph)):
                if match["text"] is None:
                    part_of_speech = part_of_speech_in(_plain(match["pos"]))
                    continue
                if not is_of_source:
                    continue
                # What is after the usages belongs to another sense, or to none.
                definition = _plain(match["text"].partition("<as>")[0])
                if len(definition) < 3:
                    continue
                usages = [
                    usage.strip(" .,")
                    for text in _USAGE.findall(match["text"])
                    for usage in _plain(text).removeprefix("as").lstrip(" ,").split(";")
                    if len(usage.split()) > 1
                ]
                quoted = map(_plain, _QUOTED.findall(match["text"] + match["after"]))
                numbers[word] = numbers.get(word, 0) + 1
                examples = (*usages, *quoted)
                yield Sense(word, part_of_speech, numbers[word], definition, examples, tag)


def _plain(text: str) -> str:
    """Return text without markup, with letters for `<eacute/` and the like."""
    text = _MARKUP.sub("", _LETTER.sub(_letter, text))
    return re.sub(r"\s+", " ", text).strip(" .,;:")


def _letter(match: re.Match[str]) -> str:
    name = match[1]
    if name in _LETTERS:
        return _LETTERS[name]
    if accent := _ACCENTS.get(name[1:]):
        return unicodedata.normalize("NFC", name[0] + accent)
    character = html.unescape(f"&{name};")
    return "" if character.startswith("&") else character
