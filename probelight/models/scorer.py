"""The seam of a model type: what can be asked of a language model, and how it is made.

Shapes: B items, K choices, V entries of a vocabulary, H hidden, U words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol

import torch
from torch import Tensor, nn

from probelight.io.errors import UsageError
from probelight.models.networks import Batch, mask_choices, model_fingerprint

if TYPE_CHECKING:
    from probelight.encoding.candidates import MultiToken
    from probelight.encoding.encoded_set import ChoiceEncoder
    from probelight.encoding.infilling import InfillingEncoder
    from probelight.encoding.likelihood import LikelihoodEncoder
    from probelight.models.loading import Form
    from probelight.probes.record import Record, Setup

Normalise = Literal["sum", "mean"]

# The places, among records, of those that a model can be asked; it refuses what nobody could pose.
Posable = Callable[[Sequence["Record"]], Sequence[int]]


def all_of(records: Sequence[Record]) -> Sequence[int]:
    """Return the places of all records: every answer is made of pieces that a tokenizer knows."""
    return range(len(records))


@dataclass(frozen=True)
class Question:
    """One thing that is asked of a scorer, a batch at a time.

    Attributes:
        encoder: Poses records: tokenises them, skips or cuts what does not fit, and says so.
        answer: From a batch of the encoder's, on the scorer's device, to the answer, items first.
        num_tokens: From records to how many tokens are summed for each of their choices; the model
            is not run. The `log_likelihoods` of every model type have it.
    """

    encoder: ChoiceEncoder
    answer: Callable[[Batch], Tensor]
    num_tokens: Callable[[Sequence[Record]], list[list[int]]] | None = None


class Scorer(ABC):
    """A language model as it is, which answers questions without being trained.

    Every model type answers the questions below, or refuses them by name with a `UsageError`:
    nothing is answered by something near it. A question takes records and poses them itself, so
    that everything which depends on a tokenizer is here: callers give words as people write them.

    - The leading space belongs to the answer, and the scorer puts it there: whatever space is
      around a choice is dropped, and the choice is looked up, or written behind its context, as it
      would be in running text.
    - Case is the text's own: nothing is folded, unless the model's own tokenizer does so.
    - The sums are of the log-probabilities (natural logarithms) of the answer's own tokens, and
      of them alone: the context, special tokens and what is behind the answer are given. A type
      that reads both ways masks one token at a time (in one form, the rest of its word with it) and
      is given all others. One that reads from left to right is given what is before alone, so
      it sums what is behind the answer too, which a bad answer makes unlikely. One that writes
      between sentinels sums the one that closes the answer. Whether choices go by sums or by means
      over their tokens is a matter of `choice_scores`.
    - Special tokens (BOS among them) are around a text as the tokenizer sets them; what a type
      adds or leaves out is said in its module.
    - An item that cannot be posed is an error, or skipped and counted in the encoder's notices;
      what the encoder lists as `needs_pll`, because the settings ask for it, goes by
      `log_likelihoods`. Nothing is scored otherwise than it was asked for.

    Attributes:
        network: What it computes with: moved to the device of the batches, kept in eval mode, and
            fingerprinted by the names that it gives its weights. None by default.
        mode: How the choices get their scores, as the column `mode` of results names it.
        normalise: Whether `choice_scores` are the log-likelihoods, or their means per token; None
            where they are something else.
    """

    network: nn.Module = nn.Identity()
    mode: str
    normalise: Normalise | None = None

    @abstractmethod
    def choice_scores(self) -> Question:
        """Return the question for scores (B, K): higher is better; -inf where there is no choice.

        Scores of one item compare with each other; those of two items need not.
        """

    def vocabulary(self) -> Question:
        """Return the question for log-probabilities (B, V) at the mask, or next behind the stem.

        They are over the entries of the encoder's `tokenizer`. Batches hold `candidate_ids` (B, K),
        the entries of the item's choices; items with a choice that is not one entry are skipped.
        An item may have one choice, or none.
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

        They are those of the model's own head at the word's one piece, or the mean of its pieces'.

        Raises:
            RecordError: If a word has no pieces.
        """
        self._refuse("rows of words")

    def fingerprint(self) -> str:
        """Return the sha256 of the weights, as hex, which tells its answers from another's."""
        return model_fingerprint(self.network)

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(f"{type(self).__name__} (mode {self.mode}) gives no {what}")


