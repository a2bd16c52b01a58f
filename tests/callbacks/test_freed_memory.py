from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from probelight.callbacks import freed_memory
from probelight.callbacks.freed_memory import FreedMemory


def _batches(callback: FreedMemory, number: int) -> None:
    nothing: Any = None
    for index in range(number):
        callback.on_predict_batch_end(nothing, nothing, None, None, index)


@pytest.mark.parametrize(("number", "times"), [(3, 0), (4, 1), (11, 2)])
def test_memory_is_given_back_every_so_many_batches(
    number: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[int] = []
    monkeypatch.setattr(freed_memory, "_trim", lambda: called.append)
    _batches(FreedMemory(interval=4), number)
    assert called == [0] * times


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    freed_memory._trim.cache_clear()
    try:
        assert freed_memory._trim() is None
        _batches(FreedMemory(interval=1), 3)
    finally:
        freed_memory._trim.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_holes_between_what_is_kept_go_back_to_the_system() -> None:
    if freed_memory._trim() is None:
        pytest.skip("no glibc")
    _batches(FreedMemory(interval=1), 1)  # so that all of it comes anew from the system
    start = _resident()
    kept, holes = [], []
    for _ in range(2_000):  # 200 MB in blocks that are too small for a mapping of their own
        holes.append(torch.ones(25_000))
        kept.append(torch.ones(8))
    assert _resident() - start > 150 << 20
    holes.clear()
    _batches(FreedMemory(interval=1), 1)
    assert _resident() - start < 50 << 20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
