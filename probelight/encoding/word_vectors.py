"""Word vectors in GloVe's text format, `word v1 ... vd` per line: plain, gzipped or zipped.

A file of vectors holds far more words than a probe has: only those that are looked up are kept.
Settings name vectors, so that numpy is imported when the first is read.
"""

from __future__ import annotations

import itertools
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from probelight.io.errors import ProbelightError
from probelight.io.files import LARGE, read_lines, sha256_of
from probelight.io.package import ASSETS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

EMBEDDED = "embedded"
# Vectors that depend on the words around, made by a frozen model.
CONTEXTUAL = ("encoder", "elmo")
EMBEDDED_PATH = ASSETS / "word_vectors.txt"

_FIRST_LINES = 100  # tell how many numbers a line has
_SPREAD_LINES = 1000  # tell how large the numbers are


class WordVectorsError(ProbelightError, ValueError):
    """A file of word vectors that cannot be used; the message names it and the line."""


class WordVectors:
    """The vectors of a file, read as they are looked up.

    A first line with two whole numbers, as word2vec writes it, is skipped. The last `dimension`
    columns of a line are its vector, so words may hold spaces (glove.840B has some). Of a word
    that is there twice the first line counts.

    Args:
        source: "embedded" (the vectors in this repository), a plain, .gz or .zip file; of an
            archive with several text files `file.zip:member.txt`.
        dimension: Numbers per word, None to find out. With it the file may be missing: no word then
            has a vector, which `missing` says.
        sha256: With it a file with other content counts as missing.

    Attributes:
        missing: Whether no vector can be had.

    Raises:
        WordVectorsError: If there is no such file and no `dimension`, it holds no vectors, or an
            archive holds several text files and none is named.
    """

    def __init__(
        self, source: str = EMBEDDED, dimension: int | None = None, sha256: str | None = None
    ) -> None:
        self.source = source
        self.path, self.member = located(source)
        exists = self.path.is_file()
        self._sha256 = sha256
        self.missing = not exists or (sha256 is not None and sha256_of(self.path) != sha256)
        if self.missing and dimension is None:
            problem = "not the expected word vectors" if exists else "there is no such file"
            raise WordVectorsError(f"{self.path}: {problem}; give another file as vectors")
        if not self.missing:
            self.member = _member_of(self.path, self.member)
        self._looked_up: set[str] = set()
        self._vectors: dict[str, Vector] = {}
        self._checked = False
        own_dimension = None if self.missing else self._own_dimension()
        if own_dimension and dimension and own_dimension != dimension:
            raise WordVectorsError(
                f"{self.name}: its vectors have {own_dimension} numbers, but {dimension} are needed"
            )
        self.dimension: int = own_dimension or dimension or 0

    @property
    def name(self) -> str:
        """Return the file's path, with the member of an archive."""
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @cached_property
    def sha256(self) -> str | None:
        """Hex SHA-256 of the file as it lies there, or of the one that is missing."""
        return self._sha256 if self.missing else sha256_of(self.path)

    @cached_property
    def spread(self) -> float:
        """Root mean square of the first vectors' numbers; 1 where there is no file."""
        import numpy as np

        if self.missing:
            return 1.0
        first = itertools.islice(self._lines(), _SPREAD_LINES)
        rows = [self._parsed(number, line)[1] for number, line in first]
        return float(np.sqrt(np.mean(np.square(rows))))

    def find(self, words: Iterable[str]) -> dict[str, Vector]:
        """Return the vectors (dimension,) of those words that have one.

        Raises:
            WordVectorsError: If a line is not a word and `dimension` numbers; file and line are
                named. Lines of words that are not looked up are only counted through.
        """
        words = set(words)
        if new_words := words - self._looked_up:
            self._looked_up |= new_words
            if not self.missing:
                self._read_vectors(new_words)
        return {word: self._vectors[word] for word in words & self._vectors.keys()}

    def _read_vectors(self, words: set[str]) -> None:
        missing = set(words)
        begins = {word.split(" ", 1)[0] for word in words}
        for number, line in self._lines():
            if line.count(" ") < self.dimension:
                raise self._bad(number)
            if line[: line.find(" ")] in begins:
                word, vector = self._parsed(number, line)
                if word in missing:
                    self._vectors[word] = vector
                    missing.discard(word)
            # The first reading goes through the whole file, so that a damaged one is noticed.
            if not missing and self._checked:
                break
        self._checked = True

    def _lines(self) -> Iterator[tuple[int, str]]:
        for number, line in read_lines(self.path, self.member, LARGE):
            counts = line.split() if number == 1 else []
            if len(counts) == 2 and all(map(str.isdecimal, counts)):  # a header
                continue
            if line:
                yield number, line.rstrip(" ")

    def _own_dimension(self) -> int:
        counts = Counter(
            line.count(" ") for _, line in itertools.islice(self._lines(), _FIRST_LINES)
        )
        dimension = max(counts, key=lambda count: counts[count], default=0)
        if dimension < 1:
            raise WordVectorsError(
                f"{self.name}: no word vectors; each line must be a word and its numbers, "
                "separated by single spaces"
            )
        return dimension

    def _parsed(self, number: int, line: str) -> tuple[str, Vector]:
        import numpy as np

        word, *values = line.rsplit(" ", self.dimension)
        try:
            vector = np.array(values, dtype=np.float32)
        except ValueError:
            raise self._bad(number) from None
        numbers = line[len(word) :]  # to numpy too, 1_0 is 10, and digits of any script are digits
        is_strict = numbers.isascii() and "_" not in numbers
        if len(values) != self.dimension or not is_strict or not np.isfinite(vector).all():
            raise self._bad(number)
        return word, vector

    def _bad(self, number: int) -> WordVectorsError:
        return WordVectorsError(
            f"{self.name}:{number}: not a word and {self.dimension} numbers; is the file cut off?"
        )


