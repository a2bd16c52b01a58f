"""Settings of inoculations: original task, probe, dose and hyper-parameters."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal

from probelight.io import ranges
from probelight.io.errors import ConfigError, UsageError
from probelight.io.files import sha256_of
from probelight.models.checkpoint_files import (
    ADAPTER,
    adapter_sum,
    base_of,
    model_folder,
    read_settings,
)
from probelight.models.tuning import FULL, LORA, Tuning
from probelight.probes.controls import CONTROLS, STANDARD, control_named
from probelight.probes.splits import Replay
from probelight.protocols.engine.settings import Fit, ModelSettings
from probelight.protocols.engine.user_files import UserFiles, measured_split

# The protocols of the jobs, in the order in which they come.
FIRST = "first"  # what is trained before the original task
ORIGINAL_TASK = "original"
BEFORE = "before"  # scores of the original-task model, once for all cells of a sweep
CELL = "inoculation_cell"  # one setting of a sweep
INOCULATION = "inoculation"  # the report, of the one setting or of the best of a sweep

Extra = Literal["none", "x1", "x2"]
MAX_EXTRA = 3000  # the paper's bound on x2


@dataclass(frozen=True)
class FirstStage(Fit):
    """What is trained before the original task, as the paper trained on RACE before science.

    Args:
        name: Its name in tables.
        sets: Probe configs whose train split it is made of.
        train_split: Split trained on.
        train_items: Train on at most so many; none takes all.
        selection_share: Share of the train split that the epoch is chosen with.
    """

    name: str
    sets: Annotated[list[str], ranges.Distinct()]
    train_split: str = "train"
    train_items: ranges.NumItems | None = None
    selection_share: ranges.Share = 0.05
    epochs: ranges.NumEpochs = field(default=2, kw_only=True)


@dataclass(frozen=True)
class OriginalTask(Fit):
    """The task whose loss is the inoculation cost.

    Args:
        name: Its name in tables.
        sets: Probe configs whose train split it is made of.
        train_split: Split trained on.
        report_sets: Probe configs it is measured on; none keeps a share of the train split.
        report_split: Split of `report_sets`.
        train_items: Train on at most so many; none takes all.
        report_items: Report on at most so many; none takes all.
        report_share: Share of the train split kept for measuring, whole groups, without
            `report_sets`.
        selection_share: Share of the train split that checkpoints are selected with.
        selection_items: At most this many of them are scored at each epoch.
        reserved_share: Share of the train split reserved for add-some.
        reserved_sets: Probe configs whose whole train split is reserved for add-some instead, as
            the paper did with MCQL.
        num_choices: Questions with fewer choices get empty ones up to here, which compete
            (Richardson & Sabharwal 2020 ask for 5). None: every question has its own choices, or
            as many as `checkpoint` was saved with. It is saved with the model; a `checkpoint` that
            was saved with another number is refused.
        checkpoint: Folder of a trained original-task model, or "bookshelf-qa", the bundled one;
            none trains one.
        first: Trained before the task itself; none begins with the pre-trained model.
        seed: Seeds its splits and its training; the same for all cells of a sweep.
    """

    name: str
    sets: Annotated[list[str], ranges.Distinct()]
    train_split: str = "train"
    report_sets: Annotated[list[str], ranges.Distinct()] = field(default_factory=list)
    report_split: str = "test"
    train_items: ranges.NumItems | None = None
    report_items: ranges.NumItems | None = None
    report_share: ranges.Share = 0.2
    selection_share: ranges.Share = 0.1
    selection_items: ranges.NumItems = 500
    reserved_share: ranges.ShareOrNone = 0.1
    reserved_sets: Annotated[list[str], ranges.Distinct()] = field(default_factory=list)
    num_choices: ranges.NumChoices | None = None
    checkpoint: ranges.PathText | None = None
    first: FirstStage | None = None
    seed: ranges.Seed = 0

    def checkpoint_sums(self) -> dict[str, str] | None:
        """Return the checksums of a given model's weights: a retrained one is another model."""
        if self.checkpoint is None:
            return None
        base, _, adapters = base_of(self.checkpoint)
        *below, top = [model_folder(base), *adapters]
        sums = {}
        for place, folder in [("", top), *((f"below-{i}/", one) for i, one in enumerate(below))]:
            for path in sorted(folder.glob("*.safetensors")):
                sums[f"{place}{path.name}"] = sha256_of(path)
            if (folder / ADAPTER).is_file():
                settings = read_settings(folder / ADAPTER)
                sums[f"{place}{ADAPTER}"] = adapter_sum(settings)
        return sums


