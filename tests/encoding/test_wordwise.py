from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from probelight.encoding.likelihood import LikelihoodEncoder
from probelight.encoding.wordwise import WordwiseEncoder, word_ends
from probelight.probes.record import Record

MakeTokenizer = Callable[..., Any]


def hidden(tokenizer: Any, record: Record, **options: Any) -> list[list[str]]:
    """Of each choice's tokens, the tokens that are masked when it is scored."""
    batch = WordwiseEncoder(tokenizer, **options).encode([record]).collate([0])
    found = []
    for row in batch["pair_index"][0].tolist():
        for place in batch["answer_mask"][row].nonzero()[:, 0].tolist():
            ids = batch["input_ids"][row, place : batch["masked_until"][row, place]]
            found.append(tokenizer.convert_ids_to_tokens(ids.tolist()))
    return found


def test_the_later_pieces_of_a_word_are_masked_with_a_piece(make_tokenizer: MakeTokenizer) -> None:
    record = Record("a", "the [MASK] is .", ("small antelope", "dog"), 0)
    assert hidden(make_tokenizer("wordpiece"), record)[-4:] == [
        ["ante", "##lo", "##pe"],
        ["##lo", "##pe"],
        ["##pe"],
        ["dog"],
    ]


def test_a_piece_of_the_word_behind_the_answer_is_masked_too(make_tokenizer: MakeTokenizer) -> None:
    record = Record("a", "the [MASK]pe", ("antelo", "antelo"), 0)
    assert hidden(make_tokenizer("wordpiece"), record)[0] == ["ante", "##lo", "##pe"]
    tokens = LikelihoodEncoder(make_tokenizer("wordpiece")).num_tokens([record])
    assert tokens == [[2, 2]] == WordwiseEncoder(make_tokenizer("wordpiece")).num_tokens([record])


def test_what_is_cut_off_is_not_masked(make_tokenizer: MakeTokenizer) -> None:
    record = Record("a", "the the the the [MASK] of of of", ("antelope", "dog"), 0)
    tokenizer = make_tokenizer("wordpiece")
    assert hidden(tokenizer, record, max_length=6)[:3] == hidden(tokenizer, record)[:3]
    inside = Record("a", "the the the the [MASK]pe", ("antelo", "dog"), 0)
    assert hidden(tokenizer, inside, max_length=4)[0] == ["ante", "##lo"]


def test_a_space_ends_a_word_where_the_tokenizer_counts_a_text_as_one() -> None:
    pieces = ["<unk>", "<pad>", "▁a", "▁red", "▁do", "g"]
    base = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0))
    base.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=base, unk_token="<unk>", pad_token="<pad>", mask_token="<pad>"
    )
    assert set(tokenizer("a red dog", add_special_tokens=False).word_ids()) == {0}
    record = Record("a", "a [MASK]", ("red dog", "a"), 0)
    assert hidden(tokenizer, record) == [["▁red"], ["▁do", "g"], ["g"], ["▁a"]]


@pytest.mark.parametrize(
    ("words", "ends"),
    [([0, 0, 1], [2, 2, 3]), ([None, None, 0], [1, 2, 3]), ([0, 0, 0], [2, 2, 3])],
)
def test_words_end_where_the_tokenizer_says_or_a_space_is(
    words: list[int | None], ends: list[int]
) -> None:
    assert word_ends("ab c", [(0, 1), (1, 2), (3, 4)], words) == ends
    assert word_ends("", [], []) == []


def test_no_records_are_no_texts(make_tokenizer: MakeTokenizer) -> None:
    assert len(WordwiseEncoder(make_tokenizer("wordpiece")).encode([])) == 0
