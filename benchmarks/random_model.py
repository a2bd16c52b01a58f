"""A BERT with random weights and the embedded tokenizer: a size to measure, not a model to use."""

from __future__ import annotations

from pathlib import Path

from transformers import AutoTokenizer, BertConfig

from lightning_modules.checkpoints.source import EMBEDDED_DIR


def write_random_model(
    folder: str | Path, num_layers: int = 6, hidden_size: int = 384, vocab_size: int = 30000
) -> str:
    """Writes config and tokenizer, to be loaded with `random_weights`.

    Args:
        folder: Where to.
        num_layers: Transformer layers.
        hidden_size: H; an attention head has 64, the feed-forward layer 4 H.
        vocab_size: V. Rows beyond the tokenizer's are never looked up, but a decoder scores them.

    Returns:
        The folder.
    """
    tokenizer = AutoTokenizer.from_pretrained(EMBEDDED_DIR)
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=max(vocab_size, len(tokenizer)),
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=max(1, hidden_size // 64),
        intermediate_size=4 * hidden_size,
        pad_token_id=tokenizer.pad_token_id,
    )
    config.architectures = ["BertForMaskedLM"]
    config.save_pretrained(folder)
    return str(folder)
