"""The texts that a probe is looked for in: other items, or plain text of any length."""

from __future__ import annotations

import codecs
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain
from pathlib import Path

from probelight.build.contamination.overlap import Scan
from probelight.build.contamination.words import texts_of, words_of
from probelight.io.errors import RecordError
from probelight.io.files import Watched, read_blocks
from probelight.io.limits import TEXT
from probelight.probes.record import Record

_MOST_WORDS = 200_000  # fed at once
_LONGEST = 1 << 24  # characters without a blank, which are cut
_LOST = "\ufffd"


def scan_records(scan: Scan, records: Iterable[Record], wrong_choices: bool = True) -> None:
    """Looks through items.

    Args:
        scan: Gets the words.
        records: The items.
        wrong_choices: Whether each is read with each of its choices, as who trains on it does, or
            with its right answer alone.
    """
    words, begins, names = list[str](), list[int](), list[str]()

    def where(place: int) -> str:
        return names[bisect_right(begins, place) - 1]

    for record in records:
        begins.append(len(words))
        names.append(record.where)
        for text in texts_of(record, wrong_choices):
            words += [*text, ""]
        if len(words) > _MOST_WORDS:
            scan.feed(words, where)
            words, begins, names = [], [], []
    scan.feed(words, where)


def scan_text(scan: Scan, path: str | Path, watched: Watched | None = None) -> list[str]:
    """Looks through a plain, .gz or .zip text file, which is read once and not kept.

    Words go on over the ends of lines, as in wrapped text.

    Args:
        scan: Gets the words.
        path: The file, UTF-8.
        watched: See `probelight.io.files.open_content`.

    Returns:
        What a reader of the results should know of the file.

    Raises:
        RecordError: If it is no text in UTF-8, compressed and damaged, or has no words.
        FileNotFoundError: If there is no such file.
    """
    line = 1
    num_words = num_lost = 0
    for text in _parts(path, watched):
        lines = [words_of(own) for own in text.split("\n")]
        ends = list(accumulate(map(len, lines)))

        def where(place: int, ends: list[int] = ends, line: int = line) -> str:
            return f"{path}:{line + bisect_right(ends, place)}"

        scan.feed(list(chain.from_iterable(lines)), where)
        line += len(lines) - 1
        num_words += ends[-1]
        num_lost += text.count(_LOST)
    if num_lost > num_words:
        raise RecordError(f"{path}: this is no text in UTF-8")
    if not num_words:
        raise RecordError(f"{path}: there are no words in it")
    lost = f"{path}: {num_lost:,} places are not UTF-8; they end words like a blank"
    return [lost] if num_lost else []


def _parts(path: str | Path, watched: Watched | None) -> Iterator[str]:
    """The text of a file in parts that end between words."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    for number, block in enumerate(read_blocks(path, TEXT, watched)):
        if number == 0 and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise RecordError(f"{path}: this is UTF-16; save the file as UTF-8")
        rest += decoder.decode(block)
        cut = max(rest.rfind("\n"), rest.rfind(" ")) + 1
        if cut or len(rest) > _LONGEST:
            yield rest[: cut or None]
            rest = rest[cut:] if cut else ""
    yield rest + decoder.decode(b"", final=True)
