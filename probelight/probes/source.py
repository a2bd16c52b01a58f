"""Loading a split of a probe from the repository, a mirror, a download, the Hub, or user files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from probelight.io.download import DownloadError, NotThereError, fetch, is_offline
from probelight.io.errors import ConfigError, RecordError, nearest
from probelight.io.files import DataFile
from probelight.probes.catalog import EMBEDDED, FileSource, ProbeConfig, load_probe_config
from probelight.probes.importers.formats import is_item_file
from probelight.probes.importers.items import read_file, read_hub, read_items
from probelight.probes.importers.rows import FOR_ALL, ItemFile
from probelight.probes.record import (
    MASK,
    OTHER_MASK,
    GoldForm,
    Record,
    Setup,
    setup_of,
    share_choices,
)


class Released(Protocol):
    """A probe (by its config) or a diagnostic set, which have released files."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def base_url(self) -> str | None:
        """Address in front of the paths, if any."""

    @property
    def mirror_folder(self) -> str:
        """Folder of a mirror that stands for `base_url`."""

    @property
    def own_folder(self) -> Path | None:
        """The local folder of its files, if any."""

    @property
    def get(self) -> str:
        """How to get it by hand where there is no address."""


class LocalFile(NamedTuple):
    """The local path of a released file, and its address if it was downloaded."""

    path: Path
    url: str | None = None  # None: somebody put it there


def locate(
    config: Released,
    source: FileSource,
    mirror: str | Path | None,
    cache_dir: str | Path | None,
    offline: bool | None,
) -> LocalFile:
    """Return the local path of a released file, downloaded if necessary.

    `mirror` is as in `load_probe`, the rest as in `probelight.io`. A DownloadError says what to do.
    """
    own_folder = config.own_folder
    if own_folder and (path := _in_folder(own_folder, source)):
        if source.sha256 is not None:
            fetch(path.as_uri(), sha256=source.sha256)  # refuses what is not the released file
        return LocalFile(path)
    if mirror and urlsplit(str(mirror)).scheme in {"http", "https"}:
        base = f"{str(mirror).rstrip('/')}/{config.mirror_folder}".rstrip("/")
        return _fetch_served(base, source, cache_dir, offline)
    if mirror:
        return _find_mirrored(config, source, mirror)
    if own_folder:
        advice = (
            "`base_url` must be the folder of the files, relative to the probe's YAML file, or an "
            "address that begins with https://"
        )
        if config.base_url == EMBEDDED:
            advice = (
                f"if {config.name} is a shipped probe, this checkout is not complete; for a "
                "probe of your own, set `base_url` to the folder of its files"
            )
        raise NotThereError(f"{_not_in(own_folder, source)}; {advice}")
    if config.base_url is None:
        raise NotThereError(
            f"{config.name}: there is no address to download it from. {config.get} Save it in the "
            f"AI2 format as <mirror>/{config.mirror_folder}/{source.path} and give --mirror"
        )
    url = f"{config.base_url.rstrip('/')}/{source.path}"
    path = fetch(url, sha256=source.sha256, cache_dir=cache_dir, offline=offline)
    return LocalFile(path, None if url.startswith("file:") else url)


def _fetch_served(
    base: str, source: FileSource, cache_dir: str | Path | None, offline: bool | None
) -> LocalFile:
    missing: list[DownloadError] = []
    for path in _gzip_variants(source.path):
        url = f"{base}/{path}"
        try:
            local_path = fetch(url, sha256=source.sha256, cache_dir=cache_dir, offline=offline)
            return LocalFile(local_path, url)
        except DownloadError as error:
            if not (isinstance(error, NotThereError) or is_offline(offline)):
                raise
            missing.append(error)
    raise missing[0]


