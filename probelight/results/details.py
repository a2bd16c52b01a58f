"""The parts of result.json that only one protocol writes: each class is the content of one key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from probelight.io.settings import STRICT
from probelight.metrics.verdicts import MARGIN


@dataclass(frozen=True, kw_only=True)
class Details:
    """The content of one key of result.json (`key`) that not every run has."""

    __pydantic_config__: ClassVar = STRICT
    key: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class OriginalParts(Details):
    """The questions that an original-task model was trained on."""

    key: ClassVar = "original_parts"

    sets: tuple[str, ...]
    train_items: int | None = None  # at most; None for all


@dataclass(frozen=True, kw_only=True)
class CurveDetails(Details):
    """The training of a point of a learning curve, and its controls' replacements, word to word."""

    key: ClassVar = "curve"

    train: str = ""  # origin of the train rows
    first_stage: bool = False  # whether the model was trained on other questions first
    setup: str = ""  # how the items were posed; "": questions in mode full, else with a mask
    early_stopping: str | None = None  # what stopped the training; None if nothing did
    control_words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sha256_by_seed: Mapping[str, str] = field(default_factory=dict)  # of the weights of each seed


@dataclass(frozen=True, kw_only=True)
class InoculationDetails(Details):
    """The data, settings and choice of an inoculation.

    Its cost is interpretable where the original task was above chance before.
    """

    key: ClassVar = "inoculation"

    original_task: str = ""
    selection: str = ""  # origin of the selection items
    report_split: str | None = ""  # split of the probe reported on; None where it has no file
    report_items: int | None = None  # at most how many items of it; None for all
    setup: str = ""  # equal for runs that begin with the same model and report on the same items
    setting: Mapping[str, Any] = field(default_factory=dict)  # of the training; empty before it
    history: tuple[Mapping[str, float], ...] = ()  # selection scores of each epoch
    cost_interpretable: bool | None = None  # None before the report
    chosen: str = ""  # key of the chosen setting, where there were several
    candidates: tuple[str, ...] = ()  # keys of the settings that it was chosen from
    forgotten: tuple[Mapping[str, Any], ...] = ()  # items with a higher score before than after


@dataclass(frozen=True, kw_only=True)
class UnigramDetails(Details):
    """A correlation of two models' "max" or "zero_shot" accuracies (the measure)."""

    key: ClassVar = "unigrams"

    models: tuple[str, ...]
    measure: str


@dataclass(frozen=True, kw_only=True)
class ComparisonDetails(Details):
    """A comparison of systems."""

    key: ClassVar = "comparison"

    answered: str  # how they answered: "zero shot", "learning curve", ...
    setting: str  # what they have in common, such as the number of training examples
    num_runs: Mapping[str, int]  # by system, one run per seed
    num_pairs: int  # comparisons that the p-values were adjusted for


@dataclass(frozen=True, kw_only=True)
class ForgettingDetails(Details):
    """What was lost and gained between two measurements."""

    key: ClassVar = "forgetting"

    before: str  # what was measured before, as tables call it; the run's model is after
    num_seeds: int = 1  # runs after
    margin: float = MARGIN  # the loss of accuracy that does not matter


@dataclass(frozen=True, kw_only=True)
class WatchDetails(Details):
    """The scores of a model at a step of a training that a callback watched."""

    key: ClassVar = "watch"

    step: int
    task: str = ""  # "original task" if the model should not forget it


DETAILS: Mapping[str, type[Details]] = {kind.key: kind for kind in Details.__subclasses__()}
