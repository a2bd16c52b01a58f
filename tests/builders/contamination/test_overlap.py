from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from probelight.builders.contamination import overlap
from probelight.builders.contamination.grams import item_text, probe_grams, split_words
from probelight.builders.contamination.overlap import (
    Overlap,
    Scan,
    scan_records,
    scan_text,
    shared_concepts,
)
from probelight.io import files
from probelight.io.errors import RecordError
from probelight.probes.record import Record


def question(stem: str, gold: str, number: int = 1) -> Record:
    return Record(str(number), stem, (gold, "zzz"), 0)


def overlaps(
    records: Sequence[Record],
    blocks: Sequence[Sequence[str]],
    size: int = 3,
    most_groups: int = 10,
    groups: Sequence[int] | None = None,
) -> list[Overlap]:
    grams = probe_grams(records, groups or range(len(records)), size, most_groups)
    scan, fed = Scan(grams), 0
    for words in blocks:
        begin = fed
        scan.feed(words, lambda position, begin=begin: str(begin + position))  # type: ignore[misc]
        fed += len(words)
    return scan.overlaps()


def test_stem_and_answer_by_hand() -> None:
    # Trigrams: abc bcd of the stem, cde def with the answer "e f".
    item = question("A b, c d", "E-f")
    [overlap] = overlaps([item], ["x b c d e y".split()])
    assert overlap == Overlap(2 / 4, 1 / 2, 1 / 2, 4, "b c d e", "1")
    [overlap] = overlaps([item], ["a b c".split(), "x c d e f".split()])
    assert overlap == Overlap(3 / 4, 1 / 2, 1.0, 4, "c d e f", "4")
    [overlap] = overlaps([item], ["a b".split(), ["c"], ["d", "e"], ["f", "g"]])
    assert (overlap.share, overlap.longest, overlap.piece) == (1.0, 6, "a b c d e f")


def test_the_answer_stands_in_the_masks_place() -> None:
    item = Record("1", "A b c [MASK] d e.", ("x", "y"), 1)
    [overlap] = overlaps([item], ["a b c".split(), "c y d e".split()])
    # Trigrams: abc; bcy cyd yde. The stem's other part is too short for one.
    assert overlap == Overlap(3 / 4, 1.0, 2 / 3, 4, "c y d e", "3")


def test_what_is_short_is_looked_for_whole() -> None:
    short = question("Why?", "so")
    assert overlaps([short], [["why", "not"]]) == [Overlap(0.0, 1.0, 0.0, 1, "why", "0")]
    assert overlaps([short], [["x", "why", "so"]]) == [Overlap(1.0, 1.0, 1.0, 2, "why so", "1")]
    # A masked stem that has no trigram has nothing to be found by.
    masked = Record("1", "A [MASK] b.", ("x", "y"), 1)
    assert overlaps([masked], [["a", "b"]]) == [Overlap(0.0, None, 0.0)]
    assert overlaps([question("?!", "...")], [["a"]]) == [Overlap(None, None, None)]


def test_templates_are_left_out_by_groups() -> None:
    items = [
        question(f"what is the use of {word} {word}{word} in it", "u v w", n)
        for n, word in enumerate("abc")
    ]
    text = ["what is the use of b bb in it u".split()]
    # Three groups have what-is is-the the-use use-of, in-it it-u u-v v-w: of the trigrams, only
    # of-b-bb and b-bb-in have one such word or none.
    by_item = overlaps(items, text, most_groups=2)
    nothing = Overlap(0.0, 0.0, None)
    assert by_item == [nothing, Overlap(1.0, 1.0, None, 4, "of b bb in", "4"), nothing]
    # Of one group they are no template: all but of-a-aa a-aa-in aa-in-it, it-u-v u-v-w.
    by_item = overlaps(items, text, most_groups=2, groups=[0, 0, 0])
    assert [(o.stem, o.answer) for o in by_item] == [(3 / 7, 1 / 3), (1, 1 / 3), (3 / 7, 1 / 3)]
    # Where nothing else is left, the whole is looked for.
    same = [question("a b c d e", "u v w", n) for n in range(3)]
    assert overlaps(same, ["a b c d e".split()], most_groups=2)[0].share == 0.0
    assert overlaps(same, ["a b c d e u v w".split()], most_groups=2)[2].share == 1.0


