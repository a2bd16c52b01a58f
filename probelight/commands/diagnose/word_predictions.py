"""The best words of a model of ours after contexts, and the probabilities of other words.

A context is posed as Ettinger (2020) poses it: the context, a mask, and a full stop after a space;
a model that reads from left to right predicts the next word. Probabilities are over the whole
vocabulary. Only a model's own tokenizer folds case.

Words are compared by their entries in the vocabulary. A word is predicted where the model's entry
is the one of the word in this place, and is then shown in its own spelling. A word of more than one
entry is never predicted, and has a probability only by the chain rule, after a context that is read
from left to right. `probelight.models.vocabulary.read_out` says how other entries are shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probelight.evaluation.scorers import ask_about
from probelight.io.atomic import write_text_atomic
from probelight.io.errors import UsageError
from probelight.probes.diagnostics.items import Prompt
from probelight.probes.diagnostics.sets import SetSource
from probelight.probes.record import MASK, Record
from probelight.results.model_outputs import LISTS, PREDICTIONS, PROBABILITIES, SPLIT, ModelOutputs
from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    from probelight.models.scorer import Scorer

DEPTH = 20  # as far down as Shivagunde et al. (2023) look

Words = Mapping[str, Collection[str]]  # context -> words


@dataclass(frozen=True)
class WordPrediction:
    """A model's prediction after one context."""

    best: tuple[str, ...]  # its most probable words, best first; none if its scores are NaN
    probabilities: Mapping[str, float]  # of the wanted words that are one entry of the vocabulary
    split: frozenset[str]  # the other wanted words


@dataclass(frozen=True)
class WordPredictions:
    """A model's predictions by context, `depth` words each, and notices of what was skipped."""

    by_context: Mapping[str, WordPrediction]
    depth: int
    notices: tuple[str, ...]

    def outputs(self, prompts: Sequence[Prompt]) -> ModelOutputs:
        """Return the predictions after prompts, in the form of recorded ones."""
        predictions = [self.by_context[prompt.context] for prompt in prompts]
        return ModelOutputs(
            tuple(prediction.best for prediction in predictions),
            self.depth,
            tuple(
                prediction.probabilities.get(prompt.target)
                for prediction, prompt in zip(predictions, prompts, strict=True)
            ),
            frozenset().union(*(prediction.split for prediction in predictions)),
        )


def predict_words(scorer: Scorer, words: Words, settings: TrainerSettings) -> WordPredictions:
    """Return a model's best words after each context, and the probabilities of the wanted words."""
    # Only now: they import torch.
    from probelight.models.vocabulary import best_entries, entries_of, read_out, tokenizer_of

    vocabulary = scorer.vocabulary()
    tokenizer = tokenizer_of(vocabulary)
    stems = {context: f"{context} {MASK} ." for context in words}
    pairs = [(context, word) for context in words for word in dict.fromkeys(words[context])]
    pair_entries = entries_of(vocabulary, [(stems[context], word) for context, word in pairs])
    entries: dict[str, dict[str, int | None]] = {context: {} for context in words}
    spelling: dict[int, str] = {}  # of the wanted words of any context, by entry
    for (context, word), entry in zip(pairs, pair_entries, strict=True):
        entries[context][word] = entry
        if entry is not None:
            spelling.setdefault(entry, word)
    depth = min(DEPTH, len(tokenizer))
    ids = [[entry for entry in table.values() if entry is not None] for table in entries.values()]
    records = [Record(context, stem, (), 0) for context, stem in stems.items()]
    rows, notices = ask_about(scorer, best_entries(scorer, depth, ids), records, settings)
    best_ids = [[int(entry) for entry in rows[index][:depth]] for index in range(len(records))]
    texts = read_out(tokenizer, {entry for row in best_ids for entry in row})
    all_words = {word for _, word in pairs}
    by_context = {}
    for index, (context, table) in enumerate(entries.items()):
        entry_words = [word for word, entry in table.items() if entry is not None]
        word_by_entry = {entry: word for word, entry in reversed([*table.items()])}
        best_words = [word_by_entry.get(entry) or spelling.get(entry) for entry in best_ids[index]]
        by_context[context] = WordPrediction(
            # What reads like a word that was asked for is another entry than that word's.
            tuple(
                word or (f"##{texts[entry]}" if texts[entry] in all_words else texts[entry])
                for word, entry in zip(best_words, best_ids[index], strict=True)
                if not any(map(math.isnan, rows[index]))
            ),
            {
                word: min(math.exp(logarithm), 1.0)  # in this order NaN stays NaN
                for word, logarithm in zip(entry_words, rows[index][2 * depth :], strict=False)
            },
            frozenset(table) - set(entry_words),
        )
    if num_lost := sum(not prediction.best for prediction in by_context.values()):
        notices += (
            f"after {num_lost} of {len(by_context)} contexts the model's scores are not numbers "
            "(NaN): these count as wrong",
        )
    return WordPredictions(by_context, depth, notices)


