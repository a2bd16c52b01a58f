"""A thread that talks to Weights & Biases, so that a run never waits for it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

Call = Callable[[], Any]
CAPACITY = 5000  # calls that wait; a run of many hours logs fewer


class Courier:
    """Makes calls one after another on a daemon thread; sending one never blocks.

    Args:
        capacity: Calls that may wait; further ones are turned away.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._calls: queue.Queue[Call] = queue.Queue(capacity)
        self._since: float | None = None
        self._thread: threading.Thread | None = None

    def send(self, call: Call) -> bool:
        """Queues a call that must not raise; False where the queue is full."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="wandb", daemon=True)
            self._thread.start()
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            return False
        return True

    def wait(self, seconds: float) -> bool:
        """Waits until everything sent so far is done; False where it is not done in time.

        A call that has been under way for so long already is not waited for.
        """
        since = self._since
        stuck = 0.0 if since is None else time.monotonic() - since
        done = threading.Event()
        return self.send(done.set) and done.wait(max(0.0, seconds - stuck))

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            self._since = time.monotonic()
            call()
            self._since = None


@cache
def shared_courier() -> Courier:
    """The one of this process: W&B has one run at a time, so a run ends before the next begins."""
    return Courier()
