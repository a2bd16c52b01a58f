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

from probelight.commands.explain.explanation import (
    Candidate,
    Explanation,
    Guess,
    Piece,
    Space,
    Spelling,
)
from probelight.encoding.candidates import INSIDE, Blank, CandidateTable
from probelight.encoding.packed import SHARED
from probelight.evaluation.evaluate import Evaluation, evaluate
from probelight.evaluation.letters import ask_letters
from probelight.evaluation.prompting import in_chat, mode_of
from probelight.evaluation.scorers import ask, ask_about, model_row, reader_for, scorer_for
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
from probelight.probes.source import ProbeData, config_of
from probelight.results.measured import Predictions
from probelight.runs.settings import TrainerSettings

T = TypeVar("T")
Reads = tuple[tuple[str, tuple[Piece, ...]], ...]  # each sequence with its special tokens
AUTO_PREFIX = "auto"
BEST_WORDS = 10


def explain_record(
    model: ModelSettings, prompts: Prompts, record: Record, trainer: TrainerSettings
) -> Explanation:
    """Return how a model reads and answers a record, put to it by `prompts`."""
    weights = KeptModel(reader_for(model, trainer))
    scorer = scorer_for(model, prompts.setup, shared_model=weights)
    probe = ProbeData(config_of("the item", prompts.setup, [record], ()), (record,), (), ())
    scored = partial(evaluate, scorer, probe, prompts=prompts, trainer=trainer)
    original = record
    if prompts.setup != "minimal_pair":
        if chatting := in_chat(scorer, prompts):
            scorer, prompts = chatting, replace(prompts, in_chat=True)
        record = prompts.words(record)
    mode = mode_of(scorer.mode, prompts, is_in_chat=scorer.is_in_chat)
    row = replace(model_row(model), mode=mode)
    view = _ItemView(scorer, trainer)
    vocabulary = None if scorer.is_in_chat else view.attempt(scorer.vocabulary)
    candidates = view.candidates(record, view.attempt(scored))
    letter_reads: Reads = ()
    if scorer.mode != "fine_tuned":  # whose head has no log-probabilities
        reader = scorer_for(model, "mc_mlm", shared_model=weights)
        reader = in_chat(reader, prompts) or reader
        letter_prompts = replace(prompts, in_chat=reader.is_in_chat)
        by_letter = partial(view.letters, reader, letter_prompts, original, candidates)
        candidates, letter_reads = view.attempt(by_letter) or (candidates, ())
    guesses: tuple[Guess, ...] = ()
    tokenizer: Any = tokenizer_of(vocabulary) if vocabulary else None
    if vocabulary is None:
        reads = view.attempt(lambda: input_pieces(scorer.choice_scores(), record)) or ()
    else:
        for index, candidate in enumerate(candidates):
            word = candidate.text.strip()
            if len(word.split()) == 1:  # it could be written in other ways
                variants = spellings(tokenizer, model.answer_prefix, record.stem, word)
                candidates[index] = replace(candidate, spellings=variants)
        bare = replace(record, choices=(), answer=0)
        if reads := view.attempt(lambda: input_pieces(vocabulary, bare)) or ():
            candidates, guesses = view.entries(vocabulary, bare, candidates)
    reads, notes = (*reads, *letter_reads), tuple(dict.fromkeys(view.notices))
    num_entries = len(tokenizer) if vocabulary else None
    return Explanation(row, reads, tuple(candidates), guesses, num_entries, notes)