def word_vectors(
    source: str = EMBEDDED, dimension: int | None = None, sha256: str | None = None
) -> WordVectors:
    """Return the vectors of a file, shared by all that use it: each word is read once."""
    path, _ = located(source)
    state = path.stat() if path.is_file() else None
    return _shared_vectors(source, dimension, sha256, state and (state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=4)
def _shared_vectors(
    source: str, dimension: int | None, sha256: str | None, state: tuple[int, int] | None
) -> WordVectors:
    return WordVectors(source, dimension, sha256)


def _member_of(path: Path, member: str | None) -> str | None:
    """Return the text file of an archive to read; None for a file that is no archive."""
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith((".txt", ".vec"))]
    names = [name for name in names if "__MACOSX" not in name]
    if member in names:
        return member
    if member is not None or len(names) != 1:
        raise WordVectorsError(
            f"{path} has {len(names)} text files: {', '.join(names) or 'none'}; name the one to "
            f"read, such as {path}:{names[0] if names else 'vectors.txt'}"
        )
    return names[0]


def vectors_label(source: str) -> str:
    """Return a short name for tables, such as "glove.6B.50d" or "bert-base-cased, frozen"."""
    kind, name = vectors_kind(source)
    if kind:
        last = name.rstrip("/").rsplit("/", 1)[-1]
        return f"{last.removesuffix('.hdf5').removesuffix('_weights')}, frozen"
    path, member = located(source)
    name = Path(member or path.name).name
    for ending in (".gz", ".zip", ".txt", ".vec"):
        name = name.removesuffix(ending)
    return name


def vectors_kind(source: str) -> tuple[str, str]:
    """Return kind and name of "encoder:NAME"; a file has no kind."""
    kind, colon, name = source.partition(":")
    return (kind, name) if colon and kind in CONTEXTUAL and name else ("", source)


def located(source: str) -> tuple[Path, str | None]:
    """Return the file that is meant, and the named member of an archive."""
    if source == EMBEDDED:
        return EMBEDDED_PATH, None
    archive, colon, member = source.partition(".zip:")
    if colon and member:
        return Path(f"{archive}.zip").expanduser(), member
    return Path(source).expanduser(), None
