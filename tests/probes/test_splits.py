from __future__ import annotations

import random
from itertools import pairwise

import pytest

from probelight.probes.record import Record
from probelight.probes.splits import SplitError, grouped_split, nested_sample, share_of


def items(num_groups: int = 60) -> list[Record]:
    """1 to 5 items of each cluster, sorted by cluster as released files are."""
    return [
        Record(f"{group}", f"stem {group} {n}", ("a", "b"), n % 2, {"cluster": f"c{group}"})
        for group in range(num_groups)
        for n in range(1 + group % 5)
    ]


def shuffled(records: list[Record]) -> list[Record]:
    return random.Random(7).sample(records, len(records))


@pytest.mark.parametrize("seed", range(5))
def test_no_group_is_divided_and_no_item_is_lost(seed: int) -> None:
    records = items()
    held_out, train = grouped_split(records, "cluster", fraction=0.2, seed=seed)
    assert {r.meta["cluster"] for r in held_out}.isdisjoint(r.meta["cluster"] for r in train)
    assert sorted(r.stem for r in held_out + train) == sorted(r.stem for r in records)
    assert abs(len(held_out) - 0.2 * len(records)) <= 2.5  # half the largest group


def test_a_split_depends_on_seed_and_items_not_on_their_order() -> None:
    records = items()
    split = grouped_split(records, "cluster", num_items=50, seed=1)
    assert split == grouped_split(shuffled(records), "cluster", num_items=50, seed=1)
    assert split != grouped_split(records, "cluster", num_items=50, seed=2)


def test_a_larger_split_keeps_what_a_smaller_one_keeps() -> None:
    held_out = [
        {r.stem for r in grouped_split(items(), "cluster", num_items=n, seed=3)[0]}
        for n in range(10, 150, 10)
    ]
    assert all(small <= large for small, large in pairwise(held_out))


def test_impossible_splits_say_so_and_what_is_possible() -> None:
    records = items(1) * 4
    with pytest.raises(ValueError, match="either num_items or fraction"):
        grouped_split(records, None)
    with pytest.raises(SplitError, match=r"4 items in 1 group.* by item .*one side") as alone:
        grouped_split(records, None, num_items=4)
    assert alone.value.nearest is None
    with pytest.raises(SplitError, match=r"1 group\(s\) by cluster cannot be divided"):
        grouped_split(records, "cluster", num_items=2)
    three = items(5)[-12:]  # clusters of 3, 4 and 5 items
    for num_items in (0, 1, 11, 12, 500):
        with pytest.raises(SplitError, match="one side of the split would be empty") as caught:
            grouped_split(three, "cluster", num_items=num_items)
        nearest = caught.value.nearest
        assert nearest is not None
        sizes = [len(side) for side in grouped_split(three, "cluster", num_items=nearest)]
        assert sizes == [nearest, 12 - nearest]
        assert (nearest in {3, 4, 5}) == (num_items < 6)  # one cluster, or all but one


def test_a_share_of_few_items_is_a_group_at_least() -> None:
    records = [Record(f"{n}", f"stem {n}", ("a", "b"), 0) for n in range(4)]
    for share, size in ((0.1, 1), (0.95, 3)):
        held_out, train, notice = share_of(records, "stem", share, seed=0)
        assert (len(held_out), len(train)) == (size, 4 - size)
        assert notice == f"{size} of 4 items instead of a share of {share}"
    assert share_of(records, "stem", 0.5, 0) == (*grouped_split(records, "stem", fraction=0.5), "")
    with pytest.raises(SplitError):
        share_of(records[:1], "stem", 0.5, 0)


def test_samples_nest_and_spread_over_a_sorted_file() -> None:
    records = items()
    sample = nested_sample(records, seed=1)
    assert sample == nested_sample(shuffled(records), seed=1)
    assert sample != nested_sample(records, seed=2)
    assert sorted(r.stem for r in sample) == sorted(r.stem for r in records)
    assert len({r.meta["cluster"] for r in sample[:30]}) > 15  # the first 30 rows hold 11 clusters


def test_exact_copies_are_all_in_the_sample_and_apart() -> None:
    records = [Record("1", f"stem {n // 2}", ("a", "b"), 0, {}, n) for n in range(40)]
    sample = nested_sample(records, seed=1)
    assert sorted(r.position for r in sample) == list(range(40))
    assert sum(a.stem == b.stem for a, b in pairwise(sample)) < 10
