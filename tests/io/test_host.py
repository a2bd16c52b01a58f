from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from probelight.io.host import Process, host_id, process, this_process

NEVER = 2**22 + 1  # beyond the largest number that Linux gives out
LOCK = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print(flush=True)
time.sleep(60)
"""


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a program of Python that says a line when it is ready; all are gone afterwards."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(program: str, *arguments: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        started.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        return child

    yield begin
    for child in started:
        child.kill()
        child.wait()


def test_this_process_lives_and_has_the_number_of_the_system() -> None:
    me = this_process()
    assert me.pid == os.getpid()
    assert me.host == host_id()
    assert me.started > 0
    assert not me.known_dead()
    assert str(me) == f"process {os.getpid()} on {host_id().split('/')[0]}"


def test_a_number_that_nobody_has_is_dead() -> None:
    assert Process(host_id(), NEVER, 1).known_dead()
    assert process(NEVER) == Process(host_id(), NEVER, 0)


def test_a_later_process_with_the_same_number_is_another() -> None:
    me = this_process()
    assert replace(me, started=me.started + 1).known_dead()
    assert not replace(me, started=0).known_dead()  # nobody said when it began


def test_of_another_host_nothing_is_known() -> None:
    other = Process("elsewhere/0123/pid", NEVER, 1)
    assert not other.known_dead()
    other.kill()  # returns at once


def test_a_process_that_ended_is_dead_before_anybody_asks_for_its_code(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    child = start("print(flush=True)")
    one, end = process(child.pid), time.monotonic() + 5
    while not one.known_dead() and time.monotonic() < end:
        time.sleep(0.01)
    assert one.known_dead()
    assert child.returncode is None  # it is not waited for: a zombie has its number still


def test_a_process_is_gone_when_kill_returns(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    child = start("import time; print(flush=True); time.sleep(60)")
    one = process(child.pid)
    assert not one.known_dead()
    one.kill()
    assert one.known_dead()
    assert child.wait() == -signal.SIGKILL