def slow(record: Record, words: Sequence[str], size: int) -> tuple[float | None, ...]:
    """Share of n-grams, those of stem alone, those with the answer, and the longest piece."""
    text = item_text(record, record.gold)
    item_words = text.words
    if not item_words:
        return None, None, None, 0

    def is_in_text(piece: tuple[str, ...]) -> bool:
        size = len(piece)
        return any(tuple(words[i : i + size]) == piece for i in range(len(words) - size + 1))

    places = range(len(item_words) - size + 1)
    touch = [p + size > text.start and p < text.end for p in places]
    hits = [is_in_text(item_words[p : p + size]) for p in places]
    stem = [hit for hit, touches in zip(hits, touch, strict=True) if not touches]
    answer = [hit for hit, touches in zip(hits, touch, strict=True) if touches]
    lengths = range(size, len(item_words) + 1)
    pieces = [(p, n) for n in lengths for p in range(len(item_words) - n + 1)]
    longest = max((n for p, n in pieces if is_in_text(item_words[p : p + n])), default=0)
    if not hits:
        hits = answer = [is_in_text(item_words)]
        longest = len(item_words) * hits[0]
    stem_share = sum(stem) / len(stem) if stem else None
    if not stem and text.start and text.end == len(item_words):
        stem_share = float(is_in_text(item_words[: text.start]))
        longest = max(longest, text.start * int(stem_share))
    share = [sum(flags) / len(flags) if flags else None for flags in (hits, answer)]
    return share[0], stem_share, share[1], longest


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_as_nested_loops_find_it(size: int) -> None:
    rng = random.Random(size)

    def text(most: int) -> str:
        return " ".join(rng.choices("abc", k=rng.randint(1, most)))

    for _ in range(30):
        records = [
            Record(str(n), f"{text(9)}{rng.choice(['', ' [MASK] ' + text(4)])}", (text(4), "z"), 0)
            for n in range(6)
        ]
        words = rng.choices([*"aaabbbccc", "z", "", "new"], k=rng.randint(0, 40))
        cuts = sorted(rng.choices(range(len(words) + 1), k=rng.randint(0, 6)))
        blocks = [words[a:b] for a, b in zip([0, *cuts], [*cuts, len(words)], strict=True)]
        for record, answered in zip(records, overlaps(records, blocks, size), strict=True):
            shares = (answered.share, answered.stem, answered.answer, answered.longest)
            assert shares == pytest.approx(slow(record, words, size)), (record, words)
            if answered.where:
                begin, piece = int(answered.where), answered.piece.split()
                assert words[begin : begin + len(piece)] == piece or len(blocks) > 1


def test_a_text_is_split_into_normalised_words() -> None:
    assert split_words("It’s ﬁne, NAÏVE-ly: 1,000 x_y — ＡＢ so\u00adft") == (
        ["it", "s", "fine", "naïve", "ly", "1", "000", "x", "y", "ab", "soft"]
    )
    assert split_words("Don't; TAB\there\n2nd_line") == ["don", "t", "tab", "here", "2nd", "line"]
    assert split_words("") == split_words("?! …") == []
    for code in range(128):  # the fast way and the other one
        assert split_words(f"a{chr(code)}b") == split_words(f"a{chr(code)}b é")[:-1], code


ASKED = Record("1", "What is a red, round fruit?", ("an apple", "a pear"), 0)


def scan() -> Scan:
    return Scan(probe_grams([ASKED], ["1"], 4))


def in_text(path: Path) -> Overlap:
    looked = scan()
    assert scan_text(looked, path) == []
    [overlap] = looked.overlaps()
    return overlap


def test_items_are_read_with_all_their_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "_MOST_WORDS", 3)  # each item is fed alone
    items = [
        Record("7", "A red, round", ("fruit", "thing"), 1),
        Record("8", "Is it a round fruit?", ("No, an apple", "round fruit, an apple"), 0),
    ]
    looked = scan()
    scan_records(looked, items)
    # Of 5 four-grams a-red-round-fruit and round-fruit-an-apple; nothing goes on to the next item.
    assert looked.overlaps() == [Overlap(2 / 5, 1 / 3, 1 / 2, 4, "a red round fruit", "7@0")]
    looked = scan()
    scan_records(looked, items, wrong_choices=False)
    assert [overlap.share for overlap in looked.overlaps()] == [0.0]


def test_words_go_on_over_lines_and_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "It’s\r\n\n “a RED,\nround\n\tfruit?” – an\u00ad apple\n"
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode())
    hit = in_text(path)
    assert hit == Overlap(3 / 5, 1 / 3, 1.0, 6, "a red round fruit an apple", f"{path}:3")
    packed = tmp_path / "text.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert in_text(packed).piece == hit.piece
    for size in (1, 2, 3, 7, 11):
        monkeypatch.setattr(files, "BLOCK", size)
        assert in_text(path).share == hit.share
    monkeypatch.setattr(files, "BLOCK", 3)
    monkeypatch.setattr(overlap, "_LONGEST", 5)  # a word of more is cut, and nothing else
    path.write_text(f"{'x' * 20} a red round fruit")
    assert in_text(path).longest == 4


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"a red\xff round\n")
    notice = f"{path}: 1 characters are not UTF-8; they count as spaces"
    assert scan_text(scan(), path) == [notice]
    for data, message in (
        (b"", "no words"),
        (b" ?!\n", "no words"),
        ("a red".encode("utf-16"), "UTF-16"),
        (bytes(range(128, 200)), "not a text in UTF-8"),
        (gzip.compress(b"a red round fruit" * 99)[:40], "cut off"),
    ):
        path.write_bytes(data)
        with pytest.raises(RecordError, match=message):
            scan_text(scan(), path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        scan_text(scan(), tmp_path / "none")


def test_concepts_are_named_in_notes() -> None:
    def record(concept: str, arrow: str = "", answer: str = "") -> Record:
        meta = {"cluster": concept, "chain": f"{concept}{arrow}{answer}"}
        return Record("1", "q", ("a", "b"), 0, meta if concept else {})

    theirs = [record("dog.n.01", "=>", "animal.n.01"), record("pup.n.01", "<=", "pup.n.01")]
    ours = [record("dog.n.01", "<=", "pup.n.01"), record("cat.n.01", "=>", "dog.n.01"), record("")]
    pairs = [(match.concept, match.answer) for match in shared_concepts(ours, theirs)]
    assert pairs == [(True, True), (False, False), (None, None)]
    assert {match.concept for match in shared_concepts(ours, [record("")])} == {None}
    sense = Record("1", "q", ("a", "b"), 0, {"cluster": "run", "sense": "run.v.1"})
    [found_sense] = shared_concepts([sense], [sense])
    assert (found_sense.concept, found_sense.answer) == (True, True)
