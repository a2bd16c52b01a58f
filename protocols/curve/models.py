"""The models that a curve compares, and the meaningless words that suit all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from datamodules.encoding.candidates import CandidateTable
from datamodules.encoding.masked import MaskedChoiceEncoder
from datamodules.encoding.token_store import tokenise
from lightning_modules.pretrained import load_tokenizer
from probes.catalog import ROOT, ProbeConfig
from probes.controls import NONSENSE_WORDS, NonsenseError, choose_nonsense
from probes.record import Record
from protocols.curve.data import CurveData
from protocols.curve.settings import Control, listed
from protocols.engine.model_kinds import TRANSFORMER
from protocols.engine.settings import DEFAULT_MODEL, ModelSettings
from results.model_names import told_apart
from storage.errors import UsageError

MODEL_CONFIGS = ROOT / "configs" / "model"
CARRIER = "a "  # what stands before an answer inside a sentence


def chosen_models(
    names: str | Sequence[str], model: ModelSettings, random_weights: bool
) -> list[ModelSettings]:
    """The models compared, each transformer with its random-weights control if that is asked for.

    Args:
        names: Configs in configs/model/ (names or paths of .yaml files), folders, or names on the
            Hub, separated by commas; empty takes `model`.
        model: The one model where no names are given.
        random_weights: Add the same architectures with fresh weights (SPEC E9).

    Raises:
        UsageError: If names and a model are given, a config is malformed, or two models have the
            same name in tables. Folders of one name are told apart by their paths.
    """
    given = listed(names)
    if given and model != DEFAULT_MODEL:
        raise UsageError("give either --models a,b or --model, not both")
    models = _named_apart([model_of(name) for name in given]) if given else [model]
    if random_weights:
        models += [
            replace(one, random_weights=True)
            for one in models
            if one.kind == TRANSFORMER and not one.random_weights
        ]
    labels = [one.label for one in models]
    if repeated := {label for label in labels if labels.count(label) > 1}:
        raise UsageError(
            f"two models are called {min(repeated)!r} in tables; leave one out, or give them names "
            "(`name:` in a config of a model)"
        )
    return models


def _named_apart(models: Sequence[ModelSettings]) -> list[ModelSettings]:
    """The models, those in folders of one name called by as much of their paths as differs."""
    labels = [one.label for one in models]
    found = []
    for one in models:
        same = [other.name_or_path for other in models if other.label == one.label]
        alike = one.kind != TRANSFORMER or one.name or len(set(same)) == 1
        tail = None if alike or labels.count(one.label) == 1 else told_apart(same)
        found.append(replace(one, name=tail[one.name_or_path]) if tail else one)
    return found


def model_of(name: str) -> ModelSettings:
    """The settings that a name stands for: a config's, or those of a folder or Hub name.

    Raises:
        UsageError: If a config is missing or malformed; the message names the file.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else MODEL_CONFIGS / f"{name}.yaml"
    if path.is_file():
        return _read(path)
    if path == Path(name):
        raise UsageError(f"--models {name}: there is no such file")
    return ModelSettings(name_or_path=name)


def nonsense_for(config: ProbeConfig, models: Sequence[ModelSettings]) -> dict[str, str]:
    """One meaningless word per candidate, one piece in every model compared (SPEC A, controls).

    Baselines over word vectors take any word.

    Raises:
        NonsenseError: If there is no such mapping, with the words and the models that split them.
    """
    if not config.candidates:
        return {}
    transformers = [model for model in models if model.kind == TRANSFORMER]
    words = list(dict.fromkeys([*config.nonsense.values(), *NONSENSE_WORDS]))
    split_by: dict[str, list[str]] = {word: [] for word in words}
    for model in _distinct_tokenizers(transformers):
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
    data: CurveData, models: Sequence[ModelSettings], controls: Sequence[Control]
) -> CurveData:
    """The rows that every model with `multi_token: skip` can pose, the same for all models.

    A curve compares the same rows under all controls and in all models, so a row that one of them
    has to leave out is left out of all.
    """
    skipping = [m for m in models if m.kind == TRANSFORMER and m.multi_token == "skip"]
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


def _read(path: Path) -> ModelSettings:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--model", type=ModelSettings, default=ModelSettings())
    try:
        settings: Any = parser.instantiate(parser.parse_path(str(path)))["model"]
    except Exception as error:
        # jsonargparse lets errors of several kinds through, YAML's among them.
        first = str(error).strip().splitlines()[0]
        raise UsageError(f"{path}: no config of a model: {first}") from error
    return ModelSettings(**{f.name: getattr(settings, f.name) for f in fields(ModelSettings)})


def _distinct_tokenizers(models: Sequence[ModelSettings]) -> Iterator[ModelSettings]:
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
        table.add(CARRIER, word)
    store, _ = tokenise(tokenizer, list(table.texts))
    return [
        word
        for word in words
        if any(table.problems(Record("nonsense", "", (word,), 0), CARRIER, store))
    ]
