from __future__ import annotations

from argparse import Namespace

import pytest
import torch

from benchmarks.zero_shot import agreement, measure, no_vocabulary_logits, num_operations
from probelight.lightning_modules.masked_choice import MaskedChoice


def test_quick_scores_are_those_of_the_peers() -> None:
    chosen = Namespace(
        quick=True,
        model=None,
        mirror=None,
        items=None,
        rounds=1,
        max_tokens=256,
        device="cpu",
        output=None,
    )
    figures = measure(chosen)
    assert figures["largest difference, batches of 8"] < 1e-5
    assert figures["largest difference, fill-mask pipeline"] < 1e-5
    assert figures["items a second, ours"] > 0


def test_a_peer_that_chooses_otherwise_is_an_error() -> None:
    ours, theirs = [torch.tensor([1.0, 2.0])], [torch.tensor([2.0, 1.0])]
    assert agreement(ours, [torch.tensor([3.0, 4.0])]) < 1e-12  # up to a constant
    with pytest.raises(RuntimeError, match="item 0"):
        agreement(ours, theirs)


def test_logits_of_the_vocabulary_are_noticed() -> None:
    weight = torch.randn(50, 4)
    with no_vocabulary_logits(50):
        torch.randn(3, 4) @ weight[:7].t()
    with pytest.raises(RuntimeError, match="3, 50"), no_vocabulary_logits(50):
        torch.nn.functional.linear(torch.randn(3, 4), weight)


def test_operations_counted_are_those_of_the_products() -> None:
    module = MaskedChoice()  # 4 layers, H 256, 4 heads, feed-forward 1024
    with torch.no_grad():
        operations = num_operations(module, [10])
    layer = 10 * (2 * (4 * 256 * 256 + 2 * 256 * 1024) + 4 * 10 * 256)
    at_mask = 2 * (4 * 256 * 256 + 2 * 256 * 1024) + 4 * 10 * 4 * 256
    assert operations == 3 * layer + at_mask
