from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from probelight.encoding.word_vectors import WordVectorsError, vectors_label
from probelight.io.errors import UsageError
from probelight.lightning_modules.baselines.partial_input import QuestionToChoice
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.elmo import ElmoVectors
from probelight.models.vector_sources import token_vectors
from probelight.probes.record import Record
from probelight.training.modules import saved_module

Array = NDArray[np.float64]

CHARACTERS, CELLS, SIZE = 3, 6, 4
FILTERS = [[1, 2], [2, 3], [4, 2]]
NUM_FILTERS = 7
OPTIONS: dict[str, Any] = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": SIZE,
        "cell_clip": 0.7,
        "proj_clip": 0.4,
        "dim": CELLS,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": FILTERS,
        "n_highway": 2,
        "embedding": {"dim": CHARACTERS},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}
RECORDS = [
    Record("one", "Which cat is larger than a Dog?", ("a red plant", "Cat", ""), 0),
    Record("two", "naïve 日本 🙂 " + "abcdefgh" * 7, ("blue", "zebra cat"), 0),
]


def released(folder: Path) -> str:
    """Random weights in the released format, and how `--model.vectors` names them."""
    draw = np.random.default_rng(0)
    options, weights = folder / "tiny_options.json", folder / "tiny_weights.hdf5"
    options.write_text(json.dumps(OPTIONS))
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, CHARACTERS)}
    for i, (width, number) in enumerate(FILTERS):
        shapes |= {f"CNN/W_cnn_{i}": (1, width, CHARACTERS, number), f"CNN/b_cnn_{i}": (number,)}
    for i, gate in product(range(2), ("carry", "transform")):
        shapes[f"CNN_high_{i}/W_{gate}"] = (NUM_FILTERS, NUM_FILTERS)
        shapes[f"CNN_high_{i}/b_{gate}"] = (NUM_FILTERS,)
    shapes |= {"CNN_proj/W_proj": (NUM_FILTERS, SIZE), "CNN_proj/b_proj": (SIZE,)}
    for direction, layer in product(range(2), range(2)):
        cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        shapes |= {f"{cell}/W_0": (2 * SIZE, 4 * CELLS), f"{cell}/B": (4 * CELLS,)}
        shapes |= {f"{cell}/W_P_0": (CELLS, SIZE)}
    with h5py.File(weights, "w") as file:
        for name, shape in shapes.items():
            file[name] = draw.normal(size=shape).astype(np.float32)
        file["char_embed"][260] *= 0.1  # or the padding is the maximum of most filters
    return f"elmo:{options},{weights}"


@pytest.fixture
def source(tmp_path: Path) -> str:
    return released(tmp_path)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def plain_word(get: Callable[[str], Array], signs: list[int]) -> Array:
    """A word's own vector, a place of a filter at a time."""
    ids = [258, *signs, 259]
    embedded = get("char_embed")[ids + [260] * (50 - len(ids))]
    maxima: list[float] = []
    for i, (width, number) in enumerate(FILTERS):
        for filter_ in range(number):
            kernel = get(f"CNN/W_cnn_{i}")[0, :, :, filter_]
            sums = [(embedded[at : at + width] * kernel).sum() for at in range(51 - width)]
            maxima.append(max(0.0, max(sums) + get(f"CNN/b_cnn_{i}")[filter_]))
    x = np.array(maxima)
    for i in range(2):
        gate = sigmoid(x @ get(f"CNN_high_{i}/W_carry") + get(f"CNN_high_{i}/b_carry"))
        changed = x @ get(f"CNN_high_{i}/W_transform") + get(f"CNN_high_{i}/b_transform")
        x = gate * np.maximum(0, changed) + (1 - gate) * x
    vector: Array = x @ get("CNN_proj/W_proj") + get("CNN_proj/b_proj")
    return vector