@dataclass
class _ItemView:
    """What a model makes of an item, and notices of the questions that it refused."""

    scorer: Scorer
    trainer: TrainerSettings
    notices: list[str] = field(default_factory=list)

    def attempt(self, answer: Callable[[], T]) -> T | None:
        """Return an answer, or None and a notice where this model type refuses it."""
        try:
            return answer()
        except (UsageError, RecordError) as error:
            self.notices.append(str(error))
            return None

    def numbers(self, question: Question, records: Sequence[Record]) -> Sequence[Sequence[float]]:
        """Return the numbers of the records that the question can pose."""
        [answers] = ask(self.scorer, question, {"the item": records}, self.trainer).values()
        self.notices += answers.notices
        return answers.scores

    def candidates(self, record: Record, evaluation: Evaluation | None) -> list[Candidate]:
        """Return the choices with their scores, log-likelihoods and scored pieces."""
        scorer = self.scorer
        predictions = evaluation.predictions if evaluation else Predictions("the item", (), [()])
        self.notices += predictions.notices
        [scores], [best] = predictions.scores, predictions.best
        likelihoods = self.attempt(scorer.log_likelihoods)
        question = likelihoods or scorer.choice_scores()
        pieces = self.attempt(lambda: scored_pieces(question, record)) or []
        log_likelihoods: Sequence[float] = ()
        token_counts: Sequence[int] = ()
        if likelihoods and pieces:
            [log_likelihoods] = self.numbers(likelihoods, [record])
            token_counts = likelihoods.num_tokens([record])[0] if likelihoods.num_tokens else ()
        # Before a whole sentence is none, nor in a chat, and a trained head reads more.
        has_space = bool(likelihoods and pieces and record.stem and not scorer.is_in_chat)
        return [
            Candidate(
                choice,
                pieces=pieces[index] if pieces else (),
                space=space_before(tokenizer_of(question), pieces[index]) if has_space else None,
                score=scores[index] if scores else None,
                is_best=index in best,
                log_likelihood=log_likelihoods[index] if log_likelihoods else None,
                num_tokens=token_counts[index] if token_counts else None,
            )
            for index, choice in enumerate(record.choices)
        ]

    def letters(
        self, reader: Scorer, prompts: Prompts, original: Record, candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], Reads]:
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

    def entries(
        self, vocabulary: Question, bare: Record, candidates: list[Candidate]
    ) -> tuple[list[Candidate], tuple[Guess, ...]]:
        """Return the choices as entries of the vocabulary, and the model's best words.

        `bare` is the record without choices. Each choice is looked up alone, so that one of several
        pieces, or two that are one entry, do not hide the others.
        """
        tokenizer = tokenizer_of(vocabulary)
        entries = entries_of(vocabulary, [(bare.stem, candidate.text) for candidate in candidates])
        entry_by_index = {i: entry for i, entry in enumerate(entries) if entry is not None}
        records = [replace(bare, choices=(candidates[i].text,)) for i in entry_by_index]
        ranks = self.numbers(candidate_ranks(self.scorer), records) if records else []
        depth = min(BEST_WORDS, len(tokenizer))
        question = best_entries(self.scorer, depth, [[*entry_by_index.values()]])
        rows, notices = ask_about(self.scorer, question, [bare], self.trainer)
        self.notices += notices
        ids = [int(entry) for entry in rows[0][:depth]]
        probabilities = [min(math.exp(score), 1.0) for score in rows[0][depth:]]  # NaN stays NaN
        updated = list(candidates)
        rows_of_entries = zip(entry_by_index.items(), probabilities[depth:], ranks, strict=True)
        for (i, entry), share, [rank] in rows_of_entries:
            [piece] = pieces_of(tokenizer, [entry])
            updated[i] = replace(updated[i], entry=piece, probability=share, rank=int(rank))
        words, pieces = read_out(tokenizer, ids), pieces_of(tokenizer, ids)
        guesses = zip(pieces, probabilities[:depth], strict=True)
        return updated, tuple(Guess(words[piece.id], piece, share) for piece, share in guesses)


def pieces_of(tokenizer: Any, ids: Iterable[int]) -> tuple[Piece, ...]:
    """Return entries of a vocabulary as pieces."""
    id_list = list(ids)
    return tuple(map(Piece, map(str, tokenizer.convert_ids_to_tokens(id_list)), id_list))


def input_pieces(question: Question, record: Record) -> Reads:
    """Return the model's input with special tokens: the text, and the decoder's input.

    Of several texts, one per choice, it is the first.
    """
    batch, tokenizer = _batch(question, record), tokenizer_of(question)
    if batch is None:
        return ()
    row = int(batch["pair_index"][0, 0]) if "pair_index" in batch else 0
    source = int(batch["source_index"][row]) if "source_index" in batch else row
    if "segments" in batch:  # choices are packed: what they have in common
        text = batch["input_ids"][0][batch["segments"][0] == SHARED].tolist()
        if batch["row_prefix"][0] >= 0:
            text = [*batch["prefix_ids"][0, : int(batch["prefix_sizes"][0])].tolist(), *text]
    else:
        text = batch["input_ids"][source][batch["attention_mask"][source].bool()].tolist()
    sequences = [("reads", pieces_of(tokenizer, text))]
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


def space_before(tokenizer: Any, pieces: Sequence[Piece]) -> Space | None:
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
