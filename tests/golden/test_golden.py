"""The numbers of a small run of every command are those that are committed in `expected/`.

    python -m pytest tests/golden --update-golden

writes them anew (with `-k NAME` those of one run). Look at the diff: every changed number needs a
reason, which is in the commit that changes it. Texts and counts are compared exactly, scores
within a tolerance that another CPU does not reach.
"""

from __future__ import annotations

import pytest

from tests.golden.outcome import EXPECTED, are_close, assert_committed, differences, updated
from tests.golden.world import RUNS, World

# Beside the tests of its report, so that with `pytest -n` one process makes it, and makes it once.
ELSEWHERE = {"demo": "test_demo_report.py"}
# A sweep's cells are processes on a Ray, as long as all other runs together; the report reads it.
SLOW = {"sweep", "report"}
THOROUGH = {"inoculate", "original", "curve_frozen", "curve_full"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[pytest.mark.slow] * (name in SLOW) + [pytest.mark.thorough] * (name in THOROUGH),
        )
        for name in RUNS
        if name not in ELSEWHERE
    ],
)
def test_a_run_gives_the_committed_numbers(
    name: str, world: World, request: pytest.FixtureRequest
) -> None:
    assert_committed(world, name, update=request.config.getoption("--update-golden"))


def test_every_command_has_a_run() -> None:
    committed = {path.parent.relative_to(EXPECTED).as_posix() for path in EXPECTED.rglob("*.csv")}
    assert committed == set(RUNS)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0.25", "0.25001", True),
        ("0.25", "0.26", False),
        ("100001", "100002", False),  # a count
        ("1", "1.0", True),
        ("-0.5 1.25", "-0.49999 1.25001", True),
        ("-0.5 1.25", "0.5 1.25", False),
        ("train 40", "test 40", False),
        ("older", "younger", False),
        ("", "0.1", False),
    ],
)
def test_cells_are_compared_by_what_they_say(old: str, new: str, expected: bool) -> None:
    assert are_close(old, new) == expected


def test_an_update_changes_what_differs_alone() -> None:
    rows = [{"metric": m, "value": "0.3333333"} for m in ("accuracy", "chance", "macro_accuracy")]
    new_rows = [{"metric": "accuracy", "value": "0.3333334"}, {"metric": "chance", "value": "0.5"}]
    assert updated("results", rows, new_rows) == [rows[0], new_rows[1]]


def test_a_difference_names_the_row_and_both_numbers() -> None:
    row = {"probe": "ages", "metric": "accuracy", "value": "0.5"}
    assert list(differences("results", [row], [{**row, "value": "0.75"}])) == [
        "results: value: '0.5' expected, '0.75' found in probe=ages, metric=accuracy, value=0.5"
    ]
    assert list(differences("results", [row], [])) == [
        "results: no longer there: probe=ages, metric=accuracy, value=0.5"
    ]
    [new] = differences("results", [], [row])
    assert new.startswith("results: new: probe=ages")
    assert not list(differences("results", [row], [{**row, "seed": ""}]))
