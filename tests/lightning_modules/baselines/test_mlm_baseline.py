from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from probelight.datamodules.choices import ChoiceDataModule
from probelight.lightning_modules.baselines.mlm_baseline import MLMBaseline
from probelight.models.checkpoint_errors import PretrainedError
from probelight.probes.record import Record

# Two words that decide, in words that do not: "hot" -> first choice, "cold" -> second.
RECORDS = [
    Record(f"r{i}", f"the {word} {noun} is [MASK]", ("red", "blue"), int(word == "cold"))
    for i, (word, noun) in enumerate(
        (word, noun) for noun in ("sun", "sea", "air", "tea") for word in ("hot", "cold")
    )
]


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    path = tmp_path / "v.txt"
    path.write_text("the 1 0\nhot 2 -1\ncold -2 1\nis 0 3\nsun 1 1\nsea -1 1\nair 0.5 0\n")
    return str(path)


def test_features_are_the_vectors_side_by_side(vectors: str) -> None:
    module = MLMBaseline(vectors)
    batch = module.encoder().encode(RECORDS).collate([1])  # the cold sun is [MASK]
    features = module.features(batch)
    assert features.shape == (1, 40)
    assert features[0, :10].tolist() == [1, 0, -2, 1, 1, 1, 0, 3, 0, 0]
    assert features[0, 10:].tolist() == [0] * 30


def test_the_embedded_vectors_give_the_papers_thousand_numbers() -> None:
    module = MLMBaseline()
    batch = module.encoder().encode(RECORDS).collate([0, 1])
    assert module.features(batch).shape == (2, 1000)
    assert module.head.dense.weight.shape == (1000, 1000)


def test_the_head_by_hand(vectors: str) -> None:
    module = MLMBaseline(vectors)
    three = Record("three", "the sun is [MASK]", ("red", "blue", "green"), 2)
    batch = module.encoder().encode([RECORDS[0], three]).collate([0, 1])
    head = module.head
    h = module.features(batch)[0] @ head.dense.weight.T + head.dense.bias
    h = 0.5 * h * (1 + torch.erf(h / 2**0.5))
    h = (h - h.mean()) / (h.var(unbiased=False) + 1e-12).sqrt()
    rows = batch["candidate_ids"][0]
    expected = head.decoder.weight[rows] @ h + head.bias[rows]
    logits = module(batch)
    torch.testing.assert_close(logits[0, :2], expected[:2], rtol=1e-4, atol=1e-5)
    assert logits[0, 2] == -torch.inf
    assert torch.isfinite(logits[1]).all()


def test_the_head_is_seeded_and_a_candidate_is_known_by_name(vectors: str) -> None:
    def logits(seed: int, records: list[Record]) -> torch.Tensor:
        module = MLMBaseline(vectors, seed=seed)
        scores: torch.Tensor = module(module.encoder().encode(records).collate([len(records) - 1]))
        return scores.detach()

    tea = Record("other", "the tea is [MASK]", ("green", "blue", "pink"), 0)
    torch.testing.assert_close(logits(1, [tea, RECORDS[0]])[:, :2], logits(1, [RECORDS[0]]))
    assert not torch.allclose(logits(2, [RECORDS[0]]), logits(1, [RECORDS[0]]))


@pytest.mark.parametrize(
    ("mode", "trained"),
    [
        ("mlp", {"dense", "layer_norm", "decoder"}),
        ("linear", {"decoder"}),
        ("zero_shot", set()),
    ],
)
def test_modes_train_their_part_of_the_head_and_never_the_vectors(
    vectors: str, mode: str, trained: set[str]
) -> None:
    module = MLMBaseline(vectors, mode=mode)  # type: ignore[arg-type]
    module.encoder().encode(RECORDS)
    names = {n.split(".")[1] for n, p in module.named_parameters() if p.requires_grad}
    assert names == trained
    assert not module.words.weight.requires_grad
    with pytest.raises(ValueError, match="the vectors are never trained"):
        MLMBaseline(vectors, mode="full")  # type: ignore[arg-type]


def test_fit_learns_what_a_word_says(vectors: str, quiet_trainer: Callable[..., Any]) -> None:
    module = MLMBaseline(vectors, learning_rate=5e-3, monitor="val/accuracy")
    data = ChoiceDataModule(RECORDS, {"": RECORDS}, batch_size=4)
    trainer = quiet_trainer(max_epochs=12)
    trainer.fit(module, data)
    assert float(trainer.callback_metrics["val/accuracy"]) == 1.0
    # "tea" has no vector, and the words are read once for both sets.
    assert data.notices("train") == (
        "1 of 8 distinct words have no word vector (6.2% of the words read): tea",
    )
    assert trainer.optimizers[0].param_groups[0]["lr"] < 5e-3  # it stood still at 1


def test_saved_and_loaded_it_scores_the_same_without_the_file(vectors: str, tmp_path: Path) -> None:
    module = MLMBaseline(vectors, seed=4)
    expected = module(module.encoder().encode(RECORDS).collate(range(8)))
    module.save_pretrained(tmp_path / "saved")
    Path(vectors).unlink()
    loaded = MLMBaseline.from_folder(tmp_path / "saved", learning_rate=0.5)
    encoded = loaded.encoder().encode(RECORDS[::-1])
    torch.testing.assert_close(loaded(encoded.collate(range(8))), expected.flip(0), rtol=0, atol=0)
    assert loaded.learning_rate == 0.5
    assert "is missing" in encoded.notices[0]
    with pytest.raises(PretrainedError, match="cannot be read"):
        MLMBaseline.from_folder(tmp_path)
