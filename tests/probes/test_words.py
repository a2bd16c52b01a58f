from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from probelight.io.errors import RecordError
from probelight.probes.record import Record
from probelight.probes.words import (
    FUNCTION_WORDS,
    content_words,
    corpus_fit,
    read_unigrams,
    stem_of,
    stems_in,
    telling_words,
    words_of_records,
)


def test_content_words_leave_out_function_words_signs_and_the_mask() -> None:
    text = "A 21 year old person is [MASK] than me in age, If I'm a 35 year old person."
    assert content_words(text) == "21 year old person age 35 year old person".split()
    assert content_words("It was not hot, it's ALWAYS cold") == "not hot always cold".split()
    assert {"not", "always", "never", "older", "larger", "first"}.isdisjoint(FUNCTION_WORDS)
    assert content_words("21-year old: $3.50!") == ["21", "year", "old", "3", "50"]
    assert content_words("[MASK] of the [MASK]") == []
    assert content_words("I've, they'll, it's") == []


@pytest.mark.parametrize(
    ("words", "stem"),
    [
        ("poke pokes poked poking", "poke"),
        ("run runs running Running", "run"),
        ("hop hops hopped hopping", "hop"),
        ("hope hopes hoped hoping hopeful hopefulness", "hope"),
        ("pony ponies", "poni"),
        ("die dies", "die"),
        ("empty emptiness empties", "empti"),
        ("argue argued arguing", "argu"),
        ("at", "at"),
        ("Größe", "größe"),
        ("1990s", "1990s"),
        ("broke", "broke"),
    ],
)
def test_words_of_one_stem(words: str, stem: str) -> None:
    assert {stem_of(word) for word in words.split()} == {stem}


def test_function_words_tell_only_where_there_is_nothing_else() -> None:
    assert telling_words("look up the Words") == ["look", "words"]
    assert telling_words("have") == ["have"]
    assert stems_in("Words, worded: 東京!") == {"word", "東京"}


def test_words_of_records_count_stems_and_choices() -> None:
    record = Record("1", "A dog is a [MASK] dog.", ("big", "small"), 0)
    assert words_of_records([record, record]) == {"dog": 4, "big": 2, "small": 2}


@pytest.mark.parametrize("compressed", [False, True])
def test_counts_are_read_with_totals(tmp_path: Path, compressed: bool) -> None:
    text = "The\t10\nthe 5\ndog   4\n\nNew York\t1\n"
    path = tmp_path / "counts.txt.gz"
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    unigrams = read_unigrams(path, {"the", "dog", "cat"})
    assert unigrams.counts == {"the": 15, "dog": 4}
    assert (unigrams.num_tokens, unigrams.num_types) == (20, 4)
    fit = corpus_fit({"dog": 3, "cat": 1}, unigrams)
    assert fit.mean_log_probability == pytest.approx((3 * math.log(5 / 25) + math.log(1 / 25)) / 4)
    assert (fit.num_words, fit.num_unseen) == (4, 1)
    with pytest.raises(ValueError, match="no content words"):
        corpus_fit({}, unigrams)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"cat 3\n{line}\n", ":2: .* is not a word and its count")
        for line in ("dog", "a b", "a -1", "a 1_0", "a \u0661")
    ]
    + [("12\n", ":1: '12' is not a word"), ("\n", "the file has no word counts")],
)
def test_a_malformed_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "counts.txt"
    path.write_text(text)
    with pytest.raises(RecordError, match=rf"counts\.txt: ?{message}".replace(": ?:", ":")):
        read_unigrams(path, {"dog"})
