"""The runs of a curve: heads on a frozen encoder, whole networks, and what comes before them.

One run trains the heads of all seeds and controls at a (mode, N); of a whole network that is
fine-tuned, each (N, control, seed) is a run, behind the first stage of its control.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Self

from probelight.commands.curve.curve import Curve, CurveSpec
from probelight.commands.curve.settings import FIRST_STAGE, PROTOCOL, UNTRAINED
from probelight.evaluation.scorers import check_records
from probelight.io.process import is_first_process
from probelight.io.ranges import HeadMode, Seed
from probelight.io.settings import Settings
from probelight.models.registry import FULL, ModelSettings, lacks_word_head, weights_bytes
from probelight.probes.controls import STANDARD
from probelight.probes.record import GroupBy, Setup
from probelight.results.record import RunRecord, check_data, checksums
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext, cached
from probelight.runs.execution import result_of_first
from probelight.runs.memory import LARGE, MemoryNeed
from probelight.runs.spec import Job, ModelRunSpec
from probelight.training.modules import check_module, check_tuning, saved_bytes


@dataclass(frozen=True, kw_only=True)
class PlannedRows(Settings):
    """What decides the rows of a curve besides its settings, as it was when the run was planned."""

    probe: str
    setup: Setup
    train: str  # where the train rows are from
    split: str
    data_sha256: tuple[str, ...]  # checksums of the files
    num_train: int  # other models of the command can have left rows out
    num_measured: int
    nonsense: dict[str, str]
    substitutes: dict[str, str]
    arguments: dict[str, Any]
    group_by: GroupBy | None

    @classmethod
    def of(cls, curve: Curve) -> Self:
        """Return what decides the rows of a curve."""
        data, config = curve.data, curve.data.config
        return cls(
            probe=config.name,
            setup=data.setup,
            train=data.train_source,
            split=data.split,
            data_sha256=checksums(*data.files),
            num_train=len(data.train),
            num_measured=len(data.evaluation),
            nonsense=dict(data.nonsense),
            substitutes=dict(data.substitutes) if config.key_words else {},
            arguments=dict(config.arguments),
            group_by=config.group_by,
        )


@dataclass(frozen=True, kw_only=True)
class CurveRunSpec(ModelRunSpec):
    """A run of a curve."""

    curve: CurveSpec

    @property
    def label(self) -> str:
        """Name of the model."""
        return self.curve.model.label

    def check(self, context: RunContext) -> None:
        """Refuse a model that cannot be trained for the curve, or asked about one of its rows."""
        check_curve(context, self.curve)


@dataclass(frozen=True, kw_only=True)
class MeasuredRunSpec(CurveRunSpec):
    """A run that measures points of a curve, on these rows."""

    protocol = PROTOCOL

    rows: PlannedRows

    def unchanged_curve(self, context: RunContext) -> Curve:
        """Return the curve; UsageError if its files have changed since the run was planned."""
        curve = Curve(self.curve, context)
        check_data(self.rows.data_sha256, curve.data.files)
        return curve


@dataclass(frozen=True, kw_only=True)
class UntrainedSpec(MeasuredRunSpec):
    """N = 0, as the model's scorer answers it."""

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"curve-{self.rows.probe}-{UNTRAINED}-0-{self.label}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Score the measured rows under every control."""
        from probelight.commands.curve.heads import score_untrained

        return score_untrained(run, self.unchanged_curve(context))


@dataclass(frozen=True, kw_only=True)
class HeadsSpec(MeasuredRunSpec):
    """The heads of all seeds and controls at a (mode, N); N = 0 trains none."""

    mode: HeadMode
    num_train: int

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"curve-{self.rows.probe}-{self.mode}-{self.num_train}-{self.label}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Train the heads together, in the first process alone: they are one stack."""
        from probelight.commands.curve.heads import train_heads

        if not is_first_process():
            return result_of_first(run)
        return train_heads(run, self.unchanged_curve(context), self.mode, self.num_train)


@dataclass(frozen=True, kw_only=True)
class FactsSpec(CurveRunSpec):
    """The training on facts before a curve, under a control.

    Args:
        facts: Name of the probe with the facts.
        data_sha256: Checksums of its files.
        control: The control that the facts are put under.
        seed: Seed of head, order and dropout.
    """

    protocol = FIRST_STAGE

    facts: str
    data_sha256: tuple[str, ...]
    control: str
    seed: Seed

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"first-stage-{self.facts}-{self.control}-{self.label}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Train the model on the facts, and keep it."""
        from probelight.commands.curve.fine_tuning import train_facts

        stage = Curve(self.curve, context).first_stage
        assert stage is not None
        check_data(self.data_sha256, [stage.facts])
        return train_facts(run, self.curve.model, stage, self.control, context)


