from __future__ import annotations

import math
import random
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor

from probelight.encoding.word_vectors import WordVectorsError
from probelight.io.errors import UsageError
from probelight.models.registry import ModelSettings
from probelight.models.vec_similarity import check, load
from probelight.probes.record import Record

LINES = """5 2
cat 1 0
dog 0 2
cow 3 3
hen -1 0
nil 0 0
"""


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    path = tmp_path / "v.txt"
    path.write_text(LINES)
    return str(path)


def scores(vectors: str, records: list[Record]) -> Tensor:
    scorer = load(ModelSettings(kind="vec_similarity", vectors=vectors), "mc_qa")
    question = scorer.choice_scores()
    return question.answer(question.encoder.encode(records).collate(range(len(records))))


def test_scores_worked_by_hand(vectors: str) -> None:
    records = [
        Record("one", "Cat dog", ("cow", "cat hen", "cat", "zebra", ""), 0),
        # The mask, a vector of zeros and a word that is not known have no direction.
        Record("two", "A [MASK] nil cat!", ("hen nil", "cow"), 0),
        Record("three", "zebra", ("cat", "dog"), 0),
    ]
    half = math.sqrt(0.5)
    expected = [
        [half, 0.0, 0.5, 0.0, 0.0],
        [-1.0, half, -math.inf, -math.inf, -math.inf],
        [0.0, 0.0, -math.inf, -math.inf, -math.inf],
    ]
    torch.testing.assert_close(scores(vectors, records), torch.tensor(expected))


def test_scores_are_means_over_all_pairs_of_words_and_hang_on_no_other_item(tmp_path: Path) -> None:
    draw = random.Random(0)
    vectors = {f"word{chr(97 + i)}": [draw.gauss(0, 1) for _ in range(5)] for i in range(9)}
    path = tmp_path / "v.txt"
    path.write_text("".join(f"{w} {' '.join(map(repr, v))}\n" for w, v in vectors.items()))

    def text(length: int) -> str:
        return " ".join(draw.choices([*vectors, "other"], k=length))

    records = [
        Record(str(i), text(draw.randint(0, 30)), (text(2), text(9), text(0)), 0) for i in range(7)
    ]

    def mean_cosine(question: str, answer: str) -> float:
        sides = [[vectors[w] for w in side.split() if w in vectors] for side in (question, answer)]
        cosines = [
            sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))
            for a, b in product(*sides)
        ]
        return sum(cosines) / len(cosines) if cosines else 0.0

    expected = [[mean_cosine(record.stem, c) for c in record.choices] for record in records]
    together = scores(str(path), records)
    torch.testing.assert_close(together, torch.tensor(expected))
    alone = torch.cat([scores(str(path), [record]) for record in records])
    assert torch.equal(together, alone)


def test_what_it_does_not_answer_is_refused(vectors: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="minimal pairs are whole sentences"):
        check(ModelSettings(kind="vec_similarity"), "minimal_pair")
    with pytest.raises(UsageError, match="vec_similarity has no weights"):
        load(ModelSettings(kind="vec_similarity", random_weights=True), "mc_qa")
    with pytest.raises(WordVectorsError, match=r"none\.txt: there is no such file"):
        check(ModelSettings(kind="vec_similarity", vectors=str(tmp_path / "none.txt")), "mc_qa")
