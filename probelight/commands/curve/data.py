"""The rows of a curve: which are trained on, which are measured, and both under each control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from probelight.commands.curve.settings import CurveSettings, ProbeOptions
from probelight.io.download import NotThereError
from probelight.io.errors import ConfigError, UsageError
from probelight.metrics.intervals import group_indices
from probelight.models.registry import ModelSettings
from probelight.probes.catalog import ProbeConfig
from probelight.probes.controls import (
    STANDARD,
    control_named,
    draw_questions,
    draw_substitutes,
    vary,
)
from probelight.probes.record import Record, Setup, group_of, groups_of
from probelight.probes.source import ProbeData, load_probe
from probelight.probes.splits import SplitError, share_of
from probelight.probes.user_files import refuse_same_items
from probelight.runs.context import RunContext, cached
from probelight.training.settings import FitSettings


@dataclass(frozen=True)
class CurveData:
    """One probe's rows, as the file has them and under the controls."""

    config: ProbeConfig  # the probe measured; its name is the one in tables
    train_config: ProbeConfig  # the probe that the train rows are from
    setup: Setup
    train: tuple[Record, ...]  # rows that samples are drawn from
    evaluation: tuple[Record, ...]  # rows measured
    split: str  # name of what is measured
    train_source: str  # where the train rows come from, one phrase
    files: tuple[ProbeData, ...]
    nonsense: Mapping[str, str] = field(default_factory=dict)  # candidate to meaningless word
    notices: tuple[str, ...] = ()
    held_out: tuple[Record, ...] = ()  # train rows that early stopping watches, in no sample
    sizes: tuple[int, ...] = ()  # N of a model's points, see `rows_for_model`

    @cached_property
    def substitutes(self) -> dict[str, str]:
        """The meaningless word in place of each key word, seeded by the probe's name."""
        return draw_substitutes(self.config, seed=0)

    @cached_property
    def groups(self) -> list[int]:
        """The index of each evaluation row's group, for bootstraps."""
        names = groups_of(self.evaluation, self.config.group_by)
        return [int(index) for index in group_indices(names)]

    @cached_property
    def untouched(self) -> list[bool]:
        """Whether each evaluation row's group is in no train or held-out row."""
        group_by = self.config.group_by
        train_groups = {group_of(record, group_by) for record in (*self.train, *self.held_out)}
        return [group_of(record, group_by) not in train_groups for record in self.evaluation]

    def words(self, control: str) -> Mapping[str, str]:
        """Return the meaningless words that a control puts in, by the words they replace."""
        replaces = control_named(control).replaces
        if replaces == "key words":
            return self.substitutes
        return self.nonsense if replaces == "the candidates" else {}

    def under(self, control: str) -> tuple[list[Record], list[Record]]:
        """Return the train and the evaluation rows under a control; row i stays row i."""
        train = self.controlled(control, self.train, self.train_config)
        return train, self.controlled(control, self.evaluation, self.config)

    def controlled(
        self, control: str, records: Sequence[Record], config: ProbeConfig
    ) -> list[Record]:
        """Return records under a control, with this probe's words and the arguments of `config`."""
        if control == STANDARD:
            return list(records)
        chosen = control_named(control)
        if chosen.needs_arguments and not config.arguments:
            raise ConfigError(
                f"{config.name}: its config has no `arguments`, which the control {control} "
                "needs; give --grid.controls [standard]"
            )
        words = self.words(control)
        if chosen.replaces == "the question":
            words = draw_questions(records, config.group_by)
        return [chosen.change(record, config, words) for record in records]


@cached(most=None)
def load_curve_data(
    context: RunContext, probe: str, settings: CurveSettings, options: ProbeOptions
) -> CurveData:
    """Load a probe's train and evaluation rows as the settings say."""
    divided = settings.of_probe("train_from", probe)
    lender = settings.of_probe("train_probe", probe)
    if divided and lender:
        raise UsageError(f"{probe}: give either grid.train_from or grid.train_probe, not both")

    def load(probe: str | ProbeConfig, split: str, option: str) -> ProbeData:
        option_hint = f"one of them as {option}, or as --grid.train_from to divide it"
        data = load_probe(probe, split, mirror=context.mirror, option=option_hint)
        return vary(data, options.variant) if options.variant else data

    source = context.probe(probe)
    if divided:
        data = _divide_file(load(source, divided, "--grid.train_from"), divided, settings)
    else:
        evaluation = load(source, settings.split, "--grid.split")
        try:
            train = load(lender or source, settings.train_split, "--grid.train_split")
        except NotThereError as error:
            raise NotThereError(
                f"{error}. Without a train file, divide the {settings.split} file "
                f"(--grid.train_from {settings.split}) or train on another probe's file "
                "(--grid.train_probe NAME)"
            ) from None
        data = _combine_files(train, evaluation, settings)
    notices = [notice for file in data.files for notice in file.notices]
    beyond = [size for size in settings.sizes if size > len(data.train)]
    if 0 < len(beyond) < len(settings.sizes):
        notices.append(
            f"{len(data.train)} train rows: the curve stops before N = {min(beyond)}, and weighted "
            "sums use only the points up to there"
        )
    setup = options.setup or data.config.setup
    return replace(data, setup=setup, notices=(*data.notices, *notices))


