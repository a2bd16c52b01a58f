"""What runs of one protocol say of themselves in result.json, beside what all runs say.

Each class is the content of one key of the file. They lie here, below the protocols that write them
and the reports that read them, because neither of the two rooms may use the other's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from probelight.io.documents import STRICT


@dataclass(frozen=True, kw_only=True)
class Details:
    """The content of one key of result.json that not every run has.

    Attributes:
        key: The key.
    """

    __pydantic_config__: ClassVar = STRICT
    key: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class OriginalParts(Details):
    """The questions that an original-task model was trained on, where they are known.

    Attributes:
        sets: Names of the sets.
        train_items: How many of their items at most; None for all.
    """

    key: ClassVar = "original_parts"

    sets: tuple[str, ...]
    train_items: int | None = None


@dataclass(frozen=True, kw_only=True)
class CurveDetails(Details):
    """What a point of a learning curve was trained on.

    Attributes:
        train: How the train rows were got.
        first_stage: Whether the model was trained on other questions first.
        early_stopping: What stopped the training; None where nothing did.
        control_words: Of each control that puts words in, the word that stands for each.
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
    """What two models' accuracies were correlated by.

    Attributes:
        models: The two.
        measure: How good a model is: "max" or "zero_shot".
    """

    key: ClassVar = "unigrams"

    models: tuple[str, ...]
    measure: str


@dataclass(frozen=True, kw_only=True)
class ComparisonDetails(Details):
    """What systems were compared on.

    Attributes:
        answered: What they answered: "zero shot", "learning curve", ...
        setting: What they have in common, such as the number of training examples; may be empty.
        num_runs: By system, how many runs it has: one a seed.
        num_pairs: How many comparisons the p-values were adjusted for.
    """

    key: ClassVar = "comparison"

    answered: str
    setting: str
    num_runs: Mapping[str, int]
    num_pairs: int


DETAILS: Mapping[str, type[Details]] = {  # in the order of the file
    kind.key: kind
    for kind in (
        OriginalParts,
        CurveDetails,
        InoculationDetails,
        UnigramDetails,
        ComparisonDetails,
    )
}
