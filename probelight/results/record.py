"""result.json: what a finished run says of itself, beside its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from probelight.io.artifacts import Facts, read_result
from probelight.io.typed import STRICT, typed
from probelight.results.provenance import DataUse, git_commit, versions
from probelight.results.row import Row

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
class OriginalParts:
    """What an original-task model was trained on, where it is known.

    Attributes:
        sets: Names of the sets.
        train_items: How many of their items at most; None for all.
    """

    sets: tuple[str, ...]
    train_items: int | None = None


@dataclass(frozen=True, kw_only=True)
class CurveFacts:
    """What a point of a learning curve was trained on.

    Attributes:
        train: How the train rows were got.
        first_stage: Whether the model was trained on other questions first.
        early_stopping: What stopped the training; None where nothing did.
        control_words: Of each control that puts words in, the word that stands for each.
        sha256_by_seed: Checksums of the weights, where each seed has its own.
    """

    train: str = ""
    first_stage: bool = False
    early_stopping: str | None = None
    control_words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sha256_by_seed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class InoculationFacts:
    """What an inoculation began with, chose by and reports on.

    Attributes:
        original_task: Name of the original task.
        selection: How the selection items were got.
        report_split: Split of the probe reported on; None where there was no such file.
        report_items: How many items of it at most; None for all.
        setup: Equal for runs that begin with the same model and report on the same items.
        setting: What was trained with; empty before inoculation.
        history: Selection scores of each epoch.
        cost_interpretable: Whether the original task was above chance before; None before the
            report.
        chosen: Key of the setting that was chosen, where there were several.
        candidates: Keys of the settings that it was chosen from.
        forgotten: The original-task items that counted more before than after.
    """

    original_task: str = ""
    selection: str = ""
    report_split: str | None = ""
    report_items: int | None = None
    setup: str = ""
    setting: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[Mapping[str, float], ...] = ()
    cost_interpretable: bool | None = None
    chosen: str = ""
    candidates: tuple[str, ...] = ()
    forgotten: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class UnigramFacts:
    """What two models' accuracies were correlated by.

    Attributes:
        models: The two.
        measure: How good a model is: "max" or "zero_shot".
    """

    models: tuple[str, ...]
    measure: str


@dataclass(frozen=True, kw_only=True)
class ComparisonFacts:
    """What systems were compared on.

    Attributes:
        answered: What they answered: "zero shot", "learning curve", ...
        setting: What they have in common, such as the number of training examples; may be empty.
        num_runs: By system, how many runs it has: one a seed.
        num_pairs: How many comparisons the p-values were adjusted for.
    """

    answered: str
    setting: str
    num_runs: Mapping[str, int]
    num_pairs: int


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
        original_parts: Of an original-task model and its inoculations, where they are known.
        curve: Of a point of a curve.
        inoculation: Of an inoculation and its steps.
        unigrams: Of a comparison of two models' corpora.
        comparison: Of a comparison of systems on the items that they share.
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
    original_parts: OriginalParts | None = None
    curve: CurveFacts | None = None
    inoculation: InoculationFacts | None = None
    unigrams: UnigramFacts | None = None
    comparison: ComparisonFacts | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    git_commit: str = field(default_factory=git_commit)
    key: str = ""
    files: Mapping[str, Facts] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What the file holds."""
        return {"format": FORMAT, **_written(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], name: str) -> Self:
        """The record that `to_json` wrote.

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
        return typed(cls, {key: one for key, one in value.items() if key != "format"}, name)

    @staticmethod
    def read(path: Path) -> RunRecord:
        """The record in a file.

        Raises:
            ValueError: If it is damaged, or of another version of the program.
        """
        return RunRecord.from_json(read_result(path), str(path))


def _written(value: Any) -> Any:
    """A value as JSON has it; what is as a record leaves it is left out."""
    if isinstance(value, Row):
        return value.to_json()
    if is_dataclass(value):
        own = ((part, getattr(value, part.name)) for part in fields(value))
        return {part.name: _written(one) for part, one in own if one != part.default}
    if isinstance(value, tuple):
        return [_written(one) for one in value]
    return value
