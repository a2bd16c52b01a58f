"""The file of word vectors that `--model.vectors` means; read without numpy, for settings."""

from __future__ import annotations

from pathlib import Path

from probelight.io.package import ASSETS

EMBEDDED = "embedded"
# Vectors that depend on the words around, made by a frozen model.
CONTEXTUAL = ("encoder", "elmo")
EMBEDDED_PATH = ASSETS / "word_vectors.txt"


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
