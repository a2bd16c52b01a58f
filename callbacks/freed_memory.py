"""Memory that is free goes back to the system during long scorings on the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import pytorch_lightning as pl


class FreedMemory(pl.Callback):
    """Lets the C library give free memory back every so many batches of a prediction.

    The answers to each batch are kept, and glibc puts them between the large blocks of one batch
    and those of the next. As no two batches are of one shape, the holes are seldom filled: twelve
    thousand minimal pairs left 4.5 GB of them.

    Args:
        interval: Batches from one time to the next.
    """

    def __init__(self, interval: int = 32) -> None:
        self.interval = interval

    def on_predict_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Gives back what is free."""
        give_back = _trim()
        if give_back is not None and (batch_idx + 1) % self.interval == 0:
            give_back(0)


@cache
def _trim() -> Callable[[int], int] | None:
    """`malloc_trim` of glibc; None with other C libraries."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library of no name
        return None
    return found
