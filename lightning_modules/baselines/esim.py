"""ESIM over word vectors, one logit a choice (Chen et al. 2017; Zellers et al. 2018).

The lower bound of MC-QA (Talmor 2020, section 2.3), and group 4 of Richardson 2020's table 7.

Shapes: B batch, K choices, Q questions, A answers, P pairs, L tokens, D numbers a word.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from probelight.encoding.vector_source import EMBEDDED
from probelight.io.ranges import (
    GradNorm,
    LearningRate,
    MaxLength,
    NumChoices,
    Seed,
    ShareOrNone,
    WeightDecay,
    Width,
)
from probelight.lightning_modules.baselines.bilstm import BiLSTM, SequenceDropout
from probelight.lightning_modules.baselines.pair_module import PairModule, fresh_linear
from probelight.lightning_modules.baselines.soft_alignment import enhance, pool, soft_alignment
from probelight.lightning_modules.baselines.token_vectors import token_vectors
from probelight.models.batches import Batch, mask_choices
from probelight.models.checkpoints.weights import own_random_state


class ESIM(PairModule):
    """Question and answer read by a BiLSTM, aligned softly, compared, read again and pooled.

    Each distinct question and answer of a batch is read once; the pairs of a question share its
    dropout. The settings are those of the baseline of Talmor et al. (2020): ReLU in the projection
    and in the output layer (Chen et al. have tanh there), PyTorch's first weights in the LSTMs,
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
        words = token_vectors(
            vectors,
            "seeded",
            trainable=train_vectors,
            seed=seed,
            dimension=dimension,
            sha256=vectors_sha256,
        )
        super().__init__(words, settings, learning_rate, weight_decay, max_grad_norm, monitor)
        self.save_hyperparameters()
        self.hidden_size = hidden_size
        with own_random_state(seed):
            self.read = BiLSTM(words.dimension, hidden_size)
            self.project = nn.Sequential(fresh_linear(8 * hidden_size, hidden_size), nn.ReLU())
            self.infer = BiLSTM(hidden_size, hidden_size)
            self.head = _output_layers(hidden_size, dropout)
        self.drop = SequenceDropout(dropout)
        self.eval()

    def forward(self, batch: Batch) -> Tensor:
        question, question_mask = self._read(batch["question_ids"])
        answer, answer_mask = self._read(batch["answer_ids"])
        one, other = batch["pair_question"], batch["pair_answer"]
        pairs = (question[one], answer[other], question_mask[one], answer_mask[other])
        pair_logits = self.head(self._compared(*pairs))[:, 0]  # (P,)
        return mask_choices(pair_logits[batch["pair_index"]], batch["choice_mask"])

    def _read(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """States (N, L, 2 x hidden) of words (N, L), and which of them are real."""
        vectors, mask = self.words.read(ids)
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


def _output_layers(hidden_size: int, dropout: float) -> nn.Sequential:
    """(P, 8 x hidden) -> (P, 1)."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        drop=nn.Dropout(dropout),
        dense=fresh_linear(8 * hidden_size, hidden_size),
        activation=nn.ReLU(),
        drop_dense=nn.Dropout(dropout),
        score=fresh_linear(hidden_size, 1),
    )
    return nn.Sequential(layers)
