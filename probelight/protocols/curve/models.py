"""What all models of a curve can read: meaningless words of one piece, and rows to pose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from probelight.encoding.candidates import INSIDE, CandidateTable
from probelight.encoding.masked import MaskedChoiceEncoder
from probelight.encoding.tokens import tokenise
from probelight.io.errors import UsageError
from probelight.models.checkpoints.description import load_tokenizer
from probelight.probes.catalog import ProbeConfig
from probelight.probes.controls import NONSENSE_WORDS, NonsenseError, choose_nonsense
from probelight.probes.record import Record
from probelight.protocols.curve.data import CurveData
from probelight.protocols.engine.kinds import kind_of
from probelight.protocols.engine.settings import ModelSettings


def nonsense_for(config: ProbeConfig, models: Sequence[ModelSettings]) -> dict[str, str]:
    """One meaningless word per candidate, one piece in every model compared.

    Baselines over word vectors take any word.

    Raises:
        NonsenseError: If there is no such mapping, with the words and the models that split them.
    """
    if not config.candidates:
        return {}
    words = list(dict.fromkeys([*config.nonsense.values(), *NONSENSE_WORDS]))
    split_by: dict[str, list[str]] = {word: [] for word in words}
    for model in _distinct_tokenizers(m for m in models if kind_of(m).has_checkpoint):
        for word in _split_words(model, words):
            split_by[word].append(model.label)
    try:
        return choose_nonsense(config, lambda word: not split_by[word])
    except NonsenseError as error:
        said = "; ".join(f"{w!r} in {', '.join(who)}" for w, who in split_by.items() if who)
        raise NonsenseError(
            f"{error}. Words that are not one piece: {said}. Compare fewer models at once, or "
            "leave no_language out of grid.controls"
        ) from None


def only_posed(
    data: CurveData, models: Sequence[ModelSettings], controls: Sequence[str]
) -> CurveData:
    """The rows that every model with `multi_token: skip` can pose, the same for all models.

    A curve compares the same rows under all controls and in all models, so a row that one of them
    has to leave out is left out of all.
    """
    # To a model with heads of its own rows a candidate may be of several pieces.
    of_pieces = [m for m in models if kind_of(m).has_checkpoint and not kind_of(m).heads]
    skipping = [model for model in of_pieces if model.multi_token == "skip"]
    if data.setup != "mc_mlm" or not skipping:
        return data
    unposed: tuple[set[int], set[int]] = (set(), set())
    for model in _distinct_tokenizers(skipping):
        encoder = MaskedChoiceEncoder(
            load_tokenizer(model.name_or_path, model.revision),
            model.answer_prefix,
            multi_token="skip",
            max_length=model.max_length,
        )
        for control in controls:
            for places, records in zip(unposed, data.under(control), strict=True):
                places |= {one.position for one in encoder.encode(records).skipped}
    train, evaluation = (
        tuple(record for place, record in enumerate(rows) if place not in places)
        for rows, places in zip((data.train, data.evaluation), unposed, strict=True)
    )
    if not train or not evaluation:
        raise UsageError(
            f"{data.config.name}: no row has candidates of one piece in all models compared"
        )
    said = [
        f"{len(places)} of {len(rows)} {name} rows left out: a candidate is not one piece in every "
        "model compared"
        for name, rows, places in zip(
            ("train", "measured"), (data.train, data.evaluation), unposed, strict=True
        )
        if places
    ]
    return replace(data, train=train, evaluation=evaluation, notices=(*data.notices, *said))


def _distinct_tokenizers(models: Iterable[ModelSettings]) -> Iterator[ModelSettings]:
    seen = set()
    for model in models:
        key = (model.name_or_path, model.revision, model.answer_prefix)
        if key not in seen:
            seen.add(key)
            yield model


def _split_words(model: ModelSettings, words: Sequence[str]) -> list[str]:
    """The words that are not one vocabulary item where an answer stands."""
    tokenizer = load_tokenizer(model.name_or_path, model.revision)
    table = CandidateTable(tokenizer, model.answer_prefix)
    for word in words:
        table.add(INSIDE, word)
    store, _ = tokenise(tokenizer, list(table.texts))
    return [
        word
        for word in words
        if any(table.problems(Record("nonsense", "", (word,), 0), INSIDE, store))
    ]
