"""The audited probe: its items, and which of them baselines are trained on.

A probe is named as one of the catalogue, as a folder that `probes build` wrote, or as a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from probelight.io.download import NotThereError
from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.io.ranges import Distinct, Seed, Share
from probelight.io.settings import Settings
from probelight.probes.catalog import ProbeConfig, load_probe_config, probe_names
from probelight.probes.controls import control_named
from probelight.probes.importers.formats import is_item_file
from probelight.probes.importers.items import read_file
from probelight.probes.record import MASK, Record, Setup, group_of
from probelight.probes.source import ProbeData, load_files, load_probe
from probelight.probes.splits import SPLITS, SplitError, share_of
from probelight.probes.user_files import refuse_same_items, split_files
from probelight.runs.context import RunContext, cached
from probelight.training.settings import ESIM_FIT, FitSettings

YAML = {".yaml", ".yml"}
TRANSFORMER_FIT = FitSettings(learning_rate=2e-5, epochs=3)


@dataclass(frozen=True)
class AuditSettings(Settings):
    """How baselines are trained on a probe.

    Args:
        seeds: Seeds; each baseline is trained once per seed.
        train_share: If a probe has only one file, the share of it to train on, in whole groups.
        split_seed: Seed of that division, and of the train items held out for early stopping.
        fit: How baselines over word vectors are trained. A share `held_out` of the train items
            decides when to stop.
        transformer: How a whole transformer is trained on the choices alone. Without patience its
            last epoch is measured (Richardson 2020 trains for three).
    """

    seeds: Annotated[list[Seed], Distinct(1)] = field(default_factory=lambda: [0])
    train_share: Share = 0.7
    split_seed: Seed = 0
    fit: FitSettings = field(default_factory=lambda: replace(ESIM_FIT, patience=5))
    transformer: FitSettings = field(default_factory=lambda: TRANSFORMER_FIT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.transformer.patience is not None and self.fit.patience is None:
            raise UsageError(
                "training.transformer.patience needs training.fit.patience, because only that "
                "holds out train items"
            )


DEFAULT_AUDIT = AuditSettings()


@dataclass(frozen=True)
class AuditData:
    """A probe's items, and which of them are trained on."""

    config: ProbeConfig
    splits: Mapping[str, ProbeData]  # the items as they were read, by split
    train: tuple[Record, ...]
    held_out: tuple[Record, ...]  # train items, whole groups, that stop a training
    measured: Mapping[str, tuple[Record, ...]]  # by the name of their split
    notices: tuple[str, ...]

    def untouched(self, records: Sequence[Record]) -> list[bool]:
        """Return for each item whether its group is in no train item."""
        group_by = self.config.group_by
        seen = {group_of(record, group_by) for record in (*self.train, *self.held_out)}
        return [group_of(record, group_by) not in seen for record in records]


def probe_config(name: str) -> ProbeConfig:
    """Return the config of a probe, given by its name, a config, a folder or a file of items."""
    path = Path(name).expanduser()
    is_items = path.exists() or is_item_file(path)
    if name in probe_names() or path.suffix in YAML or not is_items:
        return load_probe_config(name if name in probe_names() else path)
    configs = (
        [file for file in sorted(path.glob("*")) if file.suffix in YAML] if path.is_dir() else []
    )
    if len(configs) == 1:
        return load_probe_config(configs[0])
    files = split_files(path)
    records = (record for file in files.values() for record in read_file(file).records)
    setup: Setup = "mc_mlm" if all(MASK in record.stem for record in records) else "mc_qa"
    loaded = load_files(visible(path.absolute().name.partition(".")[0]), files, setup)
    return next(iter(loaded.values())).config


def load_audit(probe: str | ProbeConfig, settings: AuditSettings, mirror: str | None) -> AuditData:
    """Load all splits of a probe that are there, and divide them between training and measuring.

    A train file is trained on, and all else is measured; without one, dev is trained on and test
    measured. Of a probe with one file a share of the groups is trained on, the rest measured.
    """
    config = probe if isinstance(probe, ProbeConfig) else load_probe_config(probe)
    data_by_split: dict[str, ProbeData] = {}
    absent: dict[str, NotThereError] = {}
    for split in dict.fromkeys([*(s for s in SPLITS if s in config.splits), *config.splits]):
        try:
            data_by_split[split] = load_probe(config, split, mirror=mirror)
        except NotThereError as error:
            absent[split] = error
    if not data_by_split:
        raise next(iter(absent.values()))
    notices = [f"{config.name}: there is no {split} file" for split in absent]
    notices += [notice for split in data_by_split.values() for notice in split.notices]
    first, *other_splits = data_by_split
    group_by = config.group_by
    train: Sequence[Record] = data_by_split[first].records
    measured = {split: data_by_split[split].records for split in other_splits}
    for split in other_splits:
        advice = f"only the {first} file, a share of which is then trained on"
        refuse_same_items(data_by_split[first], data_by_split[split], advice)
    try:
        if not other_splits:
            share, seed = settings.train_share, settings.split_seed
            train, measured_records, _ = share_of(train, group_by, share, seed)
            measured = {f"part of {first}": tuple(measured_records)}
            notices.append(f"{config.name}: {len(train)} of the {first} items are used to train")
        elif first != SPLITS[0]:
            notices.append(f"{config.name} has no train file: its {first} items are used to train")
    except SplitError as error:
        raise UsageError(
            f"{config.name}: its items cannot be divided into a part to train on and a part to "
            f"measure ({error}); give a folder with a train and a dev file, or more items"
        ) from error
    held_out: Sequence[Record] = ()
    if settings.fit.patience is not None:
        share, seed = settings.fit.held_out, settings.split_seed
        try:
            held_out, train, used = share_of(train, group_by, share, seed)
        except SplitError as error:
            raise UsageError(
                f"{config.name}: no train items can be held out for early stopping ({error}); give "
                "--training.fit.patience null, which trains all epochs, or more items"
            ) from error
        if used:
            notices.append(f"{config.name}: early stopping (training.fit.held_out) uses {used}")
    return AuditData(config, data_by_split, tuple(train), tuple(held_out), measured, tuple(notices))


@cached()
def read_audit(context: RunContext, name: str, settings: AuditSettings) -> AuditData:
    """Return a probe by the name in a run's config, read once by a process."""
    return load_audit(context.probe(name), settings, context.mirror)


def with_control(control: str, data: AuditData) -> AuditData:
    """Return the items under a control that fits any probe; their groups stay."""
    change = control_named(control).change

    def changed(records: Sequence[Record]) -> tuple[Record, ...]:
        return tuple(change(record, data.config, {}) for record in records)

    measured = {split: changed(records) for split, records in data.measured.items()}
    return replace(
        data, train=changed(data.train), held_out=changed(data.held_out), measured=measured
    )
