"""What is audited: a probe of the catalogue, a folder that `probes build` wrote, or files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from probelight.io.download import NotThereError
from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.probes.catalog import ProbeConfig, load_probe_config, probe_names
from probelight.probes.controls import STANDARD, control_named
from probelight.probes.importers.file import FORMS, read_file
from probelight.probes.record import MASK, Record, Setup
from probelight.probes.source import ProbeData, load_files, load_probe
from probelight.probes.splits import SplitError, group_of, share_of
from probelight.protocols.audit.settings import AuditSettings
from probelight.protocols.jobs.context import RunContext
from probelight.protocols.probes.check import split_files

ORDER = ("train", "dev", "test")
YAML = {".yaml", ".yml"}


@dataclass(frozen=True)
class AuditData:
    """A probe's items, and which of them are trained on.

    Attributes:
        config: Its config.
        parts: The items as they were read, by split.
        train: Items to train on.
        held_out: Train items, whole groups, that stop a training and are trained on by none.
        measured: Items measured, by the name of their split.
        notices: What a reader of the results should know.
    """

    config: ProbeConfig
    parts: Mapping[str, ProbeData]
    train: tuple[Record, ...]
    held_out: tuple[Record, ...]
    measured: Mapping[str, tuple[Record, ...]]
    notices: tuple[str, ...]

    @property
    def records(self) -> list[Record]:
        """The items of all splits."""
        return [record for part in self.parts.values() for record in part.records]

    def untouched(self, records: Sequence[Record]) -> list[bool]:
        """Of each item whether its group is in no train item."""
        group_by = self.config.group_by
        seen = {group_of(record, group_by) for record in (*self.train, *self.held_out)}
        return [group_of(record, group_by) not in seen for record in records]


def config_of(name: str) -> ProbeConfig:
    """The config of what is named: a probe, the path of a config, a folder, or a file of items.

    Raises:
        UsageError: If a folder has neither a config nor files of items.
        ConfigError: If there is no such probe, or it is of minimal pairs.
        RecordError: If a file is malformed.
    """
    path = Path(name).expanduser()
    is_items = path.exists() or any(f".{form}" in path.name for form in FORMS)
    if name in probe_names() or path.suffix in YAML or not is_items:
        return load_probe_config(name if name in probe_names() else path)
    configs = [one for one in sorted(path.glob("*")) if one.suffix in YAML] if path.is_dir() else []
    if len(configs) == 1:
        return load_probe_config(configs[0])
    files = split_files(path)
    setup: Setup = "mc_mlm" if all(map(_has_mask, files.values())) else "mc_qa"
    own = load_files(visible(path.absolute().name.partition(".")[0]), files, setup)
    return next(iter(own.values())).config


def load_audit(probe: str | ProbeConfig, settings: AuditSettings, mirror: str | None) -> AuditData:
    """Loads a probe, all of its splits that are there, and divides them.

    Where there is a train file, it is trained on, and all else is measured; else dev, and test is
    measured. Of a probe with one file a share of the groups is trained on, the rest measured.

    Raises:
        UsageError: If the groups cannot be divided so.
        NotThereError: If none of its files is there.
    """
    config = probe if isinstance(probe, ProbeConfig) else load_probe_config(probe)
    parts, absent = _parts(config, mirror)
    said = [*absent, *(notice for part in parts.values() for notice in part.notices)]
    first, *others = parts
    group_by = config.group_by
    train: Sequence[Record] = parts[first].records
    measured: dict[str, tuple[Record, ...]] = {one: parts[one].records for one in others}
    try:
        if not others:
            share, seed = settings.train_share, settings.split_seed
            train, rest, _ = share_of(train, group_by, share, seed)
            measured = {f"part of {first}": tuple(rest)}
            said.append(f"{config.name}: {len(train)} of the items of {first} are trained on")
        elif first != ORDER[0]:
            said.append(f"{config.name} has no train file: its {first} items are trained on")
    except SplitError as error:
        raise UsageError(
            f"{config.name}: its items cannot be divided between what is trained on and what is "
            f"measured ({error}); give a folder with a train and a dev file, or more items"
        ) from error
    held_out: Sequence[Record] = ()
    if settings.fit.patience is not None:
        share, seed = settings.fit.held_out, settings.split_seed
        try:
            held_out, train, few = share_of(train, group_by, share, seed)
        except SplitError as error:
            raise UsageError(
                f"{config.name}: no train items can be held out for early stopping ({error}); give "
                "--training.fit.patience null, which trains all epochs, or more items"
            ) from error
        said += [f"{config.name}: {few} (training.fit.held_out) stop a training"] if few else []
    return AuditData(config, parts, tuple(train), tuple(held_out), measured, tuple(said))


def read_audit(name: str, settings: AuditSettings, context: RunContext) -> AuditData:
    """A probe as a run's config names it, read once by a process."""
    read = partial(load_audit, context.probe(name), settings, context.mirror)
    return context.remembered("audit", (name, settings, context.mirror), read)


def under(control: str, data: AuditData) -> AuditData:
    """The items under a control that fits any probe; which of them are alike is not changed."""
    if control == STANDARD:
        return data
    change = control_named(control).change

    def changed(records: Sequence[Record]) -> tuple[Record, ...]:
        return tuple(change(record, data.config, {}) for record in records)

    measured = {split: changed(records) for split, records in data.measured.items()}
    return replace(
        data, train=changed(data.train), held_out=changed(data.held_out), measured=measured
    )


def checksums(data: AuditData) -> list[str]:
    """What a config holds of a probe, so that changed files are another run."""
    return [file.sha256 for part in data.parts.values() for file in part.files]


def _parts(config: ProbeConfig, mirror: str | None) -> tuple[dict[str, ProbeData], list[str]]:
    known = [
        *(s for s in ORDER if s in config.splits),
        *(s for s in config.splits if s not in ORDER),
    ]
    parts: dict[str, ProbeData] = {}
    absent = []
    for split in known:
        try:
            parts[split] = load_probe(config, split, mirror=mirror)
        except NotThereError as error:
            absent.append((split, error))
    if not parts:
        raise absent[0][1]
    return parts, [f"{config.name}: no {split} file there" for split, _ in absent]


def _has_mask(path: Path) -> bool:
    return all(MASK in record.stem for record in read_file(path).records)
