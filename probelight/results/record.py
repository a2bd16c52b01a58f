"""result.json: the record of a finished run, with the data that it read and its artifacts.

Under `files` are the size and checksum of each file of the run that a later one may read: its
predictions and scores, its config and the model it kept. They are checked before each use.
"""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

from typing_extensions import TypedDict  # of typing's own pydantic reads none before Python 3.12

from probelight.io.documents import STRICT, read_json, typed
from probelight.io.errors import UsageError
from probelight.io.files import DataFile, sha256_of, user_path
from probelight.io.package import checkout, current_model, program
from probelight.results.details import DETAILS, Details
from probelight.results.row import Row, with_scoring

PACKAGES = ("torch", "pytorch-lightning", "transformers", "tokenizers", "torchmetrics", "numpy")
D = TypeVar("D", bound=Details)

RESULT = "result.json"
FORMAT = 2  # of the file; another number is refused
MODEL = "checkpoints/best"
_READ_AGAIN = (
    "config.yaml",
    "predictions.jsonl",
    "before.json",
    "hits.json",
    "grid.json",
    "distances.jsonl",
)
COMMAND = "command.txt"  # next to config.yaml: what was typed
COMMAND_LINE: ContextVar[str] = ContextVar("command", default="")  # that runs, as it is typed
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide the numbers."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def git_commit() -> str:
    """Return the checkout's commit, with "+changes" when tracked files differ.

    It is empty where the package is installed: a repository around it is another project's.
    """
    root = checkout()
    if root is None:
        return ""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root:
            return ""
        commit = git("rev-parse", "HEAD")
        return commit + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


class FromFiles(Protocol):
    """Items that were read from files, such as one split of a probe."""

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files that the items were read from."""
        ...


def set_command(name: str, arguments: Sequence[str]) -> None:
    """Keep the command line for the command's folders, without users and passwords of addresses."""
    COMMAND_LINE.set(_CREDENTIALS.sub("", f"{program()} {name} {shlex.join(arguments)}".strip()))


def data_files(sets: Iterable[FromFiles]) -> tuple[DataFile, ...]:
    """Return the data files of some sets, each file once, by their names without folders."""
    files = {file.sha256: file for part in sets for file in part.files}
    return tuple(replace(file, path=Path(file.path).name) for file in files.values())


def checksums(*sets: FromFiles) -> list[str]:
    """Return the checksums of the files of sets: a run with changed files is another run."""
    return [file.sha256 for part in sets for file in part.files]


def check_data(planned: Collection[str], sets: Iterable[FromFiles]) -> None:
    """Refuse sets whose files no longer have the checksums that they were planned with."""
    read = {file.sha256: file.path for part in sets for file in part.files}
    if read.keys() != set(planned):
        others = [path for sha256, path in read.items() if sha256 not in planned]
        raise changed_since(others or read.values())


def changed_since(paths: Iterable[str]) -> UsageError:
    """Return the error about files that have changed since a run was planned."""
    return UsageError(
        f"{', '.join(paths)}: changed since it was planned; give the command again (of a sweep, "
        "`train.py sweep plan`)"
    )


class FileState(TypedDict):
    """Size and checksum of a file, as result.json holds them."""

    size: int
    sha256: str


def artifacts_of(run: Path) -> dict[str, FileState]:
    """Return the size and checksum of a run's artifacts, by path in its folder."""
    found: dict[str, FileState] = {}
    paths = (run / name for name in _READ_AGAIN)
    for path in filter(Path.is_file, [*paths, *sorted((run / MODEL).rglob("*"))]):
        with suppress(FileNotFoundError):  # of a DDP run's processes one may be ahead
            size = path.stat().st_size
            found[path.relative_to(run).as_posix()] = {"size": size, "sha256": sha256_of(path)}
    return found


def read_result(path: Path) -> Mapping[str, Any]:
    """Read the result.json of a run; the ValueError of a damaged one says what to remove."""
    try:
        result = read_json(path)
    except ValueError as error:
        raise ValueError(f"{error}; {remedy(path.parent)}") from error
    if not isinstance(result, dict) or not isinstance(result.get("rows"), list):
        raise ValueError(
            f"{path}: not a result file (it has no list of rows); {remedy(path.parent)}"
        )
    return result


def check_artifact(run: Path, part: str) -> None:
    """Refuse a file or folder (such as `MODEL`) of a finished run that has changed since.

    Nothing is known of a run that has not ended, or ended before checksums were recorded.
    """
    if not (run / RESULT).is_file():
        return
    recorded = read_result(run / RESULT).get("files")
    if isinstance(recorded, dict) and (changed := change(run, recorded, part)):
        raise ValueError(f"{run}/{changed}; {remedy(run)}")


