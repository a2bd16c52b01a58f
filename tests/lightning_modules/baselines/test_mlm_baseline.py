"""The MLM-baseline: its input and its head by hand, and in the place of a masked LM."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from probelight.datamodules.choices import ChoiceDataModule
from probelight.lightning_modules.baselines.mlm_baseline import MLMBaseline
from probelight.lightning_modules.heads.head_training import (
    PlateauPlan,
    sample_orders,
    train_stack,
)
from probelight.lightning_modules.heads.stacked_heads import CachedItems, StackedHeads
from probelight.models.checkpoint_files import PretrainedError
from probelight.probes.record import Record
from probelight.protocols.curve.settings import CurveSettings

# Two words that decide, in words that do not: "hot" -> first choice, "cold" -> second.
RECORDS = [
    Record(f"r{i}", f"the {word} {thing} is [MASK]", ("red", "blue"), int(word == "cold"))
    for i, (word, thing) in enumerate(
        (word, thing) for thing in ("sun", "sea", "air", "tea") for word in ("hot", "cold")
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
    batch = module.encoder().encode(RECORDS).collate([0])
    head = module.head
    h = module.features(batch)[0] @ head.dense.weight.T + head.dense.bias
    h = 0.5 * h * (1 + torch.erf(h / 2**0.5))
    h = (h - h.mean()) / (h.var(unbiased=False) + 1e-12).sqrt()
    rows = batch["candidate_ids"][0]
    expected = head.decoder.weight[rows] @ h + head.bias[rows]
    torch.testing.assert_close(module(batch)[0], expected, rtol=1e-4, atol=1e-5)


def test_a_missing_choice_is_never_chosen(vectors: str) -> None:
    module = MLMBaseline(vectors)
    records = [RECORDS[0], Record("three", "the sun is [MASK]", ("red", "blue", "green"), 2)]
    logits = module(module.encoder().encode(records).collate([0, 1]))
    assert logits[0, 2] == -torch.inf
    assert torch.isfinite(logits[1]).all()


def test_the_head_is_seeded_and_a_candidate_is_known_by_name(vectors: str) -> None:
    def logits(seed: int, records: list[Record]) -> torch.Tensor:
        module = MLMBaseline(vectors, seed=seed)
        scores: torch.Tensor = module(module.encoder().encode(records).collate([len(records) - 1]))
        return scores.detach()

    other = Record("other", "the tea is [MASK]", ("green", "blue", "pink"), 0)
    torch.testing.assert_close(logits(1, [other, RECORDS[0]])[:, :2], logits(1, [RECORDS[0]]))
    assert not torch.allclose(logits(2, [RECORDS[0]]), logits(1, [RECORDS[0]]))


@pytest.mark.parametrize(
    ("mode", "trained"),
    [
        ("mlp", {"dense", "layer_norm", "decoder"}),
        ("linear", {"decoder"}),
        ("zero_shot", set()),
    ],
)
def test_modes_train_their_part_of_the_head(vectors: str, mode: str, trained: set[str]) -> None:
    module = MLMBaseline(vectors, mode=mode)  # type: ignore[arg-type]
    module.encoder().encode(RECORDS)
    names = {n.split(".")[1] for n, p in module.named_parameters() if p.requires_grad}
    assert names == trained
    assert not module.words.weight.requires_grad


def test_full_is_refused(vectors: str) -> None:
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
    assert "is not there" in encoded.notices[0]
    with pytest.raises(PretrainedError, match="cannot be read"):
        MLMBaseline.from_folder(tmp_path)


def test_the_authors_settings_end_where_a_plain_implementation_ends(tmp_path: Path) -> None:
    """Talmor 2020, section 2.3, written again with torch's own parts and none of ours."""
    random = np.random.default_rng(7)
    names = [
        "".join(pair) for pair in product("bdgk", "ao")
    ]  # no digits, which are words of their own
    table = {name: random.normal(size=50).round(4) for name in names}
    lines = [f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in table.items()]
    path = tmp_path / "glove.50d.txt"
    path.write_text("".join(lines))

    def item(i: int) -> Record:
        # Of 8 to 27 words the first twenty are read; the first two decide, neither does alone.
        words = [names[n] for n in random.integers(0, 8, size=random.integers(7, 27))]
        gold = int(words[0] < "g") ^ int(words[1] < "g")
        return Record(f"{i}", " ".join(["[MASK]", *words]), ("younger", "older"), gold)

    train, held_out = [item(i) for i in range(64)], [item(i) for i in range(64, 104)]
    orders = sample_orders(64, 48, 75, seed=1)

    module = MLMBaseline(str(path), seed=3)
    sets = [module.encoder().encode(rows).collate(range(len(rows))) for rows in (train, held_out)]
    items = [
        CachedItems(module.features(b), b["candidate_ids"], b["choice_mask"], b["labels"])
        for b in sets
    ]
    words = sets[0]["candidate_ids"].unique()
    heads = StackedHeads(module.head, words, 1, "mlp")
    settings = CurveSettings().mlm_baseline
    plan = PlateauPlan(
        "mlp",
        settings.learning_rate,
        settings.epochs,
        settings.batch_size,
        settings.weight_decay,
        settings.max_grad_norm,
        settings.patience,
    )
    [best_epoch] = train_stack(heads, [items[0]], orders[None], plan, [items[1]])
    [scores] = heads.scores([items[1]])

    def read(rows: list[Record]) -> tuple[torch.Tensor, torch.Tensor]:
        found = torch.zeros(len(rows), 20, 50)
        for row, record in enumerate(rows):
            for place, word in enumerate(record.stem.split()[:20]):
                found[row, place] = torch.tensor(table.get(word, np.zeros(50)))
        return found.flatten(1), torch.tensor([record.answer for record in rows])

    x, y = read(train)
    held_x, held_y = read(held_out)
    dense, norm = torch.nn.Linear(1000, 1000), torch.nn.LayerNorm(1000, eps=1e-12)
    decoder = torch.nn.Linear(1000, 2)
    plain = torch.nn.Sequential(dense, torch.nn.GELU(), norm, decoder)
    start, known = module.head, sets[0]["candidate_ids"][0]
    with torch.no_grad():
        dense.weight.copy_(start.dense.weight)
        dense.bias.copy_(start.dense.bias)
        decoder.weight.copy_(start.weight[known])
        decoder.bias.copy_(start.bias[known])
    rate = 4e-4
    adam = torch.optim.Adam(plain.parameters(), lr=rate, weight_decay=0.1)
    best, waited, rates = (-1.0, 0, held_x), 0, []
    for epoch in range(1, 76):
        adam.param_groups[0]["lr"] = rate
        for batch in torch.from_numpy(orders[epoch - 1]).split(16):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(plain(x[batch]), y[batch]).backward()
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 10.0)
            adam.step()
        with torch.no_grad():
            logits = plain(held_x)
        accuracy = float((logits.argmax(dim=1) == held_y).float().mean())
        if accuracy > best[0]:
            best, waited = (accuracy, epoch, logits), 0
        else:
            rate, waited = rate / 2, waited + 1
        rates.append(rate)
        if waited == 10:
            break
    assert best_epoch == best[1]
    assert 1 < best_epoch < len(rates) < 75  # it got better, stopped early, and went back
    assert rates[-1] <= 4e-4 / 2**10
    torch.testing.assert_close(scores, best[2], rtol=1e-3, atol=1e-4)
