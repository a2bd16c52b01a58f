from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from probelight.results.hits import (
    Side,
    joined_hits,
    read_hits,
    read_sides,
    scores_by_condition,
    written_hits,
)
from probelight.results.load import load_results
from tests.fixtures.results import curve_rows, write_run

GOOD = {"groups": [0, 0, 1], "hits": {"standard": {"1": "011", "2": "111"}}}


def test_hits_as_they_are_written() -> None:
    hits = read_hits(GOOD, 62, "hits.json")
    assert hits.groups == (0, 0, 1)
    [(condition, by_seed)] = scores_by_condition(hits).items()
    assert condition == ("standard", 62)
    assert {seed: hits.tolist() for seed, hits in by_seed.items()} == {1: [0, 1, 1], 2: [1, 1, 1]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "`groups` or `hits` is missing"),
        ({**GOOD, "groups": [0, "a", 1]}, "not a list of indices"),
        ({**GOOD, "hits": {"standard": {"1": "01"}}}, "standard, seed 1: 2 items, but 3 groups"),
        ({**GOOD, "hits": {"standard": {"1": "01x"}}}, "not a text of 0 and 1"),
        ({**GOOD, "hits": {"standard": {"one": "011"}}}, "standard does not have hits by seed"),
        ({**GOOD, "hits": {"standard": "011"}}, "standard does not have hits by seed"),
    ],
)
def test_damaged_hits_are_refused(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_hits(value, 62, "hits.json")


def test_ties_are_written_and_read_as_scores() -> None:
    assert written_hits([0.0, 1.0, 1.0]) == "011"
    assert written_hits([0.0, 0.5, 1.0]) == [0.0, 0.5, 1.0]
    hits = read_hits({**GOOD, "hits": {"standard": {"1": [0, 0.5, 1]}}}, 62, "hits.json")
    assert hits.runs == ((("standard", 62), 1, (0.0, 0.5, 1.0)),)
    assert scores_by_condition(hits)["standard", 62][1].tolist() == [0.0, 0.5, 1.0]


def test_points_of_a_curve_join_where_their_items_agree() -> None:
    first, second = read_hits(GOOD, 62, "a"), read_hits(GOOD, 125, "b")
    joined = joined_hits([second, first])
    assert joined is not None
    places = [(("standard", size), seed) for size in (62, 125) for seed in (1, 2)]
    assert [run[:2] for run in joined.runs] == places
    assert joined_hits([first, read_hits({**GOOD, "groups": [0, 1, 1]}, 125, "b")]) is None
    assert joined_hits([]) is None


def test_hits_are_read_beside_their_result(tmp_path: Path) -> None:
    text = json.dumps(GOOD)
    files = {"hits.json": {"size": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}}
    rows = curve_rows("p", "standard", {62: [2, 3]}, 3)
    folder = write_run(tmp_path, "a", rows, hits_file="hits.json", files=files)
    (folder / "hits.json").write_text(text)
    (run,) = load_results(tmp_path).runs
    assert run.hits == read_hits(GOOD, 62, "hits.json")
    (folder / "hits.json").write_text(text.replace("011", "111"))  # as long as it was
    results = load_results(tmp_path)
    assert results.runs[0].hits is None
    assert results.left_out == (
        f"runs/{run.key}/hits.json: not used, so intervals are based on counts alone "
        "(hits.json: changed since the run ended)",
    )
    (folder / "hits.json").write_text(text[:-4])
    assert "based on counts alone (not a whole JSON" in load_results(tmp_path).left_out[0]
    (folder / "hits.json").unlink()
    assert "there is no such file" in load_results(tmp_path).left_out[0]


def sides(**changes: Any) -> dict[str, Any]:
    """What hits.json holds, with other values for some keys of the probe."""
    probe = {"items": "ab12", "groups": [0, 0, 1], "clusters": [0, 0, 1]}
    probe |= {"before": "010", "after": [0.0, 0.5, 1], "untouched": "011"}
    original = {"items": "cd34", "groups": [0, 1], "before": "11", "after": "01"}
    return {"probe": probe | changes, "original": original}


def test_both_sides_are_read_with_what_each_item_counts() -> None:
    hits_by_task = read_sides(sides(), "hits.json")
    assert hits_by_task["probe"] == Side(
        items="ab12",
        groups=(0, 0, 1),
        scores={"before": (0.0, 1.0, 0.0), "after": (0.0, 0.5, 1.0)},
        untouched=(0.0, 1.0, 1.0),
        clusters=(0, 0, 1),
    )
    assert hits_by_task["original"].scores["after"] == (0.0, 1.0)
    assert (hits_by_task["original"].untouched, hits_by_task["original"].clusters) == ((), ())
    probe = read_sides(sides(untouched=None, clusters=None), "hits.json")["probe"]
    assert (probe.untouched, probe.clusters) == ((), ())


@pytest.mark.parametrize("value", [None, [], {"probe": {}}, {"probe": [], "original": {}}])
def test_a_file_of_something_else_is_named(value: object) -> None:
    with pytest.raises(ValueError, match=r"^runs/a: `probe` or `original` is missing$"):
        read_sides(value, "runs/a")


NO_INDICES = "not a list of indices"
NO_CREDITS = "not a text of 0 and 1, nor a list of scores from 0 to 1"


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
        ({"after": [0, 1, "1"]}, f"after: {NO_CREDITS}"),
        ({"after": None}, f"after: {NO_CREDITS}"),
        ({"untouched": 1}, f"untouched: {NO_CREDITS}"),
        ({"before": "01"}, "before: 2 items, but 3 groups"),
        ({"untouched": "0110"}, "untouched: 4 items, but 3 groups"),
        ({"clusters": [0]}, "clusters: 1 items, but 3 groups"),
    ],
)
def test_what_is_wrong_is_said_with_its_side(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^runs/a: probe: {message}$"):
        read_sides(sides(**changes), "runs/a")
