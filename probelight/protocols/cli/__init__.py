"""The command line: `train.py`, `python -m probelight` and the command `probelight` call `main`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from probelight.io.process import STOP, USAGE_ERROR

__all__ = ["USAGE_ERROR", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        arguments: The words of the command line; by default those that the process was given.
    """
    if arguments is None:
        STOP.listen()  # before the slower imports, so that a signal is answered at any moment
        arguments = sys.argv[1:]
    from probelight.protocols.cli.dispatch import run

    return run(list(arguments))
