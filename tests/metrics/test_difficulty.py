"""Hops and distractors of items."""

import pytest

from metrics.difficulty import Difficulty, by_difficulty

RELEASED = {"hops": 2, "distractor_type": "sister", "distractor_hops": 1, "chain": "a=>b=>c"}


def test_a_released_item_has_the_difficulty_that_its_notes_name() -> None:
    assert Difficulty.of(RELEASED) == (2, "sister", 1)


def test_random_distractors_have_no_distance() -> None:
    # As the released files have it: null where there is nothing to measure.
    notes = {"hops": 1, "distractor_type": "random", "distractor_hops": None}
    assert Difficulty.of(notes) == (1, "random", 0)


@pytest.mark.parametrize("missing", ["hops", "distractor_type"])
def test_an_item_without_one_of_the_two_has_none(missing: str) -> None:
    assert Difficulty.of({**RELEASED, missing: None}) is None
    assert Difficulty.of({k: v for k, v in RELEASED.items() if k != missing}) is None


def test_items_are_gathered_by_difficulty_from_easy_to_hard() -> None:
    far = {**RELEASED, "hops": 3}
    found = by_difficulty([True, False, True, True], [far, RELEASED, RELEASED, {}])
    assert found == {(2, "sister", 1): [False, True], (3, "sister", 1): [True]}
    assert list(found) == [(2, "sister", 1), (3, "sister", 1)]
