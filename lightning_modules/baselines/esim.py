"""ESIM over word vectors, one logit per choice (Chen et al. 2017; Zellers et al. 2018).

It is the lower bound of MC-QA (Talmor 2020, section 2.3) and group 4 in table 7 of Richardson 2020.

Padding and empty sequences never change the results of real tokens, and never give NaN: attention
over nothing is 0, and so is pooling over nothing.

Shapes: B batch, K choices, Q questions, A answers, P pairs, N texts, L and L' tokens, D numbers
per token.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from probelight.encoding.word_vectors import EMBEDDED
from probelight.io import ranges
from probelight.lightning_modules.baselines.word_module import PairModule, fresh_linear
from probelight.models.networks import Batch, mask_choices, own_random_state


class ESIM(PairModule):
    """Reads question and answer with a BiLSTM, aligns and compares them, reads again and pools.

    Each distinct question and answer of a batch is read once, and all pairs of a question share its
    dropout. The settings are those of the baseline of Talmor et al. (2020): ReLU in the projection
    and in the output layer (Chen et al. have tanh there), PyTorch's first weights in the LSTMs,
    Xavier's in the linear layers, Adam without warm-up.

    Args:
        vectors: "embedded", or a file in GloVe's text format; see `WordVectors`. Words without a
            vector, and the mask, get a seeded vector of the same scale.
        train_vectors: Whether to train the vectors too.
        hidden_size: Size of each direction of both BiLSTMs, and of the layers between them.
        dropout: Dropout on the inputs of both BiLSTMs (whole columns of a sequence) and around the
            output layer.
        options: The other arguments of `PairModule`.
    """

    kind = "esim"

    def __init__(
        self,
        vectors: str = EMBEDDED,
        train_vectors: bool = True,
        hidden_size: ranges.Width = 300,
        dropout: ranges.ShareOrNone = 0.3,
        **options: Any,
    ) -> None:
        super().__init__(vectors, train_vectors, hidden_size, dropout, **options)
        with own_random_state(self.seed):
            self.read = BiLSTM(self.words.dimension, hidden_size)
            self.project = nn.Sequential(fresh_linear(8 * hidden_size, hidden_size), nn.ReLU())
            self.infer = BiLSTM(hidden_size, hidden_size)
            layers: OrderedDict[str, nn.Module] = OrderedDict(
                drop=nn.Dropout(dropout),
                dense=fresh_linear(8 * hidden_size, hidden_size),
                activation=nn.ReLU(),
                drop_dense=nn.Dropout(dropout),
                score=fresh_linear(hidden_size, 1),
            )
            self.head = nn.Sequential(layers)  # (P, 8 x hidden) -> (P, 1)
        self.drop = SequenceDropout(dropout)
        self.eval()

    def forward(self, batch: Batch) -> Tensor:
        question, question_mask = self._word_states(batch["question_ids"])
        answer, answer_mask = self._word_states(batch["answer_ids"])
        q, a = batch["pair_question"], batch["pair_answer"]
        pairs = (question[q], answer[a], question_mask[q], answer_mask[a])
        pair_logits = self.head(self._compare(*pairs))[:, 0]  # (P,)
        return mask_choices(pair_logits[batch["pair_index"]], batch["choice_mask"])

    def _word_states(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return states (N, L, 2 x hidden) of words (N, L), and which of them are real."""
        vectors, mask = self.words.read(ids)
        return self.read(self.drop(vectors), mask), mask

    def _compare(self, first: Tensor, second: Tensor, mask: Tensor, other_mask: Tensor) -> Tensor:
        """Return the input (P, 8 x hidden) of the output layer for each pair."""
        aligned, other_aligned = soft_alignment(first, second, mask, other_mask)
        sides = ((first, aligned, mask), (second, other_aligned, other_mask))
        pooled = []
        for tokens, matched, real in sides:
            local = tokens.new_zeros(*real.shape, self.hidden_size)
            a, b = tokens[real], matched[real]
            enhanced = torch.cat([a, b, a - b, a * b], dim=-1)
            local[real] = self.project(enhanced).to(local.dtype)
            pooled.append(pool(self.infer(self.drop(local), real), real))
        return torch.cat(pooled, dim=-1)


_NUM_GROUPS = 4


class BiLSTM(nn.Module):
    """One LSTM layer in both directions over the real tokens only; 0 at padding.

    Sequences run in groups of similar length, each without most of its padding. The backward layer
    reads every sequence reversed, so padding comes after it and changes nothing. On a CPU this
    takes two thirds of the time of packed sequences, whose gradient costs the square of the length.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.onward = nn.LSTM(input_size, hidden_size, batch_first=True)
        self.backwards = nn.LSTM(input_size, hidden_size, batch_first=True)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return states (N, L, 2 x hidden) of tokens (N, L, input) with their mask (N, L)."""
        width = mask.shape[1]
        lengths = mask.sum(dim=1).clamp(min=1)
        order = lengths.argsort(stable=True)
        group_states = []
        for rows in order.tensor_split(min(_NUM_GROUPS, len(order))):
            longest = int(lengths[rows[-1]])
            group, last = tokens[rows, :longest], lengths[rows][:, None] - 1
            places = torch.arange(longest, device=tokens.device).expand(len(group), -1)
            turned = torch.where(places <= last, last - places, places)
            row = torch.arange(len(group), device=tokens.device)[:, None]
            onward, _ = self.onward(group)
            backward, _ = self.backwards(group[row, turned])
            states = torch.cat([onward, backward[row, turned]], dim=-1)
            group_states.append(F.pad(states, (0, 0, 0, width - longest)))
        return torch.cat(group_states)[order.argsort()] * mask[:, :, None]


class SequenceDropout(nn.Dropout):
    """Dropout that drops the same columns in every token of a sequence (N, L, D)."""

    def forward(self, input: Tensor) -> Tensor:
        return input * super().forward(input.new_ones(input.shape[0], 1, input.shape[2]))


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax of scores (..., L) among places where the mask is True; 0 elsewhere."""
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1) * mask


def soft_alignment(
    first: Tensor, second: Tensor, first_mask: Tensor, second_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Return, for each token of either sequence, the attention-weighted sum of the other's tokens.

    With e_ij = a_i . b_j: a~_i = sum_j softmax_j(e_ij) b_j and b~_j = sum_i softmax_i(e_ij) a_i,
    for tokens a (P, L, D) and b (P, L', D), which are real where their masks are True. The sums are
    0 if the other sequence is empty, and undefined at padding.
    """
    likeness = torch.bmm(first, second.transpose(1, 2))  # (P, L, L')
    to_second = masked_softmax(likeness, second_mask[:, None, :])
    to_first = masked_softmax(likeness.transpose(1, 2), first_mask[:, None, :])
    return torch.bmm(to_second, second), torch.bmm(to_first, first)


def max_over_tokens(tokens: Tensor, mask: Tensor) -> Tensor:
    """Return the element-wise maximum (P, D) over the real tokens of (P, L, D); 0 without any."""
    real = mask[:, :, None]
    maxima = tokens.masked_fill(~real, torch.finfo(tokens.dtype).min).amax(dim=1)
    return maxima.masked_fill(~real.any(dim=1), 0.0)


def pool(tokens: Tensor, mask: Tensor) -> Tensor:
    """Return mean and maximum (P, 2D) over the real tokens of (P, L, D); 0 without any."""
    count = mask.sum(dim=1, keepdim=True).clamp(min=1)
    mean = (tokens * mask[:, :, None]).sum(dim=1) / count
    return torch.cat([mean, max_over_tokens(tokens, mask)], dim=-1)
