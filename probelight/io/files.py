"""Reading files: texts, lines with their numbers, JSON, checksums; compressed ones too."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from probelight.io.errors import RecordError
from probelight.io.limits import ITEMS, RESULTS, Limit, Meter, regular_file
from probelight.io.typed import finite_json

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
BZIP2_MAGIC = b"BZh"
BLOCK = 1 << 20
Watched = Callable[[Path], AbstractContextManager[IO[bytes]]]


@dataclass(frozen=True)
class DataFile:
    """What was read: where, the SHA-256 of the decompressed content, and how many items."""

    path: str
    sha256: str
    num_items: int


def user_path(path: str | Path) -> Path:
    """Return the path with `~` as a home folder; that of a user who is not there stays as it is."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def read_text(path: str | Path, limit: Limit) -> str:
    """What a UTF-8 text file holds.

    Raises:
        OSError: If it cannot be read.
        RecordError: If it is no regular file, larger than the limit, or not UTF-8.
    """
    path = regular_file(path)
    with path.open("rb") as stream:
        data = stream.read(limit.num_bytes + 1)
    Meter(path, limit).count(data)
    return _decoded(data, path, 1)


def read_json(path: str | Path, parse: Callable[[str], Any] = finite_json) -> Any:
    """What a JSON file holds; of a JSON Lines file, the list of its lines.

    Args:
        path: The file.
        parse: `json.loads` for files of other programs, which may write NaN.

    Raises:
        ValueError: If it is damaged, or no regular file; the message names the file.
        OSError: If it cannot be read.
    """
    text, line = read_text(path, RESULTS), ""
    try:
        if Path(path).suffix != ".jsonl":
            return parse(text)
        values = []
        for number, one in enumerate(text.split("\n"), start=1):
            line = f"line {number}: "
            if one:
                values.append(parse(one))
        return values
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a whole JSON file ({line}{error})") from error


def sha256_of(path: str | Path) -> str:
    """Hex SHA-256 of the bytes of a file as it lies there."""
    with regular_file(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def content_sha256(path: str | Path, limit: Limit = ITEMS) -> str:
    """Hex SHA-256 of a file's decompressed bytes: a plain and a gzipped copy have the same one.

    Raises:
        RecordError: If the file is no regular one, larger than the limit, or compressed and
            damaged or cut off.
        OSError: If it cannot be opened.
    """
    digest = hashlib.sha256()
    for block in read_blocks(path, limit):
        digest.update(block)
    return digest.hexdigest()


def read_blocks(path: str | Path, limit: Limit, watched: Watched | None = None) -> Iterator[bytes]:
    """Yields the decompressed bytes of a file, compressed or not, a part at a time.

    Args:
        path: The file.
        limit: What a file of its kind may hold.
        watched: See `open_content`.

    Raises:
        RecordError: If the file is no regular one, larger than the limit, or compressed and
            damaged or cut off.
        OSError: If it cannot be opened.
    """
    path = regular_file(path)
    meter = Meter(path, limit)
    with _explained(meter), open_content(path, watched=watched) as stream:
        while block := stream.read(BLOCK):
            meter.count(block)
            yield block


def is_packed(path: str | Path) -> bool:
    """Whether a file is compressed in a way known here, as its first bytes say."""
    with regular_file(path).open("rb") as raw:
        return raw.read(4).startswith((GZIP_MAGIC, ZIP_MAGIC, BZIP2_MAGIC))


@contextmanager
def open_content(
    path: Path, member: str | None = None, watched: Watched | None = None
) -> Iterator[IO[bytes]]:
    """Opens a plain, .gz, .bz2 or .zip file for reading its decompressed bytes.

    The kind is told by the first bytes, not by the name: servers and browsers unpack files and
    keep the name. A zip archive must hold exactly one file, or `member` names the one to read.
    `watched` opens the file as it lies there so that somebody sees how far the reading is.
    """
    with (watched or _opened)(regular_file(path)) as raw:
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
                        f"{path}: the zip archive holds {len(names)} files; it must hold one"
                    )
                with _opened_member(path, archive, names[0]) as inner:
                    # Its own lines of limited length are read byte by byte.
                    yield io.BufferedReader(cast(io.RawIOBase, inner), BLOCK)
        else:
            yield raw


def _opened(path: Path) -> IO[bytes]:
    return path.open("rb")


def _opened_member(path: Path, archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    try:
        return archive.open(name)
    except RuntimeError as error:  # an unknown method too, which is a NotImplementedError
        why = "encrypted" if "encrypted" in str(error) else "packed in a way unknown here"
        raise RecordError(
            f"{path}: {name!r} in the zip archive is {why}; unpack it and give the file itself"
        ) from None


def read_lines(
    path: str | Path,
    member: str | None = None,
    limit: Limit = ITEMS,
    watched: Watched | None = None,
) -> Iterator[tuple[int, str]]:
    r"""Yields (line number from 1, text without its line end) of a text file, compressed or not.

    Only `\n` and `\r\n` end a line, as in JSON lines; a byte order mark at the start is dropped.
    `member` names the file to read of a zip archive that holds several; `watched` is as in
    `open_content`.

    Raises:
        FileNotFoundError: If there is no such file.
        RecordError: If it is no regular file, larger than the limit, not UTF-8, or compressed and
            damaged or cut off; the message names the file and the line.
    """
    path = regular_file(path)
    meter = Meter(path, limit)
    with _explained(meter), open_content(path, member, watched) as stream:
        while raw := stream.readline(limit.line_bytes + 1):
            meter.count(raw)
            if len(raw) > limit.line_bytes:
                raise RecordError(
                    f"{meter.here}: a line of more than {limit.line_bytes:,} bytes, the most in a "
                    f"file of {limit.kind}"
                )
            yield meter.num_lines + 1, _decoded(raw, path, meter.num_lines + 1)
            meter.num_lines += 1


def _decoded(raw: bytes, path: Path, number: int) -> str:
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
def _explained(meter: Meter) -> Iterator[None]:
    """Turns what damaged archives raise into one error that names file and line."""
    try:
        yield
    except EOFError:
        raise RecordError(
            f"{meter.here}: the compressed file is cut off here (truncated gzip?); fetch it again"
        ) from None
    except (OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not what unpackers raise
            raise
        raise RecordError(
            f"{meter.here}: the compressed file is damaged here ({error}); fetch it again"
        ) from None