class LikelihoodScorer(Scorer):
    """A scorer whose choices go by the log-probabilities of their tokens: the sum, or the mean.

    Attributes:
        normalise: "sum" over the tokens of a choice, or their "mean", which does not prefer short
            choices.
    """

    normalise: Normalise

    @abstractmethod
    def likelihood_encoder(self) -> LikelihoodEncoder | InfillingEncoder:
        """Return what poses records, so that each choice has its text and tokens to sum."""

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
    """A model that was trained to choose: it poses records and gives each choice a logit."""

    def encoder(self) -> ChoiceEncoder:
        """Return what turns records into batches."""

    def __call__(self, batch: Batch, /) -> Tensor:
        """Return the logits (B, K)."""


class TrainedScorer(Scorer):
    """Answers with the head that a model was trained with: one logit for each choice.

    Args:
        module: The trained model; it is used, not copied.
        network: Its weights; the module itself where it is one of torch's.
    """

    mode = "fine_tuned"

    def __init__(self, module: ChoosesAnswers, network: nn.Module | None = None) -> None:
        self.module = module
        if network is None:
            assert isinstance(module, nn.Module)
            network = module
        self.network = network.eval()

    def choice_scores(self) -> Question:
        return Question(self.module.encoder(), self.module)


def scores_of_choices(batch: Batch, scores: Tensor, counts: Tensor, normalise: Normalise) -> Tensor:
    """Return the sum or the mean of each choice's tokens (B, K), -inf where there is no choice.

    In double precision on the CPU (not every accelerator has it): the mean of equal numbers is
    then that number, however many there are, and a model that prefers no token ties.

    Args:
        batch: With `pair_index` (B, K), the text of each choice, and `choice_mask` (B, K).
        scores: (R,) log-probabilities of all summed tokens, those of one text next to each other.
        counts: (P,) how many belong to each distinct text.
        normalise: "sum" or "mean".
    """
    sizes = counts.cpu()
    # Split and summed, not `index_add_`: on a GPU that adds in another order each time.
    parts = torch.split(scores.cpu().double(), sizes.tolist())
    sums = torch.stack([part.sum() for part in parts])
    found = sums / sizes if normalise == "mean" else sums
    found = found.float().to(batch["choice_mask"].device)
    return mask_choices(found[batch["pair_index"]], batch["choice_mask"])


def log_probabilities(logits: Tensor) -> Tensor:
    """Return the softmax's logarithm over the last dimension, in double precision.

    So two logits that differ never become one log-probability, and ranks are those of the logits.
    """
    exact = logits.cpu() if logits.device.type == "mps" else logits  # it has no doubles
    return exact.double().log_softmax(dim=-1)


class ScorerSettings(Protocol):
    """The settings of a model that scorers are made from."""

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


class ModelTypeModule(Protocol):
    """What the module of a model type holds; the registry of model types names it."""

    @property
    def FORMS(self) -> Mapping[Setup, Form]:
        """The form in which a checkpoint is loaded for each setup, if the type has one."""

    def load(self, settings: ScorerSettings, setup: Setup, seed: int = 0) -> Scorer:
        """Return the scorer that answers probes of a setup, its random weights of a seed.

        Raises:
            PretrainedError: If there is no such model, or it is of another type.
            UsageError: If this type does not answer the setup.
        """

    def check(self, settings: ScorerSettings, setup: Setup) -> Posable:
        """Refuse what `load` would, as far as it can be told without reading weights."""
