"""The probes that the repository ships, and the one function that makes all of them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from probes.build.antonyms import antonym_negation
from probes.build.dictionary_qa import dictionary_qa
from probes.build.drafts import Probe
from probes.build.taxonomy import taxonomy_conjunction
from probes.build.templated import age_comparison, multihop_composition
from probes.build.wordnet_qa import wordnet_probe
from probes.catalog import ROOT
from probes.importers.ai2 import write_ai2
from probes.sources import gcide, wordnet
from probes.sources.vocabulary import read_vocabulary

VOCABULARY_PATH = ROOT / "assets" / "dictionary-lm"


@dataclass(frozen=True)
class Sources:
    """Where the builders read; each source is opened when the first builder asks for it.

    Attributes:
        wordnet_dir: WordNet 3.0 database folder.
        gcide_path: GCIDE in dictd's format.
        vocabulary_path: See `read_vocabulary`.
    """

    wordnet_dir: Path
    gcide_path: Path
    vocabulary_path: Path

    @cached_property
    def wordnet(self) -> Any:
        """The opened database."""
        return wordnet.open_wordnet(self.wordnet_dir)

    @cached_property
    def senses(self) -> list[gcide.Sense]:
        """The public domain senses."""
        return list(gcide.read_gcide(self.gcide_path))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Words that are one piece for the embedded model."""
        return read_vocabulary(self.vocabulary_path)


Builder = Callable[[Sources, int], Probe]

BUILDERS: dict[str, Builder] = {
    "age_small": lambda sources, seed: age_comparison(seed, 1500, 150, 400),
    "multihop_small": lambda sources, seed: multihop_composition(seed, 1500, 300, 500),
    "taxonomy_small": lambda sources, seed: taxonomy_conjunction(
        sources.wordnet, sources.vocabulary, _sizes(1200, 100, 260), seed
    ),
    "antonym_small": lambda sources, seed: antonym_negation(
        sources.wordnet, sources.vocabulary, _sizes(500, 120, 240), seed
    ),
    "definitions_small": lambda sources, seed: wordnet_probe(
        "definitions", sources.wordnet, _sizes(1500, 300, 500), seed
    ),
    "hypernymy_small": lambda sources, seed: wordnet_probe(
        "hypernymy", sources.wordnet, _sizes(1500, 300, 500), seed
    ),
    "hyponymy_small": lambda sources, seed: wordnet_probe(
        "hyponymy", sources.wordnet, _sizes(600, 200, 400), seed
    ),
    "wordsense_small": lambda sources, seed: dictionary_qa(
        sources.senses, _sizes(1000, 300, 500), seed
    ),
}


def build_probes(
    output_dir: Path,
    *,
    wordnet_dir: Path = wordnet.DEFAULT_DIR,
    gcide_path: Path = gcide.DEFAULT_PATH,
    vocabulary_path: Path = VOCABULARY_PATH,
    names: Iterable[str] | None = None,
    seed: int = 0,
) -> list[Path]:
    """Makes the shipped probes: `output_dir/<name>/{train,dev,test}.jsonl.gz`.

    With the sources of Debian 12 and seed 0 the files are those of assets/probes, byte for byte.

    Args:
        output_dir: Folder for the probes' folders.
        wordnet_dir: WordNet 3.0 database folder.
        gcide_path: GCIDE in dictd's format.
        vocabulary_path: See `read_vocabulary`.
        names: Which probes; all of `BUILDERS` by default.
        seed: Seeds every choice.

    Returns:
        The written files.

    Raises:
        ValueError: If there is no builder of a given name.
        FileNotFoundError: If a source is not there, with the package that holds it.
    """
    wanted = list(BUILDERS) if names is None else list(names)
    unknown = [name for name in wanted if name not in BUILDERS]
    if unknown:
        raise ValueError(f"no builder for {', '.join(unknown)}; there are {', '.join(BUILDERS)}")
    sources = Sources(Path(wordnet_dir), Path(gcide_path), Path(vocabulary_path))
    paths = []
    for name in wanted:
        for split, records in BUILDERS[name](sources, seed).items():
            path = Path(output_dir) / name / f"{split}.jsonl.gz"
            write_ai2(path, records)
            paths.append(path)
    return paths


def _sizes(train: int, dev: int, test: int) -> dict[str, int]:
    # Filled in this order: where items are few, the splits to report on come first.
    return {"test": test, "dev": dev, "train": train}