def _find_mirrored(config: Released, source: FileSource, mirror: str | Path) -> LocalFile:
    url = urlsplit(str(mirror))
    folder = Path(unquote(url.path) if url.scheme == "file" else mirror).expanduser()
    if not folder.is_dir():
        raise NotThereError(f"{mirror}: the mirror is not a folder")
    folder = folder / config.mirror_folder
    if path := _in_folder(folder, source):
        return LocalFile(path)
    own_folder = config.own_folder
    advice = f"nor is it in {own_folder}" if own_folder else "leave out --mirror to download it"
    raise NotThereError(f"{_not_in(folder, source)}; {advice}")


def _gzip_variants(path: str) -> tuple[str, str]:
    """Return a path and its variant with or without the ending of gzip."""
    return path, path.removesuffix(".gz") if path.endswith(".gz") else f"{path}.gz"


def _in_folder(folder: Path, source: FileSource) -> Path | None:
    paths = (folder / path for path in _gzip_variants(source.path))
    return next((path for path in paths if path.is_file()), None)


def _not_in(folder: Path, source: FileSource) -> str:
    first, second = _gzip_variants(source.path)
    return f"there is no {folder / first} (nor {Path(second).name})"


EVALUATION_SPLITS = ("dev", "test")  # what is measured where no split is named: the first there is
FILE_SPLIT = "file"  # of a file without a config


@dataclass(frozen=True)
class ProbeData:
    """One split of a probe."""

    config: ProbeConfig
    records: tuple[Record, ...]  # in file order; meta has `arguments`, and any `template`
    files: tuple[DataFile, ...]
    notices: tuple[str, ...]  # for a reader of the results ("505 ids repeat")


def load_probe(
    name_or_path: str | Path | ProbeConfig,
    split: str,
    *,
    mirror: str | Path | None = None,
    cache_dir: str | Path | None = None,
    offline: bool | None = None,
    pairs: bool = False,
    option: str = "",
) -> ProbeData:
    """Load one split of a probe or original-task set.

    Args:
        name_or_path: A name in configs/probe/, the path of such a .yaml file, or a config.
        split: One of the config's splits.
        mirror: A folder or address (file:// and http(s)://) with copies of the released files as
            <mirror_folder>/<path>, gzipped or not. The probe's `own_folder` is searched first.
        cache_dir: See `probelight.io.package.cache_folder`.
        offline: See `probelight.io.download.is_offline`.
        pairs: Whether to allow minimal pairs, which no model can be trained on.
        option: The option that chooses the split, for the message if there is no such split.

    Raises:
        ConfigError: If there is no such probe or split, or it has minimal pairs and `pairs` is
            False.
        RecordError: If a file is malformed; the message names file and line.
        OSError: If a file cannot be found or downloaded; the message says what to do.
    """
    config = (
        name_or_path if isinstance(name_or_path, ProbeConfig) else load_probe_config(name_or_path)
    )
    if config.setup == "minimal_pair" and not pairs:
        raise ConfigError(
            f"{config.name} has minimal pairs (setup minimal_pair): whole sentences with nothing "
            "to fill in or to answer; only `train.py zero-shot` can score them"
        )
    if split not in config.splits:
        raise ConfigError(
            f"{config.name} has no split {split!r}{nearest(split, config.splits)}; "
            f"it has {', '.join(config.splits)}{f': give {option}' if option else ''}"
        )
    if config.hub and not mirror and not (config.base_url and split in config.files):
        item_file = read_hub(config, split, cache_dir=cache_dir, offline=offline)
    else:
        item_file = _read_released(config, split, mirror, cache_dir, offline)
    for record in item_file.records:
        if len(record.choices) > config.num_choices:
            raise RecordError(
                f"{record.where}: {len(record.choices)} choices; {config.name} has at most "
                f"{config.num_choices}"
            )
        unknown = set(record.choices) - set(config.candidates)
        if config.candidates and unknown:
            raise RecordError(
                f"{record.where}: {min(unknown)!r} is not one of the candidates of {config.name}"
            )
    records, unmatched = _with_arguments(config, item_file.records)
    return ProbeData(config, records, item_file.files, item_file.notices + unmatched)


