"""How one model reads and answers one item.

Every question of a scorer is tried; where a model type refuses one, its message is kept. The pieces
of the item's texts are read from the batches that the model gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from probelight.commands.explain import explanation
from probelight.commands.explain.explanation import Candidate, Explained, Guess, Piece, Spelling
from probelight.encoding.candidates import INSIDE, Blank, CandidateTable
from probelight.encoding.packed import SHARED
from probelight.encoding.tokens import tokenise
from probelight.evaluation.letters import ask_letters
from probelight.evaluation.predictions import ask, ask_about
from probelight.evaluation.prompting import in_chat, mode_of
from probelight.evaluation.scorers import model_row, reader_for, scorer_for
from probelight.io.errors import RecordError, UsageError
from probelight.models.kept_model import KeptModel
from probelight.models.networks import Batch
from probelight.models.scorer import Question, Scorer
from probelight.models.settings import ModelSettings
from probelight.models.vocabulary import (
    GOES_ON,
    best_entries,
    candidate_ranks,
    entries_of,
    read_out,
    tokenizer_of,
)
from probelight.probes.prompts import Prompts
from probelight.probes.record import MASK, Record
from probelight.results.measured import Predictions
from probelight.runs.settings import TrainerSettings

T = TypeVar("T")
AUTO_PREFIX = "auto"
BEST_WORDS = 10


def explained(
    model: ModelSettings,
    prompts: Prompts,
    asked: Mapping[str, Any],
    record: Record,
    trainer: TrainerSettings,
) -> Explained:
    """Return how a model reads and answers a record, put to it by `prompts`.

    `asked` is what a run's config says of that.
    """
    known = KeptModel(reader_for(model, trainer))
    scorer = scorer_for(model, prompts.setup, shared_model=known)
    given = record
    if prompts.setup != "minimal_pair":
        if chatting := in_chat(scorer, asked):
            scorer, prompts = chatting, replace(prompts, in_chat=True)
        record = prompts.words(record)
    view = _ItemView(scorer, record, trainer)
    num_shots = 0 if prompts.setup == "minimal_pair" else prompts.num_shots
    has_texts = bool(prompts.words_template)
    mode = mode_of(scorer.mode, scorer.is_in_chat, num_shots, asked, has_texts=has_texts)
    row = replace(model_row(model), mode=mode)
    vocabulary = None if scorer.is_in_chat else view.attempt(scorer.vocabulary)
    candidates = view.scored_candidates()
    of_letters: tuple[tuple[str, tuple[Piece, ...]], ...] = ()
    if scorer.mode != "fine_tuned":  # whose head has no log-probabilities
        reader = scorer_for(model, "mc_mlm", shared_model=known)
        reader = in_chat(reader, asked) or reader
        by_letter = partial(view.letters, reader, prompts, given, candidates)
        candidates, of_letters = view.attempt(by_letter) or (candidates, ())
    if vocabulary is None:
        reads = view.attempt(lambda: input_pieces(scorer.choice_scores(), record))
        notices = tuple(dict.fromkeys(view.notices))
        return Explained(row, (*(reads or ()), *of_letters), tuple(candidates), notes=notices)
    tokenizer = tokenizer_of(vocabulary)
    for place, candidate in enumerate(candidates):
        if len(candidate.text.split()) == 1:  # one word, which could be written in other ways
            word = candidate.text.strip()
            others = spellings(tokenizer, model.answer_prefix, record.stem, word)
            candidates[place] = replace(candidate, spellings=others)
    best: tuple[Guess, ...] = ()
    bare = replace(record, choices=(), answer=0)
    if reads := view.attempt(lambda: input_pieces(vocabulary, bare)):
        candidates, best = view.vocabulary_entries(vocabulary, bare, candidates)
    notices = tuple(dict.fromkeys(view.notices))
    reads = (*(reads or ()), *of_letters)
    return Explained(row, reads, tuple(candidates), best, len(tokenizer), notices)


@dataclass
class _ItemView:
    """One record as a scorer sees it, and notices of the questions that it refused."""

    scorer: Scorer
    record: Record
    trainer: TrainerSettings
    notices: list[str] = field(default_factory=list)

    def attempt(self, answer: Callable[[], T]) -> T | None:
        """Return an answer, or None and a notice where this model type refuses it."""
        try:
            return answer()
        except (UsageError, RecordError) as error:
            self.notices.append(str(error))
            return None

    def numbers(self, question: Question, records: Sequence[Record]) -> dict[str, list[float]]:
        """Return, by id, the numbers of the records that the question can pose."""
        [found] = ask(self.scorer, question, {"the item": records}, self.trainer).values()
        self.notices += found.notices
        pairs = zip(found.records, found.scores, strict=True)
        return {record.id: list(scores) for record, scores in pairs}

    def scored_candidates(self) -> list[Candidate]:
        """Return the choices with their scores, log-likelihoods and scored pieces."""
        scorer, record = self.scorer, self.record
        by_id = self.attempt(lambda: self.numbers(scorer.choice_scores(), [record])) or {}
        likelihoods = self.attempt(scorer.log_likelihoods)
        question = likelihoods or scorer.choice_scores()
        pieces = self.attempt(lambda: scored_pieces(question, record)) or []
        sums: list[float] = []
        counts: list[int] = []
        if likelihoods and pieces:
            sums = self.numbers(likelihoods, [record])[record.id]
            counts = likelihoods.num_tokens([record])[0] if likelihoods.num_tokens else []
        # Before a whole sentence is none, nor in a chat, and a trained head reads more.
        has_space = bool(likelihoods and pieces and record.stem and not scorer.is_in_chat)
        scores = by_id.get(record.id, [])
        best = max(scores, default=math.nan) if not any(map(math.isnan, scores)) else math.nan
        return [
            Candidate(
                choice,
                pieces=pieces[place] if pieces else (),
                space=space_before(tokenizer_of(question), pieces[place]) if has_space else None,
                score=scores[place] if scores else None,
                is_best=bool(scores) and scores[place] == best,
                log_likelihood=sums[place] if sums else None,
                num_tokens=counts[place] if counts else None,
            )
            for place, choice in enumerate(record.choices)
        ]

    def letters(
        self, reader: Scorer, prompts: Prompts, given: Record, candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], tuple[tuple[str, tuple[Piece, ...]], ...]]:
        """Return the choices with the scores of their letters, and what `reader` reads for them."""
        own = Predictions("the item", [given], [[0.0] * len(given.choices)])
        [[scores]] = ask_letters(reader, own, "one", prompts, self.trainer).choices
        prompt = prompts.letters(given, tuple(range(len(given.choices))))
        pieces = scored_pieces(reader.log_likelihoods(), prompt)
        rows = zip(candidates, prompt.choices, pieces, scores, strict=True)
        found = [
            replace(
                candidate,
                label=label,
                label_pieces=of_label,
                label_score=score,
                is_best_label=score == max(scores),
            )
            for candidate, label, of_label, score in rows
        ]
        question = reader.log_likelihoods() if reader.is_in_chat else reader.vocabulary()
        bare = replace(prompt, choices=prompt.choices[: int(reader.is_in_chat)], answer=0)
        reads = input_pieces(question, bare)
        return found, tuple((f"{name}, for a letter", text) for name, text in reads)

    def vocabulary_entries(
        self, vocabulary: Question, bare: Record, candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], tuple[Guess, ...]]:
        """Return the choices as entries of the vocabulary, and the model's best words.

        `bare` is the record without choices. Each choice is looked up alone, so that one of several
        pieces, or two that are one entry, do not hide the others.
        """
        tokenizer = tokenizer_of(vocabulary)
        entries = entries_of(vocabulary, [(bare.stem, candidate.text) for candidate in candidates])
        posed = {str(place): entry for place, entry in enumerate(entries) if entry is not None}
        records = [replace(bare, id=key, choices=(candidates[int(key)].text,)) for key in posed]
        ranks = self.numbers(candidate_ranks(self.scorer), records) if records else {}
        depth = min(BEST_WORDS, len(tokenizer))
        question = best_entries(self.scorer, depth, [[*posed.values()]])
        rows, notices = ask_about(self.scorer, question, [bare], self.trainer)
        self.notices += notices
        ids = [int(entry) for entry in rows[0][:depth]]
        probabilities = [min(math.exp(log), 1.0) for log in rows[0][depth:]]  # NaN stays NaN
        found = list(candidates)
        for (key, entry), probability in zip(posed.items(), probabilities[depth:], strict=True):
            [piece], rank, place = pieces_of(tokenizer, [entry]), int(ranks[key][0]), int(key)
            found[place] = replace(found[place], entry=piece, probability=probability, rank=rank)
        words, pieces = read_out(tokenizer, ids), pieces_of(tokenizer, ids)
        guesses = zip(pieces, probabilities[:depth], strict=True)
        return found, tuple(Guess(words[piece.id], piece, share) for piece, share in guesses)


def pieces_of(tokenizer: Any, ids: Iterable[int]) -> tuple[Piece, ...]:
    """Return entries of a vocabulary as pieces."""
    found = list(ids)
    return tuple(map(Piece, map(str, tokenizer.convert_ids_to_tokens(found)), found))


def input_pieces(question: Question, record: Record) -> tuple[tuple[str, tuple[Piece, ...]], ...]:
    """Return the model's input with special tokens: the text, and the decoder's input.

    Of several texts, one per choice, it is the first.
    """
    batch, tokenizer = _batch(question, record), tokenizer_of(question)
    if batch is None:
        return ()
    row = int(batch["pair_index"][0, 0]) if "pair_index" in batch else 0
    source = int(batch["source_index"][row]) if "source_index" in batch else row
    # Of choices that are packed, what they have in common.
    packed = batch["segments"] == SHARED if "segments" in batch else batch["attention_mask"].bool()
    text = batch["input_ids"][source][packed[source]]
    read = [("reads", pieces_of(tokenizer, text.tolist()))]
    if "decoder_input_ids" in batch:
        first = int(batch["scored_mask"][row].long().argmax())
        given = batch["decoder_input_ids"][row][: first + 1]
        read.append(("decoder reads", pieces_of(tokenizer, given.tolist())))
    return tuple(read)


def scored_pieces(question: Question, record: Record) -> list[tuple[Piece, ...]]:
    """Return the scored pieces of each choice; a trained head scores all that it reads."""
    batch, tokenizer = _batch(question, record), tokenizer_of(question)
    if batch is None:
        return []
    places = range(len(record.choices))
    if "candidate_ids" in batch:
        ids = [[int(batch["candidate_ids"][0, place])] for place in places]
    else:
        rows = [int(batch["pair_index"][0, place]) for place in places]
        if "segments" in batch:
            gold = zip(batch["gold"], batch["token_mask"], strict=True) if "gold" in batch else ()
            found = [own[exist].tolist() for own, exist in gold]
            ids = [found[row] for row in rows] if found else []
        elif "scored_mask" in batch:
            ids = [batch["scored_ids"][row][batch["scored_mask"][row]].tolist() for row in rows]
        else:
            mask = batch.get("answer_mask", batch["attention_mask"]).bool()
            ids = [batch["input_ids"][row][mask[row]].tolist() for row in rows]
    return [pieces_of(tokenizer, ids_of_text) for ids_of_text in ids]


def space_before(tokenizer: Any, pieces: Sequence[Piece]) -> explanation.Space | None:
    """Return where the space before an answer is: in its first piece, its own, or nowhere."""
    if not pieces:
        return None
    first = pieces[0]
    word = read_out(tokenizer, [first.id])[first.id]
    if word.startswith(GOES_ON):
        return "none"
    if word == first.text:
        alone = not tokenizer.decode([first.id], clean_up_tokenization_spaces=False).strip()
        return "a token of its own" if alone else "left out by the tokenizer"
    return "in its first token"


def spellings(tokenizer: Any, answer_prefix: str, stem: str, word: str) -> tuple[Spelling, ...]:
    """Return a word in other letters, and with or without the space before it."""
    written = dict.fromkeys([word, word[:1].upper() + word[1:], word.lower()])
    places = {"": stem}
    if answer_prefix == AUTO_PREFIX:
        is_behind_space = _carrier(stem) == INSIDE
        note = "without a space" if is_behind_space else "after a space"
        places[note] = MASK if is_behind_space else f"{INSIDE}{MASK}"
    ways = [(note, _carrier(place), text) for note, place in places.items() for text in written]
    ways = [way for way in ways if (way[0], way[2]) != ("", word)]
    table = CandidateTable(tokenizer, answer_prefix)
    for _, carrier, text in ways:
        table.add(carrier, text)
    store, _ = tokenise(tokenizer, list(table.texts))
    found = []
    for note, carrier, text in ways:
        pieces = pieces_of(tokenizer, table.pieces(carrier, text, store).tolist())
        is_known = all(piece.id != tokenizer.unk_token_id for piece in pieces)
        found.append(Spelling(text, note, pieces, is_known))
    return tuple(found)


def _batch(question: Question, record: Record) -> Batch | None:
    """Return the batch of one that a question makes of a record; None where it leaves it out."""
    encoded = question.encoder.encode([replace(record, answer=0)])
    return encoded.collate([0]) if len(encoded) else None


def _carrier(stem: str) -> str:
    return Blank.of(stem if MASK in stem else f"{stem} {MASK}", MASK).carrier
