"""The masked-token head of any masked LM, taken apart so that only candidate words are scored.

A head's layout is known by the attributes that a model has, not by the model's name, and the parts
are compared with the model's own logits: relatives of known models come for free, and a model that
only looks alike is refused.

Shapes: B batch, L tokens, K choices, H hidden, E the head's inner size, V vocabulary.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checks import comparable, predict_alike
from probelight.models.networks import at_path, run_encoder


class UnsupportedHeadError(PretrainedError):
    """A model whose masked-token head has an unknown form."""


@dataclass(frozen=True)
class HeadLayout:
    """Where a masked LM's head keeps its parts, as attribute paths."""

    transform: tuple[str | Callable[[Tensor], Tensor], ...]  # from h (H) to z (E), in turn
    decoder: str  # the module with the (V, E) weight
    bias: str  # the (V,) bias


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
    # RemBERT
    HeadLayout(
        ("cls.predictions.dense", "cls.predictions.activation", "cls.predictions.LayerNorm"),
        "cls.predictions.decoder",
        "cls.predictions.decoder.bias",
    ),
    # GTE, ESM Cambrian
    HeadLayout(
        ("lm_head.dense", F.gelu, "lm_head.layer_norm"), "lm_head.decoder", "lm_head.decoder.bias"
    ),
    # UltraBERT
    HeadLayout(
        ("head.linear1", "head.act_fn", "head.linear2", "head.act_fn"),
        "head.decoder",
        "head.decoder.bias",
    ),
    # FlauBERT, XLM
    HeadLayout((), "pred_layer.proj", "pred_layer.proj.bias"),
    # EuroBERT
    HeadLayout((), "lm_head", "lm_head.bias"),
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


