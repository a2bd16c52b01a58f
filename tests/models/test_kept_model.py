from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from probelight.models import kept_model
from probelight.models.kept_model import KeptModel
from probelight.models.loading import ENCODER, MASKED_LM
from probelight.models.networks import model_fingerprint
from tests.fixtures.architectures import ref_of

Checkpoint = Callable[..., Path]


def add_in_place(model: PreTrainedModel) -> None:
    with torch.no_grad():
        next(model.parameters()).view(-1)[0].add_(1e-6)


def add_to_data(model: PreTrainedModel) -> None:
    next(model.parameters()).data.view(-1)[-1] += 1e-6  # no version is counted


def replace_data(model: PreTrainedModel) -> None:
    weight = next(model.parameters())
    weight.data = weight.data.flip(0)


def load_others(model: PreTrainedModel) -> None:
    model.load_state_dict({name: weight + 1 for name, weight in model.state_dict().items()})


def take_a_fused_step(model: PreTrainedModel) -> None:
    weight = next(model.parameters())
    weight.grad = torch.ones_like(weight)
    torch.optim.AdamW([weight], fused=True).step()  # no version is counted


@pytest.mark.parametrize(
    "change", [add_in_place, add_to_data, replace_data, load_others, take_a_fused_step]
)
def test_a_kept_model_is_hashed_once_and_again_after_every_change(
    change: Callable[[PreTrainedModel], None],
    tiny_model: Callable[..., PreTrainedModel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed: list[str] = []

    def counted(network: torch.nn.Module) -> str:
        hashed.append(model_fingerprint(network))
        return hashed[-1]

    monkeypatch.setattr(kept_model, "model_fingerprint", counted)
    model, cache = tiny_model("bert"), KeptModel()
    cached = [cache.fingerprint(torch.nn.ModuleDict({"model": model})) for _ in range(3)]
    assert cached == hashed * 3
    change(model)
    changed = model_fingerprint(torch.nn.ModuleDict({"model": model}))
    assert changed != cached[0]
    assert cache.fingerprint(torch.nn.ModuleDict({"model": model})) == changed
    assert len(hashed) == 2


def test_a_kept_model_is_read_once_until_another_is_asked_for(checkpoint: Checkpoint) -> None:
    cache, ref = KeptModel(), ref_of(checkpoint("bert"))
    model, _ = cache.read(MASKED_LM, ref)
    assert cache.read(MASKED_LM, ref)[0] is model
    for form, new_ref in ((ENCODER, ref), (MASKED_LM, replace(ref, random_weights=True, seed=1))):
        assert cache.read(form, new_ref)[0] is not model
    assert cache.read(MASKED_LM, ref)[0] is not model  # one model at a time
