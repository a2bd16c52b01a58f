"""What of a checkpoint is loaded: by which of transformers' classes, of which families of models.

A kind of language model that is loaded in another form says so where it is scored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_MULTIPLE_CHOICE_MAPPING,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForSeq2SeqLM,
    PreTrainedConfig,
)


@dataclass(frozen=True)
class Form:
    """One form in which checkpoints are loaded.

    Attributes:
        auto_class: The class that loads it, with `from_pretrained` and `from_config`.
        admits: Whether the settings are of a family that has it.
        needs: Special tokens that a tokenizer must have for it, as transformers calls them.
    """

    auto_class: Any
    admits: Callable[[PreTrainedConfig], bool]
    needs: tuple[str, ...] = ("pad_token",)


def _encoder_in(*mappings: Any) -> Callable[[PreTrainedConfig], bool]:
    """Whether a config is of one of transformers' mappings, and reads in both directions."""

    def admits(config: PreTrainedConfig) -> bool:
        one_way = any(getattr(config, n, False) for n in ("is_encoder_decoder", "is_decoder"))
        return not one_way and any(type(config) in mapping for mapping in mappings)

    return admits


def _is_causal(config: PreTrainedConfig) -> bool:
    """Whether a config is of a family that reads from left to right, or was made to."""
    # `in` goes by names: to list a mapping would import every family that there is.
    one_way = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING
    if getattr(config, "is_encoder_decoder", False) or not one_way:
        return False
    if config.model_type == "xlnet":
        return False  # without permutations, which nobody makes here, a token sees itself
    both_ways = type(config) in MODEL_FOR_MASKED_LM_MAPPING
    return not both_ways or bool(getattr(config, "is_decoder", False))


# Families of encoder-decoder models that were taught to fill blanks: with what stands between two
# sentinels; with the whole sentence. Others (Pegasus, Marian, ...) write something else. Switch
# drops what is too much for its experts, so that its numbers would hang on the batch.
FILLED_BLANK = ("t5", "mt5", "umt5", "longt5")
FILLED_SENTENCE = ("bart", "mbart", "plbart", "led")


def _fills_blanks(config: PreTrainedConfig) -> bool:
    known = config.model_type in (*FILLED_BLANK, *FILLED_SENTENCE)
    return known and bool(config.is_encoder_decoder)


_is_encoder = _encoder_in(MODEL_FOR_MASKED_LM_MAPPING, MODEL_FOR_MULTIPLE_CHOICE_MAPPING)

# With its masked-token head; without heads; with the head that gives choices their logits.
MASKED_LM = Form(
    AutoModelForMaskedLM, _encoder_in(MODEL_FOR_MASKED_LM_MAPPING), ("pad_token", "mask_token")
)
ENCODER = Form(AutoModel, _is_encoder)
MULTIPLE_CHOICE = Form(AutoModelForMultipleChoice, _is_encoder)
# With the head over the decoder's next token.
SEQ2SEQ_LM = Form(AutoModelForSeq2SeqLM, _fills_blanks)
# With the head over the next token. Few have a padding token: nothing ever reads one.
CAUSAL_LM = Form(AutoModelForCausalLM, _is_causal, needs=())
