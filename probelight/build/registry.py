"""All builders of probes by name, and bundles of them, which build several by one command."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from probelight.build.builder import Builder, BuildSettings, Bundle, BundleSettings, write_probe
from probelight.build.dictionary_probe.builder import DICTIONARY_QA
from probelight.build.olmpics.ages import AGE_COMPARISON, MULTIHOP_COMPOSITION
from probelight.build.olmpics.antonyms import ANTONYM_NEGATION
from probelight.build.olmpics.encyclopedic_composition import ENCYCLOPEDIC_COMPOSITION
from probelight.build.olmpics.objects import OBJECTS_COMPARISON
from probelight.build.olmpics.property_conjunction import PROPERTY_CONJUNCTION
from probelight.build.olmpics.taxonomy import TAXONOMY_CONJUNCTION
from probelight.build.progress import hide_bars, tracked
from probelight.build.wordnet_probes.builders import (
    DEFINITIONS,
    HYPERNYMY,
    HYPONYMY,
    SYNONYMY,
    WORDNET_QA,
)
from probelight.io.errors import UsageError, nearest

BUILDERS: dict[str, Builder[Any]] = {
    builder.name: builder
    for builder in (
        DEFINITIONS,
        SYNONYMY,
        HYPERNYMY,
        HYPONYMY,
        AGE_COMPARISON,
        MULTIHOP_COMPOSITION,
        OBJECTS_COMPARISON,
        ANTONYM_NEGATION,
        TAXONOMY_CONJUNCTION,
        PROPERTY_CONJUNCTION,
        DICTIONARY_QA,
        ENCYCLOPEDIC_COMPOSITION,
    )
}
BUNDLES: dict[str, Bundle] = {WORDNET_QA.name: WORDNET_QA}


def builder_of(name: str) -> Builder[Any]:
    """Return the builder of this name.

    Raises:
        UsageError: If there is none.
    """
    if name not in BUILDERS:
        known = [*BUILDERS, *BUNDLES]
        raise UsageError(
            f"there is no builder of {name!r}{nearest(name, known)}; there are {', '.join(known)}, "
            "and without a name the shipped probes are made anew"
        )
    return BUILDERS[name]


def write_bundle(bundle: Bundle, settings: BundleSettings, output_dir: Path) -> Iterator[Path]:
    """Build and write each probe; the files are those of its own command, byte for byte.

    Raises:
        HygieneError: If a check finds something: an error of a builder.
        FileNotFoundError: If a source is missing, with how to get it.
    """
    own = {one.name for one in fields(BundleSettings)} - {one.name for one in fields(BuildSettings)}
    shared = {name: value for name, value in vars(settings).items() if name not in own}
    if settings.num_processes == 1:
        for name in bundle.builders:
            yield from _write_named(name, shared, output_dir)
        return
    pool = ProcessPoolExecutor(
        settings.num_processes, mp_context=get_context("spawn"), initializer=hide_bars
    )
    with pool:
        waiting = [pool.submit(_write_named, name, shared, output_dir) for name in bundle.builders]
        for one in tracked(waiting, bundle.name):
            yield from one.result()


def _write_named(name: str, shared: dict[str, Any], output_dir: Path) -> list[Path]:
    """Build and write the probe of a name, in a process that was only given the name."""
    builder = builder_of(name)
    return write_probe(builder, builder.settings(**shared), output_dir)
