"""Settings of inoculations: original task, probe, dose and hyper-parameters."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Literal

from probelight.io import ranges
from probelight.io.errors import ConfigError, UsageError
from probelight.io.files import sha256_of
from probelight.io.settings import Settings
from probelight.models.checkpoint_files import (
    ADAPTER,
    CheckpointRef,
    adapter_sum,
    base_of,
    read_settings,
)
from probelight.models.registry import ModelSettings
from probelight.models.tuning import FULL, LORA, Tuning
from probelight.probes.controls import CONTROLS, STANDARD, control_named
from probelight.probes.splits import Replay
from probelight.probes.user_files import UserFiles, measured_split
from probelight.training.settings import Fit

# The protocols of the jobs, in the order in which they come.
FIRST = "first"  # what is trained before the original task
ORIGINAL_TASK = "original"
BEFORE = "before"  # scores of the original-task model, once for all runs of a sweep
CANDIDATE = "inoculation_cell"  # one setting of a sweep
INOCULATION = "inoculation"  # the report, of the one setting or of the best of a sweep

Extra = Literal["none", "x1", "x2"]
MAX_EXTRA = 3000  # the paper's bound on x2


@dataclass(frozen=True)
class IntermediateTask(Fit):
    """A stage to train before the original task, as the paper trained on RACE before science.

    Args:
        name: Name of the stage in tables.
        sets: Probes (names or paths) to train on.
        train_split: Split to train on.
        train_items: Train on at most this many items; by default on all.
        selection_share: Share of the train split used to choose the epoch.
    """

    name: str
    sets: Annotated[list[str], ranges.Distinct()]
    train_split: str = "train"
    train_items: ranges.NumItems | None = None
    selection_share: ranges.Share = 0.05
    epochs: ranges.NumEpochs = field(default=2, kw_only=True)


@dataclass(frozen=True)
class OriginalTask(Fit):
    """The task that the model may forget: the accuracy it loses there is the inoculation cost.

    Args:
        name: Name of the original task in tables.
        sets: Probes (names or paths) to train on.
        train_split: Split to train on.
        report_sets: Probes to measure on; by default a share of the train split is held out.
        report_split: Split of `report_sets` to measure on.
        train_items: Train on at most this many items; by default on all.
        report_items: Report on at most this many items; by default on all.
        report_share: Share of the train split to hold out for the report, in whole groups, if there
            are no `report_sets`.
        selection_share: Share of the train split used to select checkpoints.
        selection_items: Score at most this many selection items after each epoch.
        reserved_share: Share of the train split reserved for add-some, replay and distillation.
        reserved_sets: Probes whose whole train splits are reserved instead, as the paper did with
            MCQL.
        num_choices: Fill up questions that have fewer choices with empty ones, which compete with
            the others (Richardson & Sabharwal 2020 use 5). By default each question keeps its own
            choices, or gets as many as `checkpoint` was saved with. The number is saved with the
            model; a `checkpoint` that was saved with another number is an error.
        checkpoint: Folder of a trained original-task model, or "bookshelf-qa", the bundled one. By
            default one is trained. Without `name` and `sets` the task is the one that it was
            trained on, as its `choice_head.json` says, and what was held out stays so.
        first: Stage to train before the task itself. By default training starts from the
            pre-trained model.
        seed: Seed of the splits and the training; the same for all runs of a sweep.
    """

    name: str = ""
    sets: Annotated[list[str], ranges.Distinct()] = field(default_factory=list)
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
    first: IntermediateTask | None = None
    seed: ranges.Seed = 0

    @property
    def given_model(self) -> CheckpointRef | None:
        """The model in `checkpoint`, if there is one."""
        return None if self.checkpoint is None else CheckpointRef.parse(self.checkpoint)

    def checkpoint_sums(self) -> dict[str, str] | None:
        """Return the checksums of a given model's weights: a retrained one is another model."""
        if (given_model := self.given_model) is None:
            return None
        base, adapters = base_of(given_model)
        *below, top = [base.folder, *adapters]
        folders = {"": top} | {f"below-{i}/": folder for i, folder in enumerate(below)}
        sums = {}
        for prefix, folder in folders.items():
            weight_paths = sorted(folder.glob("*.safetensors"))
            # Read only where there is no model.safetensors, whole or in shards.
            if not any(path.name.startswith("model") for path in weight_paths):
                weight_paths += sorted(folder.glob("pytorch_model*.bin"))
            for path in weight_paths:
                sums[f"{prefix}{path.name}"] = sha256_of(path)
            if (folder / ADAPTER).is_file():
                settings = read_settings(folder / ADAPTER)
                sums[f"{prefix}{ADAPTER}"] = adapter_sum(settings)
        return sums


