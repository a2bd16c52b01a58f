from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from probelight import cli
from probelight.builders.builder import write_probe
from probelight.builders.catalogue import builder_of
from probelight.builders.hygiene import check_records, check_splits
from probelight.builders.wordnet_probes.builders import WordNetSettings, build_wordnet
from probelight.builders.wordnet_probes.graph import read_graph
from probelight.builders.wordnet_probes.questions import Kind, answer_text
from probelight.probes.record import Record
from tests.fixtures.wordnet import NOUNS, write_wordnet

KINDS: tuple[Kind, ...] = ("definitions", "synonymy", "hypernymy", "hyponymy")
SIZES = {"train_items": 4, "dev_items": 4, "test_items": 4, "num_concepts": 40}


def built(kind: Kind, folder: Path, **settings: Any) -> dict[str, list[Record]]:
    chosen = WordNetSettings(wordnet_dir=str(folder), **{**SIZES, **settings})
    return build_wordnet(kind, chosen)


@pytest.mark.parametrize("kind", ["definitions", "hypernymy", "hyponymy"])
def test_items_are_what_their_notes_say(
    kind: Kind, tiny_wordnet_dir: Path, tiny_wordnet: Any
) -> None:
    probe = built(kind, tiny_wordnet_dir, all=True)
    records = [record for split in probe.values() for record in split]
    assert len(records) > 8
    for record in records:
        notes = record.meta
        concept = tiny_wordnet.synset(notes["gold_synset"])
        source, gold = notes["chain"].replace("<=", "=>").split("=>")
        assert source == concept.name()
        gold = tiny_wordnet.synset(gold)
        assert gold.definition() in record.gold
        assert f"'{notes['surface_form']}'" in record.stem
        upper, lower = (gold, concept) if kind == "hypernymy" else (concept, gold)
        assert lower.shortest_path_distance(upper) == notes["hops"]
        wrong = [*notes["other_distractors"], *notes["random_distractors"]]
        assert len(record.choices) == 5
        assert len({*wrong, gold.name()}) == 5
        for name in wrong:
            distractor = tiny_wordnet.synset(name)
            assert any(distractor.definition() in text for text in record.wrong)
            closure = {node for path in distractor.hypernym_paths() for node in path}
            above = {node for path in concept.hypernym_paths() for node in path}
            assert distractor not in (above if kind == "hypernymy" else {concept})
            assert kind != "hyponymy" or concept not in closure
        for name in notes["other_distractors"]:
            distance = concept.shortest_path_distance(tiny_wordnet.synset(name))
            extra = notes["distractor_type"] == "sister"
            assert distance == notes["distractor_hops"] + extra
        assert ("distractor_hops" in notes) == (notes["distractor_type"] != "random")
    assert {record.meta["distractor_type"] for record in records} > {"random"}


def test_golds_and_distractors_never_lie_in_two_splits(tiny_wordnet_dir: Path) -> None:
    for seed in range(3):
        probe = built(
            "hypernymy", tiny_wordnet_dir, seed=seed, train_items=3, test_items=3, all=True
        )
        assert all(len(records) > 1 for records in probe.values())
        assert check_splits(probe) == []
        assert [finding for records in probe.values() for finding in check_records(records)] == []


def test_settings_bound_what_is_asked(tiny_wordnet_dir: Path) -> None:
    probe = built("hypernymy", tiny_wordnet_dir, max_hops=1, sister_depth=1, perturbations=1)
    records = [record for split in probe.values() for record in split]
    assert {record.meta["hops"] for record in records} == {1}
    assert {record.meta.get("distractor_hops", 1) for record in records} == {1}
    assert len({record.stem for record in records}) == len(records)


def test_answers_as_the_paper_writes_them(tiny_wordnet_dir: Path) -> None:
    graph = read_graph(tiny_wordnet_dir)
    dog, run = (graph.concepts[graph.senses[word][0]] for word in ("dog", "run"))
    expected = "dog (or domestic dog), defined as 'an animal that barks'"
    assert answer_text("hypernymy", dog) == expected
    assert answer_text("hyponymy", run) == "run event, defined as 'go fast on foot'"
    assert answer_text("synonymy", dog) == "dog, domestic dog"
    assert answer_text("definitions", dog) == "an animal that barks"


