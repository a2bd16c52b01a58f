"""All builders by name, and the settings of the probes that the repository ships."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from probelight.builders import dictionary_qa
from probelight.builders.builder import Builder, checked_probe
from probelight.builders.olmpics import (
    antonyms,
    comparisons,
    encyclopedic_composition,
    property_conjunction,
    taxonomy,
)
from probelight.builders.school import agreement, arithmetic, elements, geography
from probelight.builders.wordnet_probes.builders import WORDNET_BUILDERS, WORDNET_QA
from probelight.io.errors import UsageError, nearest
from probelight.io.package import ASSETS, SMALL_MODEL
from probelight.probes.importers.items import write_ai2

_ALL: tuple[Builder[Any], ...] = (
    *WORDNET_BUILDERS.values(),
    comparisons.AGE_COMPARISON,
    comparisons.MULTIHOP_COMPOSITION,
    comparisons.OBJECTS_COMPARISON,
    antonyms.ANTONYM_NEGATION,
    taxonomy.TAXONOMY_CONJUNCTION,
    property_conjunction.PROPERTY_CONJUNCTION,
    dictionary_qa.DICTIONARY_QA,
    encyclopedic_composition.ENCYCLOPEDIC_COMPOSITION,
    geography.CAPITALS,
    geography.CONTINENTS,
    elements.ELEMENTS,
    arithmetic.ARITHMETIC,
    agreement.AGREEMENT,
)
BUILDERS = {builder.name: builder for builder in _ALL}


def builder_of(name: str) -> Builder[Any]:
    """Return the builder of this name; a UsageError lists the names."""
    if name not in BUILDERS:
        builder_names = [*BUILDERS, WORDNET_QA]
        raise UsageError(
            f"there is no builder of {name!r}{nearest(name, builder_names)}; choose one of "
            f"{', '.join(builder_names)}, or give no name to build the shipped probes again"
        )
    return BUILDERS[name]


# Trees enough for sixty gold hypernyms in test, whose answers the bundled model has as one piece.
_EVALUATION_ROOTS = (*taxonomy.EVALUATION_ROOTS, "plant.n.02", "person.n.01", "structure.n.01")
_WORDNET_QA = {"train_items": 1500, "dev_items": 300, "test_items": 500, "perturbations": 1}

# By the name of a shipped probe: its builder, and with which settings.
SHIPPED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "age_small": (
        "age_comparison",
        {"num_train": 1500, "num_dev": 150, "num_test": 400, "wording": "paper"},
    ),
    "multihop_small": (
        "multihop_composition",
        {"num_train": 1500, "num_dev": 300, "num_test": 500},
    ),
    "taxonomy_small": (
        "taxonomy_conjunction",
        {
            "num_train": 1200,
            "num_dev": 50,
            "num_test": 300,
            "vocabulary": str(ASSETS / SMALL_MODEL),
            "evaluation_roots": _EVALUATION_ROOTS,
            "evaluation_per_gold": 6,
        },
    ),
    "antonym_small": ("antonym_negation", {"num_train": 500, "num_dev": 120, "num_test": 240}),
    "definitions_small": ("definitions", _WORDNET_QA),
    # What the original-task model is trained on.
    "definitions_large": (
        "definitions",
        {**_WORDNET_QA, "train_items": 18_000, "dev_items": 500, "test_items": 1000},
    ),
    "hypernymy_small": ("hypernymy", {**_WORDNET_QA, "answer_items": 10}),
    "hyponymy_small": (
        "hyponymy",
        {**_WORDNET_QA, "train_items": 600, "dev_items": 200, "test_items": 400},
    ),
    "wordsense_small": (
        "dictionary_qa",
        {"train_items": 1000, "dev_items": 300, "test_items": 500},
    ),
    "capitals": ("capitals", {}),
    "continents": ("continents", {}),
    "elements": ("elements", {}),
    "arithmetic": ("arithmetic", {}),
    "agreement": ("agreement", {}),
}


def build_probes(
    output_dir: Path, *, names: Iterable[str] | None = None, seed: int = 0
) -> list[Path]:
    """Build the shipped probes: `output_dir/<name>/{train,dev,test}.jsonl.gz`; return the files.

    With the sources of Debian 12 and seed 0 the files are those of assets/probes, byte for byte.

    Raises:
        ValueError: If there is no shipped probe of a given name.
        FileNotFoundError: If a source is missing, with the package that holds it.
    """
    probe_names = list(SHIPPED) if names is None else list(names)
    if unknown := [name for name in probe_names if name not in SHIPPED]:
        raise ValueError(f"{', '.join(unknown)} is not shipped; choose from {', '.join(SHIPPED)}")
    paths = []
    for name in probe_names:
        builder_name, settings = SHIPPED[name]
        builder = builder_of(builder_name)
        probe = checked_probe(builder, builder.settings(seed=seed, **settings))
        for split, records in probe.items():
            path = Path(output_dir) / name / f"{split}.jsonl.gz"
            write_ai2(path, records, builder.config.get("setup"))
            paths.append(path)
    return paths
