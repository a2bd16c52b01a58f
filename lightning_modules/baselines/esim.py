"""ESIM over word vectors, one logit a choice (Chen et al. 2017; Zellers et al. 2018).

The lower bound of MC-QA (Talmor 2020, section 2.3), and group 4 of Richardson 2020's table 7.

Shapes: B batch, K choices, Q questions, A answers, P pairs, L tokens, D numbers a word.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from datamodules.words.source import EMBEDDED
from datamodules.words.tokens import PADDING_ID
from datamodules.words.vectors import word_vectors
from lightning_modules.base import Batch, mask_choices
from lightning_modules.baselines.soft_alignment import enhance, pool, soft_alignment
from lightning_modules.baselines.word_module import WordModule
from lightning_modules.baselines.word_rows import VectorRows, WordRows
from lightning_modules.baselines.word_settings import word_settings
from lightning_modules.checkpoints.fit import agree
from lightning_modules.checkpoints.weights import own_random_state
from storage.config.ranges import (
    GradNorm,
    LearningRate,
    MaxLength,
    NumChoices,
    Seed,
    ShareOrNone,
    WeightDecay,
    Width,
)

if TYPE_CHECKING:
    from datamodules.encoding.encoded_set import ChoiceEncoder

_NUM_GROUPS = 4


class BiLSTM(nn.Module):
    """One layer in both directions over the real tokens alone; 0 at padding.

    Sequences run in groups of like length, each without most of its padding. The backward layer
    reads every sequence turned around, so that padding stands after it and changes nothing. On a
    CPU this takes two thirds of the time of packed sequences, whose gradient costs the square of
    the length.

    Args:
        input_size: Numbers a token.
        hidden_size: Numbers a direction.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.onward = nn.LSTM(input_size, hidden_size, batch_first=True)
        self.backwards = nn.LSTM(input_size, hidden_size, batch_first=True)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """(N, L, 2 x hidden) from tokens (N, L, input) and their mask (N, L)."""
        width = mask.shape[1]
        lengths = mask.sum(dim=1).clamp(min=1)
        order = lengths.argsort(stable=True)
        parts = []
        for rows in order.tensor_split(min(_NUM_GROUPS, len(order))):
            longest = int(lengths[rows[-1]])
            states = self._both_ways(tokens[rows, :longest], lengths[rows])
            parts.append(F.pad(states, (0, 0, 0, width - longest)))
        return torch.cat(parts)[order.argsort()] * mask[:, :, None]

    def _both_ways(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        rows = torch.arange(len(tokens), device=tokens.device)[:, None]
        places = torch.arange(tokens.shape[1], device=tokens.device).expand(len(tokens), -1)
        last = lengths[:, None] - 1
        turned = torch.where(places <= last, last - places, places)
        onward, _ = self.onward(tokens)
        backward, _ = self.backwards(tokens[rows, turned])
        return torch.cat([onward, backward[rows, turned]], dim=-1)


class SequenceDropout(nn.Dropout):
    """Dropout that leaves out the same numbers of every token of a sequence (N, L, D)."""

    def forward(self, input: Tensor) -> Tensor:
        return input * super().forward(input.new_ones(input.shape[0], 1, input.shape[2]))


class ESIM(WordModule):
    """Question and answer read by a BiLSTM, aligned softly, compared, read again and pooled.

    Each distinct question and answer of a batch is read once; the pairs of a question share its
    dropout. The settings are those of the authors' baseline (SPEC A): ReLU in the projection and
    in the output layer (Chen et al. have tanh there), PyTorch's first weights in the LSTMs,
    Xavier's in the linear layers, Adam without warm-up.

    Args:
        vectors: "embedded", or a file in GloVe's text format; see `WordVectors`. Words without a
            vector, and the mask, get a seeded one as large as the file's.
        train_vectors: Whether the vectors are trained too.
        hidden_size: Numbers a direction of both BiLSTMs, and of the layers between them.
        dropout: On the inputs of both BiLSTMs (whole columns of a sequence) and around the output
            layer.
        max_length: Most words of a question or of an answer.
        num_choices: Pads every question to so many choices with empty ones, scored like any other
            (Richardson 2020). None: no padding. It is saved with the model, which is scored with as
            many choices wherever it is used.
        learning_rate: Rate of Adam.
        weight_decay: Of Adam, as a penalty on the squared weights.
        max_grad_norm: Clip gradients to this norm; None does not clip.
        monitor: Metric, higher is better, whose stand-still halves the rate; None leaves it
            constant.
        seed: Of the fresh weights.
        dimension: Numbers a word; None asks the file, which may be missing otherwise.
        vectors_sha256: Of the file; with it a changed one counts as missing.

    Raises:
        WordVectorsError: If the file of vectors cannot be used.
    """

    kind = "esim"

    def __init__(
        self,
        vectors: str = EMBEDDED,
        train_vectors: bool = True,
        hidden_size: Width = 300,
        dropout: ShareOrNone = 0.3,
        max_length: MaxLength = 256,
        num_choices: NumChoices | None = None,
        learning_rate: LearningRate = 4e-4,
        weight_decay: WeightDecay = 0.0,
        max_grad_norm: GradNorm | None = 10.0,
        monitor: str | None = None,
        seed: Seed = 0,
        dimension: Width | None = None,
        vectors_sha256: str | None = None,
    ) -> None:
        settings = {
            "train_vectors": train_vectors,
            "hidden_size": hidden_size,
            "dropout": dropout,
            "max_length": max_length,
            "num_choices": num_choices,
            "seed": seed,
        }
        found = word_vectors(vectors, dimension, vectors_sha256)
        super().__init__(found, settings, learning_rate, weight_decay, max_grad_norm, monitor)
        self.save_hyperparameters()
        self.hidden_size = hidden_size
        self.max_length = max_length
        self.num_choices = num_choices
        self.words = WordRows(VectorRows(found, "seeded", seed), trainable=train_vectors)
        with own_random_state(seed):
            self.read = BiLSTM(self.vectors.dimension, hidden_size)
            self.project = nn.Sequential(_linear(8 * hidden_size, hidden_size), nn.ReLU())
            self.infer = BiLSTM(hidden_size, hidden_size)
            self.head = _output_layers(hidden_size, dropout)
        self.drop = SequenceDropout(dropout)
        self.eval()

    def encoder(self) -> ChoiceEncoder:
        from datamodules.words.encoding import WordPairEncoder

        return WordPairEncoder(self.words, self.max_length, self.num_choices)

    def forward(self, batch: Batch) -> Tensor:
        question, question_mask = self._read(batch["question_ids"])
        answer, answer_mask = self._read(batch["answer_ids"])
        one, other = batch["pair_question"], batch["pair_answer"]
        pairs = (question[one], answer[other], question_mask[one], answer_mask[other])
        pair_logits = self.head(self._compared(*pairs))[:, 0]  # (P,)
        return mask_choices(pair_logits[batch["pair_index"]], batch["choice_mask"])

    def _read(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """States (N, L, 2 x hidden) of words (N, L), and which of them are real."""
        mask = ids != PADDING_ID
        vectors = F.embedding(ids, self.words.weight, padding_idx=PADDING_ID)
        return self.read(self.drop(vectors), mask), mask

    def _compared(self, first: Tensor, second: Tensor, mask: Tensor, other_mask: Tensor) -> Tensor:
        """What the output layer reads of each pair, (P, 8 x hidden)."""
        aligned, other_aligned = soft_alignment(first, second, mask, other_mask)
        sides = ((first, aligned, mask), (second, other_aligned, other_mask))
        pooled = []
        for tokens, matched, real in sides:
            local = tokens.new_zeros(*real.shape, self.hidden_size)
            local[real] = self.project(enhance(tokens[real], matched[real])).to(local.dtype)
            pooled.append(pool(self.infer(self.drop(local), real), real))
        return torch.cat(pooled, dim=-1)

    @classmethod
    def from_folder(cls, folder: str | Path, **overrides: Any) -> Self:
        """As every `WordModule`.

        Raises:
            PretrainedError: If it was saved with another number of choices, too.
        """
        own = word_settings(folder).get("num_choices")
        given = agree("num_choices", overrides.get("num_choices"), own, str(folder))
        return super().from_folder(folder, **{**overrides, "num_choices": given})


def _linear(input_size: int, output_size: int) -> nn.Linear:
    layer = nn.Linear(input_size, output_size)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _output_layers(hidden_size: int, dropout: float) -> nn.Sequential:
    """(P, 8 x hidden) -> (P, 1)."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        drop=nn.Dropout(dropout),
        dense=_linear(8 * hidden_size, hidden_size),
        activation=nn.ReLU(),
        drop_dense=nn.Dropout(dropout),
        score=_linear(hidden_size, 1),
    )
    return nn.Sequential(layers)
