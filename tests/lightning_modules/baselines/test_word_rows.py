from __future__ import annotations

from pathlib import Path

import pytest
import torch

from probelight.encoding.word_vectors import WordVectors
from probelight.models.networks import model_fingerprint
from probelight.models.token_vectors import SeededRows, VectorRows, WordRows

TEXT = "cat 1 2\ndog 3 4\n"


def _vectors(folder: Path) -> WordVectors:
    path = folder / "v.txt"
    path.write_text(TEXT)
    return WordVectors(str(path))


def test_rows_hold_the_vectors_and_zeros(tmp_path: Path) -> None:
    rows = WordRows(VectorRows(_vectors(tmp_path)), trainable=False)
    assert rows.ids(["dog", "yak", "[MASK]", "cat", "dog"]).tolist() == [1, 2, 3, 4, 1]
    assert rows.weight.tolist() == [[0, 0], [3, 4], [0, 0], [0, 0], [1, 2]]
    assert not rows.weight.requires_grad
    assert rows.unknown(["dog", "yak", "[MASK]"]) == {"yak"}
    assert rows.words == ["", "dog", "yak", "[MASK]", "cat"]


def test_a_seeded_row_depends_on_seed_and_word_alone(tmp_path: Path) -> None:
    a = WordRows(VectorRows(_vectors(tmp_path), 1), trainable=True)
    b = WordRows(VectorRows(_vectors(tmp_path), 1), trainable=True)
    third = WordRows(VectorRows(_vectors(tmp_path), 2), trainable=True)
    a.ids(["yak", "ox"])
    b.ids(["ox", "cat", "yak"])
    third.ids(["yak", "ox"])
    assert torch.equal(a.weight[a.ids(["yak", "ox"])], b.weight[b.ids(["yak", "ox"])])
    assert not torch.isclose(a.weight[1:], third.weight[1:]).any()


def test_seeded_rows_are_as_large_as_the_vectors(tmp_path: Path) -> None:
    maker = VectorRows(_vectors(tmp_path), 0)
    rows, has_vector = maker([f"word{i}" for i in range(500)])
    assert rows.pow(2).mean().sqrt().item() == pytest.approx((30 / 4) ** 0.5, rel=0.05)
    assert not any(has_vector)


def test_saved_rows_are_found_by_name() -> None:
    """As when a state is loaded for other data, whose words were met in another order."""
    saved = WordRows(SeededRows(3, 1.0, 0), trainable=True, bias=True)
    ids = saved.ids(["one", "two", "three"])
    with torch.no_grad():
        saved.weight[ids] = torch.tensor([[1.0] * 3, [2.0] * 3, [3.0] * 3])
        assert saved.bias is not None
        saved.bias[ids] = torch.tensor([10.0, 20.0, 30.0])
    loaded = WordRows(SeededRows(3, 1.0, 0), trainable=True, bias=True)
    loaded.ids(["new", "three"])
    new = loaded.weight[1].tolist()
    loaded.load_state_dict(saved.state_dict())
    assert loaded.words == ["", "new", "three", "one", "two"]
    assert loaded.weight[1].tolist() == new
    assert loaded.weight[2:, 0].tolist() == [3, 1, 2]
    assert loaded.bias is not None
    assert loaded.bias.tolist() == [0, 0, 30, 10, 20]
    assert loaded.ids(["two"]).tolist() == [4]


def test_that_a_word_was_unknown_is_saved(tmp_path: Path) -> None:
    saved = WordRows(VectorRows(_vectors(tmp_path)), trainable=False)
    saved.ids(["yak", "cat"])
    loaded = WordRows(VectorRows(_vectors(tmp_path)), trainable=False)
    loaded.load_state_dict(saved.state_dict())
    assert loaded.unknown(["yak", "cat"]) == {"yak"}
    assert model_fingerprint(saved) == model_fingerprint(loaded)


def test_the_words_are_part_of_the_fingerprint() -> None:
    first, second = (WordRows(SeededRows(2, 0.0, 0), trainable=False) for _ in range(2))
    first.ids(["a"])
    second.ids(["b"])
    assert model_fingerprint(first) != model_fingerprint(second)
