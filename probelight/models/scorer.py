"""The seam of a model type: the questions to a language model, and how it is made.

Shapes: B items, K choices, V entries of a vocabulary, H hidden, U words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

import torch
from torch import Tensor, nn

from probelight.io.errors import UsageError
from probelight.io.ranges import Scoring
from probelight.models.networks import Batch, dtype_name, mask_choices, model_fingerprint

if TYPE_CHECKING:
    from probelight.encoding.candidates import MultiToken
    from probelight.encoding.chat import Chat
    from probelight.encoding.encoded_set import ChoiceEncoder
    from probelight.encoding.infilling import InfillingEncoder
    from probelight.encoding.likelihood import LikelihoodEncoder
    from probelight.io.ranges import WeightsDtype
    from probelight.models.checkpoint_files import CheckpointRef
    from probelight.models.kept_model import KeptModel
    from probelight.models.loading import Form
    from probelight.probes.prompts import Thinking
    from probelight.probes.record import Record, Setup

Normalise = Literal["sum", "mean"]
Reader = Callable[..., Any]  # as `load_pretrained`

# The places, among records, of those that a model can be asked; it refuses what nobody could pose.
Posable = Callable[[Sequence["Record"]], Sequence[int]]


def all_of(records: Sequence[Record]) -> Sequence[int]:
    """Return the positions of all records: any answer is made of pieces that a tokenizer knows."""
    return range(len(records))


@dataclass(frozen=True)
class Question:
    """One question to a scorer, answered a batch at a time.

    Attributes:
        encoder: Poses records: tokenises them, skips or cuts what does not fit, and says so.
        answer: From a batch of the encoder's, on the scorer's device, to the answer, items first.
        num_tokens: From records to the number of summed tokens of each of their choices, without
            running the model. The `log_likelihoods` of every model type have it.
    """

    encoder: ChoiceEncoder
    answer: Callable[[Batch], Tensor]
    num_tokens: Callable[[Sequence[Record]], list[list[int]]] | None = None


class Scorer(ABC):
    """A language model as it is, which answers questions without being trained.

    Every model type answers the questions below, or refuses them by name with a `UsageError`. A
    question takes records and poses them itself, so that everything which depends on a tokenizer is
    here: callers give words as people write them.

    - The leading space belongs to the answer, and the scorer puts it there: white space around a
      choice is dropped, and the choice is looked up, or written behind its context, as in running
      text.
    - Case is the text's own: nothing is folded, unless the model's own tokenizer does so.
    - The sums are of the log-probabilities (natural logarithms) of the answer's own tokens alone:
      the context, special tokens and what is behind the answer are given. A type that reads both
      ways masks one token at a time (in one form, the rest of its word with it) and is given all
      others. One that reads from left to right is given what is before alone, so it sums what is
      behind the answer too, which a bad answer makes unlikely. One that writes between sentinels
      sums the one that closes the answer. Only `choice_scores` may be means over tokens.
    - Special tokens (BOS among them) are around a text as the tokenizer sets them; what a type
      adds or leaves out is said in its module.
    - An item that cannot be posed is an error, or skipped and counted in the encoder's notices;
      those in the encoder's `needs_pll`, because the settings ask for it, go by `log_likelihoods`.

    Attributes:
        network: The weights: moved to the device of the batches, kept in eval mode, and
            fingerprinted by their names. None by default.
        mode: How the choices get their scores, as the column `mode` of results names it.
        normalise: Whether `choice_scores` are the log-likelihoods, or their means per token; None
            where they are something else.
        kept_model: Of a scorer that jobs share: its weights, which stay on their device. None by
            default.
        chat: In which stems are the user's messages, as `in_chat` makes it. None by default.
        notices: What a reader of the results should know of how the model is run. Empty by default.
        label: Name of the model for messages. Empty by default.
    """

    network: nn.Module = nn.Identity()
    mode: str
    normalise: Normalise | None = None
    kept_model: KeptModel | None = None
    chat: Chat | None = None
    notices: tuple[str, ...] = ()
    label: str = ""

    @property
    def is_in_chat(self) -> bool:
        """Whether stems are the user's messages in a chat."""
        return self.chat is not None

    def in_chat(
        self, system: str = "", begin: str = "", thinking: Thinking = "template"
    ) -> Scorer | None:
        """Return the same scorer, whose choices are answers in the tokenizer's chat; None if none.

        It answers `choice_scores` and `log_likelihoods` alone. A stem is the user's message, behind
        a record's `turns` and a `system` message unless that is empty; the answer goes on from its
        `begin`, behind an empty thought or none (`thinking`).
        """
        return None

    @abstractmethod
    def choice_scores(self) -> Question:
        """Return the question for scores (B, K): higher is better; -inf where there is no choice.

        Scores of one item compare with each other; those of two items need not.
        """

    def vocabulary(self) -> Question:
        """Return the question for log-probabilities (B, V) at the mask, or next behind the stem.

        They are over the entries of the encoder's `tokenizer`. Batches hold `candidate_ids` (B, K),
        the entries of the item's choices, of which there may be one or none; items with a choice
        that is not one entry are skipped.
        """
        self._refuse("log-probabilities over a vocabulary")

    def log_likelihoods(self) -> Question:
        """Return the question for sums (B, K) of the log-probabilities of each choice's tokens.

        A choice, of any number of pieces, is in the place of the last mask, or behind the stem and
        a space; other masks are text. A text alone is a stem with one choice.
        """
        self._refuse("log-likelihoods of a continuation")

    def features(self) -> Question:
        """Return the question for what the model's head reads (B, H), whatever the choices are.

        A type that reads both ways, or fills blanks, is read at the place of `vocabulary`; one that
        reads from left to right behind the whole stem, so that all of its words are seen.
        """
        self._refuse("features")

    def word_rows(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return the rows (U, H) and biases (U,) with which a head over `features` begins words.

        They are those of the model's own head at the word's one piece, or the mean of its pieces';
        a word without pieces is a `RecordError`.
        """
        self._refuse("rows of words")

    @property
    def dtype(self) -> str:
        """The precision of the weights."""
        return dtype_name(self.network)

    def fingerprint(self) -> str:
        """Return the sha256 of the weights as they are, in their own precision, as hex."""
        return (self.kept_model.fingerprint if self.kept_model else model_fingerprint)(self.network)

    def _refuse(self, subject: str) -> NoReturn:
        raise UsageError(f"{type(self).__name__} (mode {self.mode}) cannot compute {subject}")


class LikelihoodScorer(Scorer):
    """A scorer whose choices go by the log-probabilities of their tokens.

    Attributes:
        normalise: "sum" over the tokens of a choice, or their "mean", which does not prefer short
            choices.
    """

    normalise: Normalise

    @abstractmethod
    def likelihood_encoder(self) -> LikelihoodEncoder | InfillingEncoder:
        """Return the encoder of records that gives each choice its text and tokens to sum."""

    @abstractmethod
    def token_scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return log-probabilities (R,) of all texts' summed tokens, and how many of each (P,)."""

    def choice_scores(self) -> Question:
        return self._likelihoods(self.normalise)

    def log_likelihoods(self) -> Question:
        return self._likelihoods("sum")

    def _likelihoods(self, normalise: Normalise) -> Question:
        def answer(batch: Batch) -> Tensor:
            return scores_of_choices(batch, *self.token_scores(batch), normalise)

        encoder = self.likelihood_encoder()
        return Question(encoder, answer, encoder.num_tokens)


class ChoosesAnswers(Protocol):
    """A model that was trained to choose: it encodes records and gives each choice a logit.

    It is a module of torch, or has its weights as `network`.
    """

    notices: tuple[str, ...]  # what a reader of the results should know of how it is run

    def encoder(self) -> ChoiceEncoder:
        """Return what turns records into batches."""

    def __call__(self, batch: Batch, /) -> Tensor:
        """Return the logits (B, K)."""


class TrainedScorer(Scorer):
    """Scores choices by the head that a model was trained with.

    Args:
        module: The trained model; it is used, not copied.
        mode: How the choices get their scores, if not by training.
    """

    def __init__(self, module: ChoosesAnswers, mode: str = "fine_tuned") -> None:
        self.module, self.mode, self.notices = module, mode, module.notices
        holder: Any = module
        self.network = (module if isinstance(module, nn.Module) else holder.network).eval()

    def choice_scores(self) -> Question:
        return Question(self.module.encoder(), self.module)


def scores_of_choices(batch: Batch, scores: Tensor, counts: Tensor, normalise: Normalise) -> Tensor:
    """Return the sum or the mean of each choice's tokens (B, K), -inf where there is no choice.

    `scores` (R,) are those of all summed tokens, text after text; `counts` (P,) how many belong to
    each. In double precision on the CPU (not every accelerator has it): the mean of equal numbers
    is then that number, however many there are, and a model that prefers no token ties.
    """
    sizes = counts.cpu()
    # Split and summed, not `index_add_`: on a GPU that adds in another order each time.
    scores_by_text = torch.split(scores.cpu().double(), sizes.tolist())
    sums = torch.stack([text_scores.sum() for text_scores in scores_by_text])
    text_totals = sums / sizes if normalise == "mean" else sums
    text_totals = text_totals.float().to(batch["choice_mask"].device)
    return mask_choices(text_totals[batch["pair_index"]], batch["choice_mask"])


def log_probabilities(logits: Tensor) -> Tensor:
    """Return the softmax's logarithm over the last dimension, in double precision.

    So two logits that differ never become one log-probability, and ranks are those of the logits.
    """
    exact = logits.cpu() if logits.device.type == "mps" else logits  # it has no doubles
    return exact.double().log_softmax(dim=-1)


def over_entries(encoder: Any, logits: Callable[[Batch], Tensor]) -> Question:
    """Return the question for log-probabilities over the entries of an encoder's tokenizer.

    `logits` (B, V) may have more columns: a decoder has rows to fill up.
    """
    num_entries = len(encoder.tokenizer)
    return Question(encoder, lambda batch: log_probabilities(logits(batch)[:, :num_entries]))


class ScorerSettings(Protocol):
    """The settings of a model that scorers are made from."""

    @property
    def checkpoint(self) -> CheckpointRef: ...
    @property
    def answer_prefix(self) -> str: ...
    @property
    def multi_token(self) -> MultiToken: ...
    @property
    def pll(self) -> Literal["original", "within_word_l2r"]: ...
    @property
    def max_length(self) -> int: ...
    @property
    def vectors(self) -> str: ...
    @property
    def scoring(self) -> Scoring: ...
    @property
    def dtype(self) -> WeightsDtype: ...


class ModelTypeModule(Protocol):
    """The interface of a model type's module, which the registry of model types names."""

    @property
    def FORMS(self) -> Mapping[Setup, Form]:
        """The form in which a checkpoint is loaded for each setup, if the type has one."""

    def load(
        self, settings: ScorerSettings, setup: Setup, seed: int = 0, read: Reader = ...
    ) -> Scorer:
        """Return the scorer that answers probes of a setup, its random weights of a seed.

        A type with checkpoints reads them by `read`, so that setups can share the weights.

        Raises:
            PretrainedError: If there is no such model, or it is of another type.
            UsageError: If this type does not answer the setup.
        """

    def check(self, settings: ScorerSettings, setup: Setup) -> Posable:
        """Refuse what `load` would, as far as possible without reading weights."""
