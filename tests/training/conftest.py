"""Tiny models of each architecture."""

from __future__ import annotations

from tests.fixtures.architectures import architecture, checkpoint, pair_batch

__all__ = ["architecture", "checkpoint", "pair_batch"]
