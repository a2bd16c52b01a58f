"""SIGTERM and Ctrl-C as a driver hears them: noted, so that its cells can save their state."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from probelight.io.stop_signals import INTERRUPTED, TERMINATED


class Stop:
    """What a driver was told.

    Attributes:
        code: Exit code that the first signal asks for; 0 as long as there was none.
        times: How many signals there were.
    """

    def __init__(self) -> None:
        self.code = self.times = 0

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Notes signals from here to the end of the block."""
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.getsignal(number) for number in numbers}
        try:
            self._listen()
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _listen(self) -> None:
        signal.signal(signal.SIGTERM, self._note)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as of a job in the background
            signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.times += 1
        self.code = self.code or (TERMINATED if number == signal.SIGTERM else INTERRUPTED)