def change(run: Path, recorded: Mapping[str, object], part: str) -> str | None:
    """Return how a file or folder differs from a run's recorded `files`, "NAME: ...", or None."""
    for name, state in recorded.items():
        if name != part and not name.startswith(f"{part}/"):
            continue
        path = run / name
        if not path.is_file():
            return f"{name}: missing since the run ended"
        if not isinstance(state, Mapping) or not state.keys() >= FileState.__required_keys__:
            return f"{name}: {RESULT} does not say what the run left of it"
        if (size := path.stat().st_size) != state["size"]:
            left = state["size"]
            return f"{name}: changed since the run ended ({size} bytes where it left {left})"
        if sha256_of(path) != state["sha256"]:
            return f"{name}: changed since the run ended"
    return None


def remedy(run: Path) -> str:
    """Return what to do where a run has changed."""
    return f"remove {run} and give the command that made it again"


def check_model(folder: str | Path) -> None:
    """Refuse a model that a finished run kept (RUN/checkpoints/best) if it has changed since."""
    path = user_path(folder).absolute()
    run = path.parent.parent
    if path == run / MODEL:
        check_artifact(run, MODEL)


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where a model comes from; `loaded_from` distinguishes models of one name."""

    loaded_from: str = ""  # path, Hub name (with its revision), or word vectors
    hub_id: str | None = None  # its id on the Hub; None for a folder, a baseline or random weights
    revision: str | None = None  # branch, tag or commit on the Hub, if the user gave one
    vectors: str = ""  # name of its word vectors; empty where it has none
    control_of: str = ""  # model whose architecture it has, with random weights; else empty


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The content of result.json."""

    __pydantic_config__: ClassVar = STRICT

    protocol: str
    model: str = ""  # as tables call it
    probe: str = ""  # empty for an analysis over several
    rows: tuple[Row, ...] = field(default_factory=tuple)  # written even where there are none
    counts: Mapping[str, int] = field(default_factory=dict)  # number of items of each part
    notices: tuple[str, ...] = ()  # sentences for the reader of a report
    seeds: tuple[int, ...] = ()
    data: tuple[DataFile, ...] = ()  # the files that it read
    source: ModelSource = ModelSource()
    dtype: str = "float32"  # precision of the weights that answered
    num_rescored: int = 0  # items that it could not decide, which were scored again in float32
    model_sha256: str = ""  # of the weights: those kept by a training, those loaded by any other
    seconds: float | None = None
    hits_file: str = ""  # the file of the items' scores (`results.hits`), if there is one
    details: tuple[Details, ...] = ()  # what only its protocol has, each under a key of its own
    facts: Mapping[str, Any] = field(default_factory=dict)  # for readers of the file alone
    versions: Mapping[str, str] = field(default_factory=versions)  # of what decides the numbers
    git_commit: str = field(default_factory=git_commit)  # of the checkout
    key: str = ""  # name of the run's folder; known when it is finished
    files: Mapping[str, FileState] = field(default_factory=dict)  # of what a later run may read

    def detail(self, kind: type[D]) -> D | None:
        """Return the details of a kind; None where the run has none."""
        return next((detail for detail in self.details if isinstance(detail, kind)), None)

    def with_details(self, *details: Details | None) -> Self:
        """Return the record with these details in place of others of their kinds."""
        by_key = {detail.key: detail for detail in (*self.details, *details) if detail is not None}
        return replace(self, details=tuple(by_key[key] for key in DETAILS if key in by_key))

    def to_json(self) -> dict[str, Any]:
        """Return what the file holds."""
        value: dict[str, Any] = {"format": FORMAT}
        for part in fields(RunRecord):
            found = getattr(self, part.name)
            if part.name == "details":
                by_key = {detail.key: detail for detail in found}
                value |= {key: _written(by_key[key]) for key in DETAILS if key in by_key}
            elif found != part.default:
                value[part.name] = _written(found)
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any], name: str) -> Self:
        """Read the record that `to_json` wrote, from a file that messages call `name`.

        Raises:
            ValueError: If it is of another version of the program, or malformed.
        """
        if value.get("format") != FORMAT:
            raise ValueError(
                f"{name}: written by another version of Probelight, which this one does not read; "
                "give the command again with another --output_dir"
            )
        details = tuple(
            typed(kind, value[key], name, within=key)
            for key, kind in DETAILS.items()
            if value.get(key) is not None
        )
        shared = {k: found for k, found in value.items() if k != "format" and k not in DETAILS}
        record = typed(cls, shared, name)
        source = replace(
            record.source,
            loaded_from=current_model(record.source.loaded_from),
            control_of=current_model(record.source.control_of),
        )
        model, rows = current_model(record.model), with_scoring(record.rows)
        return replace(record, model=model, rows=rows, source=source, details=details)

    @staticmethod
    def read(path: Path) -> RunRecord:
        """Read the record in a file; a ValueError if it is damaged or of another version."""
        return RunRecord.from_json(read_result(path), str(path))


def _written(value: Any) -> Any:
    """Return a value as JSON has it, without the fields that are at their defaults."""
    if isinstance(value, Row):
        return value.to_json()
    if is_dataclass(value):
        parts = ((part, getattr(value, part.name)) for part in fields(value))
        return {part.name: _written(written) for part, written in parts if written != part.default}
    if isinstance(value, tuple):
        return [_written(part) for part in value]
    return value
