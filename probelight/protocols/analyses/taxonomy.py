"""What `taxonomy-distance` reads: runs that answered a taxonomy probe, and WordNet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from probelight.build.sources.wordnet import hypernym_edges, open_wordnet
from probelight.io.errors import ConfigError
from probelight.io.files import sha256_of
from probelight.probes.record import Record
from probelight.probes.source import ProbeData, load_probe
from probelight.probes.taxonomy_edges import Edges
from probelight.protocols.jobs.context import RunContext
from probelight.results.record import RunRecord

SOURCES = ("zero_shot", "curve")
RESULTS, WORDNET = "results", "wordnet"  # in `RunContext.paths`


class WordNet(NamedTuple):
    """An opened WordNet.

    Attributes:
        sha256: Of the nouns.
        edges: Word to the words above it with their edges.
    """

    sha256: str
    edges: Edges


def taxonomy_runs(context: RunContext, key: str = "*") -> Iterator[tuple[Path, RunRecord]]:
    """Folder and record of every finished run that answered a taxonomy probe.

    Args:
        context: Says in which folder they are.
        key: Of the runs; what was scored in two folders has one key.
    """
    for path in sorted(Path(context.paths[RESULTS]).rglob(f"runs/{key}/predictions.jsonl")):
        if not (path.parent / "result.json").exists():
            continue
        record = RunRecord.read(path.parent / "result.json")
        if record.protocol in SOURCES and record.rows and taxonomy_items(record, context):
            yield path.parent, record


def taxonomy_items(answered: RunRecord, context: RunContext) -> ProbeData | None:
    """What a run answered, if its stems ask of which type two concepts both are."""
    name, split = answered.probe, answered.rows[0].split
    read = partial(_taxonomy_probe, name, split, context.mirror)
    return context.remembered(f"taxonomy {name} {split}", context.mirror, read)


def entities_of(data: ProbeData, record: Record) -> tuple[str, str]:
    """The two concepts of a stem, in its order; another number where it is no such stem."""
    found = data.config.find_arguments(record.stem)
    words = [record.stem[start:end] for start, end in found[1]] if found else []
    return tuple(words)  # type: ignore[return-value]  # two, where it counts


def wordnet_of(context: RunContext) -> WordNet:
    """The WordNet that a command was given, opened once by a process.

    Raises:
        FileNotFoundError: If it is not there, or not whole.
    """
    folder = context.paths[WORDNET]

    def opened() -> WordNet:
        reader = open_wordnet(folder)
        above = cache(partial(hypernym_edges, reader))
        return WordNet(sha256_of(Path(folder) / "data.noun"), above)

    return context.remembered(WORDNET, folder, opened)


def _taxonomy_probe(name: str, split: str, mirror: str | None) -> ProbeData | None:
    try:
        data = load_probe(name, split, mirror=mirror)
    except ConfigError:  # a file of one's own, without a config
        return None
    asks = [r for r in data.records if "type of" in r.stem and len(entities_of(data, r)) == 2]
    left_out = len(data.records) - len(asks)
    notice = f"{left_out} of {len(data.records)} stems of {name} name no two concepts: left out"
    notices = (*data.notices, notice) if left_out else data.notices
    return replace(data, records=tuple(asks), notices=notices) if asks else None
