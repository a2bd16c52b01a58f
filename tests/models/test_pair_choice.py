from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import torch

from probelight.models.checkpoint_files import head_settings, is_sentence_choice_folder
from probelight.models.pair_choice import (
    HEAD_WEIGHTS,
    fresh_head,
    restore_head,
    save_head,
)
from tests.fixtures.architectures import ref_of

CONFIG = SimpleNamespace(hidden_size=4, initializer_range=0.5, seq_classif_dropout=0.3)
SETTINGS = {"max_length": 40, "num_choices": None}


def test_fresh_heads_are_drawn_from_their_seed_alone() -> None:
    torch.manual_seed(0)
    head = fresh_head("mlp", CONFIG, seed=1)
    torch.manual_seed(7)
    state = torch.random.get_rng_state()
    twin, reseeded = fresh_head("mlp", CONFIG, seed=1), fresh_head("mlp", CONFIG, seed=2)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert list(dict(head.named_children())) == ["dense", "activation", "dropout", "score"]
    assert head(torch.ones(3, 4)).shape == (3, 1)
    assert torch.equal(head.dense.weight, twin.dense.weight)
    assert not torch.equal(head.dense.weight, reseeded.dense.weight)
    wide = fresh_head("mlp", SimpleNamespace(hidden_size=64, initializer_range=0.02), seed=1)
    assert abs(float(wide.dense.weight.detach().std()) - 0.02) < 0.003
    assert (head.dropout.p, wide.dropout.p) == (0.3, 0.0)
    rates = SimpleNamespace(hidden_size=4, hidden_dropout_prob=0.1)
    assert fresh_head("linear", rates, 1).dropout.p == 0.1
    assert list(dict(fresh_head("linear", CONFIG, 1).named_children())) == ["dropout", "score"]
    assert len(fresh_head("multiple_choice", CONFIG, 1)) == 0


def test_a_head_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    assert head_settings(ref_of(tmp_path)) is None
    head, reseeded = fresh_head("linear", CONFIG, seed=1), fresh_head("linear", CONFIG, seed=2)
    save_head(tmp_path, "linear", head.state_dict(), SETTINGS)
    assert is_sentence_choice_folder(ref_of(tmp_path))
    assert head_settings(ref_of(tmp_path)) == {"format": 1, "head": "linear", **SETTINGS}
    restore_head(reseeded, tmp_path)
    assert torch.equal(reseeded.score.weight, head.score.weight)
    # One that the checkpoint has is not written twice.
    (tmp_path / HEAD_WEIGHTS).unlink()
    save_head(tmp_path, "multiple_choice", {}, SETTINGS)
    assert not (tmp_path / HEAD_WEIGHTS).exists()
