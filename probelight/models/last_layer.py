"""An encoder whose last layer is computed at one place of each sequence.

The mask's output (MC-MLM) and that of [CLS] (MC-QA) need one query per sequence in the last layer.
Its keys and values are still those of the whole sequence. This saves nearly a whole layer.

An encoder's layout is known by the attributes that it has, not by its name, and compared with the
plain encoder's own output: relatives of known models come for free.

Shapes: B batch, L tokens, H hidden, A attention heads, D size of an attention head (H = A * D).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn

from probelight.models.checks import ODD_MODEL, comparable, differ_by_rounding, sample_ids
from probelight.models.like_length import LikeLength
from probelight.models.networks import INPUTS, at_path, is_gathered_by_layer, run_encoder


@dataclass(frozen=True)
class LayerLayout:
    """Where a transformer keeps its layers, and a layer its parts.

    `finish` is all that follows attention: from a layer, what attention mixed (B, 1, H), and the
    layer's own input at the place (B, 1, H), to the layer's output (B, 1, H).
    """

    stack: str  # attribute path of the encoder's list of layers
    maps: tuple[str, str, str]  # paths in a layer of the linear maps of query, key and value
    finish: Callable[[Any, Tensor, Tensor], Tensor]
    as_tuple: bool = False  # whether a layer returns its output as a tuple of one


def _finish_bert(layer: Any, mixed: Tensor, residual: Tensor) -> Tensor:
    attended = layer.attention.output(mixed, residual)
    output: Tensor = layer.output(layer.intermediate(attended), attended)
    return output


def _finish_distilbert(layer: Any, mixed: Tensor, residual: Tensor) -> Tensor:
    attended = layer.sa_layer_norm(layer.attention.out_lin(mixed) + residual)
    output: Tensor = layer.output_layer_norm(layer.ffn(attended) + attended)
    return output


def _finish_mpnet(layer: Any, mixed: Tensor, residual: Tensor) -> Tensor:
    attended = layer.attention.LayerNorm(layer.attention.attn.o(mixed) + residual)
    output: Tensor = layer.output(layer.intermediate(attended), attended)
    return output


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


class EncoderAt:
    """Runs an encoder for its output at one place of each sequence, without copying it.

    The result is that of the plain encoder up to rounding. The plain encoder runs instead where the
    architecture is not known, a part of the last layer was replaced (adapters, sharded or quantised
    weights), a check on a tiny input shows a difference, dropout is on, which this layer does not
    draw, or the encoder was compiled as a whole.
    """

    def __init__(self, encoder: nn.Module) -> None:
        self.encoder = encoder
        self._layout = layer_layout(encoder)
        self._agrees: bool | None = None  # not known before the first use
        self.by_length = LikeLength(encoder)

    def __call__(
        self, batch: Mapping[str, Tensor], column: Tensor, *, pooled: bool = False
    ) -> Tensor:
        """Return the encoder's output (B, H) at `column` (B,), or what its pooler makes of [CLS].

        Texts of one length are read together where padding would change their output.
        """

        def read(texts: Mapping[str, Tensor]) -> Tensor:
            if self.is_reduced:
                output = self._run_reduced(texts, texts["place"])
            else:
                output = run_encoder(self.encoder, texts)
                output.last_hidden_state = _at(output.last_hidden_state, texts["place"])
            hidden: Tensor = output.pooler_output if pooled else output.last_hidden_state[:, 0]
            return hidden

        inputs = {name: batch[name] for name in INPUTS if name in batch}
        return self.by_length({**inputs, "place": column}, read)

    @property
    def is_reduced(self) -> bool:
        """Return whether the last layer is computed at one place now."""
        modules = self.encoder.modules()
        drops = any(isinstance(m, nn.Dropout) and m.training and m.p > 0 for m in modules)
        if drops or not self._has_known_parts():
            return False
        if self._agrees is None:
            self._agrees = self._verify()
        return self._agrees

    def _has_known_parts(self) -> bool:
        """Return whether the last layer's maps of query, key and value are plain linear layers."""
        if self._layout is None or getattr(self.encoder, "_compiled_call_impl", None) is not None:
            return False
        layer = attrgetter(self._layout.stack)(self.encoder)[-1]
        if is_gathered_by_layer(layer):
            return False
        maps = [at_path(layer, path) for path in self._layout.maps]
        return all(type(m) is nn.Linear and type(m.weight) is nn.Parameter for m in maps)

    def _run_reduced(self, batch: Mapping[str, Tensor], column: Tensor) -> Any:
        assert self._layout is not None
        layers = attrgetter(self._layout.stack)(self.encoder)
        config: Any = self.encoder.config
        last = _LastLayer(layers[-1], self._layout, column, int(config.num_attention_heads))
        # The encoder with another last layer: new shells around the same modules.
        encoder = shell = _shell_of(self.encoder)
        for name in self._layout.stack.split("."):
            shell._modules[name] = _shell_of(getattr(shell, name))
            shell = getattr(shell, name)
        shell._modules[list(shell._modules)[-1]] = last
        return run_encoder(encoder, batch)

    def _verify(self) -> bool:
        """Check against the plain encoder on two short sequences, one of them padded."""
        config: Any = self.encoder.config
        pad = getattr(config, "pad_token_id", None) or 0
        words = sample_ids(config, 6, without=pad)
        device = next(self.encoder.parameters()).device
        input_ids = torch.tensor([words, [*words[:3], *[pad] * 3]], device=device)
        batch = {"input_ids": input_ids, "attention_mask": (input_ids != pad).long()}
        column = torch.tensor([4, 1], device=device)
        try:
            with comparable(self.encoder) as tolerance:
                plain = _at(run_encoder(self.encoder, batch).last_hidden_state, column)
                reduced = self._run_reduced(batch, column).last_hidden_state
        except ODD_MODEL:
            return False  # it only looked like a known architecture
        return differ_by_rounding(plain, reduced, tolerance)


