from __future__ import annotations

import random
from collections import Counter

import pytest

from probelight.build.drafts import Draft, article, balanced, finish, pick_distractors, split_groups


def drafts(num_groups: int, per_group: int) -> list[Draft]:
    return [
        Draft(f"q{group}-{i}", "yes", ("no", "maybe"), group)
        for group in range(num_groups)
        for i in range(per_group)
    ]


def test_groups_stay_whole_and_sizes_are_exact() -> None:
    splits = split_groups(drafts(10, 3), {"test": 5, "train": 12}, random.Random(0))
    assert [len(splits[name]) for name in ("test", "train")] == [5, 12]
    groups = {name: {d.group for d in items} for name, items in splits.items()}
    # 5 items take 2 groups of 3 and leave one item out; 12 take 4.
    assert [len(groups[name]) for name in ("test", "train")] == [2, 4]
    assert not groups["test"] & groups["train"]


def test_too_few_items_is_an_error() -> None:
    with pytest.raises(ValueError, match="only 3 items are left for dev, not 4"):
        split_groups(drafts(1, 3), {"dev": 4}, random.Random(0))


def test_a_repeated_stem_is_kept_once() -> None:
    items = [Draft("same", "a", ("b",), 1), Draft("same", "b", ("a",), 2)]
    assert split_groups(items, {"test": 1}, random.Random(0))["test"] == items[:1]


def test_gold_positions_are_even_for_each_number_of_choices() -> None:
    sizes = [2] * 10 + [5] * 12
    positions = balanced(sizes, random.Random(0))
    assert Counter(positions[:10]) == {0: 5, 1: 5}
    assert sorted(Counter(positions[10:]).values()) == [2, 2, 2, 3, 3]


def test_finish_keeps_the_choices_and_names_the_items() -> None:
    probe = finish("p", {"dev": drafts(3, 1)}, random.Random(0))
    assert [r.id for r in probe["dev"]] == ["p-dev-1", "p-dev-2", "p-dev-3"]
    assert all(sorted(r.choices) == ["maybe", "no", "yes"] for r in probe["dev"])
    assert all(r.gold == "yes" for r in probe["dev"])
    assert sorted(r.answer for r in probe["dev"]) == [0, 1, 2]


def test_length_says_nothing_about_the_gold_answer() -> None:
    pool = [letter * size for letter in "abcdefgh" for size in (2, 8)]
    ranks = Counter(
        sum(len(text) > 5 for text in pick_distractors(pool, "12345", 4, random.Random(seed)))
        for seed in range(1000)
    )
    # The number of longer distractors is even over 0..4: 200 each, give or take 4 sd of 12.6.
    assert set(ranks) == set(range(5))
    assert all(150 < count < 250 for count in ranks.values())


def test_a_pool_of_one_sided_lengths_still_serves() -> None:
    chosen = pick_distractors(["aa", "bb", "cc", "dd", "dd"], "1", 4, random.Random(0))
    assert sorted(chosen) == ["aa", "bb", "cc", "dd"]
    with pytest.raises(ValueError, match="2 distractors for '1', 3 are needed"):
        pick_distractors(["aa", "aa", "bb"], "1", 3, random.Random(0))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("8", "an"),
        ("11", "an"),
        ("18", "an"),
        ("80", "an"),
        ("110", "a"),
        ("21", "a"),
        ("apple", "an"),
        ("ferry", "a"),
        ("uniform", "a"),
        ("uncle", "an"),
        ("hour", "an"),
        ("hound", "a"),
    ],
)
def test_article(word: str, expected: str) -> None:
    assert article(word) == expected
