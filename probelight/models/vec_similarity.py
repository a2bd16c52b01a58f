"""VecSimilarity (Richardson 2020, section 4.1): the answer with words most like the question's.

With q_1 ... q_m the vectors of the question's words and c_1 ... c_n those of a choice's,

    score(q, c) = 1 / (m n) sum_i sum_j cos(q_i, c_j),

the dot product of the two means of unit vectors. Words without a vector, the mask and vectors of
zeros have no direction and are left out of m and n. If nothing is left on one side, the score is 0,
as for words at right angles. Nothing is trained. The paper uses word2vec's vectors; their text
format can be read too.

Shapes: Q questions, A answers, P pairs, L tokens, D numbers per word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from probelight.io.errors import UsageError
from probelight.models.networks import Batch, mask_choices
from probelight.models.scorer import Posable, Question, Scorer, ScorerSettings
from probelight.models.token_vectors import TokenVectors
from probelight.models.vector_sources import token_vectors

if TYPE_CHECKING:
    from probelight.probes.record import Setup


class VecSimilarity(Scorer):
    """Mean cosine of the word vectors of question and answer.

    Args:
        words: Vectors of tokens; unknown words have none.
        max_length: Maximum number of words of a question or an answer.
    """

    mode = "mean_cosine"

    def __init__(self, words: TokenVectors, max_length: int) -> None:
        self.words = words
        self.network = words.eval()
        self.max_length = max_length

    def choice_scores(self) -> Question:
        return Question(self.words.encoder(self.max_length), self._answer)

    def fingerprint(self) -> str:
        # Not that of the rows, which depend on the words met before.
        return self.words.origin.sha256 or ""

    def _answer(self, batch: Batch) -> Tensor:
        questions = self._mean_direction(batch["question_ids"])[batch["pair_question"].cpu()]
        answers = self._mean_direction(batch["answer_ids"])[batch["pair_answer"].cpu()]
        scores = (questions * answers).sum(dim=-1).float().to(batch["pair_index"].device)  # (P,)
        return mask_choices(scores[batch["pair_index"]], batch["choice_mask"])

    @torch.no_grad()
    def _mean_direction(self, ids: Tensor) -> Tensor:
        """Return means (N, D) of the unit vectors of texts (N, L).

        In double precision on the CPU, so that the padding of a batch decides no tie.
        """
        vectors, mask = self.words.read(ids)
        vectors = vectors.cpu().double()
        lengths = vectors.norm(dim=-1, keepdim=True)
        has_direction = (lengths > 0) & mask.cpu()[:, :, None]
        directions = vectors / lengths.masked_fill(~has_direction, 1.0) * has_direction
        means: Tensor = directions.sum(dim=1) / has_direction.sum(dim=1).clamp(min=1)
        return means


def load(settings: ScorerSettings, setup: Setup, seed: int = 0) -> Scorer:
    """Return the scorer for questions with answers, or for sentences with candidates for a mask.

    Raises:
        UsageError: If the setup has no answers to compare with a question, or weights are random.
        WordVectorsError: If there are no such vectors.
    """
    if setup == "minimal_pair":
        raise UsageError(
            "model.kind vec_similarity compares answers with their question, but minimal pairs are "
            "whole sentences; give a language model"
        )
    if settings.checkpoint.random_weights:
        raise UsageError(
            "random_weights is a control for transformers; model.kind vec_similarity has no weights"
        )
    return VecSimilarity(token_vectors(settings.vectors), settings.max_length)


def check(settings: ScorerSettings, setup: Setup) -> Posable:
    """Refuse what `load` would, which reads no vectors before a word needs its own."""
    load(settings, setup)
    return lambda records: range(len(records))