def _divide_file(data: ProbeData, split: str, settings: CurveSettings) -> CurveData:
    """Divide one file between training and measuring, with no group on both sides."""
    try:
        train, evaluation, _ = share_of(
            data.records, data.config.group_by, settings.train_share, settings.split_seed
        )
    except SplitError as error:
        raise UsageError(
            f"--grid.train_from {split}: {data.config.name} cannot be divided into rows to train "
            f"on and rows to measure ({error}); give --data.train FILE, or another probe to train "
            "on (--grid.train_probe NAME)"
        ) from error
    source = (
        f"grouped split of {split}, share {settings.train_share:g} "
        f"({len(train)} to train on, {len(evaluation)} measured, seed {settings.split_seed})"
    )
    return CurveData(
        config=data.config,
        train_config=data.config,
        setup=data.config.setup,
        train=tuple(train),
        evaluation=tuple(evaluation),
        split=f"part of {split}",
        train_source=source,
        files=(data,),
        notices=(f"train rows: {source}; not comparable with results on the whole {split} file",),
    )


def _combine_files(train: ProbeData, evaluation: ProbeData, settings: CurveSettings) -> CurveData:
    """Combine a train and an evaluation file, of one probe or of two.

    Train rows of another probe are left out where their group is measured.
    """
    probe, lender = evaluation.config, train.config
    data = CurveData(
        config=probe,
        train_config=lender,
        setup=probe.setup,
        train=train.records,
        evaluation=evaluation.records,
        split=settings.split,
        train_source=f"{settings.train_split} of {lender.name}",
        files=(train, evaluation),
    )
    if lender.name == probe.name:
        divide = f"divide one file (--grid.train_from {settings.split})"
        refuse_same_items(train, evaluation, divide)
        shared = data.untouched.count(False)
        notice = f"{shared} of {len(data.evaluation)} measured items share a group with train items"
        return replace(data, notices=(notice,) if shared else ())
    if (probe.setup, set(probe.candidates)) != (lender.setup, set(lender.candidates)):
        raise UsageError(
            f"{probe.name} cannot use the train rows of {lender.name}: setup or candidates differ"
        )
    measured = {group_of(record, probe.group_by) for record in data.evaluation}
    unshared = tuple(r for r in data.train if group_of(r, probe.group_by) not in measured)
    source = f"{data.train_source}, not the probe's own"
    if left_out := len(data.train) - len(unshared):
        source += f"; {left_out} rows left out because their group is measured"
    return replace(data, train=unshared, train_source=source, notices=(f"train rows: {source}",))


def rows_for_model(
    data: CurveData, settings: CurveSettings, models: Sequence[ModelSettings]
) -> CurveData:
    """Return a probe's rows with the points and the held-out rows of the first of the models.

    Where the default sizes are all beyond its train rows, the sizes are a quarter, half and all of
    the rows that every one of the models has, so that their points are comparable.
    """
    if not data.train:
        raise UsageError(f"{data.config.name}: no train rows are left to draw samples from")
    rows_by_model = []
    for model in models:
        model_type = model.type
        if data.setup == "mc_mlm" and model_type.is_pretrained:
            rows_by_model.append(data)  # heads on a frozen encoder train for a number of epochs
        else:
            fit, option = settings.fit_of(model.kind), f"grid.{model_type.fit}"
            rows = hold_out(data, fit, settings.split_seed, settings.sizes, option)
            rows_by_model.append(rows)
    chosen, least = rows_by_model[0], min(len(rows.train) for rows in rows_by_model)
    num_rows = len(chosen.train)
    if fitting := [size for size in settings.sizes if size <= num_rows]:
        return replace(chosen, sizes=tuple(fitting))
    smaller = sorted({max(1, least // 4), max(1, least // 2), least})
    if settings.sizes != CurveSettings().sizes:
        raise UsageError(
            f"--grid.sizes [{','.join(map(str, settings.sizes))}]: {chosen.config.name} has "
            f"{num_rows} train rows to draw samples from; give sizes up to this number, such as "
            f"--grid.sizes [{','.join(map(str, smaller))}]"
        )
    notice = (
        f"{num_rows} train rows, fewer than the smallest default size {min(settings.sizes)}: the "
        f"points are N = {', '.join(map(str, smaller))} (choose others with --grid.sizes)"
    )
    return replace(chosen, sizes=tuple(smaller), notices=(*chosen.notices, notice))


def hold_out(
    data: CurveData,
    settings: FitSettings,
    seed: int,
    sizes: Sequence[int] = (),
    option: str = "grid.full",
) -> CurveData:
    """Hold out whole groups of train rows that early stopping watches; all stay without patience.

    `option` is what the message names if the groups cannot be divided so.
    """
    if settings.patience is None:
        return data
    try:
        held_out, pool, _ = share_of(
            data.train, data.train_config.group_by, settings.held_out, seed
        )
    except SplitError as error:
        raise UsageError(
            f"{data.config.name}: no train rows can be held out for early stopping ({error}); give "
            f"--{option}.patience null, which trains all epochs"
        ) from error
    notice = (
        f"{len(held_out)} of {len(data.train)} train rows are held out for early stopping: samples "
        f"are drawn from the other {len(pool)}"
    )
    lost_sizes = [size for size in sizes if len(pool) < size <= len(data.train)]
    if lost_sizes and min(sizes) <= len(pool):
        notice += f", so the curve stops before N = {min(lost_sizes)}"
    return replace(
        data, train=tuple(pool), held_out=tuple(held_out), notices=(*data.notices, notice)
    )
