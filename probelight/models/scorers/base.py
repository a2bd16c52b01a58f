"""The seam of a kind of language model: what can be asked of it, and who owns what in the asking.

Shapes: B items, K choices, V entries of a vocabulary, H hidden.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol

from torch import Tensor, nn

from probelight.io.errors import UsageError
from probelight.models.batches import Batch
from probelight.models.checkpoints.weights import model_fingerprint
from probelight.models.scorers.sums import Normalise

if TYPE_CHECKING:
    from probelight.encoding.candidates import MultiToken
    from probelight.encoding.encoded_set import ChoiceEncoder
    from probelight.probes.record import Record, Setup

# Places, among records, of those that a model can be asked; it refuses what nobody could pose.
Posable = Callable[[Sequence["Record"]], Sequence[int]]


@dataclass(frozen=True)
class Question:
    """One thing that is asked of a scorer, a batch at a time.

    Attributes:
        encoder: Poses records: tokenises them, skips or cuts what does not fit, and says so.
        answer: A batch of the encoder's, on the scorer's device, to the answer, items first.
        num_tokens: Of each record, how many tokens are summed for each of its choices; the model
            is not run. Every kind's `log_likelihoods` has it.
    """

    encoder: ChoiceEncoder
    answer: Callable[[Batch], Tensor]
    num_tokens: Callable[[Sequence[Record]], list[list[int]]] | None = None


class Scorer(nn.Module, ABC):
    """A language model as it is, asked without training it.

    Every kind answers the questions below, or refuses them by name: nothing is answered by
    something near it. A question takes records and poses them itself, so that everything which
    depends on a tokenizer stands here: callers hand over words as people write them.

    - The leading space belongs to the answer, and the scorer puts it there: whatever space stands
      around a choice is dropped, and the choice is looked up, or written behind its context, as it
      would stand in running text.
    - Case is the text's own: nothing is folded, unless the model's own tokenizer does so.
    - What is summed are the log-probabilities (natural logarithms) of the answer's own tokens, and
      of them alone: the context, special tokens and what stands behind the answer are given. A kind
      that reads both ways masks one token at a time (in one form, the rest of its word with it) and
      is given all others. One that reads from left to right is given what stands before alone, so
      it sums what stands behind the answer too, which a bad answer makes unlikely. One that writes
      between sentinels sums the one that closes the answer. Whether choices go by sums or by means
      over their tokens is a matter of `choice_scores`.
    - Special tokens (BOS among them) stand around a text as the tokenizer sets them; what a kind
      adds or leaves out is said in its module.
    - An item that cannot be posed is an error, or skipped and counted in the encoder's notices;
      what the encoder lists as `needs_pll`, because the settings ask for it, goes by
      `log_likelihoods`. Nothing is scored otherwise than it was asked for.

    Attributes:
        mode: How the choices get their scores, as the column `mode` of results names it.
        normalise: Whether `choice_scores` are the log-likelihoods, or their means per token; None
            where they are something else.
    """

    mode: str
    normalise: Normalise | None = None

    @abstractmethod
    def choice_scores(self) -> Question:
        """(B, K): the higher, the better; -inf where an item has no such choice.

        Scores of one item compare with each other; those of two items need not.
        """

    def vocabulary(self) -> Question:
        """(B, V): log-probabilities of what stands at the item's mask, or next behind its stem.

        They are over the entries of the encoder's `tokenizer`. Batches hold `candidate_ids` (B, K),
        the entries of the item's choices; items with a choice that is not one entry are skipped.
        An item may have one choice, or none.

        Raises:
            UsageError: If this kind has none.
        """
        self._refuse("log-probabilities over a vocabulary")

    def log_likelihoods(self) -> Question:
        """(B, K): for each choice the sum of its tokens' log-probabilities in its place.

        The place is the mask of the stem, or behind the stem and a space. Choices of any number of
        pieces are answered; a text of one's own is a stem with one choice. Of several `[MASK]` the
        last is the place, and the others are text.

        Raises:
            UsageError: If this kind has none.
        """
        self._refuse("log-likelihoods of a continuation")

    def features(self) -> Question:
        """(B, H): what the frozen model's head reads of each stem, whatever the choices are.

        A kind that reads both ways, or fills blanks, is read at the place of `vocabulary`; one that
        reads from left to right behind the whole stem, so that all of its words are seen.

        Raises:
            UsageError: If this kind has none.
        """
        self._refuse("features")

    def word_rows(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        """(U, H) and (U,): the row and the bias with which a head over `features` begins a word.

        They are those of the model's own head at the word's one piece, or the mean of its pieces'.

        Raises:
            UsageError: If this kind has none.
            RecordError: If a word has no pieces.
        """
        self._refuse("rows of words")

    def fingerprint(self) -> str:
        """What tells this scorer's answers from another's: the sha256 of its weights, as hex."""
        return model_fingerprint(self)

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(f"{type(self).__name__} (mode {self.mode}) gives no {what}")


class ScorerSettings(Protocol):
    """What a scorer is made from, of the settings that say which model is asked."""

    @property
    def name_or_path(self) -> str: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def answer_prefix(self) -> str: ...
    @property
    def multi_token(self) -> MultiToken: ...
    @property
    def pll(self) -> Literal["original", "within_word_l2r"]: ...
    @property
    def max_length(self) -> int: ...
    @property
    def random_weights(self) -> bool: ...
    @property
    def vectors(self) -> str: ...


class KindOfScorer(Protocol):
    """What the module of a kind of language model holds; the factory finds it by its kind."""

    def load(self, settings: ScorerSettings, setup: Setup, seed: int = 0) -> Scorer:
        """The scorer that answers probes of a setup, its random weights of a seed.

        Raises:
            PretrainedError: If there is no such model, or it is of another kind.
            UsageError: If this kind does not answer the setup.
        """

    def check(self, settings: ScorerSettings, setup: Setup) -> Posable:
        """Refuses what `load` would, as far as it can be told without reading weights.

        Raises:
            PretrainedError: As `load`.
            UsageError: As `load`.
        """
