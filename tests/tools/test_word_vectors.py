from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from tools.word_vectors import build_word_vectors, cooccurrences, factorise, positive_pmi


def test_cooccurrences_by_hand() -> None:
    # In "a b a" a and b are neighbours twice, a and a at distance 2; texts do not touch.
    counts = cooccurrences([["a", "b", "a"], ["b"]], ["a", "b"], window=2).toarray()
    assert counts.tolist() == [[1.0, 2.0], [2.0, 0.0]]
    skipped = cooccurrences([["a", "?", "b"]], ["a", "b"], window=2).toarray()
    assert skipped.tolist() == [[0.0, 0.5], [0.5, 0.0]]


def test_positive_pmi_equals_its_dense_definition() -> None:
    counts = np.array([[1.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 4.0]])
    context = counts.sum(axis=0) ** 0.75 / (counts.sum(axis=0) ** 0.75).sum()
    with np.errstate(divide="ignore"):
        expected = np.log(counts / counts.sum(axis=1, keepdims=True) / context)
    got = positive_pmi(sparse.csr_matrix(counts)).toarray()
    np.testing.assert_allclose(got, np.maximum(expected, 0), atol=1e-12)


def test_factorise_gives_the_leading_singular_vectors_with_fixed_signs() -> None:
    matrix = np.random.default_rng(0).random((12, 12))
    vectors = factorise(sparse.csr_matrix(matrix), 3)
    columns, values, _ = np.linalg.svd(matrix)
    expected = columns[:, :3] * np.sqrt(values[:3])
    expected /= np.sqrt(np.mean(expected**2))
    np.testing.assert_allclose(np.abs(vectors), np.abs(expected), atol=1e-8)
    assert all(column[np.abs(column).argmax()] > 0 for column in vectors.T)


def test_file_is_gloves_format_frequent_words_first_and_repeatable(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{chr(97 + i)}" for i in rng.integers(0, 12, 40)) for _ in range(30)]
    texts += ["the the the the 43 Wa"] * 200
    for name in ("one", "two"):
        words = build_word_vectors(texts, tmp_path / name, 10, 4, extra_words=["43", "no"])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    lines = [line.split() for line in (tmp_path / "one").read_text().splitlines()]
    assert [line[0] for line in lines] == words
    assert (words[0], len(words), {"43", "no"} & {*words}) == ("the", 10, {"43"})
    assert {len(line) for line in lines} == {5}
    numbers = np.array([[float(n) for n in line[1:]] for line in lines])
    counts = cooccurrences([text.lower().split() for text in texts], words, window=5)
    np.testing.assert_allclose(numbers, factorise(positive_pmi(counts), 4), rtol=1e-3)


def test_too_few_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="3 words are too few for vectors of 50 dimensions"):
        build_word_vectors(["a b c"], tmp_path / "v")
