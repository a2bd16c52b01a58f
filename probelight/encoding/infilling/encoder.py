"""Records to texts with a blank, and what an encoder-decoder model is asked to write there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from probelight.encoding.encoded_set import Padding
from probelight.encoding.infilling.infilling_set import Infilling, InfillingSet, Target
from probelight.encoding.infilling.texts import Asks, PosedTexts, Written
from probelight.encoding.likelihood import TOO_LONG
from probelight.encoding.special_tokens import Template, longest_first
from probelight.io.errors import RecordError
from probelight.probes.record import Record


class InfillingEncoder:
    """Encodes records for a model that fills blanks: the mask of a stem, or the place behind it.

    In a question the blank stands behind the stem and a space; an empty stem is nothing but the
    blank, so that a whole sentence is the answer. A stem and its blank are tokenised as the one
    text they are. An answer gets the pieces that it has in running text: where the context is
    repeated those of the filled sentence that hold a letter of it, or the space before it, else
    those that it has behind a space (at the start of a text, or attached to a word: those that it
    has alone).

    Args:
        tokenizer: The tokenizer; a fast one where the context is repeated.
        form: How the model fills blanks.
        max_length: Most tokens of either text, special tokens included. Of a longer one, text
            around the blank is cut, the longer side first, for both halves of the model alike.
        answer_prefix: As in `CandidateTable`; the pieces of filled sentences do not go by it.
        asks: What is asked for: all pieces of the "choices"; the first token in the blank, whose
            candidates are choices that are one of the vocabulary's "entries" (records with another
            are skipped); or that of the "place" alone, whatever the choices are.
    """

    def __init__(
        self,
        tokenizer: Any,
        form: Infilling,
        max_length: int = 256,
        answer_prefix: str = "auto",
        asks: Asks = "choices",
    ) -> None:
        self.tokenizer = tokenizer
        self.form = form
        self.max_length = min(max_length, tokenizer.model_max_length)
        self.answer_prefix = answer_prefix
        self.asks = asks
        self.closing = form.closing if asks == "choices" else ()
        self.cache_dir: str | Path | None = None
        self.template = Template.of(tokenizer, 1)
        self.padding = Padding.of(tokenizer)
        if self.max_length <= max(self.template.num_special, len(form.opening)):
            raise ValueError(f"max_length={max_length} leaves no room for the blank")

    def num_tokens(self, records: Sequence[Record]) -> list[list[int]]:
        """Of each record, the number of tokens of each of its choices, `closing` included.

        Raises:
            RecordError: As `encode`.
        """
        encoded = self.encode(records)
        return [[len(encoded.targets[i].asked) for i in row if i >= 0] for row in encoded.places]

    def encode(self, records: Sequence[Record]) -> InfillingSet:
        """Tokenises records; see the class for what happens to those that do not fit.

        Raises:
            RecordError: If a stem has several masks, an answer has no tokens or is longer than
                `max_length`, or two candidates are the same entry.
        """
        posed = PosedTexts(
            self.tokenizer, self.form, self.asks, records, self.answer_prefix, self.cache_dir
        )
        kept, skipped = posed.sorted_out()
        written = posed.choices_written() if self.asks == "choices" else posed.blanks_written()
        width = max((len(records[i].choices) for i in kept), default=0)
        places = np.full((len(kept), width if self.asks == "choices" else 1), -1, dtype=np.int64)
        lengths = np.zeros(len(kept), dtype=np.int64)
        sources: dict[tuple[int, int, int], int] = {}
        targets: dict[Target, int] = {}
        for row, i in enumerate(kept):
            window = self._window(records[i], *posed.blank_in_text(i), written[i])
            source = sources.setdefault((posed.texts[i], *window), len(sources))
            lengths[row] = window[1] - window[0] + self.template.num_special
            for column, one in enumerate(written[i]):
                target = self._target(source, window[0], one)
                places[row, column] = targets.setdefault(target, len(targets))
                lengths[row] = max(lengths[row], len(target.given) + len(target.asked) - 1)
        candidates, exists = posed.candidates(kept, width)
        return InfillingSet(
            labels=np.array([records[i].answer for i in kept], dtype=np.int64),
            lengths=lengths,
            num_sequences=1 + (places >= 0).sum(axis=1),
            num_choices=width,
            kept=kept,
            skipped=skipped,
            notices=posed.notices(kept, skipped) + self._notices(posed, sources, targets),
            padding=self.padding,
            sources=tuple(posed.store[text][a:b].astype(np.int64) for text, a, b in sources),
            targets=tuple(targets),
            places=places,
            candidate_ids=candidates,
            choice_mask=exists,
            template=self.template,
        )

    def _window(
        self, record: Record, size: int, at: int, written: Sequence[Written]
    ) -> tuple[int, int]:
        """Begin and end of what is kept of a text of `size` tokens with its blank `at`."""
        form = self.form
        longest = max((len(one.answer) for one in written), default=1) + len(self.closing)
        room = self.max_length - len(form.opening) - longest
        if room < 0:
            raise RecordError(
                f"{record.where}: a choice has {longest - len(self.closing)} tokens, more than fit "
                f"into max_length={self.max_length}: {TOO_LONG}"
            )
        around = self.max_length - self.template.num_special - 1
        before, after = longest_first(at, size - at - 1, around)
        if form.repeats_context:
            before = min(before, room)
        return at - before, at + after + 1

    def _target(self, source: int, num_dropped: int, written: Written) -> Target:
        form = self.form
        before = written.before[num_dropped:] if form.repeats_context else ()
        room = self.max_length - len(form.opening) - len(written.answer)
        before = before[max(0, len(before) - room) :]
        return Target(source, form.opening + before, written.answer + self.closing)

    def _notices(
        self,
        posed: PosedTexts,
        sources: dict[tuple[int, int, int], int],
        targets: dict[Target, int],
    ) -> tuple[str, ...]:
        lines = []
        if num_cut := sum(end - begin < len(posed.store[text]) for text, begin, end in sources):
            lines.append(
                f"{num_cut} of {len(sources)} texts were cut to {self.max_length} tokens around "
                "their blank"
            )
        unknown = self.tokenizer.unk_token_id
        if self.asks == "choices" and (num := sum(unknown in t.asked for t in targets)):
            lines.append(
                f"{num} of {len(targets)} answers hold a piece that the tokenizer does not know "
                f"and are scored with {self.tokenizer.unk_token} in its place"
            )
        return tuple(lines)
