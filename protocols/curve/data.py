"""The rows of a curve: where training comes from, what is measured, and both under each control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from metrics.intervals import group_indices
from probes.catalog import ProbeConfig
from probes.controls import STANDARD, control_named, draw_substitutes
from probes.record import Record, Setup
from probes.source import ProbeData, load_probe
from probes.splits import group_of, grouped_split, groups_of
from probes.variants import vary
from protocols.curve.settings import CurveSettings, ProbeOptions
from protocols.engine.settings import FitSettings
from storage.errors import ConfigError, UsageError
from storage.web.download import NotThereError

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
        """For each evaluation row the index of its group, for bootstraps (SPEC E3)."""
        names = groups_of(self.evaluation, self.config.group_by)
        return [int(index) for index in group_indices(names)]

    @cached_property
    def untouched(self) -> list[bool]:
        """For each evaluation row whether its group is in no train or held-out row (SPEC E3)."""
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
        data = _divided(_load(probe, split, options, mirror), split, settings)
    else:
        evaluation = _load(probe, settings.split, options, mirror)
        train = _train_file(lender or probe, settings, options, mirror)
        data = _of_two_files(train, evaluation, settings)
    notices = [notice for file in data.files for notice in file.notices]
    if beyond := [size for size in settings.sizes if size > len(data.train)]:
        notices.append(
            f"{len(data.train)} train rows: the curve stops before N = {min(beyond)}, and weighted "
            "sums are over the points that there are"
        )
    setup = options.setup or data.config.setup
    return replace(data, setup=setup, notices=(*data.notices, *notices))


def hold_out(
    data: CurveData, settings: FitSettings, seed: int, sizes: Sequence[int] = ()
) -> CurveData:
    """The probe with a part of its train rows, whole groups, for early stopping to watch.

    Without patience all train rows stay what samples are drawn from.

    Raises:
        UsageError: If the groups cannot be divided so.
    """
    if settings.patience is None:
        return data
    try:
        kept, rest = grouped_split(
            data.train, data.train_config.group_by, fraction=settings.held_out, seed=seed
        )
    except ValueError as error:
        raise UsageError(
            f"{data.config.name}: no train rows can be held out for early stopping: {error}. Give "
            f"another share than held_out {settings.held_out:g}, or patience null for all epochs"
        ) from error
    said = (
        f"{len(kept)} of {len(data.train)} train rows stop the training and are in no sample: "
        f"samples are drawn from the other {len(rest)}"
    )
    if lost := [size for size in sizes if len(rest) < size <= len(data.train)]:
        said += f", and the curve stops before N = {min(lost)}"
    return replace(data, train=tuple(rest), held_out=tuple(kept), notices=(*data.notices, said))


def _load(
    probe: str | ProbeConfig, split: str, options: ProbeOptions, mirror: str | None
) -> ProbeData:
    data = load_probe(probe, split, mirror=mirror)
    return vary(data, options.variant) if options.variant else data


def _train_file(
    probe: str | ProbeConfig, settings: CurveSettings, options: ProbeOptions, mirror: str | None
) -> ProbeData:
    try:
        return _load(probe, settings.train_split, options, mirror)
    except NotThereError as error:
        raise NotThereError(
            f"{error}. Without a train file, divide what is there (--grid.train_from "
            f"{settings.split}) or train on another probe's file (--grid.train_probe NAME)"
        ) from None


def _divided(data: ProbeData, split: str, settings: CurveSettings) -> CurveData:
    """A grouped split of one file: no group is on both sides."""
    train, evaluation = grouped_split(
        data.records,
        data.config.group_by,
        fraction=settings.train_share,
        seed=settings.split_seed,
    )
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
