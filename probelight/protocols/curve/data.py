"""The rows of a curve: where training comes from, what is measured, and both under each control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from probelight.io.download import NotThereError
from probelight.io.errors import ConfigError, UsageError
from probelight.metrics.intervals import group_indices
from probelight.probes.catalog import ProbeConfig
from probelight.probes.controls import STANDARD, control_named, draw_substitutes, vary
from probelight.probes.record import Record, Setup
from probelight.probes.source import ProbeData, load_probe
from probelight.probes.splits import SplitError, group_of, groups_of, share_of
from probelight.protocols.curve.settings import CurveSettings, ProbeOptions
from probelight.protocols.engine.kinds import kind_of, trained_for
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.jobs.context import RunContext

PERTURBATION_SEED = 0


@dataclass(frozen=True)
class CurveData:
    """One probe's rows, as the file has them and under the controls.

    Attributes:
        config: The probe measured; its name is the one in tables.
        train_config: The probe that the train rows are from.
        setup: How it is posed.
        train: Rows that samples are drawn from.
        evaluation: Rows measured.
        split: Name of what is measured.
        train_said: How the train rows were got, one sentence.
        files: The files read.
        nonsense: Candidate to the meaningless word in its place.
        notices: What a reader of the results should know.
        held_out: Train rows that early stopping watches, in no sample; none without it.
        sizes: N of a model's points, see `traced`.
    """

    config: ProbeConfig
    train_config: ProbeConfig
    setup: Setup
    train: tuple[Record, ...]
    evaluation: tuple[Record, ...]
    split: str
    train_said: str
    files: tuple[ProbeData, ...]
    nonsense: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    held_out: tuple[Record, ...] = ()
    sizes: tuple[int, ...] = ()

    @cached_property
    def substitutes(self) -> dict[str, str]:
        """Key word to the meaningless word in its place, seeded by the probe's name."""
        return draw_substitutes(self.config, PERTURBATION_SEED)

    def words(self, control: str) -> Mapping[str, str]:
        """The meaningless words that a control puts in, by what they stand for."""
        replaces = control_named(control).replaces
        if replaces == "key words":
            return self.substitutes
        return self.nonsense if replaces else {}

    @cached_property
    def groups(self) -> list[int]:
        """For each evaluation row the index of its group, for bootstraps."""
        names = groups_of(self.evaluation, self.config.group_by)
        return [int(index) for index in group_indices(names)]

    @cached_property
    def untouched(self) -> list[bool]:
        """For each evaluation row whether its group is in no train or held-out row."""
        group_by = self.config.group_by
        seen = {group_of(record, group_by) for record in (*self.train, *self.held_out)}
        return [group_of(record, group_by) not in seen for record in self.evaluation]

    def under(self, control: str) -> tuple[list[Record], list[Record]]:
        """Train and evaluation rows under a control; item i stays item i.

        Raises:
            ConfigError: If the probe declares nothing that the control could go by.
            RecordError: If the control does not fit a row; the message names it.
        """
        pairs = ((self.train, self.train_config), (self.evaluation, self.config))
        train, evaluation = (self.controlled(control, rows, config) for rows, config in pairs)
        return train, evaluation

    def controlled(
        self, control: str, records: Sequence[Record], config: ProbeConfig
    ) -> list[Record]:
        """Records under a control, with this probe's words and the arguments of `config`."""
        if control == STANDARD:
            return list(records)
        chosen = control_named(control)
        if chosen.needs_arguments and not config.arguments:
            raise ConfigError(
                f"{config.name}: no `arguments`, so there is no {control} control; "
                "choose --grid.controls [standard]"
            )
        words = self.words(control)
        return [chosen.change(record, config, words) for record in records]


def load_curve_data(
    probe: str | ProbeConfig,
    settings: CurveSettings,
    options: ProbeOptions,
    mirror: str | None,
) -> CurveData:
    """Loads a probe's train and evaluation rows as the settings say.

    Raises:
        UsageError: If both `train_from` and `train_probe` are given for the probe, or the other
            probe cannot stand in for it.
    """
    name = probe if isinstance(probe, str) else probe.name
    split, lender = settings.train_from_of(name), settings.train_probe_of(name)
    if split and lender:
        raise UsageError(f"{name}: give either grid.train_from or grid.train_probe, not both")
    if split:
        data = _divided(_load(probe, split, options, mirror, "--grid.train_from"), split, settings)
    else:
        evaluation = _load(probe, settings.split, options, mirror, "--grid.split")
        train = _train_file(lender or probe, settings, options, mirror)
        data = _of_two_files(train, evaluation, settings)
    notices = [notice for file in data.files for notice in file.notices]
    beyond = [size for size in settings.sizes if size > len(data.train)]
    if 0 < len(beyond) < len(settings.sizes):
        notices.append(
            f"{len(data.train)} train rows: the curve stops before N = {min(beyond)}, and weighted "
            "sums are over the points that there are"
        )
    setup = options.setup or data.config.setup
    return replace(data, setup=setup, notices=(*data.notices, *notices))