class _LastLayer(nn.Module):
    """A layer whose output is computed at one position only."""

    def __init__(
        self, layer: nn.Module, layout: LayerLayout, column: Tensor, num_heads: int
    ) -> None:
        super().__init__()
        self.layer = layer
        self.layout = layout
        self.column = column
        self.num_heads = num_heads

    def forward(
        self,
        hidden: Tensor,
        attention_mask: Tensor | None = None,
        position_bias: Tensor | None = None,
        **_: Any,
    ) -> Tensor | tuple[Tensor]:
        at_column = _at(hidden, self.column)  # (B, 1, H)
        biases = [_query_bias(table, self.column) for table in (attention_mask, position_bias)]
        mixed = self._attend(hidden, at_column, [bias for bias in biases if bias is not None])
        output = self.layout.finish(self.layer, mixed, at_column)
        return (output,) if self.layout.as_tuple else output

    def _attend(self, hidden: Tensor, at_column: Tensor, biases: list[Tensor]) -> Tensor:
        """Return what one query per sequence takes from the values of all places: (B, 1, H).

        A query meets W_k x at each place x, so it may as well meet x as W_k^T query: with one
        query, that is one product per sequence, not per token. Values likewise. The keys' bias adds
        the same to all scores of a query, which the softmax does not see; it is there in training
        alone, because processes that train together want a gradient of every weight.
        """
        query, key, value = (attrgetter(path)(self.layer) for path in self.layout.maps)
        heads = (self.num_heads, -1, hidden.shape[-1])
        head_queries = query(at_column).view(len(at_column), self.num_heads, -1)  # (B, A, D)
        scaled = head_queries * head_queries.shape[-1] ** -0.5
        key_queries = torch.einsum("bad,adh->bah", scaled, key.weight.view(heads))
        scores = key_queries @ hidden.transpose(1, 2)  # (B, A, L)
        if torch.is_grad_enabled() and key.bias is not None:
            scores = scores + (scaled * key.bias.view(heads[:2])).sum(dim=-1, keepdim=True)
        for bias in biases:
            scores = scores + bias
        exact = torch.promote_types(scores.dtype, torch.float32)
        mixed_inputs = scores.softmax(dim=-1, dtype=exact).to(hidden.dtype) @ hidden  # (B, A, H)
        mixed = torch.einsum("bah,adh->bad", mixed_inputs, value.weight.view(heads)).flatten(1)
        return (mixed if value.bias is None else mixed + value.bias)[:, None]


def _shell_of(module: nn.Module) -> nn.Module:
    shell = copy.copy(module)
    shell._modules = dict(module._modules)
    return shell


def _at(hidden: Tensor, column: Tensor) -> Tensor:
    """Return the output (B, 1, H) at one position of each sequence (B, L, H)."""
    return hidden[torch.arange(len(hidden), device=hidden.device), column][:, None]


def _query_bias(table: Tensor | None, column: Tensor) -> Tensor | None:
    """Return the rows (B, A, L) of a mask (B, 1 or A, L or 1, L) for one query."""
    if table is None:
        return None
    rows = torch.arange(len(column), device=column.device)
    row = table.expand(len(column), -1, -1, -1)[rows, :, column if table.shape[2] > 1 else 0]
    if row.dtype == torch.bool:  # True where a query may look
        return torch.zeros_like(row, dtype=torch.float32).masked_fill(~row, float("-inf"))
    return row


def layer_layout(encoder: nn.Module) -> LayerLayout | None:
    """Return the layout of an encoder's layers; None where it is not known."""
    config: Any = getattr(encoder, "config", None)
    attention = getattr(config, "_attn_implementation", None)
    if attention not in ("sdpa", "eager") or getattr(config, "is_decoder", False):
        return None  # other kinds have masks of other forms
    for layout in _LAYERS:
        stack = at_path(encoder, layout.stack)
        if isinstance(stack, nn.ModuleList) and len(stack) and at_path(stack[-1], layout.maps[0]):
            return layout
    return None
