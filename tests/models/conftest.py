"""Tiny models of each architecture."""

from __future__ import annotations

from tests.fixtures.architectures import (
    architecture,
    byte_bpe,
    checkpoint,
    masked_batch,
    pair_batch,
    tiny_model,
)
from tests.fixtures.seq2seq import seq2seq

__all__ = [
    "architecture",
    "byte_bpe",
    "checkpoint",
    "masked_batch",
    "pair_batch",
    "seq2seq",
    "tiny_model",
]
