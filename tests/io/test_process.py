from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Thread

import pytest

from probelight.io import process as processes
from probelight.io.errors import UsageError
from tests.fixtures.checkout import ROOT
from tests.runs.harness import wait_until

CODES = [
    (signal.SIGINT, KeyboardInterrupt, processes.INTERRUPTED),
    (signal.SIGTERM, SystemExit, processes.TERMINATED),
]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The handlers of a program in the foreground; pytest's own come back."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    previous = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in zip(numbers, previous, strict=True):
        signal.signal(number, handler)


def run(program: str) -> subprocess.CompletedProcess[str]:
    start = [sys.executable, "-c", f"import os, signal\n{program}"]
    return subprocess.run(start, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(("signum", "stop", "code"), CODES)
def test_a_signal_ends_a_command_and_its_code_is_kept(
    signum: int, stop: type[BaseException], code: int
) -> None:
    signals, previous = processes.StopSignals(), signal.getsignal(signum)
    with pytest.raises(stop), signals.during_command():
        signal.raise_signal(signum)
    assert signals.code == code
    assert signals.terminated == (code == processes.TERMINATED)
    assert signal.getsignal(signum) is previous


def test_the_first_signal_decides_and_the_next_command_begins_anew() -> None:
    signals = processes.StopSignals()

    def stopped_twice() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(SystemExit), signals.during_command():
        stopped_twice()
    assert signals.code == processes.INTERRUPTED
    with signals.during_command():
        assert signals.code is None


def test_a_fit_that_holds_sigterm_notes_it_once() -> None:
    signals = processes.StopSignals()
    with signals.during_command():
        signals.hold()
        signal.raise_signal(signal.SIGTERM)
        assert signals.terminated
        with pytest.raises(KeyboardInterrupt):  # which is not held
            signal.raise_signal(signal.SIGINT)
        assert signals.release()
        assert not signals.release()


def test_a_command_within_a_command_and_one_in_a_thread_change_nothing() -> None:
    signals = processes.StopSignals()
    with signals.during_command():
        signals.hold()
        signal.raise_signal(signal.SIGTERM)
        listening = signal.getsignal(signal.SIGTERM)
        with signals.during_command():
            assert signals.terminated
        assert signal.getsignal(signal.SIGTERM) == listening
    nested, seen = processes.StopSignals(), []

    def in_thread() -> None:
        with nested.during_command():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = Thread(target=in_thread)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an ignored Ctrl-C stays ignored
    with processes.StopSignals().during_command():
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(("signum", "code"), [(n, code) for n, _, code in CODES])
def test_outside_of_a_command_the_process_ends_where_it_stands(signum: int, code: int) -> None:
    done = run(
        "from probelight.io.process import STOP\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "STOP.listen()\n"
        "print('begun')\n"
        f"os.kill(os.getpid(), {int(signum)})\n"
        "print('never')"
    )
    assert done.returncode == code
    assert done.stdout == "begun\n"
    assert done.stderr == f"{processes.SENTENCES[code]}\n"


def test_only_the_first_process_of_several_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes.STOP, "begins_with", "")  # of a command before
    for rank, message in (("0", f"{processes.SENTENCES[processes.TERMINATED]}\n"), ("1", "")):
        monkeypatch.setenv("LOCAL_RANK", rank)
        assert processes.is_first_process() == (rank == "0")
        processes.say_stopped(processes.TERMINATED)
        assert capsys.readouterr().err == message


