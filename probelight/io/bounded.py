"""Regular files only, and no more of each than it can honestly hold."""

from __future__ import annotations

import stat
from functools import cached_property
from pathlib import Path

from probelight.io.errors import RecordError
from probelight.io.limits import MAX_RATIO, RATIO_FREE, Limit


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
