from __future__ import annotations

import re
from typing import Any

from probes.build.wordnet_qa import answer_text, related_sets, wordnet_probe
from probes.record import Record
from probes.sources.wordnet import ancestors, descendants

SIZES = {"test": 2, "train": 4}


def glosses(texts: tuple[str, ...]) -> list[str]:
    return [re.sub(r".*defined as '(.*)'", r"\1", text) for text in texts]


def by_gloss(wordnet: Any) -> dict[str, Any]:
    return {synset.definition(): synset for synset in wordnet.all_synsets()}


def every(probe: dict[str, list[Record]]) -> list[Record]:
    return [record for rows in probe.values() for record in rows]


def test_answers_of_taxonomy_questions_carry_words_and_gloss(tiny_wordnet: Any) -> None:
    dog, run = tiny_wordnet.synset("dog.n.01"), tiny_wordnet.synset("run.v.01")
    expected = "dog (or domestic dog), defined as 'an animal that barks'"
    assert answer_text("hypernymy", dog) == expected
    assert answer_text("hyponymy", run) == "run event, defined as 'go fast on foot'"
    assert answer_text("definitions", dog) == "an animal that barks"


def test_distractor_sets_of_the_paper(tiny_wordnet: Any) -> None:
    dog = tiny_wordnet.synset("dog.n.01")
    sets = {
        (d.kind, d.hops): [s.name()[:-5] for s in d.synsets]
        for d in related_sets("definitions", dog)
    }
    assert sets == {
        ("sister", 1): ["cat", "horse"],
        ("hyponym", 1): ["poodle", "hound"],
        ("hypernym", 1): ["mammal"],
        ("hypernym", 2): ["animal"],
        ("hypernym", 3): ["entity"],
    }
    assert {d.kind for d in related_sets("hypernymy", dog)} == {"sister", "hyponym"}
    assert {d.kind for d in related_sets("hyponymy", dog)} == {"sister", "hypernym"}


def test_hypernymy_golds_are_above_and_distractors_never_are(tiny_wordnet: Any) -> None:
    synset_of = by_gloss(tiny_wordnet)
    records = every(wordnet_probe("hypernymy", tiny_wordnet, SIZES, seed=1))
    assert len(records) == 6
    for record in records:
        concept = tiny_wordnet.synset(record.meta["cluster"])
        above = {s.name(): hops for hops, s in ancestors(concept)}
        names = [synset_of[gloss].name() for gloss in glosses(record.choices)]
        assert above.pop(names[record.answer]) == record.meta["hops"]
        wrong = [name for i, name in enumerate(names) if i != record.answer]
        assert len(set(wrong)) == 4
        assert not {*above, concept.name()} & set(wrong)
        assert record.meta["source"] == "wordnet"


def test_hyponymy_golds_are_below_and_distractors_never_are(tiny_wordnet: Any) -> None:
    synset_of = by_gloss(tiny_wordnet)
    records = every(wordnet_probe("hyponymy", tiny_wordnet, {"test": 3}, seed=1))
    for record in records:
        concept = tiny_wordnet.synset(record.meta["cluster"])
        below = {s.name() for _, s in descendants(concept)}
        names = [synset_of[gloss].name() for gloss in glosses(record.choices)]
        assert [name in below for name in names].count(True) == 1
        assert names[record.answer] in below


def test_definitions_ask_for_the_gloss_of_the_concept(tiny_wordnet: Any) -> None:
    for record in every(wordnet_probe("definitions", tiny_wordnet, SIZES)):
        concept = tiny_wordnet.synset(record.meta["cluster"])
        assert record.gold == concept.definition()
        assert concept.examples()[0] in record.stem
        assert len(set(record.choices)) == 5


def test_splits_share_no_concept_and_the_seed_decides(tiny_wordnet: Any) -> None:
    probe = wordnet_probe("definitions", tiny_wordnet, SIZES)
    clusters = [{r.meta["cluster"] for r in rows} for rows in probe.values()]
    assert not clusters[0] & clusters[1]
    assert probe == wordnet_probe("definitions", tiny_wordnet, SIZES)
    assert probe != wordnet_probe("definitions", tiny_wordnet, SIZES, seed=5)
