"""Reading data sets of the Hugging Face Hub."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from probelight.io.download import ADVICE, DownloadError, is_offline
from probelight.io.errors import ConfigError
from probelight.probes.catalog import HubSource, ProbeConfig
from probelight.probes.importers.objects import data_file, rows_of
from probelight.probes.importers.rows import ItemFile, RowReader


def read_hub(
    config: ProbeConfig,
    split: str,
    *,
    cache_dir: str | Path | None = None,
    offline: bool | None = None,
) -> ItemFile:
    """Read one split of a probe from the Hub; rows without an id get `<name>-<row>`, from 1.

    `split` is our name of it; `offline` uses only the cache of `datasets`. A ConfigError says that
    the Hub has no such split, a DownloadError that it cannot be had, a RecordError that a row is
    malformed or an id repeats.
    """
    source = config.hub
    if source is None or split not in source.splits:
        raise ConfigError(f"{config.name}: it has no {split!r} split on the Hub; use --mirror")
    rows = _load(source, split, cache_dir, is_offline(offline))
    name = f"{source.repo} {source.config or ''}".strip() + f", split {source.splits[split]}"
    advice = f"To leave it out, write in the probe's config `leave_out: {{{{{split}: [{{row}}]}}}}`"
    reader = RowReader(name, config.setup, advice, **config.reading(split))
    for number, row in rows_of(rows):
        if number not in reader.leave_out:
            reader.add(number, [*row], [*row.values()])
    item_file = reader.item_file()
    name = "/".join(filter(None, ["hub:" + source.repo, source.config, source.splits[split]]))
    return replace(item_file, files=(data_file(name, item_file.records), *item_file.files))


def _load(source: HubSource, split: str, cache_dir: str | Path | None, offline: bool) -> Any:
    # Any, and imported here: `datasets` takes a second to import and most probes do not need it.
    import datasets.config
    import huggingface_hub.constants

    # HF_HUB_OFFLINE=1 is read once by both, when they are imported.
    modules: tuple[Any, ...] = (datasets.config, huggingface_hub.constants)
    offline_flags = [module.HF_HUB_OFFLINE for module in modules]
    try:
        for module in modules if offline else ():
            module.HF_HUB_OFFLINE = True
        return datasets.load_dataset(
            source.repo,
            source.config,
            split=source.splits[split],
            revision=source.revision,
            cache_dir=str(cache_dir) if cache_dir else None,
        )
    except Exception as error:  # whatever it raises (there are many), the user needs the same help
        state = "from the local cache (offline mode is on)" if offline else "from the Hub"
        raise DownloadError(
            f"{source.repo}: could not be loaded {state}: {type(error).__name__}: {error}. {ADVICE}"
        ) from error
    finally:
        for module, flag in zip(modules, offline_flags, strict=True):
            module.HF_HUB_OFFLINE = flag
