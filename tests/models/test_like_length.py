"""Texts read in groups of like length: which groups, and the same numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import BertConfig, PreTrainedModel

from probelight.api.score import load_model
from probelight.evaluation.scorers import scorer_for
from probelight.io.workload import Workload
from probelight.models.answering import answer
from probelight.models.like_length import call_cost, groups_of_like_length
from probelight.models.pair_choice import PairChoice
from probelight.probes.record import Record
from probelight.probes.source import load_probe
from tests.fixtures.architectures import ref_of


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """Yield every way to cut a list into runs."""
    for cuts in itertools.product((False, True), repeat=len(items) - 1):
        runs = [[items[0]]]
        for item, is_cut in zip(items[1:], cuts, strict=True):
            if is_cut:
                runs.append([])
            runs[-1].append(item)
        yield runs


@pytest.mark.parametrize("call_tokens", [0, 1, 3, 7.5, 20, 1000])
@pytest.mark.parametrize(
    "lengths", [[5], [4, 4, 4], [9, 2, 5, 2, 14, 5, 5], [30, 29, 7, 8, 6, 31, 1, 12]]
)
def test_groups_cost_least_of_all_ways_to_cut(lengths: list[int], call_tokens: float) -> None:
    groups = groups_of_like_length(lengths, call_tokens)
    assert sorted(row for rows, _ in groups for row in rows) == [*range(len(lengths))]
    for rows, width in groups:
        assert width == max(lengths[row] for row in rows)

    def cost(runs: list[list[int]]) -> float:
        return sum(max(run) * len(run) + call_tokens for run in runs)

    cheapest = min(map(cost, partitions(sorted(lengths))))
    assert cost([[lengths[row] for row in rows] for rows, _ in groups]) == cheapest


def test_without_a_cost_of_calls_each_length_is_a_group() -> None:
    assert groups_of_like_length([3, 2, 3, 1], 0) == [([3], 1), ([1], 2), ([0, 2], 3)]


@pytest.mark.parametrize(
    ("device", "hidden_size", "expected"),
    [
        ("cpu", 1024, 32),
        # A millisecond of launches per layer, in which a GPU of 50 TFLOPS multiplies so many
        # tokens by a layer's weights: 5e10 / (72 * 1024^2).
        ("cuda", 1024, 662.3),
        ("cuda", 512, 2649.1),
        ("autocast cuda", 1024, 5298.2),  # 400 TFLOPS
    ],
)
def test_a_call_costs_what_its_launches_take(
    device: str, hidden_size: int, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: device.startswith("autocast"))
    encoder = nn.Module()
    encoder.config = BertConfig(hidden_size=hidden_size)  # type: ignore[assignment]
    assert call_cost(encoder, device.split()[-1]) == pytest.approx(expected, abs=0.1)


def test_processes_that_divide_the_weights_call_equally_often() -> None:
    class FSDPLayer(nn.Module):
        """As fully_shard calls a layer that it divides."""

    cost = call_cost(nn.Sequential(FSDPLayer()), "cpu")
    assert groups_of_like_length([1, 9, 1], cost) == [([0, 2, 1], 9)]


def test_a_step_of_unlike_lengths_is_little_padding(checkpoint: Callable[..., Path]) -> None:
    """Logits and gradients are those of pairs alone; 5% of what is read is padding."""
    pairs = PairChoice(ref_of(checkpoint()))
    stems = [f"{i} " + " ".join(["cat"] * (1 + 5 * (i % 6))) for i in range(48)]
    records = [Record(stem, stem, ("a", "the dog", "1"), 0) for stem in stems]
    encoded = pairs.encoder().encode(records)
    batch = encoded.collate(range(48))
    pairs.network.eval()
    widths: list[tuple[int, ...]] = []
    layer = pairs.transformer.get_input_embeddings()
    hook = layer.register_forward_pre_hook(lambda _, inputs: widths.append(inputs[0].shape))
    logits = pairs(batch)
    hook.remove()
    num_read = sum(rows * width for rows, width in widths)
    assert 1 < len(widths) <= 12
    assert batch["attention_mask"].sum() / num_read > 0.95 > batch["attention_mask"].float().mean()
    alone = torch.cat([pairs(encoded.collate([i])) for i in range(48)])
    torch.testing.assert_close(logits, alone, rtol=0, atol=1e-5)
    weight = pairs.transformer.get_input_embeddings().weight
    [gradient] = torch.autograd.grad(logits.square().sum(), weight)
    [expected] = torch.autograd.grad(alone.square().sum(), weight)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "probe"),
    [
        ("bookshelf-lm", "capitals"),
        ("bookshelf-qa", "hypernymy_small"),
        ("t5", "hypernymy_small"),
        ("llama", "capitals"),
    ],
)
def test_a_set_of_unlike_lengths_is_little_padding(
    name: str, probe: str, seq2seq: Callable[[str], Path], causal_folder: Callable[[str], Path]
) -> None:
    """With default batches: masked models, question heads, encoder-decoders and decoders."""
    data, folders = load_probe(probe, "dev"), {"t5": seq2seq, "llama": causal_folder}
    model = load_model(str(folders[name](name)) if name in folders else name)
    scorer = scorer_for(model.settings, data.config.setup, 0)
    network = next(m for m in scorer.network.modules() if isinstance(m, PreTrainedModel))
    tokenizer: Any = scorer.choice_scores().encoder.tokenizer  # type: ignore[attr-defined]
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    num_places = num_padding = 0

    def count(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        nonlocal num_places, num_padding
        num_places += inputs[0].numel()
        # No text begins with padding, but what T5 writes begins with its token.
        num_padding += int((inputs[0][:, 1:] == tokenizer.pad_token_id).sum())

    answer(scorer, {probe: data.records[:2]})  # what a model does is found out at its first use
    weight = network.get_input_embeddings().weight
    for module in network.modules():
        if isinstance(module, nn.Embedding) and module.weight is weight:
            module.register_forward_pre_hook(count)
    workload = Workload()
    answer(scorer, {probe: data.records[:300]})
    measured = workload.measured()
    assert measured["padding_read"] == num_padding
    assert measured["tokens_read"] == num_places - num_padding
    assert 0 < num_padding / num_places < 0.05
