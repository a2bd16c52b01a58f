from __future__ import annotations

from tests.fixtures.tokenizers import kind, make_module, make_tokenizer, tokenizer

__all__ = ["kind", "make_module", "make_tokenizer", "tokenizer"]
