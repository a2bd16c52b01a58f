"""Read files up to a limit: texts, numbered lines, tables, checksums; compressed files too."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, cast

from probelight.io.errors import RecordError

if TYPE_CHECKING:
    import pandas as pd

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
BZIP2_MAGIC = b"BZh"
PACKED_MAGIC = (GZIP_MAGIC, ZIP_MAGIC, BZIP2_MAGIC)
BLOCK = 1 << 20
_ENDING = re.compile(r"\.(tsv|csv)(\.(gz|bz2|zip))?$", re.IGNORECASE)
MIB = 2**20
BINARY = {".parquet", ".xlsx"}  # endings of tables of items that are no text
# Endings of files that are no text, with what pandas calls the format.
NO_TEXT = {".parquet": "parquet", ".feather": "feather", ".pkl": "pickle", ".pickle": "pickle"}
NO_TEXT |= dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), "excel")
NO_TEXT |= dict.fromkeys((".doc", ".docx", ".odt", ".pdf"), "")


@dataclass(frozen=True)
class SizeLimit:
    """How much of a file is read; messages call what it holds its `kind`."""

    kind: str
    num_bytes: int  # of the whole file, decompressed
    line_bytes: int = MIB  # of its longest line


# What is kept in memory. The largest set of items known, the articles and questions of RACE in one
# file, has about 200 MiB.
ITEMS = SizeLimit("items", 512 * MIB)
SETTINGS = SizeLimit("settings", 64 * 2**10)
RESULTS = SizeLimit("results", 512 * MIB)
# What is read through once, of any size: counts, word vectors, samples of another program, corpora
# (Wikidata unpacks to nearly 2 TiB). Lines of Wikidata have up to 4 MiB, of samples with long
# prompts more.
LARGE = SizeLimit("large texts", 2**62, 64 * MIB)

MAX_ITEMS = 1_000_000
MAX_ROWS = 5 * MAX_ITEMS  # of a table: as Python's texts they take gigabytes
# Text packs 4 to 25 times smaller. A bomb, with up to 1,032 of gzip, is only worth it when large.
MAX_RATIO = 200
RATIO_FREE = 16 * MIB  # that much any packed file may hold


def regular_file(path: str | Path) -> Path:
    """Return the path of a file that has an end; refuse a folder, a device or a pipe."""
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: there is no such file") from None
    if stat.S_ISDIR(mode):
        raise RecordError(f"{path}: a folder, where a file is needed")
    if not stat.S_ISREG(mode):
        raise RecordError(f"{path}: a device or a pipe, where a file on the disk is needed")
    return path


class Meter:
    """Count the decompressed bytes read of a file, and refuse when they are too many."""

    def __init__(self, path: Path, limit: SizeLimit) -> None:
        self.path, self.limit = path, limit
        self.num_lines = self.num_bytes = 0

    @property
    def location(self) -> str:
        """File and line that is being read."""
        return f"{self.path}:{self.num_lines + 1}"

    def count(self, num_bytes: int) -> None:
        """Count what was read; RecordError when no file of its kind holds as much."""
        self.num_bytes += num_bytes
        if self.num_bytes > self.limit.num_bytes:
            raise RecordError(
                f"{self.location}: more than {self.limit.num_bytes:,} bytes, the limit for a file "
                f"of {self.limit.kind}"
            )
        if self.num_bytes > RATIO_FREE and self.num_bytes > self._max_packed_bytes:
            raise RecordError(
                f"{self.location}: it unpacks to more than {MAX_RATIO} times its size, which text "
                "does not do; to read it anyway, unpack it and give the unpacked file"
            )

    @cached_property
    def _max_packed_bytes(self) -> int:
        return MAX_RATIO * self.path.stat().st_size


Watched = Callable[[Path], AbstractContextManager[IO[bytes]]]


@dataclass(frozen=True)
class DataFile:
    """A file that was read: its path, the SHA-256 of its decompressed content, and its items."""

    path: str
    sha256: str
    num_items: int | None = None


def text_path(path: str | Path) -> Path:
    """Return the path of a file of text; refuse other formats by the ending of the name."""
    path = Path(path)
    if (name := NO_TEXT.get(path.suffix.lower())) is not None:
        as_jsonl = "to_json('items.jsonl', orient='records', lines=True)"
        by_pandas = f"; in pandas read_{name}('{path.name}').{as_jsonl}" if name else ""
        raise RecordError(
            f"{path}: {path.suffix} is no text; save it as .csv or .jsonl in UTF-8{by_pandas}"
        )
    return path


def user_path(path: str | Path) -> Path:
    """Return the path with `~` expanded, unless the user of that home does not exist."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def read_text(path: str | Path, limit: SizeLimit) -> str:
    """Read a UTF-8 text file; RecordError if it is no regular file, too large, or not UTF-8."""
    path = regular_file(path)
    with path.open("rb") as stream:
        data = stream.read(limit.num_bytes + 1)
    Meter(path, limit).count(len(data))
    return _decode_line(data, path, 1)


