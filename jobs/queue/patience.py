"""Asking a storage that may be away for a while: restarted, locked, on a full disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import SQLAlchemyError

from jobs.queue.storage import cause_of, free_storage
from jobs.settings import EngineSettings

STORAGE_ERRORS = (SQLAlchemyError, StorageInternalError)
_PATIENCE = 20  # graces that a storage may be away before the worker gives up

T = TypeVar("T")


class Patience:
    """Asks the storage again while it does not answer.

    Args:
        url: The storage.
        engine: How long a pause is, and when the patience ends.
        stop: Set when the worker is to end, which does not wait.
        say: Prints a line.
    """

    def __init__(
        self,
        url: sa.URL,
        engine: EngineSettings,
        stop: threading.Event,
        say: Callable[[str], None],
    ) -> None:
        self.url = url
        self.engine = engine
        self.stop = stop
        self.say = say

    def __call__(self, ask: Callable[[], T]) -> T:
        """What the storage answers; its error when the patience or the worker ends."""
        end = time.monotonic() + _PATIENCE * self.engine.grace_seconds
        while True:
            try:
                return ask()
            except STORAGE_ERRORS as error:
                if time.monotonic() > end or self.stop.is_set():
                    raise
                self.say(f"the storage does not answer, trying again: {cause_of(error)}")
                free_storage(self.url)
                self.stop.wait(self.engine.poll_seconds)
