from __future__ import annotations

from probelight.build.dictionary_probe.entries import Distinct, Entry
from probelight.build.sources.gcide import Sense


def sense(word: str, definition: str) -> Sense:
    return Sense(word, "n", 1, definition, (), "1913 Webster")


def entry(word: str, definition: str) -> Entry:
    return Entry(f"{word}.n.1", word, "n", word, f"the {word} itself", definition)


def test_senses_that_the_dictionary_does_not_tell_apart() -> None:
    distinct = Distinct([sense("Sorrow", "Grief; sadness"), sense("Bank", "A mound; a ridge")])
    assert not distinct(entry("woe", "Sorrow; misery"), entry("moan", "A wail; grief"))
    assert distinct(entry("woe", "Sorrow; misery"), entry("moan", "A wail; a howl"))
    # Another word's definition that gives this word, or a synonym of it.
    assert not distinct(entry("ridge", "Raised land"), entry("dike", "A wall; bank"))
    # Two senses of one word must not share a content word; of two words they may share some.
    first = "The line at which two bodies are joined to each other"
    assert not distinct(entry("seam", first), entry("seam", "A joint union of nations and kings"))
    assert distinct(entry("seam", first), entry("league", "A joint union of nations and kings"))
