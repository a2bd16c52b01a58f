"""A loader whose worker processes end with SIGTERM from their parent alone.

A scheduler signals all processes of a run at once. Without its loaders the training process could
not finish the step behind which it saves its state.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

# macOS does not say who sent a signal.
_TELLS_SENDERS = hasattr(signal, "sigwaitinfo")


class WorkerLoader(DataLoader[Any]):
    """A DataLoader whose worker processes outlive a SIGTERM that is not from their parent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("worker_init_fn", _outlive_sigterm)
        super().__init__(*args, **kwargs)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        """Begin an epoch, with SIGTERM blocked in workers from their very start.

        Libraries start threads anew in a forked process (the W&B client does, by OpenTelemetry),
        and a signal that one of these does not block would still end the worker.
        """
        if not (self.num_workers and _TELLS_SENDERS):
            return super().__iter__()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            return super().__iter__()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _outlive_sigterm(worker: int) -> None:
    if _TELLS_SENDERS:  # the parent has SIGTERM blocked here
        threading.Thread(target=_end_with_parent, name="sigterm", daemon=True).start()


def _end_with_parent() -> None:
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
        pass
    os._exit(0)
