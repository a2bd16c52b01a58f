"""ELMo's language model: a CNN over characters and an LSTM stack in each direction (Peters 2018).

Everything is as in the authors' TensorFlow program, but that its LSTMs go on with the states of
the batch before and ours begin each text with 0, so that no text hangs on another.

Shapes: L words, M characters a word, P numbers of the projection, H cells.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from probelight.lightning_modules.baselines.elmo.weights import ElmoOptions, cell_name

_SENTENCE_BEGIN, _SENTENCE_END, _WORD_BEGIN, _WORD_END, _PADDING = range(256, 261)
_FORGET_BIAS = 1.0  # TensorFlow adds it when the cell runs


def text_characters(words: list[bytes], length: int) -> Tensor:
    """(L + 2, M) ids of the words' bytes, between those of the sentence's begin and end.

    Args:
        words: UTF-8; of a word of more than M - 2 bytes the rest is cut.
        length: M.
    """
    signs = [[_SENTENCE_BEGIN], *(list(word[: length - 2]) for word in words), [_SENTENCE_END]]
    rows = [[_WORD_BEGIN, *word, _WORD_END] for word in signs]
    return torch.tensor([row + [_PADDING] * (length - len(row)) for row in rows])


class BiLM(nn.Module):
    """The states of all layers for a text.

    Args:
        options: What it is made of.
        weights: As `read_weights` gives them; they are not trained.
    """

    def __init__(self, options: ElmoOptions, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self._residual = options.residual
        self.words = CharacterCNN(options, weights)
        self.onward, self.backwards = (
            nn.ModuleList(
                ProjectedLSTM(options, weights, cell_name(direction, layer))
                for layer in range(options.num_layers)
            )
            for direction in range(2)
        )

    def forward(self, characters: Tensor) -> Tensor:
        """(L, layers + 1, 2P) from (L + 2, M), the words' own vectors, twice, first."""
        words = self.words(characters)
        onward = self._states(words, self.onward)
        backwards = self._states(words.flip(0), self.backwards).flip(0)
        return torch.cat([onward, backwards], dim=-1)[1:-1]

    def _states(self, words: Tensor, layers: nn.ModuleList) -> Tensor:
        found = [words]
        for layer in layers:
            below = found[-1]
            above = layer(below)
            found.append(above + below if self._residual and len(found) > 1 else above)
        return torch.stack(found, dim=1)


class CharacterCNN(nn.Module):
    """Words to vectors: convolutions over characters, their maxima, highway layers, a projection.

    Args:
        options: What it is made of.
        weights: As `read_weights` gives them.
    """

    def __init__(self, options: ElmoOptions, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self._activation = F.relu if options.activation == "relu" else torch.tanh
        self._num_groups = len(options.filters)
        self._num_highway = options.num_highway
        for name, value in weights.items():
            if not name.startswith("RNN"):
                self.register_buffer(name.replace("/", "_"), value)

    def forward(self, characters: Tensor) -> Tensor:
        """(L, P) from (L, M)."""
        given = F.embedding(characters, self.char_embed)[:, None]  # type: ignore[arg-type]
        groups = []
        for i in range(self._num_groups):
            weight, bias = self._pair("CNN", f"cnn_{i}")
            # One row of characters as an image one pixel high, as TensorFlow has it.
            found = F.conv2d(given.permute(0, 3, 1, 2), weight.permute(3, 2, 0, 1), bias)
            groups.append(self._activation(found[:, :, 0].amax(dim=-1)))
        states = torch.cat(groups, dim=-1)
        for i in range(self._num_highway):
            carry = torch.sigmoid(self._linear(states, f"CNN_high_{i}", "carry"))
            changed = F.relu(self._linear(states, f"CNN_high_{i}", "transform"))
            states = carry * changed + (1 - carry) * states
        return self._linear(states, "CNN_proj", "proj")

    def _linear(self, states: Tensor, group: str, name: str) -> Tensor:
        weight, bias = self._pair(group, name)
        return states @ weight + bias

    def _pair(self, group: str, name: str) -> tuple[Tensor, Tensor]:
        return self.get_buffer(f"{group}_W_{name}"), self.get_buffer(f"{group}_b_{name}")


class ProjectedLSTM(nn.Module):
    """TensorFlow's `LSTMCell` with a projection, over a sequence; its first states are 0.

    Args:
        options: How large it is, and where it is clipped.
        weights: As `read_weights` gives them.
        name: Of its group.
    """

    gates: Tensor
    bias: Tensor
    projection: Tensor

    def __init__(self, options: ElmoOptions, weights: dict[str, Tensor], name: str) -> None:
        super().__init__()
        self._cell_clip = options.cell_clip
        self._projection_clip = options.projection_clip
        self.register_buffer("gates", weights[f"{name}/W_0"])
        self.register_buffer("bias", weights[f"{name}/B"])
        self.register_buffer("projection", weights[f"{name}/W_P_0"])

    def forward(self, inputs: Tensor) -> Tensor:
        """(L, P) from (L, P)."""
        size = inputs.shape[1]
        given = inputs @ self.gates[:size] + self.bias
        recurrent = self.gates[size:]
        state, cell = inputs.new_zeros(size), inputs.new_zeros(len(self.projection))
        found = []
        for step in given:
            enter, new, forget, leave = (step + state @ recurrent).chunk(4)
            kept = torch.sigmoid(forget + _FORGET_BIAS) * cell
            cell = _clipped(kept + torch.sigmoid(enter) * torch.tanh(new), self._cell_clip)
            output = torch.sigmoid(leave) * torch.tanh(cell)
            state = _clipped(output @ self.projection, self._projection_clip)
            found.append(state)
        return torch.stack(found)


def _clipped(values: Tensor, most: float | None) -> Tensor:
    return values if most is None else values.clamp(-most, most)
