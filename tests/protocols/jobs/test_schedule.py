"""Which cells may start: worked out by hand for a plan of a few."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.protocols.jobs.cells import FAILED, Cell, Failure, Schedule

RUNNER = "module:run"


def finished(runs_dir: Path, key: str) -> None:
    path = runs_dir / key / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 2, "protocol": "test", "rows": []}')


def scheduled(runs_dir: Path, *cells: Cell, max_retries: int = 0) -> Schedule:
    return Schedule(runs_dir, cells, max_retries)


def keys(cells: list[Cell]) -> list[str]:
    return [cell.key for cell in cells]


def blocked(schedule: Schedule) -> dict[str, tuple[str, ...]]:
    return {cell.key: missing for cell, missing in schedule.blocked()}


A, B = Cell("a", RUNNER), Cell("b", RUNNER, needs=("a",))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"rows": [' + "9" * 6_000, "", '{"rows": []}'])
def test_a_damaged_result_fails_its_cell_by_name(text: str, tmp_path: Path) -> None:
    finished(tmp_path, "a")
    (tmp_path / "a" / "result.json").write_text(text)
    schedule = scheduled(tmp_path, A, B)
    assert schedule.ready() == []
    assert schedule.failed["a"].error.startswith(f"{tmp_path}/a/result.json: ")
    assert "remove " in schedule.failed["a"].error
    assert blocked(schedule) == {"b": ("a",)}


def test_a_cell_starts_when_all_that_it_needs_is_finished(tmp_path: Path) -> None:
    last = Cell("last", RUNNER, needs=("b", "a"))
    free = Cell("free", RUNNER)
    schedule = scheduled(tmp_path, last, B, A, free)
    assert keys(schedule.ready()) == ["a", "free"]  # in the order of the plan
    schedule.start("a")
    assert keys(schedule.ready()) == ["free"]
    assert schedule.started == {"a"}
    schedule.finish("a")
    assert keys(schedule.ready()) == ["b", "free"]
    for key in ("b", "free", "last"):
        assert not schedule.is_over
        schedule.start(key)
        assert not schedule.is_over
        schedule.finish(key)
    assert schedule.is_over
    assert (schedule.started, schedule.done) == (set(), {"a", "b", "free", "last"})
    assert blocked(schedule) == schedule.failed == {}


def test_a_cell_given_back_starts_again_and_no_try_is_counted(tmp_path: Path) -> None:
    schedule = scheduled(tmp_path, A)
    for _ in range(5):
        schedule.start("a")
        assert schedule.ready() == []
        schedule.give_back("a")
        assert keys(schedule.ready()) == ["a"]
    assert schedule.fail("a", "once") == Failure(1, 1, "once")


@pytest.mark.parametrize("max_retries", [0, 1, 2])
def test_a_cell_that_fails_is_tried_again_so_often(tmp_path: Path, max_retries: int) -> None:
    schedule = scheduled(tmp_path, A, max_retries=max_retries)
    tries = max_retries + 1
    for times in range(1, tries + 1):
        assert keys(schedule.ready()) == ["a"]
        schedule.start("a")
        assert schedule.fail("a", f"error {times}") == Failure(times, tries, f"error {times}")
        assert schedule.started == set()
        assert (times == tries) == schedule.is_over
    assert schedule.failed == {"a": Failure(tries, tries, f"error {tries}")}


def test_what_needs_a_failed_cell_is_not_started_nor_what_needs_that(tmp_path: Path) -> None:
    behind = Cell("behind", RUNNER, needs=("free", "b"))
    schedule = scheduled(tmp_path, behind, A, B, Cell("free", RUNNER))
    schedule.fail("a", "no")
    assert keys(schedule.ready()) == ["free"]
    assert not schedule.is_over
    assert blocked(schedule) == {"b": ("a",), "behind": ("b",)}
    schedule.finish("free")
    assert schedule.is_over


def test_what_needs_a_cell_that_nobody_planned_waits_in_vain_unless_it_is_finished(
    tmp_path: Path,
) -> None:
    finished(tmp_path, "earlier")
    good = Cell("good", RUNNER, needs=("earlier",))
    stuck = Cell("stuck", RUNNER, needs=("earlier", "gone"))
    schedule = scheduled(tmp_path, stuck, good)
    assert keys(schedule.ready()) == ["good"]
    assert blocked(schedule) == {"stuck": ("gone",)}


def test_a_cell_starts_behind_those_that_it_follows_however_they_ended(tmp_path: Path) -> None:
    finished(tmp_path, "earlier")
    follower = Cell("follower", RUNNER, follows=("a", "c", "earlier"))
    schedule = scheduled(tmp_path, follower, A, Cell("c", RUNNER), max_retries=1)
    schedule.start("a")
    schedule.finish("c")
    schedule.fail("a", "once")  # it is tried again, so it has not ended
    assert keys(schedule.ready()) == ["a"]
    schedule.fail("a", "twice")
    assert keys(schedule.ready()) == ["follower"]
    assert blocked(schedule) == {}


def test_a_cell_behind_one_that_will_never_end_waits_in_vain(tmp_path: Path) -> None:
    follower = Cell("follower", RUNNER, follows=("b",))
    lonely = Cell("lonely", RUNNER, follows=("a", "gone"))
    schedule = scheduled(tmp_path, A, B, follower, lonely)
    schedule.fail("a", "no")
    assert schedule.is_over
    assert blocked(schedule) == {"b": ("a",), "follower": ("b",), "lonely": ("gone",)}


def test_results_that_are_there_are_not_made_again_and_old_failures_are_forgotten(
    tmp_path: Path,
) -> None:
    finished(tmp_path, "a")
    (tmp_path / "b").mkdir()
    Failure(3, 3, "last time").keep(tmp_path / "b")
    schedule = scheduled(tmp_path, A, B)
    assert schedule.done == {"a"}
    assert keys(schedule.ready()) == ["b"]
    assert not (tmp_path / "b" / FAILED).exists()
    assert schedule.fail("b", "again").times == 1


def test_a_plan_that_is_done_or_empty_is_over(tmp_path: Path) -> None:
    finished(tmp_path, "a")
    assert scheduled(tmp_path, A).is_over
    assert scheduled(tmp_path).is_over
