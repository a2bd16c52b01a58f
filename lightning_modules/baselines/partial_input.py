"""Baselines that see only a part of the input (Mihaylov et al. 2018; Richardson 2020, section 4.1).

One BiLSTM, shared by questions and choices, reads a text s of tokens with vectors E(s), and is
pooled: r_s = max over tokens of BiLSTM(E(s)), element by element, 2h numbers. From these, each
choice c_i of a question q gets its logit:

    choice-only         w . r_ci
    choice-to-choice    - sum over j != i of Att(r_ci, r_cj)
    question-to-choice  Att(r_q, r_ci)

with Att(u, v) = w . [u; v; u * v; |u - v|]. There is no bias, because it would change no choice.
Mihaylov's program adds the attentions over other choices. Ours subtracts them, so the choice that
is least like the others wins, as both papers describe it; w can learn either.

Their settings are: hidden size 128, dropout 0.5 on vectors that are not trained, and Adam with the
rate halved on a plateau. Rate, batch size and patience are those of our ESIM.

Shapes: B batch, K choices, Q questions, A answers, P pairs, L tokens, H = 2 x hidden numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from probelight.encoding.word_vectors import EMBEDDED
from probelight.lightning_modules.baselines.esim import BiLSTM, max_over_tokens
from probelight.lightning_modules.baselines.word_module import PairModule, fresh_linear
from probelight.models.networks import Batch, mask_choices, own_random_state


class PartialInput(PairModule):
    """Base class of the three baselines: r_s, and the weights w that read it.

    Args:
        vectors: "embedded", or a file in GloVe's text format; see `WordVectors`. Words without a
            vector, and the mask, get a seeded vector of the same scale.
        options: The other arguments of `PairModule`.
    """

    num_read: ClassVar[int]  # how many vectors of H numbers w reads

    def __init__(self, vectors: str = EMBEDDED, **options: Any) -> None:
        super().__init__(vectors, **options)
        with own_random_state(self.seed):
            self.read = BiLSTM(self.words.dimension, self.hidden_size)
            self.weigh = fresh_linear(self.num_read * 2 * self.hidden_size, 1, bias=False)
        self.drop = nn.Dropout(self.dropout)
        self.eval()

    def forward(self, batch: Batch) -> Tensor:
        return mask_choices(self.logits(batch), batch["choice_mask"])

    @abstractmethod
    def logits(self, batch: Batch) -> Tensor:
        """Return logits (B, K); they are undefined where an item has no such choice."""

    def represent(self, ids: Tensor) -> Tensor:
        """Return r_s (N, H) of texts (N, L); 0 for a text without tokens."""
        vectors, mask = self.words.read(ids)
        return max_over_tokens(self.read(self.drop(vectors), mask), mask)

    def attend(self, first: Tensor, second: Tensor) -> Tensor:
        """Return Att(u, v), (...), of vectors (..., H) that broadcast to each other."""
        for_first, for_second, for_both, for_distance = self.weigh.weight[0].chunk(4)
        alone = first @ for_first + second @ for_second
        return alone + (first * second) @ for_both + (first - second).abs() @ for_distance


class ChoiceOnly(PartialInput):
    """Sees only one choice: the plausible answer detector of Mihaylov et al. 2018."""

    kind = "choice_only"
    num_read = 1

    def logits(self, batch: Batch) -> Tensor:
        answer_logits = self.weigh(self.represent(batch["answer_ids"]))[:, 0]  # (A,)
        pair_logits: Tensor = answer_logits[batch["pair_answer"]][batch["pair_index"]]
        return pair_logits


class ChoiceToChoice(PartialInput):
    """Sees all choices without the question: the odd-one-out solver of Mihaylov et al. 2018."""

    kind = "choice_to_choice"
    num_read = 4

    def logits(self, batch: Batch) -> Tensor:
        mask = batch["choice_mask"]
        answers = self.represent(batch["answer_ids"])
        choices = answers[batch["pair_answer"][batch["pair_index"]]]  # (B, K, H)
        likeness = self.attend(choices[:, :, None], choices[:, None])  # (B, K, K)
        itself = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        return -likeness.masked_fill(~mask[:, None] | itself, 0.0).sum(dim=2)


class QuestionToChoice(PartialInput):
    """Sees a question and one choice, each as one vector: the question match of Mihaylov 2018."""

    kind = "question_to_choice"
    num_read = 4

    def logits(self, batch: Batch) -> Tensor:
        questions = self.represent(batch["question_ids"])[batch["pair_question"]]
        answers = self.represent(batch["answer_ids"])[batch["pair_answer"]]
        return self.attend(questions, answers)[batch["pair_index"]]