def rows_of(
    probe: str, settings: CurveSettings, options: ProbeOptions, context: RunContext
) -> CurveData:
    """A probe's rows as `load_curve_data` gives them, read once by a process."""

    def load() -> CurveData:
        return load_curve_data(context.probe(probe), settings, options, context.mirror)

    return context.remembered(f"curve rows {probe}", (settings, options), load)


def check_rows(
    probes: Sequence[str],
    models: Sequence[ModelSettings],
    settings: CurveSettings,
    options: ProbeOptions,
    context: RunContext,
) -> None:
    """Holds models, sizes and splits against the probes' rows, before anything heavy is imported.

    Raises:
        UsageError: If a model whose heads alone are trained is given questions, no model answers
            any of the probes, a first stage has no questions to be followed by, or as `traced`.
    """
    num_curves, setups = 0, set()
    for name in probes:
        data = rows_of(name, settings, options, context)
        setups.add(data.setup)
        asked = [model for model in models if has_curve(model, data.setup, settings)]
        for model in models:
            if kind_of(model).heads and data.setup == "mc_qa":
                # Not left out as a baseline is: it answers such questions, but is not tuned here.
                trained_for(model, "mc_qa", f"{data.config.name} is posed as questions")
        for model in asked:
            traced(data, settings, [model, *asked])
        num_curves += len(asked)
    if options.first_stage and probes and "mc_qa" not in setups:
        raise UsageError("--first_stage: none of the probes is posed as questions; see --setup")
    if probes and not num_curves:
        setup = min(setups)
        poses = setup == "mc_mlm" and "mc_qa" in kind_of(models[0]).trained
        more = " (--setup mc_qa poses them as questions)" if poses else ""
        trained_for(models[0], setup, f"the probes are {setup}{more}")
        given, works = settings.modes, kind_of(models[0]).modes(setup) or ()
        raise UsageError(
            f"--grid.modes [{','.join(given)}]: {models[0].label} has none of these heads; give "
            f"--grid.modes [{','.join(works)}]"
        )


def has_curve(model: ModelSettings, setup: Setup, settings: CurveSettings) -> bool:
    """Whether a model is trained for a setup, by one of the modes where its heads are traced."""
    modes = kind_of(model).modes(setup)
    return modes == () or bool({*(modes or ())} & {*settings.modes})


