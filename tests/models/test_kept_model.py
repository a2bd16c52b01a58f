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
    model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})


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
    model, kept = tiny_model("bert"), KeptModel()
    before = [kept.fingerprint(torch.nn.ModuleDict({"model": model})) for _ in range(3)]
    assert before == hashed * 3
    change(model)
    after = model_fingerprint(torch.nn.ModuleDict({"model": model}))
    assert after != before[0]
    assert kept.fingerprint(torch.nn.ModuleDict({"model": model})) == after
    assert len(hashed) == 2


def test_a_kept_model_is_read_once_until_another_is_asked_for(checkpoint: Checkpoint) -> None:
    kept, ref = KeptModel(), ref_of(checkpoint("bert"))
    model, _ = kept.read(MASKED_LM, ref)
    assert kept.read(MASKED_LM, ref)[0] is model
    for form, other in ((ENCODER, ref), (MASKED_LM, replace(ref, random_weights=True, seed=1))):
        assert kept.read(form, other)[0] is not model
    assert kept.read(MASKED_LM, ref)[0] is not model  # one model at a time
