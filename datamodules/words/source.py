"""Which file of word vectors is meant by `--model.vectors`; read without numpy, for settings."""

from __future__ import annotations

from pathlib import Path

EMBEDDED = "embedded"
EMBEDDED_PATH = Path(__file__).resolve().parents[2] / "assets" / "word_vectors.txt"


def vectors_label(source: str) -> str:
    """A short name of vectors for tables, such as "glove.6B.50d"."""
    path, member = located(source)
    name = Path(member or path.name).name
    for ending in (".gz", ".zip", ".txt", ".vec"):
        name = name.removesuffix(ending)
    return name


def located(source: str) -> tuple[Path, str | None]:
    """The file that is meant, and the member of it where it is an archive and one is named."""
    if source == EMBEDDED:
        return EMBEDDED_PATH, None
    archive, colon, member = source.partition(".zip:")
    if colon and member:
        return Path(f"{archive}.zip").expanduser(), member
    return Path(source).expanduser(), None
