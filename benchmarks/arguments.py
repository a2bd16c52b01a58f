"""Options that all benchmarks share."""

from __future__ import annotations

import argparse

import torch


class Arguments(argparse.ArgumentParser):
    """A parser with the options that all benchmarks share.

    Args:
        doc: The docstring of the benchmark; its first line says what it measures.
        rounds: Calls of each peer; None for a benchmark without peers.
        quick: Help of `--quick`; empty for a benchmark without it.
    """

    def __init__(self, doc: str | None, rounds: int | None = None, quick: str = "") -> None:
        super().__init__(description=(doc or "").splitlines()[0])
        self.add_argument("--threads", type=int, default=torch.get_num_threads())
        self.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
        self.add_argument("--output", help="JSON file for the figures")
        if rounds is not None:
            self.add_argument("--rounds", type=int, default=rounds)
        if quick:
            self.add_argument("--quick", action="store_true", help=f"{quick}, to see that it works")

    def chosen(self) -> argparse.Namespace:
        """Parse the command line, and give torch its threads."""
        arguments = self.parse_args()
        torch.set_num_threads(arguments.threads)
        return arguments
