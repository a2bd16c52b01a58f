from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import torch
from xxhash import xxh3_128_digest

from probelight.models.loading import ENCODER, load_pretrained
from probelight.models.networks import model_fingerprint, run_encoder
from tests.fixtures.architectures import ref_of

Checkpoint = Callable[..., Path]


def test_the_fingerprint_is_that_of_names_and_values() -> None:
    layer = torch.nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0]]))
        layer.bias.zero_()
    digest = hashlib.sha256()
    digest.update(b"bias torch.float32 (1,)\n" + xxh3_128_digest(bytes(4)))
    weight = bytes.fromhex("0000803f00000040")  # 1.0 and 2.0
    digest.update(b"weight torch.float32 (1, 2)\n" + xxh3_128_digest(weight))
    assert model_fingerprint(layer) == digest.hexdigest()
    with torch.no_grad():
        layer.bias.add_(1e-6)
    assert model_fingerprint(layer) != digest.hexdigest()


def test_an_encoder_gets_only_the_inputs_it_knows(checkpoint: Checkpoint) -> None:
    ids = torch.tensor([[2, 7, 3]])
    batch = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": ids * 0 + 1,
    }
    for architecture in ("bert", "distilbert"):
        model, _ = load_pretrained(ENCODER, ref_of(checkpoint(architecture)))
        with torch.no_grad():
            states = run_encoder(model, {**batch, "labels": ids}).last_hidden_state
            plain = model(ids).last_hidden_state
        assert torch.allclose(states, plain) is (architecture == "distilbert")