def plain_lstm(get: Callable[[str], Array], cell: str, inputs: list[Array]) -> list[Array]:
    h, c, states = np.zeros(SIZE), np.zeros(CELLS), []
    for x in inputs:
        z = np.concatenate([x, h]) @ get(f"{cell}/W_0") + get(f"{cell}/B")
        i, j, f, o = (z[k * CELLS : (k + 1) * CELLS] for k in range(4))
        c = np.clip(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j), -0.7, 0.7)
        h = np.clip((sigmoid(o) * np.tanh(c)) @ get(f"{cell}/W_P_0"), -0.4, 0.4)
        states.append(h)
    return states


def states(source: str, words: list[str]) -> Array:
    """(L, 3, 2P) layers of a text's words, one step at a time."""
    with h5py.File(source.partition(",")[2]) as file:
        held = {name: file[name][...].astype(float) for name in datasets(file)}
    get = held.__getitem__
    signs = [[256], *(list(word.encode()[:48]) for word in words), [257]]
    vectors = [plain_word(get, sign) for sign in signs]
    sides = []
    for direction in range(2):
        layers = [vectors[::-1] if direction else vectors]
        for layer in range(2):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            states = plain_lstm(get, cell, layers[-1])
            if layer:
                states = [a + b for a, b in zip(states, layers[-1], strict=True)]
            layers.append(states)
        sides.append([layer[::-1] if direction else layer for layer in layers])
    merged = [np.concatenate([a, b], axis=1) for a, b in zip(*map(np.array, sides), strict=True)]
    return np.stack(merged, axis=1)[1:-1]


def datasets(file: h5py.File) -> list[str]:
    names: list[str] = []
    file.visititems(lambda name, h5: names.append(name) if isinstance(h5, h5py.Dataset) else None)
    return names


def test_each_text_of_a_batch_has_the_mixed_layers_of_its_own(source: str) -> None:
    vectors = token_vectors(source)
    assert isinstance(vectors, ElmoVectors)
    assert vectors.dimension == 2 * SIZE
    vectors.layer_weights.data = torch.tensor([0.5, -1.0, 2.0])
    vectors.gamma.data = torch.tensor(1.5)
    raised = np.exp([0.5, -1.0, 2.0])
    shares = raised / raised.sum()
    texts = [["Cat"], ["naïve", "日本", "🙂", "x" * 60, "cat", "?"], []]
    ids = torch.zeros(3, 7, dtype=torch.long)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text)] = torch.from_numpy(vectors.ids(text))
    mixed = vectors(ids)
    assert mixed.shape == (3, 7, 2 * SIZE)
    for row, text in zip(mixed, texts, strict=True):
        expected = 1.5 * np.einsum("j,ljd->ld", shares, states(source, text))
        np.testing.assert_allclose(row[: len(text)].detach(), expected, atol=1e-5)
        assert (row[len(text) :] == 0).all()
    assert torch.equal(mixed, vectors(ids))
    fresh = token_vectors(source)
    assert isinstance(fresh, ElmoVectors)
    [alone] = fresh(ids[:1, :1])
    np.testing.assert_allclose(alone.detach(), states(source, ["Cat"]).mean(axis=1), atol=1e-5)


def test_a_word_is_read_to_its_48th_byte_as_it_is_written(source: str) -> None:
    vectors = token_vectors(source)
    assert vectors.split("A Cat's [MASK]") == ["A", "Cat's", "[MASK]"]
    ids = torch.from_numpy(vectors.ids(["x" * 48, "x" * 49, "x" * 47, "Cat", "cat"]))
    assert len(set(ids.tolist())) == 5
    first, longer, shorter, capital, small = vectors(ids[:, None])[:, 0]
    assert torch.equal(first, longer)
    assert not torch.allclose(first, shorter)
    assert not torch.allclose(capital, small)
    assert vectors.notices == ("1 words were cut, because ELMo reads at most 48 bytes of a word",)
    vectors.ids(["[MASK]"])
    assert vectors.notices[0] == (
        "ELMo has no mask token: [MASK] is read as a word, letter by letter"
    )


