"""What a model of ours says behind contexts: its best words, and the probabilities of others.

A context is posed as Ettinger (2020) poses it: the context, a mask, and a full stop after a space,
so that a model which reads both ways knows that one word ends the sentence. A kind that reads from
left to right is asked for what comes next behind the context. Probabilities are over the whole
vocabulary. No case is folded but by a model's own tokenizer.

Words are compared by their entries in the vocabulary: a word is said where the model's entry is the
one that the word has in this place, and is then shown in its own spelling. A word that is more than
one entry there has no probability and is never said; nothing is cut to its first piece. How the
other entries are shown stands in `probelight.models.scorers.words.read_out`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from probelight.probes.diagnostics.items import Prompt
from probelight.probes.record import MASK, Record
from probelight.protocols.jobs.context import TrainerSettings
from probelight.results.model_outputs import ModelOutputs

if TYPE_CHECKING:
    from probelight.models.scorers.base import Scorer

DEPTH = 20  # as far down as Shivagunde et al. (2023) look

Words = Mapping[str, Collection[str]]  # context -> words


@dataclass(frozen=True)
class Said:
    """What a model says behind a context.

    Attributes:
        best: Its most probable words, the best one first; none if its numbers are none (NaN).
        probabilities: Of the words asked for, those that are one entry.
        split: The others.
    """

    best: tuple[str, ...]
    probabilities: Mapping[str, float]
    split: frozenset[str]


@dataclass(frozen=True)
class Answers:
    """What a model says behind several contexts.

    Attributes:
        behind: By context.
        depth: How many words it was asked for.
        notices: What is to be said of the asking.
    """

    behind: Mapping[str, Said]
    depth: int
    notices: tuple[str, ...]

    def outputs(self, prompts: Sequence[Prompt]) -> ModelOutputs:
        """The answers to prompts, in the form that recorded ones have."""
        said = [self.behind[prompt.context] for prompt in prompts]
        return ModelOutputs(
            tuple(one.best for one in said),
            self.depth,
            tuple(
                one.probabilities.get(prompt.target)
                for one, prompt in zip(said, prompts, strict=True)
            ),
            frozenset().union(*(one.split for one in said)),
        )


def ask_words(scorer: Scorer, words: Words, settings: TrainerSettings) -> Answers:
    """A model's best words behind contexts, and the probabilities of words asked for.

    Args:
        scorer: The model.
        words: For each context the words whose probabilities are asked for.
        settings: How it is run; the answers are the same for any of it.

    Raises:
        UsageError: If this kind of model has no probabilities over a vocabulary.
        RecordError: If a context cannot be posed.
    """
    # Only now: they import torch.
    from probelight.models.scorers.words import best_entries, entries_of, read_out, tokenizer_of
    from probelight.protocols.engine.evaluation import ask_about

    vocabulary = scorer.vocabulary()
    tokenizer = tokenizer_of(vocabulary)
    stems = {context: f"{context} {MASK} ." for context in words}
    places = [(context, word) for context, own in words.items() for word in dict.fromkeys(own)]
    found = entries_of(vocabulary, [(stems[context], word) for context, word in places])
    entries: dict[str, dict[str, int | None]] = {context: {} for context in words}
    for (context, word), entry in zip(places, found, strict=True):
        entries[context][word] = entry
    depth = min(DEPTH, len(tokenizer))
    known = [[one for one in own.values() if one is not None] for own in entries.values()]
    records = [Record(context, stem, (), 0) for context, stem in stems.items()]
    rows, notices = ask_about(scorer, best_entries(scorer, depth, known), records, settings)
    best = [[int(entry) for entry in rows[i][:depth]] for i in range(len(records))]
    spelled = _Spelling(entries.values(), read_out(tokenizer, {e for own in best for e in own}))
    behind = {}
    for i, (context, own) in enumerate(entries.items()):
        numbers = rows[i]
        one_entry = [word for word, entry in own.items() if entry is not None]
        given = zip(one_entry, numbers[2 * depth :], strict=False)
        is_number = not any(map(math.isnan, numbers))
        behind[context] = Said(
            tuple(spelled.of(best[i], own)) if is_number else (),
            {word: _probability(number) for word, number in given},
            frozenset(own) - set(one_entry),
        )
    return Answers(behind, depth, (*notices, *_lost(behind.values())))


class _Spelling:
    """How entries are shown: in the spelling of the words that are asked for, else as they read."""

    def __init__(
        self, asked: Collection[Mapping[str, int | None]], read: Mapping[int, str]
    ) -> None:
        self.read = read
        self.words = {word for own in asked for word in own}
        self.known: dict[int, str] = {}
        for own in asked:
            for word, entry in own.items():
                if entry is not None:
                    self.known.setdefault(entry, word)

    def of(self, entries: Iterable[int], own: Mapping[str, int | None]) -> Iterator[str]:
        """The words of entries behind a context, for which `own` words are asked."""
        first = {entry: word for word, entry in reversed([*own.items()])}
        for entry in entries:
            word = first.get(entry) or self.known.get(entry)
            read = self.read[entry]
            # What reads like a word that was asked for is another entry than that word's.
            yield word or (f"##{read}" if read in self.words else read)


def _probability(logarithm: float) -> float:
    return min(math.exp(logarithm), 1.0)  # in this order NaN stays NaN


def _lost(said: Iterable[Said]) -> Iterator[str]:
    own = list(said)
    if number := sum(not one.best for one in own):
        yield (
            f"behind {number} of {len(own)} contexts the model's numbers are none (NaN): they "
            "count as wrong"
        )