def _read_released(
    config: ProbeConfig,
    split: str,
    mirror: str | Path | None,
    cache_dir: str | Path | None,
    offline: bool | None,
) -> ItemFile:
    if split not in config.files:
        raise ConfigError(
            f"{config.name}: its {split!r} split has no released file; leave out --mirror"
        )
    source = config.files[split]
    located = locate(config, source, mirror, cache_dir, offline)
    try:
        item_file = read_file(located.path, config.setup, **config.reading(split))
    except RecordError as error:
        if located.url is None or source.sha256:
            raise
        # Set aside, so that the next start fetches it anew; but not what no network could replace.
        unreadable_path = located.path.with_name(f"{located.path.name}.unreadable")
        if is_offline(offline):
            advice = f"remove {located.path} and run without offline mode to download it again"
        else:
            with suppress(FileNotFoundError):  # another process was faster
                located.path.replace(unreadable_path)
            advice = f"the next run downloads it again; this file is kept as {unreadable_path}"
        raise RecordError(
            f"{located.url}: the downloaded file cannot be read ({error}); {advice}"
        ) from error
    notices = item_file.notices
    if source.sha256 not in (None, sha256 := item_file.files[0].sha256):
        # Only a mirror can differ; a download or a broken checkout with another sum is refused.
        notices += (f"{located.path} is not the released file: its sha256 is {sha256}",)
    return replace(item_file, notices=notices)


def load_file(
    path: str | Path,
    setup: Setup | None = None,
    choices: Sequence[str] = (),
    gold: GoldForm | None = None,
) -> ProbeData:
    """Load a user's file as the `FILE_SPLIT` of a probe, with a config inferred from its items.

    Args:
        path: A file that `read_file` can read.
        setup: "mc_mlm", "mc_qa" or "minimal_pair"; by default that of the items.
        choices: The choices of every item, for a table without a column of choices.
        gold: How golds name their choice, see `ProbeConfig`.

    Raises:
        ValueError: If the setup is none of these.
        RecordError: If the file is malformed; the message names file and line.
        FileNotFoundError: If there is no such file.
    """
    name = Path(path).name
    probe = load_files(name.partition(".")[0], {FILE_SPLIT: path}, setup, choices, gold)[FILE_SPLIT]
    return replace(probe, config=replace(probe.config, description=f"the file {name}"))


def load_files(
    name: str,
    paths: Mapping[str, str | Path],
    setup: Setup | None,
    choices: Sequence[str] = (),
    gold: GoldForm | None = None,
) -> dict[str, ProbeData]:
    """Load user files, by split, as one probe, with a config inferred from all items.

    The arguments and errors are those of `load_file`; `name` is the probe's name in tables.
    """
    files_by_split = {
        split: read_file(path, setup, candidates=choices, gold=gold)
        for split, path in paths.items()
    }
    for split, file in files_by_split.items():
        if choices and not any(extra.path.startswith(FOR_ALL) for extra in file.files):
            raise RecordError(
                f"{paths[split]}: its items have choices of their own; leave out --data.choices"
            )
    records = [record for file in files_by_split.values() for record in file.records]
    config = replace(
        config_of(name, setup or _setup_of_all(records), records, choices),
        description=f"the files {', '.join(str(path) for path in paths.values())}",
        base_url="/",  # where the absolute paths begin
        files={
            split: FileSource(str(Path(paths[split]).absolute()), file.files[0].sha256)
            for split, file in files_by_split.items()
        },
        gold=gold,
    )
    return {
        split: ProbeData(config, file.records, file.files, file.notices)
        for split, file in files_by_split.items()
    }


def load_items(
    items: Any,
    setup: Setup | None = None,
    choices: Sequence[str] | None = None,
    gold: GoldForm | None = None,
) -> ProbeData:
    """Load items in memory as a probe; arguments and errors are those of `load_file`."""
    item_file = read_items(items, setup, candidates=choices or (), gold=gold)
    records = item_file.records
    config = config_of("items", setup or _setup_of_all(records), records, choices or ())
    return ProbeData(config, records, item_file.files, item_file.notices)


