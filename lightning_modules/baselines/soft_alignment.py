"""The parts of ESIM that have no weights (Chen et al. 2017, sections 3.2 and 3.3).

Padding and empty sequences never change what real tokens get, and never give NaN: attention over
nothing is 0, and so is the pooling of nothing.

Shapes: P pairs, L and L' tokens, D numbers a token.
"""

from __future__ import annotations

import torch
from torch import Tensor


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension among the places where `mask` is True; 0 elsewhere.

    Args:
        scores: (..., L).
        mask: Booleans that broadcast to `scores`; without a True a row is all 0.
    """
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1) * mask


def soft_alignment(
    first: Tensor, second: Tensor, first_mask: Tensor, second_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """For each token of either sequence, the sum of the other's tokens by their likeness to it.

    With e_ij = a_i . b_j: a~_i = sum_j softmax_j(e_ij) b_j and b~_j = sum_i softmax_i(e_ij) a_i.

    Args:
        first: (P, L, D) tokens a.
        second: (P, L', D) tokens b.
        first_mask: (P, L) True at real tokens.
        second_mask: (P, L') the same.

    Returns:
        a~ (P, L, D) and b~ (P, L', D), 0 where the other sequence is empty. What stands at padding
        has no meaning.
    """
    likeness = torch.bmm(first, second.transpose(1, 2))  # (P, L, L')
    to_second = masked_softmax(likeness, second_mask[:, None, :])
    to_first = masked_softmax(likeness.transpose(1, 2), first_mask[:, None, :])
    return torch.bmm(to_second, second), torch.bmm(to_first, first)


def enhance(tokens: Tensor, aligned: Tensor) -> Tensor:
    """[a; a~; a - a~; a * a~], (..., 4D) from tokens and what is aligned to them (..., D)."""
    return torch.cat([tokens, aligned, tokens - aligned, tokens * aligned], dim=-1)


def largest(tokens: Tensor, mask: Tensor) -> Tensor:
    """Element-wise maximum over the real tokens, (P, D); 0 without any.

    Args:
        tokens: (P, L, D).
        mask: (P, L) True at real tokens.
    """
    real = mask[:, :, None]
    found = tokens.masked_fill(~real, torch.finfo(tokens.dtype).min).amax(dim=1)
    return found.masked_fill(~real.any(dim=1), 0.0)


def pool(tokens: Tensor, mask: Tensor) -> Tensor:
    """Mean and maximum over the real tokens, side by side: (P, 2D); 0 without any.

    Args:
        tokens: (P, L, D).
        mask: (P, L) True at real tokens.
    """
    count = mask.sum(dim=1, keepdim=True).clamp(min=1)
    mean = (tokens * mask[:, :, None]).sum(dim=1) / count
    return torch.cat([mean, largest(tokens, mask)], dim=-1)
