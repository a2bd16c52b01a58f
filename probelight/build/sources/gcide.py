"""GCIDE, the dictionary behind DictionaryQA, read from dictd's format (Richardson 2020, 3.2).

Only paragraphs tagged `[1913 Webster]` are public domain; everything this project ships is made
from those. The others are read too, for users who build a probe for themselves.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
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
_QUOTED_FROM = re.compile(r"--\s?[A-Z(][^;]*?(?=$|\. [A-Z])")


@dataclass(frozen=True)
class Sense:
    """One sense of a GCIDE entry.

    Attributes:
        word: The headword.
        part_of_speech: Abbreviation as printed ("n", "v", "a", "adv"), empty where none is given.
        number: 1-based position of the sense within all entries of the headword.
        definition: The definition, without etymology and the authors of quotations.
        examples: Usages printed after "as," in the definition.
        source: The paragraph's source tag, for example "1913 Webster".
    """

    word: str
    part_of_speech: str
    number: int
    definition: str
    examples: tuple[str, ...]
    source: str


def read_gcide(
    path: Path | str = DEFAULT_PATH,
    source: str | None = PUBLIC_DOMAIN_SOURCE,
    spelled_out: bool = True,
) -> Iterator[Sense]:
    """Reads the senses of a dictd-format GCIDE file in file order.

    Args:
        path: `gcide.dict.dz` (Debian: package `dict-gcide`) or the same text unpacked.
        source: Keep only paragraphs whose tag is exactly this; None keeps all.
        spelled_out: Keep senses with letters spelled out in brackets ("C[ae]sar"), which are cut
            out of the text ("Csar").

    Raises:
        FileNotFoundError: If the file is not there, with the package that holds it.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no GCIDE file. On Debian: apt-get install dict-gcide; `probes build` takes a "
            "folder of GNU's own files as well, from https://ftp.gnu.org/gnu/gcide/"
        )
    opener = gzip.open if path.suffix in {".dz", ".gz"} else open
    word, part_of_speech, numbers = "", "", dict[str, int]()
    with opener(path, "rt", encoding="latin-1") as file:
        for paragraph, tag in _tagged_paragraphs(file):
            head = _HEAD.match(paragraph[0])
            if head:
                word = head.group(1).split(" \\")[0].strip()
                lines, part_of_speech = _strip_head(paragraph)
            else:
                lines = paragraph
            if not word or (source is not None and tag != source):
                continue
            if not head and not _SENSE.match(lines[0]):
                continue  # a collocation or a quotation, not a sense of the headword
            if not spelled_out and any(_SPELLED_OUT.search(line) for line in lines):
                continue
            definition, examples = _clean(lines)
            if len(definition) < 3:
                continue
            numbers[word] = numbers.get(word, 0) + 1
            yield Sense(word, part_of_speech, numbers[word], definition, examples, tag)


def _tagged_paragraphs(lines: Iterator[str]) -> Iterator[tuple[list[str], str]]:
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
    """Drops the pronunciation and etymology lines; the definition starts at the first indent."""
    first = next((i for i, line in enumerate(paragraph) if i and _body(paragraph, i)), None)
    head = " ".join(paragraph[: first or 1])
    part = part_of_speech_in(head.split("\\")[-1])
    return (paragraph[first:] if first is not None else []) or [""], part


def part_of_speech_in(text: str) -> str:
    """The first abbreviation of a part of speech, without its point; "" where there is none."""
    part = _PART_OF_SPEECH.search(text + ".")
    return part.group(1) if part else ""


def _body(paragraph: list[str], index: int) -> bool:
    """Whether line `index` starts the definition: all etymology brackets are closed before it."""
    before = " ".join(paragraph[:index])
    return before.count("[") <= before.count("]") and before.rstrip().endswith((".", "]", ")"))


def _clean(lines: list[str]) -> tuple[str, tuple[str, ...]]:
    text = " ".join(line.strip() for line in lines)
    text = _SENSE.sub("", " " + text)
    text = _QUOTED_FROM.sub("", text)
    text = _BRACKETED.sub("", text).replace("--", " ")
    definition, *usages = re.split(r"[;:,] as,\s*", text, maxsplit=1)
    examples = [e.strip(" .,;") for usage in usages for e in usage.split(";")]
    definition = re.sub(r"\s+", " ", definition).strip(" .,;:")
    return definition, tuple(re.sub(r"\s+", " ", e) for e in examples if len(e.split()) > 1)
