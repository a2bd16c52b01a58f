"""All builders by name, and bundles of them; the module of one is imported when it is asked for."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from probelight.build.frame.builder import Builder
from probelight.io.errors import UsageError, nearest

if TYPE_CHECKING:
    from probelight.build.frame.bundle import Bundle

_WORDNET = "probelight.build.wordnet_probes.builders"
_OLMPICS = "probelight.build.olmpics"
_COMPOSED = "probelight.build.composed"

BUILDERS: dict[str, str] = {
    "definitions": f"{_WORDNET}:DEFINITIONS",
    "synonymy": f"{_WORDNET}:SYNONYMY",
    "hypernymy": f"{_WORDNET}:HYPERNYMY",
    "hyponymy": f"{_WORDNET}:HYPONYMY",
    "age_comparison": f"{_OLMPICS}.ages:AGE_COMPARISON",
    "multihop_composition": f"{_OLMPICS}.ages:MULTIHOP_COMPOSITION",
    "objects_comparison": f"{_OLMPICS}.objects:OBJECTS_COMPARISON",
    "antonym_negation": f"{_OLMPICS}.antonyms:ANTONYM_NEGATION",
    "taxonomy_conjunction": f"{_OLMPICS}.taxonomy:TAXONOMY_CONJUNCTION",
    "property_conjunction": f"{_COMPOSED}.property_conjunction:PROPERTY_CONJUNCTION",
    "dictionary_qa": "probelight.build.dictionary_probe.builder:DICTIONARY_QA",
    "encyclopedic_composition": (f"{_COMPOSED}.encyclopedic_composition:ENCYCLOPEDIC_COMPOSITION"),
}

BUNDLES: dict[str, str] = {"wordnet_qa": f"{_WORDNET}:WORDNET_QA"}


def bundle_of(name: str) -> Bundle | None:
    """The bundle of this name; None where it is no bundle's."""
    bundle: Bundle | None = resolve_name(BUNDLES[name]) if name in BUNDLES else None
    return bundle


def builder_of(name: str) -> Builder[Any]:
    """The builder of this name.

    Raises:
        UsageError: If there is none.
    """
    if name not in BUILDERS:
        known = [*BUILDERS, *BUNDLES]
        raise UsageError(
            f"there is no builder of {name!r}{nearest(name, known)}; there are {', '.join(known)}, "
            "and without a name the shipped probes are made anew"
        )
    builder: Builder[Any] = resolve_name(BUILDERS[name])
    return builder