def sha256_of(path: str | Path) -> str:
    """Return the hex SHA-256 of a file's bytes as they are on the disk."""
    with regular_file(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def content_sha256(path: str | Path, limit: SizeLimit = ITEMS) -> str:
    """Return the hex SHA-256 of a file's decompressed bytes: a gzipped copy has the same.

    A .parquet or .xlsx table is hashed as it is on the disk.
    """
    if Path(path).suffix.lower() in BINARY:
        return sha256_of(path)
    digest = hashlib.sha256()
    for block in read_blocks(path, limit):
        digest.update(block)
    return digest.hexdigest()


def read_blocks(
    path: str | Path, limit: SizeLimit, watched: Watched | None = None
) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file, a part at a time; `watched` as in `open_content`.

    RecordError if it is no regular file, over the limit, or compressed and damaged or cut off.
    """
    path = regular_file(path)
    meter = Meter(path, limit)
    with _damage_located(meter), open_content(path, watched=watched) as stream:
        while block := stream.read(BLOCK):
            meter.count(len(block))
            yield block


@contextmanager
def open_content(
    path: Path, member: str | None = None, watched: Watched | None = None
) -> Iterator[IO[bytes]]:
    """Open a plain, .gz, .bz2 or .zip file for reading its decompressed bytes.

    The first bytes say how it is packed, not the name: servers and browsers unpack files and
    keep the name. A zip archive must hold exactly one file, or `member` names the one to read.
    `watched` opens the packed file, to show how far the reading is.
    """
    regular_file(text_path(path))
    with watched(path) if watched else path.open("rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic.startswith(GZIP_MAGIC):
            with gzip.open(raw) as stream:
                yield cast(IO[bytes], stream)
        elif magic.startswith(BZIP2_MAGIC):
            with bz2.open(raw) as unpacked:
                yield cast(IO[bytes], unpacked)
        elif magic == ZIP_MAGIC:
            with zipfile.ZipFile(raw) as archive:
                names = [
                    n for n in archive.namelist() if not n.endswith("/") and "__MACOSX" not in n
                ]
                if member is not None:
                    names = [n for n in names if n == member]
                if len(names) != 1:
                    raise RecordError(
                        f"{path}: the zip archive has {len(names)} files; it must have exactly one"
                    )
                try:
                    member_file = archive.open(names[0])
                except RuntimeError as error:  # NotImplementedError is one: an unknown method
                    encrypted = "encrypted" in str(error)
                    why = "encrypted" if encrypted else "packed by an unknown method"
                    raise RecordError(
                        f"{path}: {names[0]!r} in the zip archive is {why}; unpack it and give the "
                        "unpacked file"
                    ) from None
                with member_file as inner:
                    # Its own lines of limited length are read byte by byte.
                    yield io.BufferedReader(cast(io.RawIOBase, inner), BLOCK)
        else:
            yield raw


def read_lines(
    path: str | Path,
    member: str | None = None,
    limit: SizeLimit = ITEMS,
    watched: Watched | None = None,
) -> Iterator[tuple[int, str]]:
    r"""Yield (line number from 1, text without its line end) of a text file, compressed or not.

    Only `\n` and `\r\n` end a line, as in JSON lines; a byte order mark at the start is dropped.
    `member` and `watched` are as in `open_content`. RecordError names file and line.
    """
    path = regular_file(path)
    meter = Meter(path, limit)
    with _damage_located(meter), open_content(path, member, watched) as stream:
        while raw := stream.readline(limit.line_bytes + 1):
            meter.count(len(raw))
            if len(raw) > limit.line_bytes:
                raise RecordError(
                    f"{meter.location}: the line has more than {limit.line_bytes:,} bytes, the "
                    f"limit for a file of {limit.kind}"
                )
            yield meter.num_lines + 1, _decode_line(raw, path, meter.num_lines + 1)
            meter.num_lines += 1


def item_lines(
    path: Path, most: int = MAX_ITEMS, limit: SizeLimit = ITEMS, watched: Watched | None = None
) -> Iterator[tuple[str, str]]:
    """Yield file and line, and the text, of each line that is not blank; RecordError above `most`.

    `limit` and `watched` are as in `read_lines`.
    """
    num_items = 0
    for number, text in read_lines(path, limit=limit, watched=watched):
        if text.strip():
            num_items += 1
            if num_items > most:
                raise RecordError(f"{path}:{number}: a file can have at most {most:,} items")
            yield f"{path}:{number}", text


def _decode_line(raw: bytes, path: Path, number: int) -> str:
    if number == 1 and raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RecordError(f"{path}:1: this is UTF-16; save the file as UTF-8")
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{path}:{number}: not UTF-8 (byte 0x{raw[error.start]:02x} at position "
            f"{error.start + 1} of the line); save the file as UTF-8"
        ) from None
    return text.removesuffix("\n").removesuffix("\r")


@contextmanager
def _damage_located(meter: Meter) -> Iterator[None]:
    """Turn the errors of damaged archives into a RecordError that names file and line."""
    try:
        yield
    except EOFError:
        raise RecordError(
            f"{meter.location}: the compressed file is cut off here (truncated gzip?); get it again"
        ) from None
    except (OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not what unpackers raise
            raise
        raise RecordError(
            f"{meter.location}: the compressed file is damaged here ({error}); get it again"
        ) from None


def delimiter_of(path: str | Path) -> str | None:
    """Return the separator of a table's cells, by the ending of its name; None for another file."""
    ending = _ENDING.search(str(path))
    return None if ending is None else "\t" if ending[1].lower() == "tsv" else ","


def table_rows(
    path: Path, delimiter: str, *, quoted: bool, watched: Watched | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of each row of a table, stripped; no cells where all are empty.

    Without `quoted` a quotation mark is a part of its cell; `watched` is as in `open_content`.
    """
    csv.field_size_limit(MIB)  # as long as a line may be; 128 KiB is less than some passages
    lines = (f"{text}\n" for _, text in read_lines(path, watched=watched))
    quote = '"' if quoted else None
    reader, line = csv.reader(lines, delimiter=delimiter, quotechar=quote, strict=True), 1
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            yield line, cells if any(cells) else []
            line = reader.line_num + 1
    except csv.Error as error:
        raise RecordError(
            f"{path}:{line}: {error}; put a cell with a comma, a line break or a quotation mark in "
            '"...", and write a quotation mark in it twice'
        ) from None


def read_table(
    path: Path, *, any_case: bool = False, watched: Watched | None = None
) -> pd.DataFrame:
    """Return the cells of a .tsv or comma-separated file as texts; a row is called "file:line".

    With `any_case`, columns are called by their names in lower case; `watched` is as in
    `open_content`. RecordError names file and line if it is empty, or a row's number of cells is
    not the header's.
    """
    import pandas as pd  # not above: --help is quick

    header: list[str] = []
    columns: list[list[str]] = []  # a list for each row takes three times the memory
    wheres: list[str] = []
    delimiter = delimiter_of(path) or ","
    # In .tsv a quotation mark is a part of the text, as in files of minimal pairs.
    for line, cells in table_rows(path, delimiter, quoted=delimiter == ",", watched=watched):
        if not header and cells:
            header = [cell.lower() for cell in cells] if any_case else cells
            if "" in cells:
                raise RecordError(
                    f"{path}:{line}: column {cells.index('') + 1} has no name; give each "
                    "column one (pandas leaves out its index with to_csv(..., index=False))"
                )
            repeated = next((n for n, name in enumerate(header) if name in header[:n]), None)
            if repeated is not None:
                names = sorted({cells[header.index(header[repeated])], cells[repeated]})
                raise RecordError(
                    f"{path}:{line}: two columns are called {' and '.join(map(repr, names))}; "
                    "rename one of them"
                )
            columns = [[] for _ in header]
        elif cells:
            if len(cells) != len(header):
                raise RecordError(
                    f"{path}:{line}: {len(cells)} cell(s), where the header has {len(header)}"
                )
            if len(wheres) == MAX_ROWS:
                raise RecordError(f"{path}:{line}: a table can have at most {MAX_ROWS:,} rows")
            wheres.append(f"{path}:{line}")
            for column, cell in zip(columns, cells, strict=True):
                column.append(cell)
    if not wheres:
        raise RecordError(f"{path}:1: a header and rows are needed; there are no rows")
    index = pd.Index(wheres, dtype=object)
    return pd.DataFrame(dict(zip(header, columns, strict=True)), index=index, dtype=object)


def distinct_ends(sources: Iterable[str]) -> dict[str, str]:
    """Return the shortest ends of paths or Hub names that are still distinct.

    Of "runs/a/checkpoints/best" and "runs/b/checkpoints/best" they are "a/checkpoints/best" and
    "b/checkpoints/best".
    """
    distinct = list(dict.fromkeys(sources))
    for length in count(1):
        ends = {source: "/".join(PurePath(source).parts[-length:]) for source in distinct}
        if len(set(ends.values())) == len(distinct):
            return ends
        if all(length >= len(PurePath(source).parts) for source in distinct):
            break
    return {source: source for source in distinct}  # such as "a/b" and "a/b/"
