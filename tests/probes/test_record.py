from __future__ import annotations

import pytest

from probelight.io.errors import RecordError
from probelight.probes.record import Record, Setup, group_of, validate


def test_a_record_knows_its_gold_and_a_name_of_its_own() -> None:
    record = Record("x", "Is it [MASK]?", ("a", "b"), 1, {"hops": 2}, 7)
    assert (record.gold, record.name, record.where) == ("b", "x@7", "x@7")
    pair = Record("x", "", ("Cats sleep.", "Cats sleeps."), 0)
    assert (validate(record, "mc_mlm"), validate(pair, "minimal_pair")) == (record, pair)
    read = Record("x", "Is it [MASK]?", ("a", "b"), 1, {"hops": 2}, 7, "my/file.jsonl")
    assert (read.where, read.name, read) == ("my/file.jsonl:7", "x@7", record)
    assert hash(record) == hash(Record("x", "Is it [MASK]?", ("a", "b"), 1, {}, 7))


@pytest.mark.parametrize(
    ("setup", "stem", "choices", "answer", "message"),
    [
        ("mc_mlm", "[MASK]", ("a",), 0, r"1 choice\(s\)"),
        ("mc_mlm", "[MASK]", ("a", "b"), 2, "the answer 2 is not one of 2 choices"),
        ("mc_mlm", "[MASK]", ("a", "b"), -1, "the answer -1"),
        (None, "", ("Cats sleep.", "Cats sleeps."), 0, "the stem is empty"),
        ("minimal_pair", "Cats", ("sleep.", "sleeps."), 0, "but this one has .* 'Cats'"),
        ("minimal_pair", "", ("Cats sleep.",), 0, r"1 sentence\(s\)"),
        ("minimal_pair", "", ("Cats sleep", "Cats sleep "), 0, "twice: 'Cats sleep'"),
    ],
)
def test_a_malformed_record_is_refused(
    setup: Setup | None, stem: str, choices: tuple[str, ...], answer: int, message: str
) -> None:
    with pytest.raises(RecordError, match=message):
        validate(Record("x", stem, choices, answer), setup)


def test_records_of_the_same_arguments_or_stem_are_a_group() -> None:
    a = Record("1", "A 15 is [MASK] than 16", ("x", "y"), 0, {"arguments": ("15", "16")})
    b = Record("2", "A 16 is [MASK] than 15", ("x", "y"), 1, {"arguments": ["16", "15"]})
    assert group_of(a, "arguments") == group_of(b, "arguments")
    assert group_of(a, "stem") != group_of(b, "stem")
    repeated = Record("3", "a 15  is [MASK] than 16 ", ("p", "q"), 0)
    assert group_of(a, "stem") == group_of(repeated, "stem") == group_of(repeated, "arguments")
    assert group_of(a, None) != group_of(b, None)
    assert group_of(a, None) == group_of(Record("1", a.stem, a.choices, 0, {}, 9), None)
    with pytest.raises(RecordError, match=r"1@0: the item has no `cluster`"):
        group_of(a, "cluster")


@pytest.mark.parametrize("hops", ["1_0", True, 2.5, "\u0661"])
def test_hops_are_whole_numbers(hops: object) -> None:
    with pytest.raises(RecordError, match=r"`hops` in `notes` is .*; a whole number is needed"):
        validate(Record("x", "Is it [MASK]?", ("a", "b"), 1, {"hops": hops}))
