"""Whether models load and read a probe's candidates, before hours are spent on the first of them.

Weights are not read: a tokenizer and a config take a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from datamodules.encoding.masked import MaskedChoiceEncoder
from lightning_modules.model_fit import Kind
from lightning_modules.pretrained import check_pretrained
from lightning_modules.sentence_choice import answers_questions
from probes.record import Record
from protocols.engine.settings import ModelSettings
from storage.errors import RecordError

Refuse = Callable[[Sequence[Record], Sequence[int]], None]


def check_masked(
    model: ModelSettings, sets: Iterable[Sequence[Record]], refuse: Refuse | None = None
) -> None:
    """Refuses a transformer that cannot fill the masks of some records.

    Args:
        model: The model.
        sets: Masked sentences.
        refuse: Called with the records of each set and the places of those that can be posed.

    Raises:
        PretrainedError: If there is no such model, or it is of another kind.
        RecordError: If it cannot tell candidates apart, or does not know one; the message names
            the model.
    """
    tokenizer = check_pretrained(
        "masked_lm", model.name_or_path, model.revision, model.random_weights
    )
    encoder = MaskedChoiceEncoder(
        tokenizer, model.answer_prefix, multi_token=model.multi_token, max_length=model.max_length
    )
    for records in sets:
        try:
            kept = encoder.check(records)
            if refuse is not None:
                refuse(records, kept)
        except RecordError as error:
            raise RecordError(f"{model.label}: {error}") from None


def check_answering(model: ModelSettings, *, trained: bool) -> None:
    """Refuses a transformer that cannot answer questions, of which it knows every piece somehow.

    Args:
        model: The model.
        trained: Whether it is fine-tuned first, or must answer as it is.

    Raises:
        PretrainedError: If there is no such model, or it is of another kind.
    """
    as_encoder = trained or answers_questions(model.name_or_path, model.revision)
    kind: Kind = "encoder" if as_encoder else "masked_lm"
    check_pretrained(kind, model.name_or_path, model.revision, model.random_weights)
