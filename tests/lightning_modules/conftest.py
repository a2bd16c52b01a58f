from __future__ import annotations

from tests.fixtures.architectures import (
    architecture,
    byte_bpe,
    checkpoint,
    masked_batch,
    pair_batch,
    tiny_model,
)

__all__ = ["architecture", "byte_bpe", "checkpoint", "masked_batch", "pair_batch", "tiny_model"]
