"""Models whose output at a text's own tokens depends on how much padding is behind them.

FNet mixes all places; the convolutions of ConvBERT and Nystromformer reach into the padding. Such a
model reads texts of one length together, in training too, so that nothing is ever padded.

Shapes: B texts, L tokens, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from probelight.models.loading import longest_text
from probelight.models.networks import Batch, evaluating, run_encoder
from probelight.models.precision import comparable, differ_by_rounding


class Unpadded:
    """Hands an encoder texts of one length at a time, if its output depends on padding.

    Attributes:
        notices: That it does so, for the reader of the results.
    """

    def __init__(self, encoder: nn.Module) -> None:
        self.notices: tuple[str, ...] = ()
        if not ignores_padding(encoder):
            name = type(encoder).__name__
            self.notices = (
                f"texts of one length were read together: padding changes what {name} answers",
            )

    def __call__(self, batch: Mapping[str, Tensor], read: Callable[[Batch], Tensor]) -> Tensor:
        """Return what `read` makes (B, ...) of texts: tensors (B, L), or (B,) without tokens."""
        is_simulated = hasattr(batch["attention_mask"], "fake_mode")  # which has no lengths
        if not self.notices or is_simulated:
            return read({**batch})
        lengths = batch["attention_mask"].sum(dim=1)
        rows, outputs = [], []
        for length in sorted(set(lengths.tolist())):
            rows.append((lengths == length).nonzero()[:, 0])
            texts = {name: tensor[rows[-1]] for name, tensor in batch.items()}
            outputs.append(
                read({n: t if t.dim() == 1 else t[:, :length] for n, t in texts.items()})
            )
        return torch.cat(outputs)[torch.cat(rows).argsort()]


@torch.no_grad()
def ignores_padding(encoder: nn.Module) -> bool:
    """Return whether a short text's output is the same alone and padded, by a little or by much."""
    if next(encoder.parameters()).is_meta:
        return True
    config: Any = encoder.config
    pad = getattr(config, "pad_token_id", None) or 0
    words = [i for i in range(min(config.vocab_size, 64)) if i != pad][-5:]
    # Some families keep a few of their places for themselves.
    for padding in (1, max(2, min(40, longest_text(config) // 2) - len(words))):
        ids = torch.tensor([words + [pad] * padding], device=next(encoder.parameters()).device)
        mask = torch.ones_like(ids)
        mask[:, len(words) :] = 0
        padded = {"input_ids": ids, "attention_mask": mask, "token_type_ids": 0 * ids}
        alone = {name: tensor[:, : len(words)] for name, tensor in padded.items()}
        with (
            evaluating(encoder),
            comparable(encoder) as tolerance,
            torch.autocast(ids.device.type, enabled=False),
        ):
            expected, actual = (
                run_encoder(encoder, batch).last_hidden_state[:, : len(words)]
                for batch in (alone, padded)
            )
        if not differ_by_rounding(expected, actual, tolerance):
            return False
    return True
