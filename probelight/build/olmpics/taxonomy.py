"""Taxonomy conjunction at any size (Talmor et al. 2020, section 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probelight.build.drafts import Probe
from probelight.build.frame.builder import Builder
from probelight.build.hygiene.wordnet import check_conjunctions
from probelight.build.olmpics.frame import OlmpicsSettings, in_order, masked
from probelight.build.olmpics.frequency import frequent_words
from probelight.build.sources.vocabulary import read_vocabulary
from probelight.build.sources.wordnet import DEFAULT_DIR, open_wordnet
from probelight.build.taxonomy import EVALUATION_ROOTS, Rules, taxonomy_conjunction
from probelight.build.wordnet_probes.builders import WORDNET
from probelight.io.errors import UsageError
from probelight.io.ranges import NumItems

# "A seam and a gridiron are both a type of instrumentation": what nobody says.
_NO_KINDS = frozenset("instrumentation portion piece constituent paraphernalia status".split())


@dataclass(frozen=True)
class TaxonomySettings(OlmpicsSettings):
    """Settings of taxonomy_conjunction.

    Args:
        num_train: Items of train.
        num_dev: Items of dev; the released file has 599.
        num_test: Items of test; 0 for none, as in the paper.
        wordnet_dir: Folder of a WordNet 3.0 database.
        num_words: Concepts and answers are among so many of the most frequent words.
        vocabulary: File or folder of a model whose pieces the answers have to be too; "" for none.
        evaluation_roots: Synsets whose trees are for dev and test; train gets the others.
        per_gold: Items of train with one gold hypernym at most.
        evaluation_per_gold: Items of dev and test with one gold hypernym at most.
    """

    num_dev: NumItems = 599
    wordnet_dir: str = str(DEFAULT_DIR)
    num_words: NumItems = 60_000
    vocabulary: str = ""
    evaluation_roots: tuple[str, ...] = EVALUATION_ROOTS
    per_gold: NumItems = 90
    evaluation_per_gold: NumItems = 60


def build_taxonomy(settings: TaxonomySettings) -> Probe:
    """Which hypernym do two concepts share?

    Raises:
        FileNotFoundError: If WordNet or `wordfreq` is missing, with how to get it.
        UsageError: If there are fewer items than asked for, or a root is no synset.
    """
    words = frequent_words(settings.num_words)
    pieces = read_vocabulary(Path(settings.vocabulary)) if settings.vocabulary else words
    rules = Rules(
        evaluation_roots=tuple(settings.evaluation_roots),
        answers=pieces - _NO_KINDS,
        per_gold=settings.per_gold,
        evaluation_per_gold=settings.evaluation_per_gold,
        one_sided=True,
    )
    wordnet = open_wordnet(settings.wordnet_dir)
    _check_roots(wordnet, settings.evaluation_roots)
    sizes = {**settings.evaluation, **settings.train}
    try:
        return in_order(taxonomy_conjunction(wordnet, words, sizes, settings.seed, rules))
    except ValueError as error:
        more = "give smaller sizes (--num_train, --num_dev, --num_test), or larger --per_gold"
        raise UsageError(f"{error}: {more} and --evaluation_per_gold") from error


def _check_roots(wordnet: Any, roots: Sequence[str]) -> None:
    from nltk.corpus.reader.wordnet import WordNetError  # not above: nltk is for builders only

    for root in roots:
        try:
            wordnet.synset(root)
        except (WordNetError, ValueError) as error:
            raise UsageError(
                f"--evaluation_roots {root}: no synset of WordNet; give such as animal.n.01"
            ) from error


_ABOUT = """\
Built as Talmor et al. (2020, section 4.4) describe it, over WordNet alone: concepts are nouns that
can be counted, in their first sense, among the frequent words of wordfreq 3 (in place of Google
Books) or used in that sense in WordNet's own corpus; answers are single frequent words. The gold is
the nearest hypernym that the two share, wrong answers are hypernyms of one of them and, by any
sense, not of the other. Nobody is asked about an animal of which WordNet does not say whether it
is a vertebrate: the young, males and females, pets. Food and animals are for dev and test, other
trees for train. No two splits share a gold. The longest of three answers is right as often as
chance has it, where items allow that."""

TAXONOMY_CONJUNCTION = Builder(
    "taxonomy_conjunction",
    "Which hypernym do two concepts share?",
    TaxonomySettings,
    build_taxonomy,
    sources={"wordnet_dir": WORDNET},
    check=lambda settings, records: check_conjunctions(records, open_wordnet(settings.wordnet_dir)),
    about=_ABOUT,
    config={
        **masked(
            3,
            group_by="cluster",
            arguments=r"An? (\w+) and an? (\w+) are both a type of \[MASK\]\.",
            key_words=["and", "both"],
        ),
        "licence": WORDNET.licence,
    },
)
