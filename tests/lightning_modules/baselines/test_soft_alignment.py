"""Alignment, enhancement and pooling against numbers worked out by hand."""

from __future__ import annotations

import math

import torch

from probelight.lightning_modules.baselines.soft_alignment import (
    enhance,
    masked_softmax,
    pool,
    soft_alignment,
)

LN3 = math.log(3)


def _column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)[None, :, None]


def test_soft_alignment_by_hand() -> None:
    """a = (1, 0), b = (ln 3, 0), so e = ((ln 3, 0), (0, 0)), and e^ln 3 : e^0 = 3 : 1.

    a~_1 = 3/4 ln 3 + 1/4 0; a~_2 = 1/2 ln 3 + 1/2 0; b~_1 = 3/4 1 + 1/4 0; b~_2 = 1/2 1 + 1/2 0.
    """
    mask = torch.ones(1, 2, dtype=torch.bool)
    aligned, other = soft_alignment(_column(1, 0), _column(LN3, 0), mask, mask)
    torch.testing.assert_close(aligned, _column(0.75 * LN3, 0.5 * LN3))
    torch.testing.assert_close(other, _column(0.75, 0.5))


def test_padding_does_not_take_part() -> None:
    first_mask = torch.tensor([[True, True, False]])
    second_mask = torch.tensor([[True, False, True]])
    first, second = _column(1, 0, 90), _column(LN3, -70, 0)
    aligned, other = soft_alignment(first, second, first_mask, second_mask)
    torch.testing.assert_close(aligned[:, :2], _column(0.75 * LN3, 0.5 * LN3))
    torch.testing.assert_close(other[:, ::2], _column(0.75, 0.5))


def test_nothing_is_aligned_to_nothing() -> None:
    nothing, something = torch.zeros(1, 2, dtype=torch.bool), torch.ones(1, 2, dtype=torch.bool)
    first = _column(1, 2).requires_grad_()
    aligned, other = soft_alignment(first, _column(3, 4), something, nothing)
    assert aligned.flatten().tolist() == [0, 0]
    (aligned.sum() + other.sum()).backward()
    assert first.grad is not None
    assert torch.isfinite(first.grad).all()


def test_masked_softmax_by_hand() -> None:
    scores = torch.tensor([[0.0, LN3, 500.0], [1.0, 2.0, 3.0]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    found = masked_softmax(scores, mask)
    torch.testing.assert_close(found, torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]]))


def test_enhancement_by_hand() -> None:
    found = enhance(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 5.0]]]))
    assert found.flatten().tolist() == [1, 2, 3, 5, -2, -3, 3, 10]


def test_pooling_by_hand() -> None:
    tokens = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [9.0, 9.0]], [[5.0, 5.0]] * 3])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    assert pool(tokens, mask).tolist() == [[2, -3, 3, -2], [0, 0, 0, 0]]
