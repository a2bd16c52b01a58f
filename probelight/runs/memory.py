"""What a training needs of memory, as it is said to the user, and what a machine has.

Nothing heavy is imported here: `training.memory` measures what is needed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LARGE = 500_000_000  # bytes of weights; below, nothing is measured and nothing said
GB = 1e9


@dataclass(frozen=True)
class MemoryNeed:
    """The bytes that a training takes at its peak, in each process.

    Args:
        weights: Of the model, with its buffers and what a method against forgetting holds.
        gradients: Of what is trained; with DDP also its copy of them.
        moments: AdamW's two of each weight that is trained.
        activations: All else at the peak; None where it could not be told.
        batch: What the activations are of, such as "batches of 16 items".
        problem: Why there are no activations.
        held: Of the weights, a copy from before training, which is whole in each process.
        step_tokens: Places of a step's batch that hold a token or pad, at most; 0 if unknown.
        unreturned: What a CPU's C library does not give back of what was freed.
    """

    weights: int
    gradients: int
    moments: int
    activations: int | None = None
    batch: str = ""
    problem: str = ""
    step_tokens: int = 0
    unreturned: int = 0
    held: int = 0

    @property
    def fixed(self) -> int:
        """What is taken whatever the batches."""
        return self.weights + self.gradients + self.moments

    @property
    def total(self) -> int:
        """All that is known to be taken."""
        return self.fixed + (self.activations or 0) + self.unreturned

    def describe(self, per: str = "") -> str:
        """Say it in a line; `per` is what takes it, such as " per run"."""
        copy_text = f" ({self.held / GB:.1f} a copy from before training)" if self.held else ""
        weights_text = f"weights {self.weights / GB:.1f}{copy_text}, "
        weights_text += f"gradients {self.gradients / GB:.1f}, "
        weights_text += f"AdamW {self.moments / GB:.1f}"
        if self.activations is None:
            why = f" ({self.problem})" if self.problem else ""
            return f"{self.total / GB:.1f} GB{per}: {weights_text}; plus activations{why}"
        activations = f"activations {self.activations / GB:.1f} for {self.batch}"
        if self.unreturned >= GB / 20:
            activations += f", freed but not given back {self.unreturned / GB:.1f}"
        return f"about {self.total / GB:.1f} GB{per}: {weights_text}, {activations}"


def machine_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may take at most: the machine's, or its group's.

    Schedulers and containers give a control group less than the machine has. `root` is where the
    files of the system are.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError):  # not of Linux
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            base, name = root / "sys/fs/cgroup", "memory.max"
            if controllers:  # of version 1
                base, name = base / controllers, "memory.limit_in_bytes"
            if controllers not in ("", "memory"):
                continue
            # A group is also bound by those that it is in; within a container the path may be the
            # host's, and the group's own files are at the top.
            inner = Path(path.lstrip("/"))
            for group in (inner, *inner.parents):
                with suppress(OSError, ValueError):  # no such file, or "max"
                    limits.append(int((base / group / name).read_text()))
    return min(limits)
