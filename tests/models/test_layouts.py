"""Heads and layers are known by the attributes of a model, whatever its class is called."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from torch import nn
from torch.nn import functional as F

from probelight.models.candidate_head import UnsupportedHeadError, head_layout
from probelight.models.last_layer import layer_layout
from probelight.models.networks import part


def tree(paths: str) -> nn.Module:
    """A module with a linear map at each of the paths."""
    root = nn.Module()
    for path in paths.split():
        *above, last = path.split(".")
        module = root
        for name in above:
            if not hasattr(module, name):
                setattr(module, name, nn.Module())
            module = getattr(module, name)
        setattr(module, last, nn.Linear(2, 2))
    return root


def encoder(maps: str, **config: object) -> nn.Module:
    made = nn.Module()
    made.encoder = nn.Module()
    made.encoder.layer = nn.ModuleList([nn.Module(), tree(maps)])
    made.config = SimpleNamespace(**{"_attn_implementation": "sdpa", **config})
    return made


def test_a_part_is_what_stands_at_its_path() -> None:
    module = tree("head.dense")
    assert part(module, "head.dense") is module.head.dense
    assert part(module, "head.norm") is None
    assert part(module, "tail.dense") is None


def test_a_head_is_known_by_all_its_parts() -> None:
    model = tree("lm_head.dense lm_head.layer_norm lm_head.decoder lm_head.bias")
    assert head_layout(model).transform == ("lm_head.dense", F.gelu, "lm_head.layer_norm")
    assert head_layout(model).decoder == "lm_head.decoder"
    del model.lm_head.layer_norm
    with pytest.raises(UnsupportedHeadError, match="Module: its masked-token head is of no known"):
        head_layout(model)


def test_layers_are_known_by_their_queries_and_plain_attention_alone() -> None:
    bert = "attention.self.query attention.self.key attention.self.value"
    found = layer_layout(encoder(bert))
    assert found is not None
    assert found.maps == tuple(bert.split())
    assert not found.as_tuple
    mpnet = layer_layout(encoder("attention.attn.q attention.attn.k attention.attn.v"))
    assert mpnet is not None
    assert mpnet.as_tuple
    assert layer_layout(encoder("attention.other")) is None
    assert layer_layout(encoder(bert, _attn_implementation="flex_attention")) is None
    assert layer_layout(encoder(bert, is_decoder=True)) is None
