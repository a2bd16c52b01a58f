from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from probelight.lightning_modules.heads.stacked_heads import StackedTransform
from probelight.models.candidate_head import CandidateHead


def copies_of(transform: StackedTransform, scales: list[float]) -> dict[str, Tensor]:
    return {
        name: torch.stack([value * scale for scale in scales])
        for name, value in transform.initial.items()
    }


def test_each_run_applies_its_own_parameters(
    architecture: str, tiny_model: Callable[..., PreTrainedModel]
) -> None:
    head = CandidateHead(tiny_model(architecture).double())
    transform = StackedTransform(head.transform_steps())
    h = torch.randn(3, 5, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        states = transform(copies_of(transform, [1.0, 0.5, 2.0]), h)
        for run, scale in enumerate((1.0, 0.5, 2.0)):
            for parameter in head.transform_parameters():
                parameter.mul_(scale)
            torch.testing.assert_close(states[run], head.transform(h[run]), rtol=1e-9, atol=1e-10)
            for parameter in head.transform_parameters():
                parameter.div_(scale)


def test_known_heads_need_no_vmap(
    architecture: str, tiny_model: Callable[..., PreTrainedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    head = CandidateHead(tiny_model(architecture))
    monkeypatch.delattr(torch, "vmap")
    transform = StackedTransform(head.transform_steps())
    transform(copies_of(transform, [1.0]), torch.randn(1, 2, 32))
    biases_and_norms = {name for name, value in transform.initial.items() if value.dim() == 1}
    assert transform.plain == biases_and_norms


class Twice(nn.Module):
    """Holds one dense layer but is not a chain of its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(4, 4)

    def forward(self, h: Tensor) -> Tensor:
        result: Tensor = self.dense(self.dense(h))
        return result


def test_a_module_that_is_no_chain_goes_through_vmap() -> None:
    torch.manual_seed(0)
    module = Twice()
    transform = StackedTransform([module, torch.tanh])
    h = torch.randn(2, 3, 4)
    with torch.no_grad():
        transformed = transform(copies_of(transform, [1.0, 1.0]), h)
        torch.testing.assert_close(transformed, torch.tanh(module(h)))
    assert transform.plain == {"0.dense.bias"}