class CandidateHead:
    """A masked LM's head as `transform` (H -> E) and `decoder` (V x E, bias V).

    It is a view: the parameters stay where the model has them, and so do the names in `state_dict`.

    Args:
        model: Any `AutoModelForMaskedLM`.

    Raises:
        UnsupportedHeadError: If the head has no known layout, or the layout does not reproduce the
            model's logits. The message names the class.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self._twins: list[nn.Parameter] = []
        self._layout = head_layout(model)
        if hasattr(self.decoder, "base_layer"):
            raise UnsupportedHeadError(
                f"{type(model).__name__}: an adapter at its decoder, {self._layout.decoder}, is "
                "not supported; use one at other layers"
            )
        if not self.weight.is_meta:  # else there are no numbers to compare
            _verify(self)

    @property
    def encoder(self) -> nn.Module:
        """The model below the head; its `last_hidden_state` is h."""
        return self.model.base_model

    @property
    def decoder(self) -> nn.Module:
        """The module that holds the decoder's weight."""
        module: nn.Module = attrgetter(self._layout.decoder)(self.model)
        return module

    @property
    def weight(self) -> nn.Parameter:
        """The decoder's weight (V, E)."""
        weight: nn.Parameter = self.decoder.weight  # type: ignore[assignment]
        return weight

    @property
    def bias(self) -> nn.Parameter | None:
        """The decoder's bias (V,), where it has one."""
        decoder_bias: nn.Parameter | None = getattr(self.decoder, "bias", None)
        if decoder_bias is not None or isinstance(self.decoder, nn.Linear):
            return decoder_bias
        bias: nn.Parameter = attrgetter(self._layout.bias)(self.model)
        return bias

    def transform(self, h: Tensor) -> Tensor:
        """Apply the head's hidden layer: (..., H) -> (..., E)."""
        return reduce(lambda value, step: step(value), self.transform_steps(), h)

    def score(self, h: Tensor, candidate_ids: Tensor) -> Tensor:
        """Return the logits (B, K) of the `candidate_ids` (B, K) alone, given h (B, H) at the mask.

        Their softmax is the softmax over the vocabulary with all other words masked by -inf, and
        has the same gradients.
        """
        rows, z = F.embedding(candidate_ids, self.weight), self.transform(h)  # (B, K, E), (B, E)
        # Half precision has few steps between the logits of two words.
        exact = torch.promote_types(z.dtype, torch.float32)
        logits = torch.einsum("be,bke->bk", z.to(exact), rows.to(exact))
        return logits if self.bias is None else logits + self.bias[candidate_ids]

    def full_logits(self, h: Tensor) -> Tensor:
        """Return the logits of the whole vocabulary: (..., H) -> (..., V)."""
        return F.linear(self.transform(h), self.weight, self.bias)

    def transform_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters of the hidden layer."""
        for step in self.transform_steps():
            if isinstance(step, nn.Module):
                yield from step.parameters()

    def decoder_parameters(self) -> Iterator[nn.Parameter]:
        """Yield weight and bias of the decoder."""
        yield self.weight
        if self.bias is not None:
            yield self.bias

    def untie(self) -> None:
        """Give the decoder a weight and a bias of its own.

        Training it then leaves the input embeddings, and with them h, as they are. The config stops
        tying too, so that a saved decoder is not overwritten when it is loaded again.
        """
        if not isinstance(self.decoder, nn.Linear):
            use_legacy_head(self.model)
            self._layout = head_layout(self.model)
        decoder = self.decoder
        for name in ("weight", "bias"):
            parameter = getattr(decoder, name, None)
            if parameter is None:
                continue
            owners = [
                module
                for module in self.model.modules()
                for p in module.parameters(recurse=False)
                if p is parameter
            ]
            if len(owners) > 1:
                setattr(decoder, name, nn.Parameter(parameter.detach().clone()))
                if name == "bias":
                    self._twins.append(parameter)
        self.model.config.tie_word_embeddings = False
        self.model.all_tied_weights_keys = {}

    def sync_bias(self) -> None:
        """Copy a trained bias to the second name that some heads keep it under."""
        for twin in self._twins:
            assert self.bias is not None
            with torch.no_grad():
                twin.copy_(self.bias)

    def transform_steps(self) -> Iterator[Callable[[Tensor], Tensor]]:
        """Yield the modules and functions of the hidden layer, in order."""
        for step in self._layout.transform:
            yield attrgetter(step)(self.model) if isinstance(step, str) else step


def _verify(head: CandidateHead) -> None:
    """Check on four tokens that encoder and head in turn give the model's logits."""
    model = head.model
    pad = getattr(model.config, "pad_token_id", None)
    ids = [i for i in range(model.config.vocab_size) if i != pad][-4:]
    input_ids = torch.tensor([ids], device=head.weight.device)
    batch = {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids)}
    try:
        with comparable(model) as tolerance:
            expected = model(**batch).logits
            actual = head.full_logits(run_encoder(head.encoder, batch).last_hidden_state)
        is_same = predict_alike(expected, actual, tolerance)
    except (RuntimeError, TypeError, AttributeError, IndexError) as error:
        raise UnsupportedHeadError(
            f"{type(model).__name__}: its masked-token head could not be analysed "
            f"({type(error).__name__}: {error})"
        ) from error
    if not is_same:
        raise UnsupportedHeadError(
            f"{type(model).__name__}: its masked-token head is not just a transform and a decoder"
        )


def head_layout(model: PreTrainedModel) -> HeadLayout:
    """Return the layout of a model's head; raise UnsupportedHeadError if none is known."""
    # Their heads read a decoder, which has another scorer.
    for layout in () if model.config.is_encoder_decoder else _HEADS:
        steps = [step for step in layout.transform if isinstance(step, str)]
        paths = (*steps, layout.decoder, layout.bias)  # there may be a bias that is None
        if all(at_path(model, path, ...) is not ... for path in paths):
            return layout
    families = (
        "BERT, RoBERTa, XLM-R, DistilBERT, ALBERT, ELECTRA, DeBERTa-v2, ModernBERT, MPNet, "
        "RemBERT, GTE, EuroBERT, FlauBERT"
    )
    raise UnsupportedHeadError(
        f"{type(model).__name__}: its masked-token head is of no known form (known: {families} "
        "and relatives)"
    )


def use_legacy_head(model: Any) -> None:
    """Rewrite DeBERTa's new head as its legacy head, which is the same mathematics.

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
