"""How one model reads and answers one item.

Every question of a scorer is tried; where a model type refuses one, its message is kept. The pieces
of the item's texts are read from the batches that the model gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from probelight.commands.explain import explanation
from probelight.commands.explain.explanation import Candidate, Explanation, Guess, Piece, Spelling
from probelight.encoding.candidates import INSIDE, Blank, CandidateTable
from probelight.encoding.packed import SHARED
from probelight.evaluation.letters import ask_letters
from probelight.evaluation.predictions import ask, ask_about
from probelight.evaluation.prompting import in_chat, mode_of
from probelight.evaluation.scorers import model_row, reader_for, scorer_for
from probelight.io.errors import RecordError, UsageError
from probelight.models.kept_model import KeptModel
from probelight.models.networks import Batch
from probelight.models.registry import ModelSettings
from probelight.models.scorer import Question, Scorer
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


def explain_record(
    model: ModelSettings, prompts: Prompts, record: Record, trainer: TrainerSettings
) -> Explanation:
    """Return how a model reads and answers a record, put to it by `prompts`."""
    model_reader = KeptModel(reader_for(model, trainer))
    scorer = scorer_for(model, prompts.setup, shared_model=model_reader)
    original = record
    if prompts.setup != "minimal_pair":
        if chatting := in_chat(scorer, prompts):
            scorer, prompts = chatting, replace(prompts, in_chat=True)
        record = prompts.words(record)
    view = _ItemView(scorer, record, trainer)
    mode = mode_of(scorer.mode, prompts, is_in_chat=scorer.is_in_chat)
    row = replace(model_row(model), mode=mode)
    vocabulary = None if scorer.is_in_chat else view.attempt(scorer.vocabulary)
    candidates = view.scored_candidates()
    letter_reads: tuple[tuple[str, tuple[Piece, ...]], ...] = ()
    if scorer.mode != "fine_tuned":  # whose head has no log-probabilities
        reader = scorer_for(model, "mc_mlm", shared_model=model_reader)
        reader = in_chat(reader, prompts) or reader
        by_letter = partial(view.scored_letters, reader, prompts, original, candidates)
        candidates, letter_reads = view.attempt(by_letter) or (candidates, ())
    if vocabulary is None:
        reads = view.attempt(lambda: input_pieces(scorer.choice_scores(), record))
        notices = tuple(dict.fromkeys(view.notices))
        return Explanation(row, (*(reads or ()), *letter_reads), tuple(candidates), notes=notices)
    tokenizer = tokenizer_of(vocabulary)
    for index, candidate in enumerate(candidates):
        if len(candidate.text.split()) == 1:  # one word, which could be written in other ways
            word = candidate.text.strip()
            other_spellings = spellings(tokenizer, model.answer_prefix, record.stem, word)
            candidates[index] = replace(candidate, spellings=other_spellings)
    guesses: tuple[Guess, ...] = ()
    bare = replace(record, choices=(), answer=0)
    if reads := view.attempt(lambda: input_pieces(vocabulary, bare)):
        candidates, guesses = view.vocabulary_entries(vocabulary, bare, candidates)
    notices = tuple(dict.fromkeys(view.notices))
    reads = (*(reads or ()), *letter_reads)
    return Explanation(row, reads, tuple(candidates), guesses, len(tokenizer), notices)


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
        [answers] = ask(self.scorer, question, {"the item": records}, self.trainer).values()
        self.notices += answers.notices
        pairs = zip(answers.records, answers.scores, strict=True)
        return {record.id: list(scores) for record, scores in pairs}

    def scored_candidates(self) -> list[Candidate]:
        """Return the choices with their scores, log-likelihoods and scored pieces."""
        scorer, record = self.scorer, self.record
        scores_by_id = self.attempt(lambda: self.numbers(scorer.choice_scores(), [record])) or {}
        likelihoods = self.attempt(scorer.log_likelihoods)
        question = likelihoods or scorer.choice_scores()
        pieces = self.attempt(lambda: scored_pieces(question, record)) or []
        log_likelihoods: list[float] = []
        token_counts: list[int] = []
        if likelihoods and pieces:
            log_likelihoods = self.numbers(likelihoods, [record])[record.id]
            token_counts = likelihoods.num_tokens([record])[0] if likelihoods.num_tokens else []
        # Before a whole sentence is none, nor in a chat, and a trained head reads more.
        has_space = bool(likelihoods and pieces and record.stem and not scorer.is_in_chat)
        scores = scores_by_id.get(record.id, [])
        best_score = max(scores, default=math.nan) if not any(map(math.isnan, scores)) else math.nan
        return [
            Candidate(
                choice,
                pieces=pieces[index] if pieces else (),
                space=space_before(tokenizer_of(question), pieces[index]) if has_space else None,
                score=scores[index] if scores else None,
                is_best=bool(scores) and scores[index] == best_score,
                log_likelihood=log_likelihoods[index] if log_likelihoods else None,
                num_tokens=token_counts[index] if token_counts else None,
            )
            for index, choice in enumerate(record.choices)
        ]

    def scored_letters(
        self, reader: Scorer, prompts: Prompts, original: Record, candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], tuple[tuple[str, tuple[Piece, ...]], ...]]:
        """Return the choices with the scores of their letters, and what `reader` reads for them."""
        unscored = Predictions("the item", [original], [[0.0] * len(original.choices)])
        [[scores]] = ask_letters(reader, unscored, "one", prompts, self.trainer).choices
        prompt = prompts.letters(original, tuple(range(len(original.choices))))
        pieces = scored_pieces(reader.log_likelihoods(), prompt)
        rows = zip(candidates, prompt.choices, pieces, scores, strict=True)
        labelled = [
            replace(
                candidate,
                label=label,
                label_pieces=label_pieces,
                label_score=score,
                is_best_label=score == max(scores),
            )
            for candidate, label, label_pieces, score in rows
        ]
        question = reader.log_likelihoods() if reader.is_in_chat else reader.vocabulary()
        bare = replace(prompt, choices=prompt.choices[: int(reader.is_in_chat)], answer=0)
        reads = input_pieces(question, bare)
        return labelled, tuple((f"{name}, for a letter", text) for name, text in reads)

    def vocabulary_entries(
        self, vocabulary: Question, bare: Record, candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], tuple[Guess, ...]]:
        """Return the choices as entries of the vocabulary, and the model's best words.

        `bare` is the record without choices. Each choice is looked up alone, so that one of several
        pieces, or two that are one entry, do not hide the others.
        """
        tokenizer = tokenizer_of(vocabulary)
        entries = entries_of(vocabulary, [(bare.stem, candidate.text) for candidate in candidates])
        found_entries = {str(i): entry for i, entry in enumerate(entries) if entry is not None}
        records = [replace(bare, id=i, choices=(candidates[int(i)].text,)) for i in found_entries]
        ranks = self.numbers(candidate_ranks(self.scorer), records) if records else {}
        depth = min(BEST_WORDS, len(tokenizer))
        question = best_entries(self.scorer, depth, [[*found_entries.values()]])
        rows, notices = ask_about(self.scorer, question, [bare], self.trainer)
        self.notices += notices
        ids = [int(entry) for entry in rows[0][:depth]]
        probabilities = [min(math.exp(score), 1.0) for score in rows[0][depth:]]  # NaN stays NaN
        updated = list(candidates)
        entry_probabilities = zip(found_entries.items(), probabilities[depth:], strict=True)
        for (key, entry), share in entry_probabilities:
            [piece], rank = pieces_of(tokenizer, [entry]), int(ranks[key][0])
            entered = replace(candidates[int(key)], entry=piece, probability=share, rank=rank)
            updated[int(key)] = entered
        words, pieces = read_out(tokenizer, ids), pieces_of(tokenizer, ids)
        guesses = zip(pieces, probabilities[:depth], strict=True)
        return updated, tuple(Guess(words[piece.id], piece, share) for piece, share in guesses)


def pieces_of(tokenizer: Any, ids: Iterable[int]) -> tuple[Piece, ...]:
    """Return entries of a vocabulary as pieces."""
    id_list = list(ids)
    return tuple(map(Piece, map(str, tokenizer.convert_ids_to_tokens(id_list)), id_list))


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
    sequences = [("reads", pieces_of(tokenizer, text.tolist()))]
    if "decoder_input_ids" in batch:
        first = int(batch["scored_mask"][row].long().argmax())
        decoder_ids = batch["decoder_input_ids"][row][: first + 1]
        sequences.append(("decoder reads", pieces_of(tokenizer, decoder_ids.tolist())))
    return tuple(sequences)


def scored_pieces(question: Question, record: Record) -> list[tuple[Piece, ...]]:
    """Return the scored pieces of each choice; a trained head scores all that it reads."""
    batch, tokenizer = _batch(question, record), tokenizer_of(question)
    if batch is None:
        return []
    indices = range(len(record.choices))
    if "candidate_ids" in batch:
        ids = [[int(batch["candidate_ids"][0, index])] for index in indices]
    else:
        rows = [int(batch["pair_index"][0, index]) for index in indices]
        if "segments" in batch:
            gold = zip(batch["gold"], batch["token_mask"], strict=True) if "gold" in batch else ()
            gold_ids = [row_ids[is_token].tolist() for row_ids, is_token in gold]
            ids = [gold_ids[row] for row in rows] if gold_ids else []
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
    casings = dict.fromkeys([word, word[:1].upper() + word[1:], word.lower()])
    stem_by_note = {"": stem}
    if answer_prefix == AUTO_PREFIX:
        is_behind_space = _carrier(stem) == INSIDE
        note = "without a space" if is_behind_space else "after a space"
        stem_by_note[note] = MASK if is_behind_space else f"{INSIDE}{MASK}"
    variants = [
        (note, _carrier(variant_stem), text)
        for note, variant_stem in stem_by_note.items()
        for text in casings
    ]
    variants = [variant for variant in variants if (variant[0], variant[2]) != ("", word)]
    records = [Record("variant", MASK, (text,), 0) for _, _, text in variants]
    table = CandidateTable(tokenizer, answer_prefix, records, [c for _, c, _ in variants])
    spelled = []
    for note, carrier, text in variants:
        pieces = pieces_of(tokenizer, table.pieces(carrier, text).tolist())
        is_known = all(piece.id != tokenizer.unk_token_id for piece in pieces)
        spelled.append(Spelling(text, note, pieces, is_known))
    return tuple(spelled)


def _batch(question: Question, record: Record) -> Batch | None:
    """Return the batch of one that a question makes of a record; None where it leaves it out."""
    encoded = question.encoder.encode([replace(record, answer=0)])
    return encoded.collate([0]) if len(encoded) else None


def _carrier(stem: str) -> str:
    return Blank.of(stem if MASK in stem else f"{stem} {MASK}", MASK).carrier
