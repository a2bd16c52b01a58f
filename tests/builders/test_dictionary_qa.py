from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from probelight.builders.dictionary_entries import check_senses
from probelight.builders.dictionary_qa import DictionarySettings, build_dictionary
from probelight.builders.hygiene import check_records, check_splits
from probelight.probes.record import Record

# Invented words of invented meanings, which share nothing: two senses of each third one.
COLOURS = (
    "amber bronze coral dusky ebony frosty golden hazel ivory jade khaki lilac mauve navy ochre "
    "pearl quartz ruby silver teal umber violet white yellow"
).split()
THINGS = (
    "anvil bucket candle dagger engine funnel goblet hammer inkwell jacket kettle ladder mirror "
    "needle orchard pillow quiver ribbon saddle tablet urchin vessel wagon zither"
).split()
MEANINGS = [f"Some {colour} {noun}" for colour, noun in zip(COLOURS, THINGS, strict=True)]
WORDS = [
    "blorp", "crundle", "drimp", "flisk", "gromble", "hesk", "jilt", "klop", "murn", "nosk",
    "plim", "quosh", "rilk", "smurf", "tronk", "vask", "wimbo", "yerk",
]  # fmt: skip
SENSES = list(zip(WORDS, MEANINGS, strict=False))
SENSES += list(zip(WORDS[::3], MEANINGS[len(WORDS) :], strict=True))
WORD_OF = {meaning: word for word, meaning in SENSES}
SIZES = {"train_items": 7, "dev_items": 5, "test_items": 5}


@pytest.fixture
def gnu(tmp_path: Path) -> Path:
    page = "".join(
        f"<p><ent>{word.title()}</ent><br/\n<hw>{word.title()}</hw>, <pos>n.</pos> <def>{meaning}; "
        f"<as>as, a <ex>{word}</ex> number {n}</as>.</def> <def>A leak without a usage, {n}.</def>"
        f"<br/\n[<source>1913 Webster</source>]</p>\n"
        for n, (word, meaning) in enumerate(SENSES)
    )
    (tmp_path / "CIDE.A").write_text(page)
    return tmp_path


@pytest.fixture
def dictd(tmp_path: Path) -> Path:
    page = "".join(
        f"{word.title()} \\{word.title()}\\, n.\n   {meaning}; as, a {word} number {n}.\n"
        f"   [1913 Webster]\n\n"
        for n, (word, meaning) in enumerate(SENSES)
    )
    path = tmp_path / "gcide.dict"
    path.write_text(page, encoding="latin-1")
    return path


def built(path: Path, **settings: Any) -> dict[str, list[Record]]:
    return build_dictionary(DictionarySettings(gcide_path=str(path), **{**SIZES, **settings}))


def test_questions_are_what_their_notes_say(gnu: Path) -> None:
    probe = built(gnu)
    assert [len(records) for records in probe.values()] == [*SIZES.values()]
    senses = Counter[int]()
    for record in (record for records in probe.values() for record in records):
        notes = record.meta
        word = notes["word"]
        usage = record.stem.split("'")[1]
        number = int(usage.rpartition(" ")[2])
        assert SENSES[number] == (word, record.gold)
        assert f"'{word}'" in record.stem
        of_word = [text for text in record.wrong if WORD_OF[text] == word]  # all have a usage
        assert len(of_word) == len(notes["other_distractors"]) == notes["sense_choices"] - 1
        assert len(notes["random_distractors"]) == 4 - len(of_word)
        assert notes["cluster"] == word == notes["gold_synset"].partition(".")[0]
        senses[notes["sense_choices"]] += 1
    assert senses[2] == 6  # every word of two senses is asked about, with the other one as a choice
    assert max(senses) == 2


def test_splits_share_no_word_and_no_definition(gnu: Path) -> None:
    for seed in range(3):
        probe = built(gnu, seed=seed, questions=2, train_items=6)
        assert check_splits(probe) == []
        texts = [{t for r in records for t in r.choices} for records in probe.values()]
        assert sum(map(len, texts)) == len(set().union(*texts))
        for records in probe.values():
            assert [*check_records(records), *check_senses(records)] == []


def test_both_forms_of_the_dictionary_make_the_same_questions(gnu: Path, dictd: Path) -> None:
    questions = [
        [(r.stem, r.choices, r.answer) for records in built(path).values() for r in records]
        for path in (gnu, dictd)
    ]
    assert questions[0] == questions[1]
