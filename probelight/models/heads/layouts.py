"""Where the architectures known here keep the parts that heads and last layers are made of.

A layout is known by the attributes that a model has, not by the model's name, and who uses it holds
it against the model's own output: relatives of these models come for free, and a model that only
looks alike is refused.

Shapes: B batch, H hidden, E a head's inner size, V vocabulary.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from probelight.models.checkpoints.folder import PretrainedError


class UnsupportedHeadError(PretrainedError):
    """A model whose masked-token head has a form that is not known here."""


@dataclass(frozen=True)
class HeadLayout:
    """Where a masked LM's head keeps its parts.

    Attributes:
        transform: What turns h (H) into z (E), one after the other: attribute paths of modules,
            or a function.
        decoder: Attribute path of the module with the (V, E) weight.
        bias: Attribute path of the (V,) bias.
    """

    transform: tuple[str | Callable[[Tensor], Tensor], ...]
    decoder: str
    bias: str


# Tried in this order.
_HEADS = (
    # BERT, and DeBERTa with its legacy head
    HeadLayout(("cls.predictions.transform",), "cls.predictions.decoder", "cls.predictions.bias"),
    # RoBERTa, XLM-R, MPNet
    HeadLayout(("lm_head.dense", F.gelu, "lm_head.layer_norm"), "lm_head.decoder", "lm_head.bias"),
    # DistilBERT
    HeadLayout(
        ("vocab_transform", "activation", "vocab_layer_norm"),
        "vocab_projector",
        "vocab_projector.bias",
    ),
    # ALBERT
    HeadLayout(
        ("predictions.dense", "predictions.activation", "predictions.LayerNorm"),
        "predictions.decoder",
        "predictions.bias",
    ),
    # ELECTRA's generator
    HeadLayout(("generator_predictions",), "generator_lm_head", "generator_lm_head.bias"),
    # ModernBERT
    HeadLayout(("head",), "decoder", "decoder.bias"),
    # DeBERTa with its new head, which multiplies by the input embeddings
    HeadLayout(
        (
            "lm_predictions.lm_head.dense",
            "lm_predictions.lm_head.transform_act_fn",
            "lm_predictions.lm_head.LayerNorm",
        ),
        "base_model.embeddings.word_embeddings",
        "lm_predictions.lm_head.bias",
    ),
)


@dataclass(frozen=True)
class LayerLayout:
    """Where a transformer keeps its layers, and a layer its parts.

    Attributes:
        stack: Attribute path of the encoder's list of layers.
        maps: Paths in a layer of the linear maps of queries, keys and values.
        finish: All that follows attention: layer, what attention mixed (B, 1, H), and the layer's
            own input at the place (B, 1, H), to the layer's output (B, 1, H).
        as_tuple: Whether a layer returns its output as a tuple of one.
    """

    stack: str
    maps: tuple[str, str, str]
    finish: Callable[[Any, Tensor, Tensor], Tensor]
    as_tuple: bool = False


def _finish_bert(layer: Any, mixed: Tensor, own: Tensor) -> Tensor:
    attended = layer.attention.output(mixed, own)
    result: Tensor = layer.output(layer.intermediate(attended), attended)
    return result


def _finish_distilbert(layer: Any, mixed: Tensor, own: Tensor) -> Tensor:
    attended = layer.sa_layer_norm(layer.attention.out_lin(mixed) + own)
    result: Tensor = layer.output_layer_norm(layer.ffn(attended) + attended)
    return result


def _finish_mpnet(layer: Any, mixed: Tensor, own: Tensor) -> Tensor:
    attended = layer.attention.LayerNorm(layer.attention.attn.o(mixed) + own)
    result: Tensor = layer.output(layer.intermediate(attended), attended)
    return result


_LAYERS = (
    # BERT, RoBERTa, XLM-R, ELECTRA and relatives
    LayerLayout(
        "encoder.layer",
        ("attention.self.query", "attention.self.key", "attention.self.value"),
        _finish_bert,
    ),
    # DistilBERT
    LayerLayout(
        "transformer.layer",
        ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        _finish_distilbert,
    ),
    # MPNet
    LayerLayout(
        "encoder.layer",
        ("attention.attn.q", "attention.attn.k", "attention.attn.v"),
        _finish_mpnet,
        as_tuple=True,
    ),
)


def head_layout(model: PreTrainedModel) -> HeadLayout:
    """The layout of a model's head.

    Raises:
        UnsupportedHeadError: If it has none that is known; the message names the model's class.
    """
    for layout in _HEADS:
        paths = [step for step in layout.transform if isinstance(step, str)]
        if all(_has(model, path) for path in (*paths, layout.decoder, layout.bias)):
            return layout
    known = "BERT, RoBERTa, XLM-R, DistilBERT, ALBERT, ELECTRA, DeBERTa-v2, ModernBERT, MPNet"
    raise UnsupportedHeadError(
        f"{type(model).__name__}: its masked-token head is of no known form (known: {known} and "
        "relatives)"
    )


def layer_layout(encoder: nn.Module) -> LayerLayout | None:
    """The layout of an encoder's layers; None where it is not known."""
    config: Any = getattr(encoder, "config", None)
    attention = getattr(config, "_attn_implementation", None)
    if attention not in ("sdpa", "eager") or getattr(config, "is_decoder", False):
        return None  # other kinds have masks of other forms
    for layout in _LAYERS:
        stack = part(encoder, layout.stack)
        if isinstance(stack, nn.ModuleList) and len(stack) and part(stack[-1], layout.maps[0]):
            return layout
    return None


def part(module: nn.Module, path: str) -> Any:
    """What stands at an attribute path; None where nothing does."""
    return attrgetter(path)(module) if _has(module, path) else None


def _has(module: nn.Module, path: str) -> bool:
    try:
        attrgetter(path)(module)
    except AttributeError:
        return False
    return True


def use_legacy_head(model: Any) -> None:
    """Rewrites DeBERTa's new head as its legacy head, which is the same mathematics.

    The new head has no decoder weight of its own, so an untied one could not be saved.
    """
    config = copy.deepcopy(model.config)
    config.legacy = True
    new = model.lm_predictions.lm_head
    embeddings = model.base_model.embeddings.word_embeddings.weight
    with torch.device("meta"):
        legacy = type(model)(config).cls
    legacy = legacy.to_empty(device=embeddings.device)
    predictions = legacy.predictions
    predictions.bias = nn.Parameter(new.bias.detach().clone())
    predictions.decoder.weight = nn.Parameter(embeddings.detach().clone())
    predictions.decoder.bias = predictions.bias
    predictions.transform.dense = new.dense
    predictions.transform.LayerNorm = new.LayerNorm
    model.cls = legacy
    del model.lm_predictions
    model.legacy = model.config.legacy = True
