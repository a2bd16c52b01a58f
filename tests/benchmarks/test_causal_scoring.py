from __future__ import annotations

from argparse import Namespace

import pytest

from benchmarks.causal_scoring import agreement, measure


def test_quick_log_likelihoods_are_those_of_the_peers() -> None:
    chosen = {"mirror": None, "items": None, "rounds": 1, "max_tokens": 8192, "peer_batch": 3}
    figures = measure(Namespace(quick=True, device="cpu", output=None, **chosen))
    assert figures["largest difference, one request a choice"] < 1e-5
    assert figures["items a second, ours"] > 0


def test_a_peer_that_says_something_else_is_an_error() -> None:
    assert agreement([[-100.0, -2.0]], [[-100.0005, -2.0]]) == pytest.approx(5e-6, rel=1e-3)
    with pytest.raises(RuntimeError, match="item 1"):
        agreement([[-1.0], [-2.0]], [[-1.0], [-2.1]])
