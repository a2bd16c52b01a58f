"""Which cells may start, and which wait in vain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobs.queue.entry import COMPLETE, FAIL, RUNNING, Entry
from jobs.queue.lease import RESULT


def is_finished(runs_dir: Path, key: str) -> bool:
    """Whether a cell has a result, whatever the queue says."""
    return (runs_dir / key / RESULT).exists()


class Needs:
    """What the cells of a queue wait for.

    Args:
        runs_dir: Folder of the run folders.
        entries: The queue's entries.
    """

    def __init__(self, runs_dir: Path, entries: Sequence[Entry]) -> None:
        self.runs_dir = runs_dir
        self.entries = entries
        self._failed = {entry.key for entry in entries if entry.state is FAIL}
        self._open = [entry for entry in entries if not entry.state.is_finished()]

    def are_met(self, entry: Entry) -> bool:
        """Whether all that a cell needs is finished or has failed for good."""
        return all(key in self._failed or is_finished(self.runs_dir, key) for key in entry.needs)

    def any_runs(self) -> bool:
        """Whether some worker has a cell."""
        return any(entry.state is RUNNING for entry in self.entries)

    def any_may_start(self) -> bool:
        """Whether some cell that is not finished has what it needs."""
        return any(map(self.are_met, self._open))

    def in_vain(self) -> tuple[str, ...]:
        """A line for each cell that waits for what nobody runs, and one for all behind them."""
        if not self._open or self.any_runs() or self.any_may_start():
            return ()
        coming = {entry.key for entry in self.entries if entry.state is not COMPLETE}
        lines = []
        for entry in self._open:
            lost = [k for k in entry.needs if k not in coming and not is_finished(self.runs_dir, k)]
            if lost:
                lines.append(
                    f"{entry.key} waits for {', '.join(lost)}: neither finished nor queued"
                )
        return *lines, f"{len(self._open)} cells wait in vain; run `train.py sweep plan` again"
