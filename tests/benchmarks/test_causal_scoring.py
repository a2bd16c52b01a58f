from __future__ import annotations

from argparse import Namespace

import pytest

from benchmarks.causal_scoring import agreement, measure, most_saved
from benchmarks.random_model import random_gpt2
from probelight.models.causal import CausalScorer
from probelight.probes.record import Record


def test_quick_log_likelihoods_are_those_of_the_peers() -> None:
    chosen = {"mirror": None, "items": None, "rounds": 1, "max_tokens": 8192, "peer_batch": 3}
    figures = measure(Namespace(quick=True, device="cpu", output=None, **chosen))
    assert figures["largest difference, one request a choice"] < 1e-5
    assert figures["items a second, ours"] > 0


def test_what_sharing_can_save_is_counted_by_hand() -> None:
    texts = ["the cat sat", "the cat ran off"]
    model, tokenizer = random_gpt2(texts, 2, 64, 2000)
    record = Record("a", "the cat", ("sat", "ran off"), 0)
    # Read are the cat (twice by requests), and "ran": 5 tokens, of which 3 differ. Scored behind
    # "cat" (once for both) and behind "ran".
    assert [len(ids) for ids in tokenizer(texts)["input_ids"]] == [3, 4]
    layers, logits = 12 * 2 * 64**2, 64 * 2000
    expected = 5 * (layers + logits) / (3 * layers + 2 * logits)
    assert most_saved(CausalScorer(model, tokenizer), [record]) == pytest.approx(expected)


def test_a_peer_that_says_something_else_is_an_error() -> None:
    assert agreement([[-100.0, -2.0]], [[-100.0005, -2.0]]) == pytest.approx(5e-6, rel=1e-3)
    with pytest.raises(RuntimeError, match="item 1"):
        agreement([[-1.0], [-2.0]], [[-1.0], [-2.1]])