@dataclass(frozen=True, kw_only=True)
class PointSpec(MeasuredRunSpec):
    """One point of a whole network, or of a baseline, that is fine-tuned.

    Args:
        size: N.
        control: The control that all rows are put under.
        seed: Seed of head, sample, order and dropout.
        with_levels: Whether it is the point that gives chance and the majority's accuracy.
        first_stage: Key of the run whose model it begins with; None for the pre-trained one.
    """

    size: int
    control: str
    seed: Seed
    with_levels: bool
    first_stage: str | None = None

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        point = f"{self.size}-{self.control}-{self.seed}"
        return f"curve-{self.rows.probe}-{FULL}-{point}-{self.label}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Train and measure the point; its states go once there is a result."""
        from probelight.commands.curve.fine_tuning import train_point

        curve, point = self.unchanged_curve(context), (self.size, self.control, self.seed)
        start = None
        if self.first_stage is not None:
            start = RunFolder.at(run.path.parent / self.first_stage).best_dir
        record = train_point(run, curve, *point, self.with_levels, start)

        def remove_states(end: RunRecord | BaseException) -> None:
            if isinstance(end, RunRecord):  # a large model's are gigabytes
                shutil.rmtree(run.checkpoint_dir, ignore_errors=True)

        run.listeners.append(remove_states)
        return record

    def memory(self, context: RunContext) -> MemoryNeed:
        """Return what fine-tuning the point will take of memory."""
        from probelight.commands.curve.fine_tuning import memory_of

        return memory_of(Curve(self.curve, context), self.size, self.control, self.seed)


@cached(most=None)
def check_curve(context: RunContext, spec: CurveSpec) -> None:
    """Refuse a model that cannot be trained for a curve, or asked about one of its rows."""
    curve, has_checkpoint = Curve(spec, context), spec.model.type.has_checkpoint
    if FULL in curve.modes:
        check_tuning(spec.model, curve.data.setup, curve.fit.tuning)
        if has_checkpoint:
            check_module(spec.model, curve.data.setup)
    if has_checkpoint and curve.modes != [FULL]:
        from probelight.commands.curve.heads import refuse_unposed

        controls = spec.settings.controls
        rows = [row_set for name in controls for row_set in curve.rows.under(name)]
        if lacks_word_head(spec.model):
            from probelight.models.masked import check_stems

            return check_stems(spec.model, [record for row_set in rows for record in row_set])
        check_records(context, spec.model, "mc_mlm", rows, refuse_unposed)


def curve_jobs(curve: Curve) -> list[Job]:
    """Return the jobs of a curve, small points first; none where the model cannot answer."""
    if not curve.modes:
        return []
    settings, model, rows = curve.settings, curve.model, PlannedRows.of(curve)
    trainer, size = curve.context.trainer, weights_bytes(model)
    # How often a text is read, by weights drawn anew and in the words of each control.
    num_reads = (len(settings.seeds) if model.random_weights else 1) * len(settings.controls)
    train, evaluation = curve.rows.train, curve.rows.evaluation
    jobs = []
    sizes = [0, *curve.rows.sizes]
    if lacks_word_head(model):
        sizes.remove(0)
    if asks_untrained(model):
        # Neither heads nor the whole model begin with a point of their own: N = 0 is its scorer's.
        sizes.remove(0)
        untrained = UntrainedSpec(curve=curve.spec, rows=rows).under(trainer)
        num_texts = num_reads * sum(len(row.choices) for row in evaluation)
        jobs.append(Job(untrained, weights_bytes=size, num_texts=num_texts))
    # Each text is read once, before the first heads are trained on its features.
    num_texts = num_reads * len({row.stem for row in (*train, *evaluation)})
    for mode, num_train in product(curve.modes, sizes):
        if mode == FULL:
            continue
        heads = HeadsSpec(curve=curve.spec, rows=rows, mode=mode, num_train=num_train)
        jobs.append(Job(heads.under(trainer), weights_bytes=size, num_texts=num_texts))
        num_texts = 0
    return [*jobs, *(_full_jobs(curve, rows) if FULL in curve.modes else ())]


def asks_untrained(model: ModelSettings) -> bool:
    """Return whether a model chooses before it is trained, as none with a fresh head does."""
    return bool(model.type.heads) and model.scoring != "last_token"


def _full_jobs(curve: Curve, rows: PlannedRows) -> list[Job]:
    """Return a job for each (N, control, seed), behind the first stage of its control."""
    settings, setup, trainer = curve.settings, curve.data.setup, curve.context.trainer
    num_bytes = weights_bytes(curve.model)
    first_stages: dict[str, Job] = {}
    if (stage := curve.first_stage) is not None:
        for control in settings.controls:
            facts = FactsSpec(
                curve=curve.spec,
                facts=stage.facts.config.name,
                data_sha256=checksums(stage.facts),
                control=stage.control_of(control),
                seed=stage.seed,
            ).under(trainer)
            first_stages[control] = Job(
                facts,
                num_steps=stage.settings.num_steps(len(stage.facts.records)),
                weights_bytes=num_bytes,
                saved_bytes=saved_bytes(curve.model, setup, stage.settings.tuning),
            )
    jobs = {job.key: job for job in first_stages.values()}  # controls may share one
    # The run that scores without training has them, where there is one.
    level = (
        None if asks_untrained(curve.model) else (curve.rows.sizes[0], STANDARD, settings.seeds[0])
    )
    for size, control, seed in product(curve.rows.sizes, settings.controls, settings.seeds):
        first = first_stages.get(control)
        point = PointSpec(
            curve=curve.spec,
            rows=rows,
            size=size,
            control=control,
            seed=seed,
            with_levels=(size, control, seed) == level,
            first_stage=None if first is None else first.key,
        ).under(trainer)
        jobs[point.key] = Job(
            point,
            needs=() if first is None else (first.key,),
            num_steps=curve.fit.num_steps(size),
            weights_bytes=num_bytes,
            keeps_model=False,
            saved_bytes=saved_bytes(curve.model, setup, curve.fit.tuning),
            memory=partial(point.memory, curve.context) if num_bytes > LARGE else None,
        )
    return list(jobs.values())