def _setup_of_all(records: Sequence[Record]) -> Setup:
    """Return the setup of all items; RecordError if they have several or it is unclear."""
    first: dict[Setup, Record] = {}
    for record in records:
        first.setdefault(setup := setup_of(record), record)
        if setup == "mc_qa" and (blank := OTHER_MASK.search(record.stem)):
            raise RecordError(
                f"{record.where}: {blank[0]!r} may stand for a mask or be a part of a question: "
                f"write {MASK} in its place, or give the setup (--data.setup mc_qa, setup=)"
            )
    items = [f"{record.where} is {setup}" for setup, record in first.items()]
    if len(items) > 1:
        raise RecordError(f"{items[1]}, but {items[0]}; make them two probes")
    return next(iter(first))


def config_of(
    name: str, setup: Setup, records: Sequence[Record], choices: Sequence[str]
) -> ProbeConfig:
    """Infer the config of a probe from its items, and from the choices of all if there are any."""
    closed = setup == "mc_mlm" and share_choices(records)
    return ProbeConfig(
        name=name,
        setup=setup,
        num_choices=max(len(record.choices) for record in records),
        chance=sum(1 / len(record.choices) for record in records) / len(records),
        candidates=tuple(choices) or (tuple(sorted({*records[0].choices})) if closed else ()),
        group_by="cluster" if all(r.meta.get("cluster") for r in records) else "stem",
        chance_note="the mean of 1 / number of choices over the items",
    )


def _with_arguments(
    config: ProbeConfig, records: Sequence[Record]
) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """Add `arguments` and `template` to the meta, with a notice of stems that fit no template."""
    if not config.arguments:
        return tuple(records), ()
    matched_records, num_unmatched, spent = [], 0, dict[str, float]()
    for record in records:
        meta = dict(record.meta)
        try:
            match = config.find_arguments(record.stem, spent)
        except ConfigError as error:
            raise ConfigError(f"{record.where}: {error}") from None
        if match:
            arguments = tuple(record.stem[start:end] for start, end in match.spans)
            meta.setdefault("arguments", arguments)
            if len(config.arguments) > 1:
                meta.setdefault("template", match.template)
        else:
            num_unmatched += 1
        matched_records.append(replace(record, meta=meta))
    notice = f"{num_unmatched} stems fit no template of the config"
    return tuple(matched_records), (notice,) * bool(num_unmatched)


def evaluation_splits(name_or_path: str | Path) -> list[str]:
    """Return the splits of a probe to measure if the user names none, in order of preference."""
    probe_splits = load_probe_config(name_or_path).splits
    return [split for split in EVALUATION_SPLITS if split in probe_splits] or ["dev"]


def load_entry(
    entry: str | Path, split: str | None = None, *, mirror: str | Path | None = None
) -> tuple[ProbeData, str]:
    """Load the items of a probe (`name` or `name:split`) or of a file.

    Args:
        entry: A probe's name or the path of its config, alone or with a split; or a file of items.
        split: The split to use if the entry names none; by default the first of
            `evaluation_splits` whose file exists.
        mirror: As in `load_probe`.

    Returns:
        The items and the name of their split, which is empty for a file.

    Raises:
        ProbelightError: As `load_probe` and `load_file`.
    """
    if is_item_file(entry):
        return load_file(entry), ""
    name, colon, own_split = str(entry).partition(":")
    if (split := own_split if colon else split) is not None:
        return load_probe(name, split, mirror=mirror, pairs=True), split
    first, *fallbacks = evaluation_splits(name)
    option = f"--split {load_probe_config(name).splits[0]}"
    try:
        return load_probe(name, first, mirror=mirror, pairs=True, option=option), first
    except NotThereError:
        if not fallbacks:
            raise
    data = load_probe(name, fallbacks[0], mirror=mirror, pairs=True)
    notice = f"{name}: there is no {first} file, so {fallbacks[0]} is used"
    return replace(data, notices=(*data.notices, notice)), fallbacks[0]
