"""Claims, leases and re-queueing, without any cell's process."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from jobs.job import Job
from jobs.queue.entry import COMPLETE, FAIL, RUNNING, WAITING, Entry
from jobs.queue.queue import Queue
from jobs.queue.storage import open_study
from storage.errors import UsageError
from storage.host import Process, host_id, this_process
from tests.jobs.trivial import cells

OTHER_HOST = Process("elsewhere/1/2", 7, 1)
DEAD = Process(host_id(), 2**22 + 1, 1)  # beyond the largest number that Linux gives out


def anything(entry: Entry) -> bool:
    return True


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(open_study(tmp_path, None, create=True))


def another(queue: Queue, worker: Process) -> Queue:
    return Queue(queue.study, worker)


def states(queue: Queue) -> list[str]:
    return [entry.state.name for entry in queue.entries()]


def _claim_all(folder: Path, name: str) -> None:
    queue = Queue(open_study(folder, None))
    while (entry := queue.claim(anything)) is not None:
        with (folder / name).open("a") as file:
            file.write(f"{entry.key}\n")
        queue.complete(entry)


def test_no_cell_is_claimed_twice_by_processes_that_claim_at_once(
    queue: Queue, tmp_path: Path
) -> None:
    queued = queue.enqueue(cells(24))
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_claim_all, args=(tmp_path, f"by{i}")) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    claimed = [line for path in tmp_path.glob("by*") for line in path.read_text().split()]
    assert sorted(claimed) == sorted(queued)
    assert set(states(queue)) == {"COMPLETE"}


def _plan(folder: Path) -> None:
    Queue(open_study(folder, None, create=True)).enqueue(cells(12))


def test_plans_at_once_make_one_sweep_and_queue_each_cell_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    plans = [context.Process(target=_plan, args=(tmp_path,)) for _ in range(3)]
    for plan in plans:
        plan.start()
    for plan in plans:
        plan.join()
        assert plan.exitcode == 0
    study = open_study(tmp_path, None)
    assert len(study.trials) == 12
    assert [trial.number for trial in study.trials] == list(range(12))


def test_planning_again_queues_only_what_has_ended(queue: Queue) -> None:
    plan = cells(4)
    assert queue.enqueue([*plan, plan[0]]) == [cell.key for cell in plan]
    complete, failed, running = (queue.claim(anything) for _ in range(3))
    assert complete is not None
    assert failed is not None
    assert running is not None
    assert queue.complete(complete)
    assert queue.fail(failed, "no", max_retries=0) is FAIL
    # The caller leaves out what has a result; what is complete without one was deleted.
    assert queue.enqueue(plan) == [plan[0].key, plan[1].key]
    assert states(queue) == ["WAITING", "WAITING", "RUNNING", "WAITING"]
    again = queue.claim(lambda entry: entry.key == failed.key)
    assert again is not None
    assert again.token > failed.token
    assert again.failures == 0


def test_a_cell_waits_for_those_it_needs(queue: Queue) -> None:
    [first] = cells(1)
    queue.enqueue([Job("second", {}, "x", needs=(first.key,)), first])
    claimed = queue.claim(lambda entry: not entry.needs)
    assert claimed is not None
    assert claimed.key == first.key
    assert queue.claim(lambda entry: not entry.needs) is None


def test_a_failed_cell_waits_again_until_its_retries_are_used_up(queue: Queue) -> None:
    queue.enqueue(cells(1))
    seen = []
    while (entry := queue.claim(anything)) is not None:
        seen.append((entry.failures, queue.fail(entry, f"error {entry.failures}", max_retries=2)))
    assert seen == [(0, WAITING), (1, WAITING), (2, FAIL)]
    [entry] = queue.entries()
    assert (entry.state, entry.failures, entry.error) == (FAIL, 3, "error 2")


def test_who_lost_the_lease_changes_nothing_any_more(queue: Queue) -> None:
    queue.enqueue(cells(1))
    stopped = another(queue, OTHER_HOST)
    old = stopped.claim(anything)
    assert old is not None
    assert stopped.beat(old)
    assert queue.take_back(grace_seconds=60) == []
    assert [entry.key for entry in queue.take_back(grace_seconds=-1)] == [old.key]
    assert not stopped.beat(old)
    assert not stopped.complete(old)  # it waits
    new = queue.claim(anything)
    assert new is not None
    assert new.token > old.token
    assert new.interruptions == 1
    assert new.owner == this_process()
    assert not stopped.beat(old)
    assert not stopped.complete(old)
    assert not stopped.release(old)
    assert stopped.fail(old, "late", max_retries=0) is None
    assert states(queue) == ["RUNNING"]
    assert queue.complete(new, objectives=(0.5, 0.25))
    [entry] = queue.entries()
    assert (entry.state, entry.error, entry.objectives) == (COMPLETE, "", (0.5, 0.25))
    assert not queue.beat(new)


def test_the_cell_of_a_worker_that_ended_on_this_host_is_taken_back_at_once(queue: Queue) -> None:
    queue.enqueue(cells(2))
    assert another(queue, DEAD).claim(anything)
    assert queue.claim(anything)
    assert len(queue.take_back(grace_seconds=60)) == 1
    assert states(queue) == ["WAITING", "RUNNING"]
    assert RUNNING in {entry.state for entry in queue.entries()}


def test_a_later_process_with_the_same_number_is_another_one() -> None:
    me = this_process()
    assert not me.known_dead()
    assert Process(me.host, me.pid, me.started - 1).known_dead()
    assert not Process("elsewhere", me.pid, me.started - 1).known_dead()


def test_without_a_plan_there_is_nothing_to_open(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sweep is planned here"):
        open_study(tmp_path, None)


def test_a_storage_that_is_not_there_is_said(tmp_path: Path) -> None:
    open_study(tmp_path, None, create=True)
    (tmp_path / "sweep.db").unlink()
    with pytest.raises(UsageError, match=r"sweep\.db: not there"):
        open_study(tmp_path, None)


@pytest.mark.parametrize("url", ["postgres at host", "nosuchbase://host/db", "sqlite://host:a/b"])
def test_a_storage_that_is_no_url_is_refused_at_once(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="--storage is not a URL like postgresql"):
        open_study(tmp_path, url, create=True)
