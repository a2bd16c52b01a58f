"""Up to where a causal model reads a stem, and which entries its candidates are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transformers import AutoTokenizer

from probelight.encoding.stem import StemEncoder
from probelight.probes.record import Record

Folder = Callable[[str], Path]


def test_a_stem_is_read_up_to_its_blank_or_with_the_blank_written_out(
    causal_folder: Folder,
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(causal_folder("gpt2"))
    records = [
        Record("1", "a cat is  [MASK] than a dog .", ("larger", "smaller"), 1),
        Record("2", "a dog is [MASK] .", (), 0),
        Record("3", "[MASK] dog is larger", ("a", "the"), 0),
    ]
    for blank, texts in (
        (None, ("a cat is", "a dog is", "<s>")),
        ("___", ("a cat is  ___ than a dog .", "a dog is ___ .", "___ dog is larger")),
    ):
        encoder = StemEncoder(tokenizer, blank=blank)
        batch = encoder.encode(records).collate(range(3))
        for ids, mask, place, text in zip(
            batch["input_ids"], batch["attention_mask"], batch["place"], texts, strict=True
        ):
            assert ids[mask == 1].tolist() == tokenizer(text)["input_ids"]
            assert int(place) == int(mask.sum()) - 1
        exists = [[True, True], [False, False], [True, True]]
        assert batch["choice_mask"].tolist() == exists


def test_what_cannot_be_looked_up_is_skipped_and_what_is_too_long_is_cut(
    causal_folder: Folder,
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(causal_folder("gpt2"))
    split = Record("1", "a cat is [MASK] .", ("larger", "zzqq"), 0)
    encoded = StemEncoder(tokenizer, max_length=2).encode([split, Record("2", "a cat is", (), 0)])
    assert (encoded.kept, [one.position for one in encoded.skipped]) == ([1], [0])
    assert encoded.notices == (
        "of 1 of 2 stems only the last 2 tokens are read",
        "1 of 2 records were skipped, because a candidate is not one vocabulary item: 1@0",
    )
    assert encoded.collate([0])["input_ids"].tolist() == [tokenizer(" cat is")["input_ids"]]
    # With the blank written out nothing is looked up.
    assert StemEncoder(tokenizer, blank="___").encode([split]).kept == [0]
