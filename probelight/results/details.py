"""The parts of result.json that only one protocol writes: each class is the content of one key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from probelight.io.documents import STRICT


@dataclass(frozen=True, kw_only=True)
class Details:
    """The content of one key of result.json (`key`) that not every run has."""

    __pydantic_config__: ClassVar = STRICT
    key: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class OriginalParts(Details):
    """The questions that an original-task model was trained on.

    Attributes:
        sets: Names of the sets.
        train_items: How many of their items at most; None for all.
    """

    key: ClassVar = "original_parts"

    sets: tuple[str, ...]
    train_items: int | None = None


@dataclass(frozen=True, kw_only=True)
class CurveDetails(Details):
    """The training of a point of a learning curve.

    Attributes:
        train: Origin of the train rows.
        first_stage: Whether the model was trained on other questions first.
        early_stopping: What stopped the training; None if nothing did.
        control_words: Word to replacement, for each control that replaces words.
        sha256_by_seed: Checksums of the weights, where each seed has its own.
    """

    key: ClassVar = "curve"

    train: str = ""
    first_stage: bool = False
    early_stopping: str | None = None
    control_words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sha256_by_seed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class InoculationDetails(Details):
    """The data, settings and choice of an inoculation.

    Attributes:
        original_task: Name of the original task.
        selection: Origin of the selection items.
        report_split: Split of the probe reported on; None where there was no such file.
        report_items: At most how many items of it; None for all.
        setup: Equal for runs that begin with the same model and report on the same items.
        setting: Settings of the training; empty before inoculation.
        history: Selection scores of each epoch.
        cost_interpretable: Whether the original task was above chance before; None before the
            report.
        chosen: Key of the chosen setting, where there were several.
        candidates: Keys of the settings that it was chosen from.
        forgotten: The original-task items with a higher score before than after.
    """

    key: ClassVar = "inoculation"

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
class UnigramDetails(Details):
    """A correlation of two models' "max" or "zero_shot" accuracies (the measure)."""

    key: ClassVar = "unigrams"

    models: tuple[str, ...]
    measure: str


@dataclass(frozen=True, kw_only=True)
class ComparisonDetails(Details):
    """A comparison of systems.

    Attributes:
        answered: How they answered: "zero shot", "learning curve", ...
        setting: What they have in common, such as the number of training examples.
        num_runs: Number of runs, one per seed, by system.
        num_pairs: Number of comparisons that the p-values were adjusted for.
    """

    key: ClassVar = "comparison"

    answered: str
    setting: str
    num_runs: Mapping[str, int]
    num_pairs: int


DETAILS: Mapping[str, type[Details]] = {kind.key: kind for kind in Details.__subclasses__()}
