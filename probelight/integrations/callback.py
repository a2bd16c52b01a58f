"""The common part of the callbacks for all trainers: when to score, and several processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch

from probelight.integrations.watch import Watch, WatchState
from probelight.io.errors import UsageError, quietly
from probelight.reports.notebook import Results


class WatchedTraining:
    """Base class of the callbacks for all trainers.

    Args:
        every: Score every this many steps, or "epoch".
        watch: The `Watch` that scores the model.
    """

    def __init__(self, every: int | Literal["epoch"], watch: Watch) -> None:
        if every != "epoch" and (type(every) is not int or every < 1):
            raise UsageError(f"every={every!r}: give a number of steps, or 'epoch'")
        self.every = every
        self.watch = watch
        self._tried = -1  # the step of the last look

    @property
    def results(self) -> Results:
        """The results so far, as `probelight.load` returns them."""
        return Results(self.watch.folder)

    @property
    def changes(self) -> pd.DataFrame:
        """What the model gained and lost; see `Watch.changes`."""
        return self.watch.changes

    @property
    def best_checkpoint(self) -> Path | None:
        """Folder of the best checkpoint; None if none is kept."""
        return self.watch.best_checkpoint

    def begin(self, network: Any, tokenizer: Any, step: int, sharded: str = "") -> None:
        """Take the model to watch; `sharded` names what splits its weights over processes."""
        if sharded:
            raise UsageError(
                f"the weights are sharded ({sharded}), but {type(self).__name__} needs all of them "
                "in one process"
            )

        def begun() -> WatchState:
            watch = self.watch
            with quietly():
                watch.begin(network, tokenizer, step)
            if watch.folder != watch.output_dir:
                print(f"probelight: {watch.folder} has the scores of this training")
            return watch.state

        self.watch.state = by_first_process(begun)
        self._tried = -1

    def look(self, network: Any, step: int) -> dict[str, float]:
        """Score the model; return the scores to log, or none if they were logged before."""
        if step == self._tried:  # a step of several micro-batches
            return {}
        self._tried = step

        def new_scores() -> tuple[dict[str, float], WatchState]:
            is_scored = any(look.step == step for look in self.watch.looks)
            scores = {} if is_scored else self.watch.look(network, step)
            return scores, self.watch.state

        scores, self.watch.state = by_first_process(new_scores)
        return {f"probe/{name}": value for name, value in scores.items()}

    def end(self) -> None:
        """Write what the model gained and lost, after the last scores."""
        by_first_process(self.watch.write_changes)


def by_first_process(action: Callable[[], Any]) -> Any:
    """Call a function in the first of several processes; all get what it returned or raised."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return action()
    ended: list[Any] = [None, None]
    if torch.distributed.get_rank() == 0:
        try:
            ended[0] = action()
        except Exception as error:
            ended[1] = error
    torch.distributed.broadcast_object_list(ended, src=0)
    if ended[1] is not None:
        raise ended[1]
    return ended[0]