def traced(data: CurveData, settings: CurveSettings, models: Sequence[ModelSettings]) -> CurveData:
    """The probe with the points and the held-out rows of the first of some models.

    A model that patience stops watches a part of its train rows, whole groups, which are in no
    sample; heads on a frozen encoder are trained for a number of epochs. Where the default sizes
    are all beyond its rows, the sizes are a quarter, half and all of the rows that every model
    has, so that their points are comparable.

    Args:
        data: The rows that all models share.
        settings: Points and trainings.
        models: The model, and those that it is compared with.

    Raises:
        UsageError: If there are no rows to train on, no size fits them, or the groups cannot be
            divided; the message has a value that works.
    """
    if not data.train:
        raise UsageError(f"{data.config.name}: no train rows are left to draw samples from")
    held = [_held_for(model, data, settings) for model in models]
    own, least = held[0], min(len(one.train) for one in held)
    num_rows = len(own.train)
    if fitting := [size for size in settings.sizes if size <= num_rows]:
        return replace(own, sizes=tuple(fitting))
    smaller = sorted({max(1, least // 4), max(1, least // 2), least})
    if settings.sizes != CurveSettings().sizes:
        given, works = (f"[{','.join(map(str, sizes))}]" for sizes in (settings.sizes, smaller))
        raise UsageError(
            f"--grid.sizes {given}: {own.config.name} has {num_rows} train rows to draw samples "
            f"from; give sizes up to that, such as --grid.sizes {works}"
        )
    said = (
        f"{num_rows} train rows, fewer than the smallest default size {min(settings.sizes)}: the "
        f"points are N = {', '.join(map(str, smaller))} (--grid.sizes gives others)"
    )
    return replace(own, sizes=tuple(smaller), notices=(*own.notices, said))


def _held_for(model: ModelSettings, data: CurveData, settings: CurveSettings) -> CurveData:
    kind = kind_of(model)
    if data.setup == "mc_mlm" and kind.is_pretrained:
        return data  # heads on a frozen encoder are trained for a number of epochs
    fit = settings.fit_of(model.kind)
    return hold_out(data, fit, settings.split_seed, settings.sizes, f"grid.{kind.fit}")


def hold_out(
    data: CurveData,
    settings: FitSettings,
    seed: int,
    sizes: Sequence[int] = (),
    option: str = "grid.full",
) -> CurveData:
    """The probe with a part of its train rows, whole groups, for early stopping to watch.

    Without patience all train rows stay what samples are drawn from.

    Raises:
        UsageError: If the groups cannot be divided so; the message names `option`.
    """
    if settings.patience is None:
        return data
    try:
        kept, rest, _ = share_of(data.train, data.train_config.group_by, settings.held_out, seed)
    except SplitError as error:
        raise UsageError(
            f"{data.config.name}: no train rows can be held out for early stopping ({error}); give "
            f"--{option}.patience null, which trains all epochs"
        ) from error
    said = (
        f"{len(kept)} of {len(data.train)} train rows stop the training and are in no sample: "
        f"samples are drawn from the other {len(rest)}"
    )
    lost = [size for size in sizes if len(rest) < size <= len(data.train)]
    if lost and min(sizes) <= len(rest):
        said += f", and the curve stops before N = {min(lost)}"
    return replace(data, train=tuple(rest), held_out=tuple(kept), notices=(*data.notices, said))


def _load(
    probe: str | ProbeConfig, split: str, options: ProbeOptions, mirror: str | None, option: str
) -> ProbeData:
    other = f"{option} one of them, or --grid.train_from one of them to divide it"
    data = load_probe(probe, split, mirror=mirror, option=other)
    return vary(data, options.variant) if options.variant else data


def _train_file(
    probe: str | ProbeConfig, settings: CurveSettings, options: ProbeOptions, mirror: str | None
) -> ProbeData:
    try:
        return _load(probe, settings.train_split, options, mirror, "--grid.train_split")
    except NotThereError as error:
        raise NotThereError(
            f"{error}. Without a train file, divide what is there (--grid.train_from "
            f"{settings.split}) or train on another probe's file (--grid.train_probe NAME)"
        ) from None


def _divided(data: ProbeData, split: str, settings: CurveSettings) -> CurveData:
    """A grouped split of one file: no group is on both sides."""
    try:
        train, evaluation, _ = share_of(
            data.records, data.config.group_by, settings.train_share, settings.split_seed
        )
    except SplitError as error:
        raise UsageError(
            f"--grid.train_from {split}: {data.config.name} cannot be divided into rows to train "
            f"on and rows to measure ({error}); give --data.train FILE, or --grid.train_probe NAME "
            "of a probe"
        ) from error
    said = (
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
        train_said=said,
        files=(data,),
        notices=(f"train rows: {said}; not comparable with results on the whole {split} file",),
    )


def _of_two_files(train: ProbeData, evaluation: ProbeData, settings: CurveSettings) -> CurveData:
    data = CurveData(
        config=evaluation.config,
        train_config=train.config,
        setup=evaluation.config.setup,
        train=train.records,
        evaluation=evaluation.records,
        split=settings.split,
        train_said=f"{settings.train_split} of {train.config.name}",
        files=(train, evaluation),
    )
    if train.config.name == evaluation.config.name:
        shared = data.untouched.count(False)
        said = f"the groups of {shared} of {len(data.evaluation)} measured items are in train too"
        return replace(data, notices=(said,) * bool(shared))
    return _lent(data)


def _lent(data: CurveData) -> CurveData:
    """Train rows of another probe, without those whose group is measured."""
    own, other = data.config, data.train_config
    if (own.setup, set(own.candidates)) != (other.setup, set(other.candidates)):
        raise UsageError(
            f"{other.name} cannot lend {own.name} its train rows: setup or candidates differ"
        )
    measured = {group_of(record, own.group_by) for record in data.evaluation}
    kept = tuple(r for r in data.train if group_of(r, own.group_by) not in measured)
    left_out = len(data.train) - len(kept)
    said = f"{data.train_said}, not the probe's own"
    if left_out:
        said += f"; {left_out} rows left out because their group is measured"
    return replace(data, train=kept, train_said=said, notices=(f"train rows: {said}",))
