"""result.json: the record of a finished run, with the data that it read and its artifacts.

`files` has the size and checksum of each file of the run that a later run may read: predictions and
scores, the config and the model that was kept. They are checked before each use.
"""

from __future__ import annotations

import os
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

from probelight.io.documents import read_json
from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.io.files import DataFile, sha256_of, user_path
from probelight.io.package import checkout, program
from probelight.io.settings import STRICT, typed
from probelight.results.details import DETAILS, Details
from probelight.results.row import Row

PACKAGES = ("torch", "pytorch-lightning", "transformers", "tokenizers", "torchmetrics", "numpy")
D = TypeVar("D", bound=Details)

RESULT = "result.json"
# Of this file, and of the folders of commands and the configs of runs in them: raise it with any
# change of what they hold, as another number is refused.
FORMAT = 5
OTHER_FORMAT = (
    "written by another version of Probelight, which this one cannot read; rerun the command with "
    "another --output_dir, or use the version that wrote it"
)
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
    version_of = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            version_of[package] = version(package)
        except PackageNotFoundError:
            version_of[package] = "absent"
    return version_of


def git_commit() -> str:
    """Return the commit of the checkout, with "+changes" if tracked files differ from it.

    It is empty if the package is installed: a repository around it is then another project's.
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


def set_command(name: str, arguments: Sequence[str]) -> None:
    """Record the command line for the command's folder, without credentials in addresses.

    Args:
        name: The command.
        arguments: Its arguments, as the user typed them.
    """
    words = " ".join(map(_quoted, arguments))
    COMMAND_LINE.set(_CREDENTIALS.sub("", f"{program()} {name} {words}".strip()))


def _quoted(argument: str) -> str:
    """Return an argument as a shell takes it; of bytes that are no text, or no letters, by code."""
    if visible(argument) == argument:
        return shlex.quote(argument)
    codes = os.fsencode(argument)
    letters = (chr(c) if 31 < c < 127 and c not in b"'\\" else f"\\x{c:02x}" for c in codes)
    return f"$'{''.join(letters)}'"


def data_files(sets: Iterable[FromFiles]) -> tuple[DataFile, ...]:
    """Return the data files of some sets, each file once, with names but without folders."""
    files = {file.sha256: file for source in sets for file in source.files}
    return tuple(replace(file, path=Path(file.path).name) for file in files.values())


def checksums(*sets: FromFiles) -> tuple[str, ...]:
    """Return the checksums of the files of sets; a run on changed files is a different run."""
    return tuple(file.sha256 for source in sets for file in source.files)


def check_data(planned: Collection[str], sets: Iterable[FromFiles]) -> None:
    """Refuse sets whose files have changed since a run was planned.

    Args:
        planned: Checksums of the files when the run was planned.
        sets: The sets as they were read now.

    Raises:
        UsageError: If a checksum differs; the message names the files.
    """
    read = {file.sha256: file.path for source in sets for file in source.files}
    if read.keys() != set(planned):
        paths = [path for sha256, path in read.items() if sha256 not in planned]
        raise changed_since(paths or read.values())


def changed_since(paths: Iterable[str]) -> UsageError:
    """Return the error about files that have changed since a run was planned."""
    return UsageError(
        f"{', '.join(paths)}: changed since the run was planned; rerun the command (for a sweep, "
        "`train.py sweep plan`)"
    )


class FileState(TypedDict):
    """Size in bytes and checksum of a file, as in result.json."""

    size: int
    sha256: str


def artifacts_of(run: Path) -> dict[str, FileState]:
    """Return the size and checksum of a run's artifacts, by their paths in the run's folder."""
    states: dict[str, FileState] = {}
    paths = (run / name for name in _READ_AGAIN)
    for path in filter(Path.is_file, [*paths, *sorted((run / MODEL).rglob("*"))]):
        with suppress(FileNotFoundError):  # of a DDP run's processes one may be ahead
            size = path.stat().st_size
            states[path.relative_to(run).as_posix()] = {"size": size, "sha256": sha256_of(path)}
    return states


def read_result(path: Path) -> Mapping[str, Any]:
    """Read the result.json of a run.

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


def check_artifact(run: Path, artifact: str) -> None:
    """Refuse a file or folder of a finished run that has changed since the run ended.

    Files of a run that has not ended, or that recorded no checksums, are not checked.

    Args:
        run: The run's folder.
        artifact: Path of the file or folder in it, such as `MODEL`.

    Raises:
        ValueError: If it has changed; the message says what to do.
    """
    if not (run / RESULT).is_file():
        return
    recorded = read_result(run / RESULT).get("files")
    if isinstance(recorded, dict) and (changed := artifact_change(run, recorded, artifact)):
        raise ValueError(f"{run}/{changed}; {remedy(run)}")


def artifact_change(run: Path, recorded: Mapping[str, object], artifact: str) -> str | None:
    """Return how a file or folder differs from what its run recorded.

    Args:
        run: The run's folder.
        recorded: The `files` of its record.
        artifact: Path of the file or folder in the run's folder.

    Returns:
        A text that begins with the name of the changed file, or None if nothing has changed.
    """
    for name, state in recorded.items():
        if name != artifact and not name.startswith(f"{artifact}/"):
            continue
        path = run / name
        if not path.is_file():
            return f"{name}: missing since the run ended"
        if not isinstance(state, Mapping) or not state.keys() >= FileState.__required_keys__:
            return f"{name}: {RESULT} does not have its size and checksum"
        if (size := path.stat().st_size) != state["size"]:
            recorded_size = state["size"]
            return f"{name}: changed since the run ended ({recorded_size} bytes then, {size} now)"
        if sha256_of(path) != state["sha256"]:
            return f"{name}: changed since the run ended"
    return None


