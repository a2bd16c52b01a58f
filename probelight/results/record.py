"""result.json: what a finished run says of itself, beside its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from probelight.io.artifacts import FileState, read_result
from probelight.io.typed import STRICT, typed
from probelight.results.details import DETAILS, Details
from probelight.results.provenance import DataUse, git_commit, versions
from probelight.results.row import Row, with_scoring

D = TypeVar("D", bound=Details)

FORMAT = 2  # of the file; another number is refused


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where a model comes from, so that a report need not go by its name.

    Attributes:
        loaded_from: The path or Hub name (with its revision) that it was loaded from, or its word
            vectors; it tells models of one name apart.
        hub_id: Its id on the Hub; None for a folder, a baseline or random weights.
        revision: Branch, tag or commit on the Hub, where one was given.
        vectors: What its word vectors are called; empty where it has none.
        control_of: The model whose architecture with random weights it is; empty for any other.
    """

    loaded_from: str = ""
    hub_id: str | None = None
    revision: str | None = None
    vectors: str = ""
    control_of: str = ""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The content of result.json.

    Attributes:
        protocol: What was run.
        model: The model, as tables call it.
        probe: The probe; empty for an analysis over several.
        rows: What was measured.
        counts: Items of each part.
        notices: What is to be said of the run, readable.
        seeds: The seeds that it was given.
        data: The files that it read.
        source: Where its model comes from.
        model_sha256: Of the weights: those kept by a run that trains, those given to any other.
        seconds: How long it took.
        hits_file: Name of the file beside it with what each item counted, if there is one.
        details: What only runs of its protocol say, a key of the file each.
        facts: What else there is to say; for readers of the file alone, nothing is made of it.
        versions: Of Python and the packages that decide the numbers.
        git_commit: Of the checkout.
        key: Name of the run's folder; known when it is finished.
        files: Size and checksum of each file that a later run may read.
    """

    __pydantic_config__: ClassVar = STRICT

    protocol: str
    model: str = ""
    probe: str = ""
    rows: tuple[Row, ...] = field(default_factory=tuple)  # written even where there are none
    counts: Mapping[str, int] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    data: tuple[DataUse, ...] = ()
    source: ModelSource = ModelSource()
    model_sha256: str = ""
    seconds: float | None = None
    hits_file: str = ""
    details: tuple[Details, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    git_commit: str = field(default_factory=git_commit)
    key: str = ""
    files: Mapping[str, FileState] = field(default_factory=dict)

    def detail(self, kind: type[D]) -> D | None:
        """Return the details of a kind; None where the run has none."""
        return next((one for one in self.details if isinstance(one, kind)), None)

    def with_details(self, *details: Details | None) -> Self:
        """Return the record with these details in place of others of their kinds."""
        by_key = {one.key: one for one in (*self.details, *details) if one is not None}
        return replace(self, details=tuple(by_key[key] for key in DETAILS if key in by_key))

    def to_json(self) -> dict[str, Any]:
        """Return what the file holds."""
        value: dict[str, Any] = {"format": FORMAT}
        for part in fields(RunRecord):
            one = getattr(self, part.name)
            if part.name == "details":
                by_key = {detail.key: detail for detail in one}
                value |= {key: _written(by_key[key]) for key in DETAILS if key in by_key}
            elif one != part.default:
                value[part.name] = _written(one)
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any], name: str) -> Self:
        """Read the record that `to_json` wrote.

        Args:
            value: The parsed file.
            name: How messages call it.

        Raises:
            ValueError: If it is of another version of the program, or not what it should be.
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
        shared = {k: one for k, one in value.items() if k != "format" and k not in DETAILS}
        record = typed(cls, shared, name)
        return replace(record, rows=with_scoring(record.rows), details=details)

    @staticmethod
    def read(path: Path) -> RunRecord:
        """Read the record in a file.

        Raises:
            ValueError: If it is damaged, or of another version of the program.
        """
        return RunRecord.from_json(read_result(path), str(path))


def _written(value: Any) -> Any:
    """Return a value as JSON has it, without the fields that are at their defaults."""
    if isinstance(value, Row):
        return value.to_json()
    if is_dataclass(value):
        own = ((part, getattr(value, part.name)) for part in fields(value))
        return {part.name: _written(one) for part, one in own if one != part.default}
    if isinstance(value, tuple):
        return [_written(one) for one in value]
    return value