def test_a_baseline_trains_the_mixture_and_saves_it(source: str, tmp_path: Path) -> None:
    module = QuestionToChoice(source, hidden_size=4)
    batch = module.encoder().encode(RECORDS).collate([0, 1])
    module(batch)[:, :2].sum().backward()
    trained = {name: p for name, p in module.named_parameters() if name.startswith("words")}
    assert set(trained) == {"words.layer_weights", "words.gamma"}
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in trained.values())
    trained["words.gamma"].data.fill_(0.25)
    module.save_pretrained(tmp_path / "saved")
    again = saved_module(tmp_path / "saved")
    assert torch.equal(again(again.encoder().encode(RECORDS).collate([0, 1])), module(batch))


def spoil(source: str, name: str, value: Any) -> None:
    with h5py.File(source.partition(",")[2], "r+") as file:
        del file[name]
        if value is not None:
            file[name] = value


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CNN_proj/b_proj", None, "no dataset CNN_proj/b_proj"),
        ("CNN", np.zeros(2), "no dataset CNN/W_cnn_0"),
        (
            "char_embed",
            np.zeros((262, 3)),
            "char_embed has the shape (262, 3), but the options say",
        ),
        ("CNN/b_cnn_1", np.zeros(3, np.int64), "CNN/b_cnn_1 has the type int64, not f"),
        ("CNN/b_cnn_1", np.full(3, np.nan), "CNN/b_cnn_1 has values that are not finite"),
    ],
)
def test_weights_that_do_not_fit(source: str, name: str, value: Any, message: str) -> None:
    spoil(source, name, value)
    with pytest.raises(WordVectorsError, match="tiny_weights.hdf5: " + re.escape(message)):
        token_vectors(source)


@pytest.mark.parametrize(
    ("room", "key", "value", "message"),
    [
        ("lstm", "dim", None, "`lstm.dim` must be a whole number, not None"),
        ("lstm", "cell_clip", "3", "`lstm.cell_clip` must be a number, not '3'"),
        ("lstm", "proj_clip", 0, "`lstm.proj_clip` is 0: give a number more than 0"),
        ("lstm", "use_skip_connections", 1, "`lstm.use_skip_connections` must be true or false"),
        ("char_cnn", "embedding", {}, "`char_cnn.embedding.dim` is missing"),
        ("char_cnn", "activation", "gelu", "`char_cnn.activation` must be 'relu' or 'tanh'"),
        ("char_cnn", "filters", [[1]], "`char_cnn.filters[0][1]` is missing"),
        ("char_cnn", "filters", [], "`char_cnn.filters` must not be empty"),
        ("char_cnn", "filters", [[51, 1]], "`char_cnn.filters` must not be empty or wider"),
        ("char_cnn", "n_characters", 260, "`char_cnn.n_characters` must be 261 or 262"),
    ],
)
def test_options_that_cannot_be(source: str, room: str, key: str, value: Any, message: str) -> None:
    changed = OPTIONS | {room: OPTIONS[room] | {key: value}}
    Path(source.removeprefix("elmo:").partition(",")[0]).write_text(json.dumps(changed))
    with pytest.raises(WordVectorsError, match="tiny_options.json: " + re.escape(message)):
        token_vectors(source)


def test_files_that_are_none(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options, _, weights = source.removeprefix("elmo:").partition(",")
    assert vectors_label(source) == "tiny, frozen"
    with pytest.raises(UsageError, match=r"give two files, as elmo:OPTIONS\.json"):
        token_vectors(f"elmo:{weights}")
    with pytest.raises(PretrainedError, match=r"none\.json cannot be read"):
        token_vectors(f"elmo:{tmp_path}/none.json,{weights}")
    for wrong in (options, f"{tmp_path}/none.hdf5"):
        with pytest.raises(WordVectorsError, match=f"{wrong} cannot be read as HDF5"):
            token_vectors(f"elmo:{options},{wrong}")
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(UsageError, match=r"pip install -e '\.\[elmo\]'"):
        token_vectors(source)
