from __future__ import annotations

import threading
import time

from probelight.callbacks.wandb.courier import Courier


def test_calls_are_made_in_order_on_another_thread() -> None:
    courier, made = Courier(), []
    for number in range(100):
        courier.send(lambda number=number: made.append((number, threading.get_ident())))
    assert courier.wait(5)
    assert [number for number, _ in made] == list(range(100))
    assert {thread for _, thread in made}.isdisjoint({threading.get_ident()})


def test_a_full_queue_turns_calls_away_at_once() -> None:
    courier, release = Courier(capacity=3), threading.Event()
    courier.send(release.wait)
    start = time.perf_counter()
    while courier.send(lambda: None):
        pass
    assert not courier.send(lambda: None)
    assert not courier.wait(5)
    assert time.perf_counter() - start < 1
    release.set()


def test_a_stuck_call_is_waited_for_once() -> None:
    courier, release = Courier(), threading.Event()
    courier.send(release.wait)
    start = time.perf_counter()
    assert not courier.wait(0.2)
    assert time.perf_counter() - start > 0.1
    # It has been under way for as long as anyone would wait.
    again = time.perf_counter()
    assert not courier.wait(0.2)
    assert time.perf_counter() - again < 0.1
    release.set()
