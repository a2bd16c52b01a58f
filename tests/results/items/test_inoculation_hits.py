from __future__ import annotations

from typing import Any

import pytest

from probelight.results.items.inoculation_hits import Side, read_sides


def sides(**changes: Any) -> dict[str, Any]:
    """What hits.json holds, with other values for some keys of the probe."""
    probe = {
        "items": "ab12",
        "groups": [0, 0, 1],
        "before": "010",
        "after": [0.0, 0.5, 1],
        "untouched": "011",
        "clusters": [0, 0, 1],
    }
    original = {"items": "cd34", "groups": [0, 1], "before": "11", "after": "01"}
    return {"probe": probe | changes, "original": original}


def test_both_sides_are_read_with_what_each_item_counts() -> None:
    found = read_sides(sides(), "hits.json")
    assert found["probe"] == Side(
        items="ab12",
        groups=(0, 0, 1),
        credit={"before": (0.0, 1.0, 0.0), "after": (0.0, 0.5, 1.0)},
        untouched=(0.0, 1.0, 1.0),
        clusters=(0, 0, 1),
    )
    assert found["original"].credit["after"] == (0.0, 1.0)
    assert (found["original"].untouched, found["original"].clusters) == ((), ())


def test_relatives_and_concepts_may_be_unknown() -> None:
    probe = read_sides(sides(untouched=None, clusters=None), "hits.json")["probe"]
    assert (probe.untouched, probe.clusters) == ((), ())


@pytest.mark.parametrize("value", [None, [], {"probe": {}}, {"probe": [], "original": {}}])
def test_a_file_of_something_else_is_named(value: object) -> None:
    with pytest.raises(ValueError, match=r"^runs/a: it has no `probe` and `original`$"):
        read_sides(value, "runs/a")


NO_INDICES, NO_CREDITS = "not a list of indices", "not a text of 0 and 1, nor a list of credits"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": []}, f"groups: {NO_INDICES}"),
        ({"groups": "001"}, f"groups: {NO_INDICES}"),
        ({"groups": [0, 0, -1]}, f"groups: {NO_INDICES}"),
        ({"groups": [0, 0, True]}, f"groups: {NO_INDICES}"),
        ({"clusters": [0, 0, 1.0]}, f"clusters: {NO_INDICES}"),
        ({"before": "012"}, f"before: {NO_CREDITS}"),
        ({"before": ""}, f"before: {NO_CREDITS}"),
        ({"after": [0.5, 0.5, 1.5]}, f"after: {NO_CREDITS}"),
        ({"after": None}, f"after: {NO_CREDITS}"),
        ({"untouched": 1}, f"untouched: {NO_CREDITS}"),
        ({"before": "01"}, "2 items, but 3 groups"),
        ({"untouched": "0110"}, "4 items, but 3 groups"),
        ({"clusters": [0]}, "1 items, but 3 groups"),
    ],
)
def test_what_is_wrong_is_said_with_its_side(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^runs/a: probe: {message}$"):
        read_sides(sides(**changes), "runs/a")
