"""Functions in a process of their own, which ends where they take too much time or memory.

What strangers write can go on for ever: a chat template that loops, a pattern that backtracks. No
thread can be stopped in the middle of it, and there is no limit for the memory of one.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

MAX_CHARACTERS = 1 << 24  # of an answer


class BoundedError(Exception):
    """What a function raised, in one line."""


class LimitError(BoundedError):
    """A function took too much time or memory."""


class Bounded:
    """A function that is called in a process of its own, which is started when it is first called.

    Args:
        function: As "module:name". It takes and returns what JSON has.
        seconds: Most time of the processor that a call may take.
        gigabytes: Most memory for what it makes.
    """

    def __init__(self, function: str, seconds: int = 10, gigabytes: int = 1) -> None:
        self._function, self._seconds, self._gigabytes = function, seconds, gigabytes
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0  # a forked process would read the answers of its parent
        self._lock = threading.Lock()

    def __call__(self, **arguments: Any) -> Any:
        """Return what the function returns; BoundedError says why there is nothing."""
        with self._lock:
            process = self._process
            if process is None or self._owner != os.getpid() or process.poll() is not None:
                process = self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):  # it has ended, and says why below
                process.stdin.write(json.dumps(arguments) + "\n")
                process.stdin.flush()
            answer = process.stdout.readline()
            if not answer:
                is_late = process.wait() == -signal.SIGPROF
                limit = f"{self._seconds} seconds" if is_late else f"{self._gigabytes} GB of memory"
                raise LimitError(f"it takes more than {limit}")
        has_returned, content = json.loads(answer)
        if not has_returned:
            raise BoundedError(content)
        return content

    def _start(self) -> subprocess.Popen[str]:
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        limits = str(self._seconds), str(self._gigabytes)
        self._process = process = subprocess.Popen(
            # -P: the user's folder may hold a json.py.
            [sys.executable, "-P", "-m", __name__, self._function, *limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        )
        self._owner = os.getpid()
        weakref.finalize(self, _end, process, self._owner)
        return process


def matches(patterns: Sequence[str], texts: Sequence[str]) -> list[list[bool]]:
    """Return for each pattern which texts it matches, from their beginnings to their ends."""
    return [[bool(re.fullmatch(p, text, re.DOTALL)) for text in texts] for p in patterns]


def _end(process: subprocess.Popen[str], owner: int) -> None:
    if owner == os.getpid():
        process.kill()
        process.communicate()


def _serve(function: str, seconds: int, gigabytes: int) -> None:
    """Answer calls, a line each, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            call = resolve_name(function)
            resource.setrlimit(resource.RLIMIT_DATA, (gigabytes * 10**9,) * 2)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            text = json.dumps([True, call(**json.loads(line))])
            if len(text) > MAX_CHARACTERS:
                raise ValueError(f"it makes {len(text):,} characters, more than {MAX_CHARACTERS:,}")
        except MemoryError:
            os._exit(1)
        except Exception as error:
            first_line = next(iter(str(error).strip().splitlines()), "")
            text = json.dumps([False, f"{type(error).__name__}: {first_line[:300]}".rstrip(".: ")])
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(text, file=answers, flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1], *map(int, sys.argv[2:]))
