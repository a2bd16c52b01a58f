"""Texts of like length read together, so that little of what an encoder reads is padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from probelight.io.workload import count_read
from probelight.models.checks import ignores_padding
from probelight.models.networks import Batch, is_gathered_by_layer

# What a call of an encoder costs on a CPU however little it reads, in tokens.
_CALL_TOKENS = 32
# Batches of less than so many calls' cost are read at once: to look at the lengths, a GPU has to
# finish what it does, which costs about a call, and a tenth of a batch may be padding.
_LEAST_CALLS = 16


class LikeLength:
    """Hands an encoder the texts of a batch in groups of like length.

    The groups are those that take the least time; if the encoder's output depends on padding, the
    texts of a group have one length.

    Attributes:
        notices: That padding counts, for the reader of the results.
    """

    def __init__(self, encoder: nn.Module) -> None:
        self.notices: tuple[str, ...] = ()
        self._encoder = encoder
        if not ignores_padding(encoder):
            name = type(encoder).__name__
            self.notices = (
                f"texts of one length were read together: padding changes what {name} answers",
            )

    def __call__(self, batch: Mapping[str, Tensor], read: Callable[[Batch], Tensor]) -> Tensor:
        """Return what `read` makes (B, ...) of texts: tensors (B, L), or (B,) without tokens."""
        mask = batch["attention_mask"]
        groups = self.groups(mask)
        if len(groups) == 1:
            return read({**batch})
        outputs, rows = [], [torch.tensor(row_list, device=mask.device) for row_list, _ in groups]
        for group_rows, (_, width) in zip(rows, groups, strict=True):
            texts = {name: tensor[group_rows] for name, tensor in batch.items()}
            outputs.append(read({n: t if t.dim() == 1 else t[:, :width] for n, t in texts.items()}))
        return torch.cat(outputs)[torch.cat(rows).argsort()]

    def groups(self, mask: Tensor) -> list[tuple[list[int], int]]:
        """Return the rows and the width of each group of texts with a mask (B, L), now read."""
        num_texts, longest = mask.shape
        groups, lengths = [([*range(num_texts)], longest)], mask.sum(dim=1)
        call_tokens = 0.0 if self.notices else call_cost(self._encoder, mask.device.type)
        is_simulated = hasattr(mask, "fake_mode")  # which has no lengths
        if not is_simulated and mask.numel() >= _LEAST_CALLS * call_tokens:
            groups = groups_of_like_length(lengths.tolist(), call_tokens)
        count_read(sum(len(rows) * width for rows, width in groups), lengths.sum())
        return groups


def call_cost(network: nn.Module, device_type: str) -> float:
    """Return what a call costs, in tokens; infinite where processes must make equally many."""
    if is_gathered_by_layer(network):
        return float("inf")
    if device_type == "cpu":
        return _CALL_TOKENS
    # A GPU waits for launches: a call is some 200 of them per layer, forward and backward, a
    # millisecond however little there is to do. A token takes 72 H² operations per layer, and a
    # large GPU does so many in that millisecond, in single and in lower precision.
    config: Any = network.config
    is_lower = torch.get_float32_matmul_precision() != "highest"
    launch_cost = 4e11 if is_lower or torch.is_autocast_enabled(device_type) else 5e10
    return launch_cost / (72 * int(config.get_text_config().hidden_size) ** 2)


def groups_of_like_length(
    lengths: Sequence[int], call_tokens: float
) -> list[tuple[list[int], int]]:
    """Return the rows and the width of each group of texts, those that cost least to read.

    Args:
        lengths: Tokens of each text.
        call_tokens: What a further group costs, in tokens.
    """
    sizes, counts = np.unique(lengths, return_counts=True)
    num_texts = np.append(0, counts.cumsum())  # of texts that are shorter than each size
    # The least cost of the texts shorter than each size, and where the last group of them begins.
    costs, begins = np.zeros(len(num_texts)), np.zeros(len(num_texts), dtype=int)
    for end in range(1, len(num_texts)):
        padded = sizes[end - 1] * (num_texts[end] - num_texts[:end])
        totals = costs[:end] + padded + call_tokens
        begins[end] = totals.argmin()
        costs[end] = totals[begins[end]]
    groups, order, end = [], np.argsort(lengths, kind="stable"), len(sizes)
    while end:
        begin = begins[end]
        rows = order[num_texts[begin] : num_texts[end]]
        groups.append((rows.tolist(), int(sizes[end - 1])))
        end = begin
    return groups[::-1]
