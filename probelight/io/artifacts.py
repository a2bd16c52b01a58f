"""What a finished run left is what is used again: sizes and checksums, recorded when it ends.

result.json holds, under `files`, each file of the run that a later one may read: its predictions
and scores, its config and the model it kept. Who reads one of them asks here first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict  # of typing's own pydantic reads none before Python 3.12

from probelight.io.files import read_json, sha256_of, user_path

RESULT = "result.json"
MODEL = "checkpoints/best"
_READ_AGAIN = (
    "config.yaml",
    "predictions.jsonl",
    "before.json",
    "hits.json",
    "grid.json",
    "distances.jsonl",
)


class FileState(TypedDict):
    """Size and checksum of a file, as result.json holds them."""

    size: int
    sha256: str


def left_files(run: Path) -> dict[str, FileState]:
    """Size and checksum of what a run leaves for others, by path in its folder."""
    found: dict[str, FileState] = {}
    for path in _paths(run):
        with suppress(FileNotFoundError):  # of a DDP run's processes one may be ahead
            size = path.stat().st_size
            found[path.relative_to(run).as_posix()] = {"size": size, "sha256": sha256_of(path)}
    return found


def read_result(path: Path) -> Mapping[str, Any]:
    """The result.json of a run.

    Raises:
        ValueError: If it is damaged; the message says what to remove.
    """
    try:
        result = read_json(path)
    except ValueError as error:
        raise ValueError(f"{error}; {remedy(path.parent)}") from error
    if not isinstance(result, dict) or not isinstance(result.get("rows"), list):
        raise ValueError(
            f"{path}: not a result file (it has no list of rows); {remedy(path.parent)}"
        )
    return result


def check_left(run: Path, part: str) -> None:
    """Refuses a file of a finished run, or the files of a folder in it, that have changed since.

    Nothing is known of a run that has not ended, or ended before there were records.

    Args:
        run: The run's folder.
        part: A file of it such as "predictions.jsonl", or `MODEL`.

    Raises:
        ValueError: If a file is missing or is not what the run left.
    """
    if not (run / RESULT).is_file():
        return
    recorded = read_result(run / RESULT).get("files")
    if isinstance(recorded, dict) and (said := change(run, recorded, part)):
        raise ValueError(f"{run}/{said}; {remedy(run)}")


def change(run: Path, recorded: Mapping[str, object], part: str) -> str | None:
    """What has become of a part of a finished run: "NAME: changed since"; None if nothing has.

    Args:
        run: The run's folder.
        recorded: What its record holds under `files`.
        part: A file of it, or a folder in it.
    """
    for name, facts in recorded.items():
        own = name == part or name.startswith(f"{part}/")
        if own and (problem := _problem(run / name, facts)):
            return f"{name}: {problem}"
    return None


def remedy(run: Path) -> str:
    """What to do where a run is not as it was left."""
    return f"remove {run} and give the command that made it again"


def check_model(folder: str | Path) -> None:
    """Refuses a model that a finished run kept and that has changed since, wherever it is used.

    Args:
        folder: Any model folder; RUN/checkpoints/best is one that a run kept.

    Raises:
        ValueError: If a file of it is missing or is not what the run left.
    """
    path = user_path(folder).absolute()
    run = path.parent.parent
    if path == run / MODEL:
        check_left(run, MODEL)


def _problem(path: Path, facts: object) -> str | None:
    if not path.is_file():
        return "missing since the run ended"
    if not isinstance(facts, Mapping) or not facts.keys() >= FileState.__required_keys__:
        return f"{RESULT} does not say what the run left of it"
    if (size := path.stat().st_size) != facts["size"]:
        return f"changed since the run ended ({size} bytes where it left {facts['size']})"
    return None if sha256_of(path) == facts["sha256"] else "changed since the run ended"


def _paths(run: Path) -> Iterator[Path]:
    yield from (path for name in _READ_AGAIN if (path := run / name).is_file())
    yield from (path for path in sorted((run / MODEL).rglob("*")) if path.is_file())