TASK = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "train", "SLURM_NTASKS": "4"}
SHELL = {**TASK, "SLURM_JOB_NAME": "bash"}
STEP = {**TASK, "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS_PER_NODE": "2"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "4"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    """Sets variables of a launcher, and no others."""

    def use(variables: dict[str, str]) -> None:
        names = "LOCAL_RANK NODE_RANK GROUP_RANK RANK WORLD_SIZE TORCHELASTIC_RUN_ID"
        for name in (*names.split(), *(n for n in os.environ if n.startswith("SLURM_"))):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return use


@pytest.mark.parametrize(
    ("variables", "is_first"),
    [
        ({}, True),
        # Lightning starts the others on each node: rank = node * devices + local rank.
        ({"LOCAL_RANK": "0", "NODE_RANK": "0"}, True),
        ({"LOCAL_RANK": "1", "NODE_RANK": "0"}, False),
        ({"LOCAL_RANK": "0", "NODE_RANK": "1"}, False),
        ({"NODE_RANK": "1"}, False),
        ({"LOCAL_RANK": "0", "GROUP_RANK": "1"}, False),
        # srun: the task's number in the job. The first one of the second node is not the first.
        ({**STEP, "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, True),
        ({**STEP, "SLURM_PROCID": "1", "SLURM_LOCALID": "1"}, False),
        ({**STEP, "SLURM_PROCID": "2", "SLURM_LOCALID": "0", "SLURM_NODEID": "1"}, False),
        ({**STEP, "SLURM_PROCID": "0", "LOCAL_RANK": "1"}, True),
        ({**STEP, "SLURM_PROCID": "1", "LOCAL_RANK": "0"}, False),
        # A batch script, and a shell in which nothing was started by srun.
        ({**TASK, "SLURM_PROCID": "0"}, True),
        (TASK, True),
        # In a shell of srun the processes are Lightning's.
        ({**SHELL, "SLURM_PROCID": "0", "LOCAL_RANK": "1"}, False),
        ({**SHELL, "SLURM_PROCID": "1"}, True),
        ({**SHELL, "SLURM_JOB_NAME": "interactive", "SLURM_PROCID": "1"}, True),
        # torchrun comes first, also below srun: the rank over all nodes.
        ({**TORCHRUN, "RANK": "0", "LOCAL_RANK": "0"}, True),
        ({**TORCHRUN, "RANK": "1", "LOCAL_RANK": "1"}, False),
        ({**TORCHRUN, "RANK": "2", "LOCAL_RANK": "0", "GROUP_RANK": "1"}, False),
        ({**TORCHRUN, **STEP, "RANK": "1", "SLURM_PROCID": "0"}, False),
        ({**TORCHRUN, **STEP, "RANK": "0", "SLURM_PROCID": "1"}, True),
    ],
)
def test_one_process_of_a_job_is_the_first(
    variables: dict[str, str],
    is_first: bool,
    environment: Callable[[dict[str, str]], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment(variables)
    assert processes.is_first_process() == is_first
    with processes.printed_once():
        print("line")
    assert capsys.readouterr().out == ("line\n" if is_first else "")


def test_a_rank_that_is_no_number_is_refused_by_its_name(
    environment: Callable[[dict[str, str]], None],
) -> None:
    environment({"LOCAL_RANK": "abc"})
    with pytest.raises(UsageError, match="environment variable LOCAL_RANK is 'abc'"):
        processes.is_first_process()


BY_SRUN = (
    "srun started 4 processes, but there must be one per device; give --trainer.devices 4 and "
    "srun --ntasks-per-node=4, or start only one process"
)


@pytest.mark.parametrize(
    ("variables", "num_devices", "message"),
    [
        ({}, 2, None),
        ({"LOCAL_RANK": "0", "WORLD_SIZE": "2"}, 2, None),  # Lightning's own
        ({**STEP, "SLURM_PROCID": "0"}, 4, None),
        ({**STEP, "SLURM_PROCID": "0"}, -1, None),
        ({**STEP, "SLURM_PROCID": "0"}, 1, BY_SRUN),
        ({**STEP, "SLURM_PROCID": "3"}, 1, ""),
        ({**TASK, "SLURM_STEP_NUM_TASKS": "4"}, 4, BY_SRUN),
        ({**SHELL, "SLURM_STEP_NUM_TASKS": "4"}, 1, None),
        ({**TASK, "SLURM_PROCID": "0"}, 1, None),  # a batch script
        ({**STEP, "SLURM_STEP_NUM_TASKS": "1"}, 1, None),
        ({**TORCHRUN, "RANK": "0"}, 4, None),
        (
            {**TORCHRUN, "RANK": "0"},
            1,
            "torchrun started 4 processes, but there must be one per device; give "
            "--trainer.devices 4, or start only one process",
        ),
    ],
)
def test_processes_that_would_each_do_all_of_the_work_are_refused_once(
    variables: dict[str, str],
    num_devices: int,
    message: str | None,
    environment: Callable[[dict[str, str]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment(variables)
    monkeypatch.setattr(processes.time, "sleep", lambda _: None)
    if message is None:
        processes.check_num_processes(num_devices)
        return
    with pytest.raises(UsageError if message else SystemExit) as ended:
        processes.check_num_processes(num_devices)
    assert str(ended.value) == (message or "2")


@pytest.mark.parametrize(
    ("variables", "follows"),
    [
        ({"LOCAL_RANK": "0"}, False),
        ({"LOCAL_RANK": "1"}, True),
        ({"LOCAL_RANK": "1", "NODE_RANK": "1"}, True),  # the first one of its node started it
        ({"LOCAL_RANK": "1", "PROBELIGHT_PARENT": "1"}, False),  # a shell did
        ({**TORCHRUN, "RANK": "1", "LOCAL_RANK": "1", "PROBELIGHT_PARENT": "1"}, False),
        ({**STEP, "SLURM_PROCID": "1", "SLURM_LOCALID": "1"}, False),
    ],
)
def test_further_processes_that_lightning_started_follow_the_first(
    variables: dict[str, str],
    follows: bool,
    environment: Callable[[dict[str, str]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment({"PROBELIGHT_PARENT": str(os.getppid()), **variables})
    bound: list[bool] = []
    monkeypatch.setattr(processes, "die_with_parent", lambda: bound.append(True))
    processes.follow_first_process()
    assert bool(bound) == follows
    assert (signal.getsignal(signal.SIGINT) is signal.SIG_IGN) == follows
    assert os.environ["PROBELIGHT_PARENT"] == str(os.getpid())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's end")
def test_a_process_bound_to_its_parent_ends_with_it() -> None:
    done = run(
        "import sys, subprocess\n"
        "child = ('from probelight.io.process import die_with_parent; die_with_parent(); '\n"
        "         'print(flush=True); import time; time.sleep(60)')\n"
        "started = subprocess.Popen([sys.executable, '-c', child], stdout=subprocess.PIPE)\n"
        "started.stdout.readline()\n"
        "os.write(1, str(started.pid).encode())\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert done.returncode == -signal.SIGKILL
    wait_until(processes.process(int(done.stdout)).known_dead, seconds=5)


NEVER = 2**22 + 1  # beyond the largest number that Linux gives out


def test_this_process_lives_and_has_the_number_of_the_system() -> None:
    me = processes.this_process()
    assert me.pid == os.getpid()
    assert me.host == processes.host_id()
    assert me.started > 0
    assert not me.known_dead()
    assert str(me) == f"process {os.getpid()} on {processes.host_id().split('/')[0]}"
    assert replace(me, started=me.started + 1).known_dead()  # a later one with the same number
    assert not replace(me, started=0).known_dead()  # nobody said when it began
    assert processes.Process(processes.host_id(), NEVER, 1).known_dead()
    assert processes.process(NEVER) == processes.Process(processes.host_id(), NEVER, 0)
    foreign = processes.Process("elsewhere/0123/pid", NEVER, 1)
    assert not foreign.known_dead()  # of another host nothing is known
    foreign.kill()  # returns at once


def test_a_process_that_ended_is_dead_before_anybody_asks_for_its_code() -> None:
    with subprocess.Popen(["true"]) as child:
        wait_until(processes.process(child.pid).known_dead, seconds=5)
        assert child.returncode is None  # it is not waited for: a zombie has its number still
    with subprocess.Popen(["sleep", "60"]) as child:
        child_process = processes.process(child.pid)
        assert not child_process.known_dead()
        child_process.kill()
        assert child_process.known_dead()
        assert child.wait() == -signal.SIGKILL
