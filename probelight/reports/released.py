"""Which runs measured what a paper measured, by checksums and ids, since names prove nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePath

from probelight.io.files import DataFile
from probelight.probes.catalog import EMBEDDED, FileSource, load_probe_config, probe_names
from probelight.reports.published import published
from probelight.results.details import OriginalParts
from probelight.results.load import Run

# Outputs that were released with Ettinger (2020), by what the files hold.
RECORDINGS = {
    "7a52da21f2031323a72282d62956026e49840f52851511548a59b96430bde67a": "bert-base-uncased",
    "dcd218b323d5e932461b1a5cd1b25ca43367508479e08a1498ca73b4597dfc1f": "bert-base-uncased",
}
RECORDED = "recorded"  # model type of another program's outputs
BASELINES = {"mlm_baseline": "mlm_baseline", "esim": "esim_baseline"}  # by model type
PAPER_VECTORS = "glove.6B.50d"
COMMIT = re.compile("[0-9a-f]{40}")
# The science collection of Richardson & Sabharwal 2020; MCQL is what was reserved of it.
SCIENCE = frozenset({"arc_easy", "arc_challenge", "openbookqa", "sciq", "textbookqa"})
RESERVED = "mcql"
PAPER_DOSE = 3000  # examples of inoculation in that paper


def paper_model(run: Run) -> str | None:
    """Return which of the papers' models a run's model is, or None.

    A checkpoint is known by its id on the Hub, of the main branch or a commit; a recording by the
    checksum of what was released; a baseline by the paper's vectors.
    """
    source = run.source
    if run.role == "control":
        return None
    if run.role == "baseline":
        return BASELINES.get(run.kind) if source.vectors.startswith(PAPER_VECTORS) else None
    if run.kind == RECORDED:
        return next((RECORDINGS[f.sha256] for f in run.data if f.sha256 in RECORDINGS), None)
    return hub_model(run)


def hub_model(run: Run) -> str | None:
    """Return which of the papers' checkpoints a run began with, or None."""
    source = run.source
    pinned = source.revision in (None, "main") or bool(COMMIT.fullmatch(source.revision))
    return _hub_names().get(source.hub_id or "") if pinned and not source.control_of else None


@lru_cache(maxsize=1)
def _hub_names() -> dict[str, str]:
    """Return the papers' checkpoints by id, with and without their owner."""
    names = {hub_id: hub_id.partition("/")[2] for hub_id in published().hub_id.unique() if hub_id}
    return {**names, **{name: name for name in names.values()}}


def on_paper_task(run: Run) -> bool:
    """Whether a run's original task is the paper's: the same data sets, and all their questions."""
    parts = run.detail(OriginalParts)
    if parts is None or parts.train_items is not None:
        return False
    return set(parts.sets) - {RESERVED} == SCIENCE


def released_file(run: Run, split: str = "") -> DataFile | None:
    """Return the released file of a split if the run read it, by its checksum or else its name."""
    source = _source(run.probe, split)
    if source is None:
        return None
    if source.sha256 is not None:
        return next((file for file in run.data if file.sha256 == source.sha256), None)
    return next((file for file in run.data if _plain(file.path) == _plain(source.path)), None)


@lru_cache(maxsize=64)
def _source(probe: str, split: str) -> FileSource | None:
    if probe in probe_names():
        config = load_probe_config(probe)
        return None if config.base_url == EMBEDDED else config.files.get(split)
    from probelight.probes.diagnostics.sets import SETS

    return SETS[probe].file if probe in SETS else None


def _plain(path: str) -> str:
    return PurePath(path).name.removesuffix(".gz")