@dataclass(frozen=True)
class InoculatedProbe(ranges.Settings):
    """The probe that the model is inoculated with.

    Args:
        name: Probe config.
        train_split: Split that doses and selection items come from.
        report_split: Split reported on; none keeps a share of the train split for it.
        report_share: That share, whole groups.
        report_items: Report on at most so many; none takes all. Fewer than there are cut concepts,
            which then have no strict accuracy.
        selection_items: Items kept for selection, whole groups, in no dose.
        selection: "train" keeps selection apart from the report; "paper" selects on the reported
            items, as the paper did on its development set, and is labelled so.
        split_seed: Seeds the selection split, which all seeds of an inoculation share.
        control: "standard", or "choice_only": the same items without their questions, in the dose
            and in what is measured. It shows what a model gains from the choices alone.
        phrasings: Other wordings of the probe's config ("all", or their names) in which the model
            is asked before the dose: what it knew of an item is then told by other answers than
            those that are measured.
        others: Other sets that are scored before and after, as `name` or `name:split`, to see what
            the dose changed in them.
    """

    name: str
    train_split: str = "train"
    report_split: str | None = "test"
    report_share: ranges.Share = 0.2
    report_items: ranges.NumItems | None = None
    selection_items: ranges.NumItems = 500
    selection: Literal["train", "paper"] = "train"
    split_seed: ranges.Seed = 0
    control: str = STANDARD
    others: Annotated[list[str], ranges.Distinct()] = field(default_factory=list)
    phrasings: Annotated[list[str], ranges.Distinct()] = field(default_factory=list)
    newer: ClassVar = ("control", "others", "phrasings")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.control == STANDARD:
            return
        try:
            control = control_named(self.control)
        except ConfigError as error:
            raise UsageError(f"probe.control: {error}") from None
        if control.replaces or control.needs_arguments:
            fitting = [n for n, c in CONTROLS.items() if not (c.replaces or c.needs_arguments)]
            raise UsageError(
                f"probe.control: {self.control} goes by words and arguments that curves alone put "
                f"in; an inoculation takes {', '.join([STANDARD, *fitting])}"
            )


@dataclass(frozen=True)
class ProbeOrFiles(InoculatedProbe):
    """The probe, or the user's files in its place.

    Args:
        name: Probe config; none takes the files of `--data.*`.
    """

    name: str = ""


@dataclass(frozen=True)
class Subject:
    """What is inoculated with what: the same whatever the dose and the setting."""

    model: ModelSettings
    original: OriginalTask
    probe: InoculatedProbe


Strength = Annotated[float, ranges.Within(0, 1_000_000, above=True)]
# Of each way, where none is given.
STRENGTHS = {"replay": 0.5, "l2_sp": 1.0, "distillation": 1.0}


@dataclass(frozen=True)
class Keeping(ranges.Settings):
    """How an inoculation keeps what the model knew of the original task.

    Args:
        method: "none"; "replay": reserved original-task questions are a share of each batch;
            "l2_sp": weights are pulled back to where they started (Li et al. 2018); "distillation":
            the answers to reserved original-task questions are to stay what they were.
        strength: The share of replay (0.5), as near as whole questions allow; alpha of l2_sp, whose
            penalty is alpha / 2 times the squared distance (1); what a replayed question counts
            for one of the probe in distillation (1).
        share: Share of each batch that distillation replays.
    """

    method: Literal["none", "replay", "l2_sp", "distillation"] = "none"
    strength: Strength | None = None
    share: ranges.Share = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method == "none" and self.strength is not None:
            ways = ", ".join(STRENGTHS)
            raise UsageError(
                f"strength {self.strength:g} is of a way of keeping: give method, one of {ways}"
            )
        if self.method == "replay" and self.strength is not None and self.strength >= 1:
            raise UsageError(
                f"strength {self.strength:g} of replay is a share of each batch: give a number "
                "below 1"
            )
        if self.method != "distillation" and self.share != Keeping.share:
            raise UsageError(
                f"share {self.share:g} is of distillation; the share of replay is its strength"
            )
        if self.method != "none" and self.strength is None:
            object.__setattr__(self, "strength", STRENGTHS[self.method])

    @property
    def replayed_share(self) -> float:
        """The share of each batch that are original-task questions; 0 for none."""
        if self.method == "replay":
            assert self.strength is not None
            return self.strength
        return self.share if self.method == "distillation" else 0.0


