"""Models that write from left to right are asked for the next word, those that fill blanks for it.

Each beside a plain loop over the raw model, one context at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
)

from probelight.models.scorer import Scorer
from probelight.protocols.diagnostics.word_predictions import predict_words
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.job import TrainerSettings

CONTEXTS = {
    "a cat is smaller than a": ["dog", "cat", "Dog", "unheard"],
    "the antelope is larger than the": ["cat", "snow"],
    "which animal is the": ["largest"],
}
QUIET = TrainerSettings("cpu", progress_bar=False)


def check(
    scorer: Scorer,
    plain: Callable[[str], torch.Tensor],
    entry: Callable[[str], int | None],
    read: Callable[[int], str | None],
) -> None:
    found = predict_words(scorer, CONTEXTS, QUIET)
    known = 0
    for context, words in CONTEXTS.items():
        expected = plain(context)
        entries = {word: entry(word) for word in words}
        said = found.by_context[context]
        assert said.split == {word for word, one in entries.items() if one is None}
        for word, one in entries.items():
            if one is not None:
                known += 1
                assert said.probabilities[word] == pytest.approx(float(expected[one]), abs=1e-6)
        order = expected.argsort(descending=True)[: found.depth].tolist()
        for word, expected_word in zip(said.best, map(read, order), strict=True):
            assert expected_word in (word, None)
    assert known >= 3


def as_word(mark: str) -> Callable[[str], str | None]:
    """How a piece reads, by its text in the vocabulary."""

    def read(piece: str) -> str | None:
        if piece.startswith(mark) and len(piece) > 1:
            return piece[1:]
        if not piece.isascii():
            return None  # part of a character, perhaps
        return f"##{piece}" if any(map(str.isalnum, piece)) and piece[0] != "<" else piece

    return read


@pytest.mark.parametrize(("family", "mark"), [("gpt2", "Ġ"), ("llama", "▁")])
def test_a_causal_model(causal_folder: Callable[[str], Path], family: str, mark: str) -> None:
    folder = causal_folder(family)
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    vocabulary: Mapping[str, int] = tokenizer.get_vocab()
    pieces = {entry: piece for piece, entry in vocabulary.items()}

    def plain(context: str) -> torch.Tensor:
        with torch.no_grad():
            logits = model(**tokenizer(context, return_tensors="pt")).logits[0, -1]
        found: torch.Tensor = logits[: len(tokenizer)].double().softmax(0)
        return found

    settings = ModelSettings(name_or_path=str(folder), kind="causal")
    check(
        scorer_for(settings, "mc_mlm"),
        plain,
        lambda word: vocabulary.get(f"{mark}{word}"),
        lambda entry: as_word(mark)(pieces[entry]),
    )


def test_a_model_that_fills_blanks(tmp_path: Path) -> None:
    words = sorted({word for context in CONTEXTS for word in context.split()} | {"dog", "largest"})
    listed = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), (".", -2.0), ("s", -3.0)]
    listed += [(f"▁{word}", -1.0) for word in words]
    listed += [(f"<extra_id_{i}>", 0.0) for i in reversed(range(2))]
    tokenizer = T5Tokenizer(vocab=listed, extra_ids=2)
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    config = T5Config(vocab_size=len(listed) + 5, decoder_start_token_id=0, **sizes)
    model: Any = T5ForConditionalGeneration(config).eval()
    for saved in (model, tokenizer):
        saved.save_pretrained(tmp_path)
    entries = {piece: entry for entry, (piece, _) in enumerate(listed)}
    blank = entries["<extra_id_0>"]

    def plain(context: str) -> torch.Tensor:
        ids = tokenizer(f"{context} <extra_id_0> .", return_tensors="pt").input_ids
        assert blank in ids[0].tolist()
        with torch.no_grad():
            logits = model(input_ids=ids, decoder_input_ids=torch.tensor([[0, blank]])).logits
        found: torch.Tensor = logits[0, -1, : len(listed)].double().softmax(0)
        return found

    settings = ModelSettings(name_or_path=str(tmp_path), kind="seq2seq")
    check(
        scorer_for(settings, "mc_mlm"),
        plain,
        lambda word: entries.get(f"▁{word}"),
        lambda entry: as_word("▁")(listed[entry][0]),
    )
