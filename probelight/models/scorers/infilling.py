"""How a family of encoder-decoder models fills blanks, read off a model and its tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from probelight.models.checkpoints.folder import PretrainedError, one_error
from probelight.models.checkpoints.forms import FILLED_SENTENCE

if TYPE_CHECKING:
    from probelight.encoding.infilling import Infilling

_SENTINELS = ("<extra_id_0>", "<extra_id_1>")
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # as SentencePiece writes it
_WORD = "a"  # any that is no special token


def infilling_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Infilling:
    """How a model fills blanks, by its family and its tokenizer; weights are not read.

    Raises:
        PretrainedError: If the tokenizer lacks what the family's form needs.
    """
    from probelight.encoding.infilling import Infilling

    source = str(model.config.name_or_path)
    name = f"{source}: {model.config.model_type} fills blanks by"
    repeats_context = model.config.model_type in FILLED_SENTENCE
    closing: tuple[int, ...] = ()
    if repeats_context:
        if tokenizer.mask_token_id is None or not tokenizer.is_fast:
            raise PretrainedError(
                f"{name} writing the filled sentence: {type(tokenizer).__name__} must have a mask "
                "token, and be a fast tokenizer"
            )
        blank, blank_id = str(tokenizer.mask_token), tokenizer.mask_token_id
        written = tokenizer(_WORD)["input_ids"]
    else:
        blank, blank_id, last = _sentinels(tokenizer, name)
        closing = (last,)
        written = [blank_id, *_pieces(tokenizer), *closing]
    # The model's own rule shifts what is to be written, and puts its start token before it.
    shift: Any = model.prepare_decoder_input_ids_from_labels
    with one_error(source, "decoder's start token"):
        given = shift(torch.tensor([written]))[0].tolist()
    opening = tuple(given[: given.index(_pieces(tokenizer)[0])])
    return Infilling(blank, blank_id, opening, closing, repeats_context)


def _sentinels(tokenizer: PreTrainedTokenizerBase, name: str) -> tuple[str, int, int]:
    """The text of the first sentinel, its token and that of the second."""
    entries = tokenizer.get_vocab()
    for space, written in (("", ""), (_SPACE, " ")):  # mT5's are words
        first, second = (entries.get(f"{space}{sentinel}") for sentinel in _SENTINELS)
        if first is not None and second is not None:
            return f"{written}{_SENTINELS[0]}", first, second
    raise PretrainedError(f"{name} sentinels: the tokenizer has no {' and '.join(_SENTINELS)}")


def _pieces(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    found: list[int] = tokenizer(_WORD, add_special_tokens=False)["input_ids"]
    return found
