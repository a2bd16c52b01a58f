from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from probelight.models import pair_choice
from probelight.models.checkpoint_files import head_settings, is_sentence_choice_folder
from probelight.models.pair_choice import (
    HEAD_WEIGHTS,
    PairChoice,
    fresh_head,
    grouping_pays,
    restore_head,
    save_head,
)
from probelight.probes.record import Record
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


@pytest.mark.parametrize(
    ("sizes", "total", "hidden_size", "device", "pays"),
    [
        ([], 6000, 1024, "cpu", False),
        ([1000, 2000, 2399], 6000, 16, "cpu", True),
        ([1000, 2000, 2400], 6000, 16, "cpu", False),  # no more than a tenth is saved
        # Two passes more are 2 ms of launches per layer, in which a GPU of 50 TFLOPS multiplies
        # 2 * 5e10 / (72 * 1024^2) = 1324.5 tokens by a layer's weights.
        ([1000, 2000, 1676], 6000, 1024, "cuda", False),
        ([1000, 2000, 1675], 6000, 1024, "cuda", True),
        ([1000, 2000, 1675], 6000, 512, "cuda", False),
        ([1, 1, 1], 30_000, 128, "cuda", False),
        # In lower precision 400 TFLOPS, and as many launches: 10,596.4 tokens.
        ([1000, 2000, 6404], 20_000, 1024, "autocast cuda", False),
        ([1000, 2000, 6403], 20_000, 1024, "autocast cuda", True),
    ],
)
def test_groups_pay_where_they_save_more_than_their_launches(
    sizes: list[int],
    total: int,
    hidden_size: int,
    device: str,
    pays: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: device.startswith("autocast"))
    assert grouping_pays(sizes, total, hidden_size, device.split()[-1]) == pays


@pytest.mark.parametrize(("device", "num_passes"), [("cpu", 3), ("cuda", 1)])
def test_the_encoder_passes_over_a_step_of_unlike_lengths(
    device: str, num_passes: int, checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits are those of pairs alone, in as many passes as pay on the device."""
    pairs = PairChoice(ref_of(checkpoint()))
    texts = [" ".join(["cat"] * (1 + 5 * (i % 6))) for i in range(8)]
    records = [Record(str(i), f"{i} {texts[i]}", ("a", "the dog", "1"), 0) for i in range(8)]
    encoded = pairs.encoder().encode(records)
    batch = encoded.collate(range(8))
    pairs.network.eval()
    with torch.no_grad():
        alone = torch.cat([pairs(encoded.collate([i])) for i in range(8)])
    monkeypatch.setattr(
        pair_choice, "grouping_pays", lambda *args: grouping_pays(*args[:3], device)
    )
    widths: list[int] = []
    layer = pairs.transformer.get_input_embeddings()
    layer.register_forward_pre_hook(lambda _, inputs: widths.append(inputs[0].shape[1]))
    logits = pairs(batch)
    logits.sum().backward()
    assert len(widths) == num_passes
    assert sorted(widths) == widths
    assert widths[-1] == batch["input_ids"].shape[1]
    torch.testing.assert_close(logits.detach(), alone, rtol=0, atol=1e-5)
