from __future__ import annotations

from pathlib import Path
from typing import Any

from probelight.builders.sources.gcide import Sense
from tools.documents import (
    gcide_documents,
    read_remarks,
    remark_documents,
    with_article,
    wordnet_documents,
)

PAGE = r"""
Gift \Gift\, n. [OE. gift, yift, fr. gifan to give.]
   1. Anything given; a present; an
      offering.
      [1913 Webster]

            Shall I receive by gift, what of my own, . . .
            I can command ?                       --Milton.
      [1913 Webster]

   {Gift rope} (Naut), a rope extended to a boat for towing it;
      [1913 Webster]

gifted \gifted\ adj. [Cf. See {gift}[4].]
   1. having unusual talent in some field.
   [PJC]
"""


def test_words_get_the_article_of_their_sound() -> None:
    assert [*map(with_article, ("ferry", "apple", "Paris"))] == ["a ferry", "an apple", "Paris"]


def test_one_document_a_synset(tiny_wordnet: Any) -> None:
    documents = {d.key: d for d in wordnet_documents(tiny_wordnet)}
    assert len(documents) == 21 + 3 + 2
    dog = documents["dog.n.01"]
    assert dog.source == "wordnet"
    assert dog.sentences[:2] == (
        "dog , domestic dog : an animal that barks",
        "the dogs barked all night",
    )
    assert "dog , also called domestic dog" in dog.sentences
    ending = "a type of mammal , that is , an animal that feeds milk to its young"
    assert any(sentence.endswith(ending) for sentence in dog.sentences)
    assert len(set(dog.sentences)) == len(dog.sentences)
    run = documents["run.v.01"].sentences
    assert "to run is to move in some way" in run
    hot = documents["hot.a.01"].sentences
    assert "hot is not cold ; cold is the opposite of hot" in hot
    hen = " ".join(documents["hen.n.01"].sentences)
    assert "an owl" in hen  # under its parent a hen has two cousins, and both are told
    assert "a duck" in hen


def test_every_relation_adds_to_the_same_sentences(tiny_wordnet: Any) -> None:
    few = {d.key: d for d in wordnet_documents(tiny_wordnet)}
    for document in wordnet_documents(tiny_wordnet, every_relation=True):
        sentences = few[document.key].sentences
        assert document.sentences[: len(sentences)] == sentences
        assert document.words == few[document.key].words
        few[document.key] = document
    assert few["dog.n.01"].words == ("dog", "domestic dog")
    mammal = few["mammal.n.01"].sentences
    assert any("dog is a" in s and s.endswith(" of mammal") for s in mammal) or any(
        s.startswith("one kind of mammal is a") for s in mammal
    )
    assert "dog , a type of mammal : an animal that barks" in mammal
    move = few["move.v.01"].sentences
    assert "to move : for example to run" in move


def test_the_text_is_a_function_of_the_seed(tiny_wordnet: Any) -> None:
    first, again, reseeded = (list(wordnet_documents(tiny_wordnet, seed)) for seed in (3, 3, 4))
    assert first == again != reseeded


def test_one_document_a_headword() -> None:
    senses = [
        Sense("Gift", "n", 1, "A present", ("the gift of wit",), "1913 Webster"),
        Sense("Gift", "v", 2, "To endow", (), "1913 Webster"),
        Sense("Go", "v", 1, "To move", (), "1913 Webster"),
    ]
    gift, go = gcide_documents(iter(senses))
    assert (gift.key, gift.source) == ("gift", "gcide")
    assert gift.sentences == ("Gift : A present", "the gift of wit", "Gift : To endow")
    assert go.sentences == ("Go : To move",)


def test_remarks_are_what_is_no_sense_of_a_headword(tmp_path: Path) -> None:
    page = tmp_path / "gcide.dict"
    page.write_text(PAGE)
    assert [*read_remarks(page)] == [
        ("Gift", "Shall I receive by gift, what of my own, . . . I can command ?"),
        ("Gift", "Gift rope (Naut), a rope extended to a boat for towing it"),
    ]
    assert [*read_remarks(page, source="PJC")] == []


def test_one_document_of_remarks_a_headword() -> None:
    remarks = [("Gift", "Gift rope, a rope"), ("Gift", "He gave it"), ("Go", "Go to, come")]
    gift, go = remark_documents(iter(remarks))
    assert (gift.key, gift.words) == ("gift", ("Gift",))
    assert gift.sentences == ("Gift : Gift rope, a rope", "Gift : He gave it")
    assert go.sentences == ("Go : Go to, come",)
