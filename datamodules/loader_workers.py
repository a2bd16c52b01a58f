"""What the processes of a loader have in common, wherever they are started."""

from __future__ import annotations

import os
import signal
import threading


def outlive_sigterm(worker: int) -> None:
    """Lets a loader's process end with SIGTERM from its parent alone, as `worker_init_fn`.

    A scheduler signals all processes of a run at once. Without its loaders the training process
    could not finish the step behind which it saves its state.

    Args:
        worker: Number of the process, not used.
    """
    if not hasattr(signal, "sigwaitinfo"):
        return  # macOS does not say who sent a signal
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, name="sigterm", daemon=True).start()


def _end_with_parent() -> None:
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
        pass
    os._exit(0)
