"""WordNetQA: definitions, synonymy, hypernymy and hyponymy (Richardson & Sabharwal 2020, 3.1)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

from probelight.builders.builder import (
    Builder,
    BuildSettings,
    Probe,
    Source,
    finish,
    tracked,
    write_probe,
)
from probelight.builders.sources.wordnet import DEFAULT_DIR
from probelight.builders.wordnet_probes.distractors import Deal, Distractors
from probelight.builders.wordnet_probes.graph import check_synsets, read_graph
from probelight.builders.wordnet_probes.questions import Kind, Questions, WordNetQuestion
from probelight.io.ranges import NumItems, Within
from probelight.probes.splits import SPLITS

_FEW_PERTURBATIONS = 2  # of a question of test: many concepts rather than each many times
Hops = Annotated[int, Within(1, 5)]
_FILES = ("data.noun", "data.verb", "data.adj", "data.adv", "index.sense")


@dataclass(frozen=True)
class SharedSettings(BuildSettings):
    """Settings of one probe of WordNetQA, and of all four together.

    Args:
        wordnet_dir: Folder of a WordNet 3.0 database.
        max_hops: Largest distance of a hypernym or hyponym, in hops.
        sister_depth: Depth of the family of sisters, l of SISTER_l.
        train_items: Number of train items.
        dev_items: Number of dev items, unless `all` is true.
        test_items: Number of test items.
        all: Put all remaining items into dev.
    """

    wordnet_dir: str = str(DEFAULT_DIR)
    max_hops: Hops = 5
    sister_depth: Hops = 3
    train_items: NumItems = 3_000
    dev_items: NumItems = 3_000
    test_items: NumItems = 3_000
    all: bool = False


@dataclass(frozen=True)
class WordNetSettings(SharedSettings):
    """Settings of a probe of WordNetQA.

    Args:
        num_concepts: Largest number of concepts to ask about. Nouns and verbs come before
            adjectives and adverbs, which have no place in the taxonomy.
        questions: Largest number of questions per concept, which differ in contexts, wordings and,
            for ISA, answers.
        perturbations: Largest number of sets of distractors per question in dev if `all` is true;
            otherwise, and in test, it is at most two.
        train_perturbations: Largest number of sets of distractors per question in train.
        answer_items: Largest number of items per right answer in each split, so that a few answers
            do not decide the accuracy on choices alone; none for no limit.
    """

    num_concepts: NumItems = 15_632
    questions: NumItems = 2
    perturbations: NumItems = 6
    train_perturbations: NumItems = 1
    answer_items: NumItems | None = None


@dataclass(frozen=True)
class DefinitionsSettings(WordNetSettings):
    """Settings of definitions (WordNetQA)."""

    num_concepts: NumItems = 15_159


@dataclass(frozen=True)
class SynonymySettings(WordNetSettings):
    """Settings of synonymy (WordNetQA)."""

    num_concepts: NumItems = 15_632
    perturbations: NumItems = 3


@dataclass(frozen=True)
class HypernymySettings(WordNetSettings):
    """Settings of hypernymy (WordNetQA)."""

    num_concepts: NumItems = 8_900  # splits that share no answer cost questions; the paper: 7,849
    questions: NumItems = 6
    perturbations: NumItems = 2


@dataclass(frozen=True)
class HyponymySettings(WordNetSettings):
    """Settings of hyponymy (WordNetQA)."""

    num_concepts: NumItems = 3_452
    questions: NumItems = 3
    perturbations: NumItems = 14


def build_wordnet(kind: Kind, settings: WordNetSettings) -> Probe:
    """Build the probe that asks for one relation."""
    graph = read_graph(Path(settings.wordnet_dir))
    rng = random.Random(f"{kind}:{settings.seed}")
    question_source = Questions(kind, graph, rng, settings.max_hops, settings.questions)
    concepts = list(graph.concepts)
    rng.shuffle(concepts)
    concepts.sort(key=lambda concept: concept.pos in "ar")
    questions, num_concepts = list[WordNetQuestion](), 0
    for concept in tracked(concepts, f"{kind}: questions"):
        concept_questions = list(question_source.of_concept(concept))
        questions += concept_questions
        num_concepts += bool(concept_questions)
        if num_concepts == settings.num_concepts:
            break
    golds: dict[str, list[int]] = {}
    for number in dict.fromkeys(question.gold for question in questions):
        golds.setdefault(graph.concepts[number].pos, []).append(number)
    wrong = Distractors(kind, graph, rng, settings.max_hops, settings.sister_depth, golds)
    deal = Deal(questions, wrong.drafts, rng, settings.answer_items)
    few = min(_FEW_PERTURBATIONS, settings.perturbations)
    splits = {
        "train": deal.fill("train", settings.train_items, settings.train_perturbations),
        "test": deal.fill("test", settings.test_items, few),
    }
    if settings.all:
        splits["dev"] = deal.fill("dev", None, settings.perturbations)
    else:
        splits["dev"] = deal.fill("dev", settings.dev_items, few)
    return finish(kind, {name: splits[name] for name in SPLITS}, rng)


WORDNET = Source(
    "WordNet",
    "3.0",
    "WordNet 3.0 licence (assets/LICENSE-WordNet.txt of Probelight)",
    lambda folder: [folder / name for name in _FILES],
)

_ABOUT = """\
Built as Richardson and Sabharwal (2020, section 3.1) describe. Each concept has an example sentence
with its word (synonymy: at least two words) and a short, complete gloss that everybody can read. No
answer, right or wrong, repeats an asked word, not even in its gloss: words are compared by Snowball
stems, WordNet's irregular forms and the first five letters. No hypernym or hyponym is in the stem.
Right synonyms use no word of the definition, wrong ones at most one. No wrong answer is right in
any sense of any word. Splits share no concept, right answer or set of distractors, so there may be
fewer questions than in the paper. Questions are repeated with other wrong answers (perturbations):
once in train unless `train_perturbations` is larger, twice in test, and up to `perturbations` times
in dev if `all` is true. Each kind of relative is used once before any is used again."""


def _builder(kind: Kind, summary: str, settings: type[WordNetSettings]) -> Builder[WordNetSettings]:
    return Builder(
        kind,
        summary,
        settings,
        partial(build_wordnet, kind),
        sources={"wordnet_dir": WORDNET},
        check=lambda settings, records: check_synsets(
            records, read_graph(Path(settings.wordnet_dir))
        ),
        about=_ABOUT,
        config={"setup": "mc_qa", "num_choices": 5, "chance": 0.2, "group_by": "cluster"},
    )


WORDNET_BUILDERS = {
    builder.name: builder
    for builder in (
        _builder("definitions", "How is the word defined?", DefinitionsSettings),
        _builder("synonymy", "Which words have this definition?", SynonymySettings),
        _builder("hypernymy", "What is the concept a kind of?", HypernymySettings),
        _builder("hyponymy", "Which answer is a kind of the concept?", HyponymySettings),
    )
}
WORDNET_QA = "wordnet_qa"  # all four at once


@dataclass(frozen=True)
class WordNetQASettings(SharedSettings):
    """Settings of the four probes of WordNetQA together.

    Args:
        num_processes: Number of builders that run at once; each reads the sources itself.
    """

    num_processes: Annotated[int, Within(1, 4)] = 2


def write_wordnet_qa(settings: WordNetQASettings, output_dir: Path) -> Iterator[Path]:
    """Build and write the four probes; files equal those of each one's command, byte for byte."""
    shared = dict(vars(settings))
    num_processes = shared.pop("num_processes")
    if num_processes == 1:
        for name in WORDNET_BUILDERS:
            yield from _write(name, shared, output_dir)
        return
    with ProcessPoolExecutor(num_processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_write, name, shared, output_dir) for name in WORDNET_BUILDERS]
        for future in tracked(futures, WORDNET_QA):
            yield from future.result()


def _write(name: str, settings: dict[str, Any], output_dir: Path) -> list[Path]:
    builder = WORDNET_BUILDERS[name]
    return write_probe(builder, builder.settings(**settings), output_dir)
