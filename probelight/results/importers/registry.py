"""The formats of other programs' outputs, by name; each is one file in `formats`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name

from probelight.io.errors import UsageError, nearest
from probelight.results.importers.answers import Imported

# Each takes the path of a file and gives an `Imported`.
FORMATS: Mapping[str, str] = {
    "lm_eval": "probelight.results.importers.formats.lm_eval:read",
    "minicons": "probelight.results.importers.formats.minicons:read",
    "hf_trainer": "probelight.results.importers.formats.hf_trainer:read",
    "plain": "probelight.results.importers.formats.plain:read",
}


def reader_of(name: str) -> Callable[[Path], Imported]:
    """What reads the files of a format.

    Raises:
        UsageError: If there is no such format.
    """
    if name not in FORMATS:
        near = nearest(name.lower().replace("-", "_"), list(FORMATS))
        raise UsageError(f"there is no format {name!r}{near}; choose of {', '.join(FORMATS)}")
    read: Callable[[Path], Imported] = resolve_name(FORMATS[name])
    return read
