from __future__ import annotations

import random
from itertools import combinations

import pytest

from probelight.metrics.comparisons.letters import compact_letters


def cliques(number: int, apart: set[tuple[int, int]]) -> set[frozenset[int]]:
    """All largest sets without a pair that is told apart, by trying all sets."""
    free = [
        frozenset(own)
        for size in range(1, number + 1)
        for own in combinations(range(number), size)
        if not apart & set(combinations(own, 2))
    ]
    return {own for own in free if not any(own < larger for larger in free)}


@pytest.mark.parametrize(
    ("number", "apart", "expected"),
    [
        (1, [], ["a"]),
        (3, [], ["a", "a", "a"]),
        (2, [(0, 1)], ["a", "b"]),
        (3, [(0, 2)], ["a", "ab", "b"]),
        # Piepho's own kind of case: the second is like all, the first unlike the last two.
        (4, [(0, 2), (0, 3), (2, 3)], ["a", "abc", "b", "c"]),
        (3, [(0, 1), (0, 2), (1, 2)], ["a", "b", "c"]),
    ],
)
def test_by_hand(number: int, apart: list[tuple[int, int]], expected: list[str]) -> None:
    assert compact_letters(number, apart) == expected


def test_a_letter_is_a_largest_set_that_is_not_told_apart() -> None:
    rng = random.Random(0)
    for _ in range(150):
        number = rng.randint(1, 7)
        pairs = list(combinations(range(number), 2))
        apart = {pair for pair in pairs if rng.random() < rng.choice([0.2, 0.5, 0.8])}
        found = compact_letters(number, apart)
        letters = {letter for own in found for letter in own}
        sets = {frozenset(i for i in range(number) if letter in found[i]) for letter in letters}
        assert sets == cliques(number, apart)
        assert "a" in found[0]


def test_letters_do_not_run_out() -> None:
    names = compact_letters(60, combinations(range(60), 2))
    assert len(set(names)) == 60
    assert names[25:28] == ["z", "a1", "b1"]
