from __future__ import annotations

import random
from collections import Counter

from probelight.builders.wordnet_probes.distractors import pick_distractors


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
    chosen = pick_distractors(["aa", "bb", "cc", "dd"], "1", 4, random.Random(0))
    assert sorted(chosen) == ["aa", "bb", "cc", "dd"]
    assert pick_distractors([], "1", 0, random.Random(0)) == ()