def with_split_targets(
    outputs: ModelOutputs, scorer: Scorer, prompts: Sequence[Prompt], settings: TrainerSettings
) -> ModelOutputs:
    """Return the outputs of a left-to-right model with the probabilities of split targets too.

    Such a probability is the product over the target's tokens, each after those before it (the
    chain rule). The other targets in its context are read in the same way, so that they compare,
    even if the model has more rows than the tokenizer has entries. A target with a token that
    stands for anything unknown still has none.
    """
    from probelight.models.vocabulary import known_words, tokenizer_of  # only now: it imports torch

    known_targets = known_words(tokenizer_of(scorer.vocabulary()), outputs.split)
    unknown_targets = outputs.split - known_targets
    contexts = {prompt.context for prompt in prompts if prompt.target in known_targets}
    indices = [
        index
        for index, prompt in enumerate(prompts)
        if prompt.context in contexts and prompt.target not in unknown_targets
    ]
    if not indices:
        return outputs
    probabilities = list(outputs.probabilities or ())
    records = [Record(str(i), prompts[i].context, (prompts[i].target,), 0) for i in indices]
    rows, _ = ask_about(scorer, scorer.log_likelihoods(), records, settings)
    for row, index in enumerate(indices):
        probabilities[index] = min(math.exp(rows[row][0]), 1.0)  # in this order NaN stays NaN
    return replace(outputs, probabilities=tuple(probabilities))


def file_name(model: str) -> str:
    """Return a model's name for files, with `-` for what no file of this form can have."""
    return re.sub(r"[/\\]|[^\S ]", "-", model)


def write_recorded_files(
    folder: Path, source: SetSource, model: str, lines: Sequence[Mapping[str, Any]]
) -> None:
    """Write the predictions of a run on one set in the form that `results.model_outputs` reads.

    The files have no ending, as the programs of Ettinger (2020) look for them, but for the lists of
    Shivagunde et al. (2023). A missing probability is `nan`, as the authors' program writes for a
    word that is not in the vocabulary. A context without any prediction is refused: it has no form.
    """
    words = [line["predictions"] for line in lines]
    if not all(words):
        raise UsageError(
            f"{model} on {source.title}: after some contexts its scores are not numbers (NaN), "
            "which recorded outputs cannot express"
        )
    set_name = source.recorded_as
    ending = f"{set_name}-{file_name(model)}"
    if source.in_lists:
        _write(folder / set_name / f"{file_name(model)}.txt", map(repr, words))
    else:
        contexts, targets = (folder / f"{set_name}-{kind}" for kind in LISTS)
        _write(contexts, (f"{line['context']} {MASK}" for line in lines))
        _write(targets, (line["target"] for line in lines))
        numbers = (line["probability"] for line in lines)
        _write(
            folder / f"{PROBABILITIES}-{ending}",
            ("nan" if number is None else repr(number) for number in numbers),
        )
        _write(folder / f"{PREDICTIONS}-{ending}", map(" ".join, words))
    split_path = folder / f"{SPLIT}-{ending}"
    if split := {word for line in lines for word in line.get("split", ())}:
        _write(split_path, sorted(split))
    else:
        split_path.unlink(missing_ok=True)  # of another model of this name


def _write(path: Path, lines: Iterable[str]) -> None:
    write_text_atomic(path, "".join(f"{line}\n" for line in lines))