@dataclass(frozen=True)
class InoculatedProbe(Settings):
    """The probe that the model is inoculated with.

    Args:
        name: Name of the probe, or path of its config.
        train_split: Split that doses and selection items are drawn from.
        report_split: Split to report on; null holds out a share of the train split instead.
        report_share: That share, in whole groups.
        report_items: Report on at most this many items; by default on all. A limit cuts concepts
            apart, so there is no strict accuracy.
        selection_items: Items to keep for selection, in whole groups. They are in no dose.
        selection: "train" selects on items of the train split, which are not reported; "paper"
            selects on the reported items, as the paper did on its development set, and results
            are labelled so.
        split_seed: Seed of the selection split, which all seeds of an inoculation share.
        control: "standard", or "choice_only": the same items without their questions, in the dose
            and in all measurements. It shows what a model gains from the choices alone;
            "shuffled_words", what it gains without the order of the words of the question.
        phrasings: Other wordings in the probe's config (their names, or "all") in which to ask the
            model before the dose. These answers decide which items it knew, so that the measured
            answers do not.
        others: Other sets to score before and after, as `name` or `name:split`, to see how the dose
            changes them.
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
                f"probe.control: {self.control} needs words and arguments that only curves put in; "
                f"choose from {', '.join([STANDARD, *fitting])}"
            )


@dataclass(frozen=True)
class ProbeOrFiles(InoculatedProbe):
    """The probe, or your own files instead.

    Args:
        name: Name of the probe, or path of its config; or give `--data.*`.
    """

    name: str = ""


@dataclass(frozen=True)
class Subject(Settings):
    """What is inoculated with what: the same whatever the dose and the setting."""

    model: ModelSettings
    original: OriginalTask
    probe: InoculatedProbe


@dataclass(frozen=True, kw_only=True)
class PlannedSubject(Subject):
    """A model, an original task and a probe, as they were when their runs were planned.

    The task has the number of choices that holds, of a given model too.

    Args:
        label: What the names of all runs say of the subject.
        phrasings: Texts of the phrasings that are asked before.
        data_sha256: Checksums of all files.
        checkpoint: Checksums of a given original-task model; None where one is trained.
        original_run: Key of the run that trains it.
    """

    label: str
    phrasings: dict[str, str]
    data_sha256: tuple[str, ...]
    checkpoint: dict[str, str] | None
    original_run: str | None


Strength = Annotated[float, ranges.Within(0, 1_000_000, above=True)]
# Of each method, where none is given.
STRENGTHS = {"replay": 0.5, "l2_sp": 1.0, "distillation": 1.0}


@dataclass(frozen=True)
class Keeping(Settings):
    """Method against forgetting the original task during an inoculation.

    Args:
        method: "none"; "replay" mixes reserved original-task questions into each batch; "l2_sp"
            pulls weights back to where they started (Li et al. 2018); "distillation" keeps the
            answers to reserved original-task questions as they were.
        strength: For replay, the share of each batch (0.5), as near as whole questions allow; for
            l2_sp, alpha (1) in the penalty alpha / 2 times the squared distance; for distillation,
            the weight (1) of a replayed question relative to a probe question.
        share: For distillation, the share of each batch that is replayed.
    """

    method: Literal["none", "replay", "l2_sp", "distillation"] = "none"
    strength: Strength | None = None
    share: ranges.Share = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method == "none" and self.strength is not None:
            methods = ", ".join(STRENGTHS)
            raise UsageError(
                f"strength {self.strength:g} needs a method against forgetting: give method, one "
                f"of {methods}"
            )
        if self.method == "replay" and self.strength is not None and self.strength >= 1:
            raise UsageError(
                f"strength {self.strength:g}: for replay it is a share of each batch; give a "
                "number below 1"
            )
        if self.method != "distillation" and self.share != Keeping.share:
            raise UsageError(
                f"share {self.share:g} is for distillation only; the share of replay is its "
                "strength"
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keeping.replayed_share and self.batch_size < 2:
            raise UsageError(
                f"keeping {self.keeping.method} replays a share of each batch, but batch_size is "
                f"{self.batch_size}; give 2 or more"
            )

    @property
    def method_and_strength(self) -> tuple[str, float | None]:
        """The method against forgetting, as results.csv names it, and its strength; ("", None).

        Settings that have another value than usual follow the name: "lora (alpha 32)".
        """
        methods, strength, tuning = list[str](), self.keeping.strength, self.tuning
        if self.keeping.method != "none":
            other_share = self.keeping.share != Keeping.share
            methods.append(self.keeping.method + other_share * f" (share {self.keeping.share:g})")
        if tuning.method != FULL:
            defaults = asdict(Tuning(tuning.method))
            options = {k: v for k, v in asdict(tuning).items() if v != defaults[k] and k != "rank"}
            if tuning.method == LORA and not methods:
                strength = float(tuning.rank)
            elif tuning.method == LORA:
                options = {"rank": tuning.rank, **options}
            option_text = ", ".join(f"{k} {json.dumps(v)}" for k, v in options.items())
            methods.append(f"{tuning.method} ({option_text})" if option_text else tuning.method)
        return "+".join(methods), strength

    @property
    def name_suffix(self) -> str:
        """What the name of a run says of the method against forgetting; "" for none."""
        keeping, tuning, suffix = self.keeping, self.tuning, ""
        if keeping.method != "none":
            suffix = f"-{keeping.method}{keeping.strength:g}"
        if tuning.method != FULL:
            suffix += f"-{tuning.method}{tuning.rank if tuning.method == LORA else ''}"
        return suffix

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
    files, name, report = user_files.data_by_split, user_files.config.name, probe.report_split
    if probe.train_split not in files:
        raise UsageError(
            f"nothing to train on: there is no file for the split {probe.train_split!r}; "
            f"give the file as --data.{probe.train_split}; one file alone is divided by "
            "--probe.report_split null"
        )
    if report is not None:
        if not files.keys() - {probe.train_split}:
            raise UsageError(
                "nothing to measure with: give --data.dev FILE or --data.test FILE, or hold out a "
                "share of the train file (--probe.report_split null)"
            )
        report = measured_split(files, report, default="test")
        if report == probe.train_split:
            raise UsageError(
                f"--probe.train_split and the report split are both {report}: give another file, "
                "or --probe.report_split null, which holds out a share of it for the report"
            )
    if report != probe.report_split:
        print(f"{name}: reporting on {report}, because there is no --data.{probe.report_split}")
    return replace(probe, name=name, report_split=report)
