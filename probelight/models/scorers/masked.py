"""Masked language models as they are: candidate words at the mask, answers behind a question.

Shapes: B items, K choices, V entries of a vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from probelight.encoding.masked import MaskedChoiceEncoder
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.lightning_modules.sentence_choice import DEFAULT_MAX_LENGTH, SentenceChoice
from probelight.models.batches import Batch
from probelight.models.checkpoints.description import check_pretrained
from probelight.models.checkpoints.forms import ENCODER, MASKED_LM
from probelight.models.checkpoints.weights import model_fingerprint
from probelight.models.heads.choice_head import answers_questions
from probelight.models.scorers.base import Posable, Question, Scorer, ScorerSettings
from probelight.models.scorers.pseudo_log_likelihood import PllForm, PseudoLogLikelihood
from probelight.models.scorers.ranks import log_probabilities
from probelight.models.scorers.trained import TrainedScorer

if TYPE_CHECKING:
    from probelight.probes.record import Setup


class MaskedScorer(Scorer):
    """A masked LM that is asked at the one mask of each sentence (Talmor et al. 2020, MC-MLM).

    Candidates are vocabulary items, and their scores the logits of the checkpoint's own head, which
    differ from log-probabilities by one number an item. Candidates of several pieces go by the
    module's `multi_token`.

    Args:
        module: The model; it is used, not copied.
        pll: Form of the pseudo-log-likelihoods of candidates of several pieces.
    """

    mode = "zero_shot"

    def __init__(self, module: MaskedChoice, pll: PllForm = "original") -> None:
        super().__init__()
        self.module = module
        self.pll = pll
        self.eval()

    def choice_scores(self) -> Question:
        return Question(self.module.encoder(), self.module)

    def vocabulary(self) -> Question:
        known = len(self.module.tokenizer)  # a decoder may have more rows, to fill up

        def answer(batch: Batch) -> Tensor:
            return log_probabilities(self.module.vocabulary_logits(batch)[:, :known])

        module = self.module
        encoder = MaskedChoiceEncoder(
            module.tokenizer, module.answer_prefix, "skip", module.max_length
        )
        return Question(encoder, answer)

    def log_likelihoods(self) -> Question:
        return PseudoLogLikelihood.of(self.module, form=self.pll).log_likelihoods()

    def features(self) -> Question:
        return Question(self.module.encoder(), self.module.features)

    def fingerprint(self) -> str:
        return model_fingerprint(self.module)


def load(settings: ScorerSettings, setup: Setup, seed: int = 0) -> Scorer:
    """What answers: at the mask; by the head that a model was fine-tuned with; else by its words.

    MC-QA has no pre-trained head, so a model that was not fine-tuned is asked for the
    pseudo-log-likelihood of each answer behind its question (Salazar et al. 2020), and any model
    for that of the sentences of a minimal pair, whose tokens are masked one at a time.

    Raises:
        PretrainedError: If there is no such model, or it is no masked LM.
    """
    name, revision = settings.name_or_path, settings.revision
    options: dict[str, Any] = {
        "max_length": settings.max_length,
        "random_weights": settings.random_weights,
        "seed": seed,
    }
    if setup == "mc_mlm":
        return MaskedScorer(
            MaskedChoice(
                name,
                revision=revision,
                answer_prefix=settings.answer_prefix,
                multi_token=settings.multi_token,
                **options,
            ),
            settings.pll,
        )
    if setup == "minimal_pair":
        return PseudoLogLikelihood.load(
            name, "sum", revision=revision, form=settings.pll, **options
        )
    if answers_questions(name, revision):
        # As long as it was trained with, unless another length than the default is asked for.
        if settings.max_length == DEFAULT_MAX_LENGTH:
            options["max_length"] = None
        return TrainedScorer(SentenceChoice(name, revision=revision, **options))
    # The mean over an answer's tokens: the sum would prefer short answers.
    return PseudoLogLikelihood.load(name, "mean", revision=revision, form=settings.pll, **options)


def check(settings: ScorerSettings, setup: Setup) -> Posable:
    """Refuses models that `load` would refuse, without reading their weights.

    Raises:
        PretrainedError: If there is no such model, or it is no masked LM.
    """
    name, revision = settings.name_or_path, settings.revision
    fine_tuned = setup == "mc_qa" and answers_questions(name, revision)
    form = ENCODER if fine_tuned else MASKED_LM
    tokenizer = check_pretrained(form, name, revision, settings.random_weights)
    if setup == "mc_mlm":
        prefix, length = settings.answer_prefix, settings.max_length
        return MaskedChoiceEncoder(tokenizer, prefix, settings.multi_token, length).check
    # Every answer is made of pieces that a tokenizer knows somehow.
    return lambda records: range(len(records))
