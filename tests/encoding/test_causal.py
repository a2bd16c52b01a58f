"""Texts that a causal model scores to their end, and stems that it continues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from probelight.encoding.causal import ContinuationEncoder, StemEncoder
from probelight.encoding.packed import PackedSet
from probelight.io.errors import RecordError
from probelight.probes.record import Record


def tokenizer_of(with_bos: bool = False, **names: str) -> Any:
    """A token a letter; a space belongs to the letter behind it, and `xy` is one token."""
    letters = list("abcdefgxy.\u00e9")
    words = ["<s>", "</s>", "<unk>", "xy", " xy", *letters, *(f" {c}" for c in letters)]
    base = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    base.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s?(xy|\S)"), "isolated")
    if with_bos:
        base.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
        )
    return PreTrainedTokenizerFast(tokenizer_object=base, unk_token="<unk>", **names)


NAMES = {"bos_token": "<s>", "eos_token": "</s>"}
TOKENIZER = tokenizer_of(**NAMES)


def scored(encoded: PackedSet, tokenizer: Any = TOKENIZER) -> list[tuple[list[str], list[str]]]:
    """What is before and what is scored of each text, as tokens."""
    pairs = []
    for text in encoded.texts:
        tokens = tokenizer.convert_ids_to_tokens(encoded.template.assemble(text.ids)[0].tolist())
        first = len(encoded.template.special_ids[0]) + text.begin
        assert text.end == len(text.ids)
        pairs.append((tokens[:first], tokens[first:]))
    return pairs


@pytest.mark.parametrize(
    ("stem", "choice", "context", "continuation"),
    [
        ("a b [MASK] c.", "d", ["a", " b"], [" d", " c", "."]),
        ("a b", " d e ", ["a", " b"], [" d", " e"]),
        ("a b ", "d", ["a", " b"], [" d"]),
        ("[MASK] c", "d", ["<s>"], ["d", " c"]),
        ("  [MASK] c", "d", ["<s>"], ["d", " c"]),
        ("", "a d", ["<s>"], ["a", " d"]),
        ("a x[MASK] c", "y", ["a"], [" xy", " c"]),  # a token that straddles the boundary
        ("x[MASK]", "y", ["<s>"], ["xy"]),
        ("a [MASK] \u00e9", "\u00e9", ["a"], [" \u00e9", " \u00e9"]),
        ("a [MASK] [MASK] b", "c", ["a"] + ["<unk>"] * 6, [" c", " b"]),
    ],
)
def test_the_end_of_a_text_is_scored(
    stem: str, choice: str, context: list[str], continuation: list[str]
) -> None:
    record = Record("1", stem, (choice,), 0)
    encoder = ContinuationEncoder(TOKENIZER)
    assert scored(encoder.encode([record])) == [(context, continuation)]
    assert encoder.num_tokens([record]) == [[len(continuation)]]


def test_of_special_tokens_those_at_the_beginning_are_kept() -> None:
    tokenizer = tokenizer_of(with_bos=True, **NAMES)
    records = [Record("1", "a b", ("c",), 0), Record("2", "", ("c d",), 0)]
    assert scored(ContinuationEncoder(tokenizer).encode(records), tokenizer) == [
        (["<s>", "a", " b"], [" c"]),
        (["<s>"], ["c", " d"]),
    ]
    without_bos = ContinuationEncoder(tokenizer_of(eos_token="</s>")).encode(records[1:])
    assert scored(without_bos) == [(["</s>"], ["c", " d"])]


@pytest.mark.parametrize(
    ("tokenizer", "max_length", "stem", "choice", "message"),
    [
        (tokenizer_of(), 256, "", "a", "neither a BOS nor an EOS token"),
        (
            TOKENIZER,
            2,
            "a b c d",
            "e f",
            r"1@0: the choice .* have 2 tokens, more than max_length=2",
        ),
        (TOKENIZER, 256, "", "", "has no tokens"),
    ],
)
def test_a_text_that_cannot_be_scored_is_refused(
    tokenizer: Any, max_length: int, stem: str, choice: str, message: str
) -> None:
    with pytest.raises(RecordError, match=message):
        ContinuationEncoder(tokenizer, max_length).encode([Record("1", stem, (choice,), 0)])


def test_the_beginning_is_cut_and_never_what_is_scored() -> None:
    record = Record("1", "a b c d", ("e f",), 0)
    short, long = (ContinuationEncoder(TOKENIZER, n).encode([record]) for n in (3, 5))
    assert scored(short) == [([" d"], [" e", " f"])]
    assert scored(long) == [([" b", " c", " d"], [" e", " f"])]
    assert "1 of 1 texts were cut to 3" in short.notices[0]
    with_bos = tokenizer_of(with_bos=True, **NAMES)
    cut = ContinuationEncoder(with_bos, 5).encode([record])
    assert scored(cut, with_bos) == [(["<s>", " c", " d"], [" e", " f"])]
    unknown = ContinuationEncoder(TOKENIZER).encode([Record("1", "a", ("\U0001f642",), 0)])
    assert "1 of 1 answers contain text that the tokenizer does not know" in unknown.notices[0]


Folder = Callable[[str], Path]


def test_what_cannot_be_looked_up_is_skipped_and_what_is_too_long_is_cut(
    causal_folder: Folder,
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(causal_folder("gpt2"))
    split = Record("1", "a cat is [MASK] .", ("larger", "zzqq"), 0)
    encoded = StemEncoder(tokenizer, max_length=2).encode([split, Record("2", "a cat is", (), 0)])
    assert (encoded.positions, [item.position for item in encoded.skipped]) == ([1], [0])
    assert encoded.notices == (
        "1 of 2 stems were cut to their last 2 tokens",
        "1 of 2 records were skipped, because a candidate is not one vocabulary item: 1@0",
    )
    assert encoded.collate([0])["input_ids"].tolist() == [tokenizer(" cat is")["input_ids"]]
    # With the blank written out nothing is looked up.
    assert StemEncoder(tokenizer, blank="___").encode([split]).positions == [0]


def test_white_space_behind_the_blank_is_said_to_be_scored() -> None:
    stems = {"1": "the [MASK] . ", "2": "the [MASK] .", "3": "the end "}
    records = [Record(name, stem, ("dog", "cat"), 0) for name, stem in stems.items()]
    notices = ContinuationEncoder(TOKENIZER).encode(records).notices
    [notice] = [notice for notice in notices if "behind the blank" in notice]
    assert notice.startswith("1 of 3 sentences end in white space behind the blank")
    assert records[0].where in notice
    plain = ContinuationEncoder(TOKENIZER).encode(records[1:2]).notices
    assert not any("behind the blank" in notice for notice in plain)