KEEPING_NOTHING = Keeping()


@dataclass(frozen=True)
class Setting(Fit):
    """The dose and the hyper-parameters of one inoculation."""

    dose: ranges.NumItems
    extra: Extra
    seed: ranges.Seed
    keeping: Keeping = field(default=KEEPING_NOTHING, kw_only=True)
    newer: ClassVar = ("tuning", "keeping")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keeping.replayed_share and self.batch_size < 2:
            raise UsageError(
                f"keeping {self.keeping.method} replays a share of each batch, and batch_size is "
                f"{self.batch_size}; give 2 or more"
            )

    @property
    def way(self) -> tuple[str, float | None]:
        """How it keeps what was known, and how strongly, as in results.csv; ("", None) for not.

        Settings that have another value than usual are behind the name: "lora (alpha 32)".
        """
        parts, strength, tuning = list[str](), self.keeping.strength, self.tuning
        if self.keeping.method != "none":
            other = self.keeping.share != Keeping.share
            parts.append(self.keeping.method + other * f" (share {self.keeping.share:g})")
        if tuning.method != FULL:
            usual = Tuning(tuning.method).config()
            named = {k: v for k, v in tuning.config().items() if v != usual[k] and k != "rank"}
            if tuning.method == LORA and not parts:
                strength = float(tuning.rank)
            elif tuning.method == LORA:
                named = {"rank": tuning.rank, **named}
            said = ", ".join(f"{k} {json.dumps(v)}" for k, v in named.items())
            parts.append(f"{tuning.method} ({said})" if said else tuning.method)
        return "+".join(parts), strength

    @property
    def ending(self) -> str:
        """What the name of a run says of the way; "" for none."""
        keeping, tuning, parts = self.keeping, self.tuning, ""
        if keeping.method != "none":
            parts = f"-{keeping.method}{keeping.strength:g}"
        if tuning.method != FULL:
            parts += f"-{tuning.method}{tuning.rank if tuning.method == LORA else ''}"
        return parts

    @property
    def _replay(self) -> Replay | None:
        share = self.keeping.replayed_share
        return Replay.of(1, share, self.batch_size) if share else None

    def num_steps(self, num_items: int) -> int:
        """Return the optimiser steps of an inoculation with so many examples, without replay."""
        replay = self._replay
        return self.epochs * replay.steps(num_items) if replay else super().num_steps(num_items)

    def num_examples(self, num_items: int) -> int:
        """Return the examples of an epoch over so many, with what is replayed in its steps."""
        replay = self._replay
        return num_items + (replay.steps(num_items) * replay.per_step if replay else 0)


def fitting_probe(probe: ProbeOrFiles, user_files: UserFiles) -> ProbeOrFiles:
    """Return the probe of a user's files, named after them, on the splits that there are."""
    files, name, report = user_files.parts, user_files.config.name, probe.report_split
    if probe.train_split not in files:
        raise UsageError(
            f"nothing to train on: there is no file of the split {probe.train_split!r}; "
            f"give --data.train FILE, or --probe.train_split {next(iter(files))}"
        )
    if report is not None:
        if not files.keys() - {probe.train_split}:
            raise UsageError(
                "nothing to measure with: give --data.dev FILE or --data.test FILE, or keep a "
                "share of the train file for it (--probe.report_split null)"
            )
        report = measured_split(files, report, default="test")
        if report == probe.train_split:
            raise UsageError(
                f"--probe.train_split and the split reported on are both {report}: give another "
                "file, or --probe.report_split null, which keeps a share of it for the report"
            )
    if report != probe.report_split:
        print(f"{name}: reported on {report}, as there is no --data.{probe.report_split}")
    return replace(probe, name=name, report_split=report)