@pytest.mark.thorough
def test_all_four_at_once_are_the_bytes_of_each_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (wordnet_dir := tmp_path / "wordnet").mkdir()
    lines = NOUNS.strip().splitlines()
    two_words = "\n".join(f"{line.split()[0].split(',')[0]},z{line}" for line in lines)
    write_wordnet(wordnet_dir, two_words)
    line = ["probes", "build", "wordnet_qa", f"--wordnet_dir={wordnet_dir}", "--all=true"]
    line += ["--train_items=1", "--test_items=1"]
    assert cli.main([*line, f"--output_dir={tmp_path / 'beside'}"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 20
    assert cli.main([*line, "--num_processes=1", f"--output_dir={tmp_path / 'after'}"]) == 0
    for name in KINDS:
        builder = builder_of(name)
        args = builder.settings(wordnet_dir=str(wordnet_dir), train_items=1, test_items=1, all=True)
        for path in write_probe(builder, args, tmp_path / "alone"):
            file = path.relative_to(tmp_path / "alone")
            assert path.read_bytes() == (tmp_path / "beside" / file).read_bytes()
            assert path.read_bytes() == (tmp_path / "after" / file).read_bytes()
    card = (tmp_path / "beside" / "definitions" / "README.md").read_text()
    assert "WordNet 3.0" in card
    assert str(wordnet_dir) not in card


# Of "poke" the first gloss has the word, the second a form of it, the third a word made of it.
POKES = """
entity | | what there is
act | entity | what one does; "an act of will"
poke | act | a push with a finger; "he gave her a poke"
jab | poke | a sharp poke; "a jab in the ribs"
nudge | poke | poking with the elbow; "a nudge woke him"
thump | poke | a blow of the fist; "a thump on the back"
slap | poke | a blow of the hand; "a slap in the face"
throw | act | a cast of the arm; "a throw of the dice"
kick | act | a blow of the foot; "a kick in the shin"
stab | act | a cut by a knife, like a poke; "a stab in the dark"
leap | act | a spring into the air; "a leap of faith"
walk | act | a stroll on foot; "a walk in the park"
swim | act | a bath in the sea; "a swim before lunch"
climb | act | a way up; "a climb to the top"
"""


def test_no_answer_repeats_the_asked_word(tmp_path: Path) -> None:
    write_wordnet(tmp_path, POKES)
    probe = built("hyponymy", tmp_path, train_items=1, test_items=1, all=True, questions=9)
    records = [record for split in probe.values() for record in split]
    of_poke = [record for record in records if record.meta["gold_synset"] == "poke.n.01"]
    assert {record.gold.split(",")[0] for record in of_poke} <= {"thump", "slap"}
    assert of_poke
    assert not [text for record in of_poke for text in record.choices if "pok" in text]


def test_sets_of_distractors_are_drawn_again_from_the_same_relatives(tmp_path: Path) -> None:
    write_wordnet(tmp_path, POKES)
    settings = {"train_items": 2, "test_items": 1, "all": True}
    for most in (2, 8):
        probe = built("definitions", tmp_path, **settings, perturbations=most)
        by_stem: dict[str, list[Record]] = {}
        for record in probe["dev"]:
            by_stem.setdefault(record.stem, []).append(record)
        assert max(map(len, by_stem.values())) == most
        for records in by_stem.values():
            assert len({frozenset(record.wrong) for record in records}) == len(records)
    wide = built("definitions", tmp_path, **settings, train_perturbations=2)["train"]
    assert len({record.stem for record in wide}) == 1


def test_items_of_one_right_answer_are_limited(tiny_wordnet_dir: Path) -> None:
    def most_items(**settings: Any) -> int:
        probe = built("hypernymy", tiny_wordnet_dir, all=True, perturbations=2, **settings)
        return max(n for rows in probe.values() for n in Counter(r.gold for r in rows).values())

    assert most_items() > 3
    assert [most_items(answer_items=limit) for limit in (3, 2, 1)] == [3, 2, 1]
