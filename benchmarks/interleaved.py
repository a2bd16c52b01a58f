"""Timing of peers in one process, in turns, so that what slows the machine slows all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import torch


def clock() -> float:
    """Return seconds on a clock that waits for everything begun on a GPU."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()


def interleave(
    peers: Mapping[str, Callable[[], Any]], rounds: int
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Return the seconds of each call of each peer, and the result of its last call.

    One call of each that is not counted comes first, then `rounds` of them, whose order turns by
    one place per round. A float that a peer returns is its own measure of its seconds.
    """
    names = list(peers)
    answers = {name: peers[name]() for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            start = clock()
            answer = answers[name] = peers[name]()
            seconds[name].append(answer if isinstance(answer, float) else clock() - start)
    return seconds, answers


def ratios(seconds: Mapping[str, list[float]], ours: str) -> dict[str, float]:
    """Return how many times longer than ours each peer takes: the median of the rounds' ratios."""
    return {
        name: median(peer / base for peer, base in zip(times, seconds[ours], strict=True))
        for name, times in seconds.items()
        if name != ours
    }
