from __future__ import annotations

from argparse import Namespace

import pytest

from benchmarks.random_model import random_gpt2
from benchmarks.real_models import (
    counted_tokens,
    difference,
    fewest_tokens,
    measure,
    measure_calls,
    ours,
    records_of,
    texts_of,
)
from probelight.models.causal import CausalScorer
from probelight.probes.record import Record

OPTIONS = {"probe": "capitals", "split": "dev", "mirror": None, "items": 3, "rounds": 1}
OPTIONS |= {"peer_batches": "2", "model": "random", "output": None}


def test_tokens_are_counted_as_by_hand() -> None:
    model, tokenizer = random_gpt2(["the cat sat", "the cat ran off", "a dog"], 2, 64, 2000)
    scorer = CausalScorer(model, tokenizer)
    records = [Record("1", "the cat", ("sat", "ran off"), 0), Record("2", "the cat", ("off",), 0)]
    assert [len(tokenizer(text)["input_ids"]) for text in ("the cat", "the cat ran off")] == [2, 4]
    # Read are the cat, once for all, and "ran"; what is last of a text is only predicted.
    assert fewest_tokens(scorer, records) == 3
    with counted_tokens(model) as numbers:
        sums = ours(scorer, records)
    assert numbers == [3]
    assert [len(row) for row in sums] == [2, 1]


def test_every_case_is_measured_and_the_prompts_are_those_of_the_commands() -> None:
    chosen = Namespace(**OPTIONS)
    words = records_of("words", chosen)
    shots = records_of("few_shot", chosen)
    assert texts_of(words[0])[0][1] == f" {words[0].choices[0]}"
    for word, shot in zip(words, shots, strict=True):
        *examples, stem = shot.stem.split("\n\n")
        assert (len(examples), stem) == (5, word.stem)
    model, tokenizer = random_gpt2([r.stem for r in (*words, *shots)], 2, 64, 1200)
    for case in ("words", "letters", "few_shot", "pairs"):
        figures = measure(case, CausalScorer(model, tokenizer, max_length=512), chosen)
        assert figures["tokens, ours"] >= figures["tokens, fewest"] > 0
    figures = measure_calls("calls", CausalScorer(model, tokenizer), chosen)
    assert figures["seconds, call"] > figures["seconds, ours"] > 0


def test_peers_that_differ_are_an_error() -> None:
    assert difference([[-1.0, -2.0]], [[-1.0005, -2.0]]) == pytest.approx(5e-4)
    with pytest.raises(RuntimeError, match=r"differ by 0\.1"):
        difference([[-1.0]], [[-1.1]])
