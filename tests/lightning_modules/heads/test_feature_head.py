from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from probelight.lightning_modules.heads.feature_head import FrozenFeatures, fresh_hidden_layer
from probelight.lightning_modules.heads.stacked_heads import CachedItems, HeadRows, StackedHeads
from probelight.models.scorer import Question, Scorer

SIZE = 6


class Known(Scorer):
    """Rows of ones, twos, ... and features that are twice the batch."""

    mode = "known"

    def choice_scores(self) -> Question:
        raise NotImplementedError

    def features(self) -> Question:
        return Question(None, lambda batch: 2 * batch["text"])  # type: ignore[arg-type]

    def word_rows(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        numbers = torch.arange(1.0, len(words) + 1)
        return numbers[:, None].expand(-1, SIZE), -numbers

    def fingerprint(self) -> str:
        return "abc"


def scores(frozen: FrozenFeatures, seed: int | None, h: Tensor) -> Tensor:
    """Of untrained heads, both words as candidates of each text."""
    head = frozen.head if seed is None else frozen.fresh_head(seed)
    words = torch.arange(2)
    heads = StackedHeads([HeadRows.of(head, words)], "linear" if seed is None else "mlp")
    ids = words.repeat(len(h), 1)
    items = CachedItems(h, ids, torch.ones_like(ids, dtype=torch.bool), ids[:, 0])
    return heads.scores([items])[0]


def test_the_linear_head_begins_with_the_rows_of_the_words() -> None:
    frozen = FrozenFeatures(Known(), ["red", "green"])
    h = frozen.features({"text": torch.tensor([[0.5] * SIZE, [1.0] * SIZE])})
    # h is 1 and 2 in each place: 6 * 1 - 1, 6 * 2 - 2; 12 * 1 - 1, 12 * 2 - 2.
    assert scores(frozen, None, h).tolist() == [[5.0, 10.0], [11.0, 22.0]]
    assert (frozen.fingerprint(), frozen.device.type) == ("abc", "cpu")


def test_the_hidden_layer_is_drawn_from_the_seed_before_the_same_rows() -> None:
    frozen = FrozenFeatures(Known(), ["red", "green"])
    h = torch.randn(3, SIZE, generator=torch.Generator().manual_seed(0))
    state = torch.random.get_rng_state()
    dense, norm = fresh_hidden_layer(SIZE, 7)
    assert torch.equal(torch.random.get_rng_state(), state)
    with torch.no_grad():
        z = norm(F.gelu(h @ dense.weight.T + dense.bias))
    numbers = torch.tensor([1.0, 2.0])
    expected = z.sum(dim=1, keepdim=True) * numbers - numbers
    torch.testing.assert_close(scores(frozen, 7, h), expected)
    assert torch.equal(dense.bias, torch.zeros(SIZE))
    assert isinstance(norm, nn.LayerNorm)
    assert not torch.equal(fresh_hidden_layer(SIZE, 8)[0].weight, dense.weight)