def remedy(run: Path) -> str:
    """Return advice for a run whose files have changed or are damaged."""
    return f"remove {run} and rerun the command that made it"


def check_model(folder: str | Path) -> None:
    """Refuse a model that a finished run kept, if it has changed since the run ended.

    Args:
        folder: The model's folder; only those of runs (RUN/checkpoints/best) are checked.

    Raises:
        ValueError: If it has changed; the message says what to do.
    """
    path = user_path(folder).absolute()
    run = path.parent.parent
    if path == run / MODEL:
        check_artifact(run, MODEL)


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where a model comes from.

    Attributes:
        loaded_from: Path, Hub name with revision, or word vectors. It distinguishes models that
            have the same name.
        hub_id: Id on the Hub; None for a folder, a baseline or random weights.
        revision: Branch, tag or commit on the Hub, if the user gave one.
        vectors: Name of its word vectors; empty if it has none.
        control_of: Of a model with random weights: the model whose architecture it has. Else empty.
        quantisation: How a GGUF file stores the weights, which were read as plain numbers. Else
            empty.
        file_sha256: Checksum of that file.
        tokenizer_sha256: Checksum of the vocabulary of its tokenizer, where it has one.
    """

    loaded_from: str = ""
    hub_id: str | None = None
    revision: str | None = None
    vectors: str = ""
    control_of: str = ""
    quantisation: str = ""
    file_sha256: str = ""
    tokenizer_sha256: str = ""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The content of result.json.

    Attributes:
        protocol: The protocol of the run.
        model: Name of the model, as in tables.
        probe: Name of the probe; empty for an analysis of several.
        rows: The measured numbers.
        counts: Number of items of each part.
        notices: Sentences for the reader of a report.
        seeds: Seeds of the run.
        data: The data files that the run read.
        source: Where the model comes from.
        dtype: Precision of the weights that answered.
        num_rescored: Number of items that this precision could not decide, so that they were scored
            again in float32.
        model_sha256: Checksum of the weights: those that a training run kept, or that another run
            loaded.
        seconds: Duration of the run.
        tokens_read: Tokens that networks read in it, by this process and since it was last resumed.
        padding_read: Places of their batches that held none.
        hits_file: The file of the items' scores (`results.hits`), if there is one.
        details: Parts that only some protocols have, each written under its own key.
        facts: More facts for people who read the file; no program uses them.
        versions: Versions of Python and of the packages that decide the numbers.
        git_commit: Commit of the checkout.
        key: Name of the run's folder; set when the run is finished.
        files: Size and checksum of each file that a later run may read.
    """

    __pydantic_config__: ClassVar = STRICT

    protocol: str
    model: str = ""
    probe: str = ""
    rows: tuple[Row, ...] = field(default_factory=tuple)  # written even if there are none
    counts: Mapping[str, int] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    data: tuple[DataFile, ...] = ()
    source: ModelSource = ModelSource()
    dtype: str = "float32"
    num_rescored: int = 0
    model_sha256: str = ""
    seconds: float | None = None
    tokens_read: int = 0
    padding_read: int = 0
    hits_file: str = ""
    details: tuple[Details, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    git_commit: str = field(default_factory=git_commit)
    key: str = ""
    files: Mapping[str, FileState] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Row, rows: Iterable[Row], sets: Iterable[FromFiles], **more: Any) -> Self:
        """Return the record of a run that read some sets, named as its rows are, such as `row`."""
        names = {name: getattr(row, name) for name in ("protocol", "model", "probe")}
        return cls(**names, rows=tuple(rows), data=data_files(sets), **more)

    def detail(self, kind: type[D]) -> D | None:
        """Return the details of a kind, or None if the run has none."""
        return next((detail for detail in self.details if isinstance(detail, kind)), None)

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        content: dict[str, Any] = {"format": FORMAT}
        for column in fields(RunRecord):
            entry = getattr(self, column.name)
            if column.name == "details":
                by_key = {detail.key: detail for detail in entry}
                content |= {key: _as_json(by_key[key]) for key in DETAILS if key in by_key}
            elif entry != column.default:
                content[column.name] = _as_json(entry)
        return content

    @classmethod
    def from_json(cls, value: Mapping[str, Any], name: str) -> Self:
        """Read the record that `to_json` wrote.

        Args:
            value: The content of the file.
            name: The file's name, for messages.

        Raises:
            ValueError: If another version of Probelight wrote it, or it is malformed.
        """
        if value.get("format") != FORMAT:
            raise ValueError(f"{name}: {OTHER_FORMAT}")
        details = tuple(
            typed(kind, value[key], name, within=key)
            for key, kind in DETAILS.items()
            if value.get(key) is not None
        )
        shared = {k: entry for k, entry in value.items() if k != "format" and k not in DETAILS}
        return replace(typed(cls, shared, name), details=details)

    @staticmethod
    def read(path: Path) -> RunRecord:
        """Read the record in a file.

        Raises:
            ValueError: If it is damaged, or another version of Probelight wrote it.
        """
        return RunRecord.from_json(read_result(path), str(path))


def _as_json(value: Any) -> Any:
    """Convert a value to JSON's types, without fields that have their defaults."""
    if isinstance(value, Row):
        return value.to_json()
    if is_dataclass(value):
        pairs = ((column, getattr(value, column.name)) for column in fields(value))
        return {column.name: _as_json(entry) for column, entry in pairs if entry != column.default}
    if isinstance(value, tuple):
        return [_as_json(entry) for entry in value]
    return value
