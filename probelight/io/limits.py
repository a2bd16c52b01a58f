"""How much is read at most: generous for real files, and far from what fills a machine."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from probelight.io.errors import RecordError

KIB, MIB, GIB = 2**10, 2**20, 2**30


@dataclass(frozen=True)
class Limit:
    """How much of a file of one kind is read.

    Attributes:
        kind: What such a file holds, for messages.
        num_bytes: Of the whole file, decompressed.
        line_bytes: Of its longest line.
    """

    kind: str
    num_bytes: int
    line_bytes: int


# The largest known, the articles and questions of RACE in one file, has about 200 MiB.
ITEMS = Limit("items", 512 * MIB, MIB)
# A prompt of 25 examples stands there once for each choice of each item.
SAMPLES = Limit("samples", 8 * GIB, 64 * MIB)
# GloVe 840B has 5.3 GiB, fastText's largest 7; a line of 4,096 numbers 50 KiB.
WORDS = Limit("words", 64 * GIB, MIB)
# Read through once and not kept, so its size is the reader's patience; lines do not matter.
TEXT = Limit("text", 4096 * GIB, 4096 * GIB)
# Wikidata unpacks to less than 2 TiB, with entities of up to 4 MiB; ConceptNet to 10 GiB.
KNOWLEDGE = Limit("knowledge", 16 * 1024 * GIB, 64 * MIB)
SETTINGS = Limit("settings", 64 * KIB, 64 * KIB)
RESULTS = Limit("results", 512 * MIB, 512 * MIB)

MAX_ITEMS = 1_000_000
# Text packs 4 to 25 times smaller. A bomb, with up to 1,032 of gzip, is only worth it when large.
MAX_RATIO = 200
RATIO_FREE = 16 * MIB  # that much any packed file may hold

HTTP_SLOWEST = 4 * KIB  # bytes a second that a server must send,
HTTP_PATIENCE = 60.0  # measured over so many seconds

MAX_JSON_DEPTH = 50  # values within values; Python's stack ends at some hundreds
MAX_INTEGER = 2**63 - 1  # of numpy's and pandas' columns

MAX_YAML_NODES = 100_000  # with each alias counted as what it stands for
MAX_YAML_DEPTH = 50

MAX_PATTERN = 2_000  # characters of a regular expression
MAX_REPEATS = (
    10_000  # product of its counted repetitions, which are written out when it is compiled
)
MATCH_SECONDS = 1.0  # of processor time for one stem, which takes some microseconds


def regular_file(path: str | Path) -> Path:
    """The path of a file that has an end.

    Raises:
        FileNotFoundError: If there is no such file.
        RecordError: If it is a folder, a device or a pipe.
    """
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
    """Counts the decompressed bytes that are read of a file, and says when they are too many.

    Args:
        path: The file.
        limit: What a file of its kind may hold.

    Attributes:
        num_lines: How many lines were read whole, for messages; 0 where lines do not matter.
    """

    def __init__(self, path: Path, limit: Limit) -> None:
        self.path, self.limit = path, limit
        self.num_lines = self.num_bytes = 0

    @property
    def here(self) -> str:
        """File and line of what is read now."""
        return f"{self.path}:{self.num_lines + 1}"

    def count(self, data: bytes) -> None:
        """Takes note of what was read.

        Raises:
            RecordError: If the file holds more than its kind may, or more than was ever packed
                into a file of its size.
        """
        self.num_bytes += len(data)
        if self.num_bytes > self.limit.num_bytes:
            raise RecordError(
                f"{self.here}: more than {self.limit.num_bytes:,} bytes, the most of a file of "
                f"{self.limit.kind}"
            )
        if self.num_bytes > RATIO_FREE and self.num_bytes > self._most_packed:
            raise RecordError(
                f"{self.here}: it unpacks to more than {MAX_RATIO} times its size, which no text "
                "does; if it is what you want, unpack it and give the file itself"
            )

    @cached_property
    def _most_packed(self) -> int:
        return MAX_RATIO * self.path.stat().st_size
