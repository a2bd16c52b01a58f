from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from probelight.datamodules.choices import ChoiceDataModule
from probelight.lightning_modules.baselines.esim import ESIM, BiLSTM, SequenceDropout
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.networks import model_fingerprint
from probelight.probes.record import Record
from tests.lightning_modules.baselines.words import WORDS, scores

# The answer is the word that the question names.
RECORDS = [
    Record(f"r{i}", f"which is a {first}", (first, second), 0)
    if i % 2
    else Record(f"r{i}", f"which is a {second}", (first, second), 1)
    for i, (first, second) in enumerate((a, b) for a in WORDS[:6] for b in WORDS[:6] if a != b)
]


def _small(vectors: str, **options: Any) -> ESIM:
    return ESIM(vectors, **{"hidden_size": 6, **options})


def _by_hand(module: ESIM, question: str, answer: str) -> Tensor:
    """The logit of one pair of texts, token by token, with nothing padded or masked."""

    def both_ways(layer: BiLSTM, tokens: Tensor) -> Tensor:
        turned = layer.backwards(tokens.flip(0))[0]
        return torch.cat([layer.onward(tokens)[0], turned.flip(0)], dim=1)

    def read(text: str) -> Tensor:
        ids = module.words.ids(text.split())
        return both_ways(module.read, module.words.weight[torch.from_numpy(ids)])

    def align(tokens: Tensor, vectors: Tensor) -> Tensor:
        rows = []
        for token in tokens:
            likeness = torch.stack([token @ vector for vector in vectors]).exp()
            weights = likeness / likeness.sum()
            rows.append(sum(w * vector for w, vector in zip(weights, vectors, strict=True)))
        return torch.stack(rows)

    a, b = read(question), read(answer)
    pooled = []
    for tokens, matched in ((a, align(a, b)), (b, align(b, a))):
        joined = torch.cat([tokens, matched, tokens - matched, tokens * matched], dim=1)
        layer = module.project[0]
        local = (joined @ layer.weight.T + layer.bias).clamp(min=0)
        states = both_ways(module.infer, local)
        pooled += [states.mean(dim=0), states.max(dim=0).values]
    hidden = module.head.dense(torch.cat(pooled)).clamp(min=0)
    return module.head.score(hidden)[0]


def test_logits_are_those_of_the_equations(vectors: str) -> None:
    records = [
        Record("one", "which is a cat", ("dog", "a cat not a dog"), 0),
        Record("two", "fox", ("which is a hen a hen", "cow", "ant"), 1),
    ]
    module = _small(vectors)
    logits = scores(module, records)
    with torch.no_grad():
        for row, record in enumerate(records):
            expected = [_by_hand(module, record.stem, choice) for choice in record.choices]
            torch.testing.assert_close(
                logits[row, : len(expected)], torch.stack(expected), rtol=1e-5, atol=1e-6
            )
    assert logits[0, 2] == -torch.inf


def test_empty_choices_are_scored_and_trained_without_nan(vectors: str) -> None:
    module = _small(vectors, num_choices=5)
    no_question = Record("e", " ", ("cat", "dog"), 0)
    batch = module.encoder().encode([*RECORDS[:3], no_question]).collate([0, 1, 2, 3])
    module.train()
    logits = module(batch)
    assert logits.shape == (4, 5)
    assert torch.isfinite(logits).all()
    assert (logits[:, 2] == logits[:, 3]).all()  # an empty choice is an empty choice
    logits.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in module.parameters() if p.grad is not None)
    assert module.words.weight.grad is not None
    assert module.words.weight.grad[0].tolist() == [0] * 8  # the padding is never trained


def test_the_reader_is_pytorchs_over_packed_sequences() -> None:
    torch.manual_seed(0)
    layer, lstm = BiLSTM(3, 4), torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for name, value in layer.onward.named_parameters():
            getattr(lstm, name).copy_(value)
        for name, value in layer.backwards.named_parameters():
            getattr(lstm, f"{name}_reverse").copy_(value)
    lengths = torch.tensor([5, 1, 7, 2, 7, 3, 4])
    tokens, mask = torch.randn(7, 7, 3), torch.arange(7) < lengths[:, None]
    packed = pack_padded_sequence(tokens, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
    torch.testing.assert_close(layer(tokens, mask), expected)


def test_dropout_leaves_out_whole_columns() -> None:
    drop = SequenceDropout(0.5)
    torch.manual_seed(0)
    dropped = drop(torch.ones(3, 5, 40))
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(drop.eval()(torch.ones(1, 2, 3)), torch.ones(1, 2, 3))


def test_layers_have_the_authors_sizes() -> None:
    module = ESIM()
    shapes = {name: tuple(p.shape) for name, p in module.named_parameters() if p.ndim == 2}
    assert shapes["read.onward.weight_ih_l0"] == (4 * 300, 50)
    assert shapes["project.0.weight"] == (300, 2400)
    assert shapes["infer.backwards.weight_ih_l0"] == (4 * 300, 300)
    assert shapes["head.dense.weight"] == (300, 2400)
    assert shapes["head.score.weight"] == (1, 300)


def test_the_seed_decides_and_nothing_else(vectors: str) -> None:
    torch.manual_seed(1)
    expected = scores(_small(vectors, seed=5), RECORDS)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    assert torch.equal(scores(_small(vectors, seed=5), RECORDS), expected)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.allclose(scores(_small(vectors, seed=6), RECORDS), expected)


@pytest.mark.parametrize("train_vectors", [True, False])
def test_vectors_are_trained_if_asked_for(
    vectors: str, train_vectors: bool, quiet_trainer: Callable[..., Any]
) -> None:
    module = _small(vectors, train_vectors=train_vectors)
    module.encoder().encode(RECORDS)
    initial = module.words.weight.detach().clone()
    quiet_trainer().fit(module, ChoiceDataModule(RECORDS, {"": RECORDS}))
    assert torch.equal(module.words.weight.detach(), initial) != train_vectors


def test_it_learns_to_find_the_word_that_is_asked_for(
    vectors: str, quiet_trainer: Callable[..., Any]
) -> None:
    module = _small(vectors, hidden_size=12, learning_rate=1e-2, dropout=0.0)
    trainer = quiet_trainer(max_epochs=12, check_val_every_n_epoch=12)
    trainer.fit(module, ChoiceDataModule(RECORDS, {"": RECORDS}, batch_size=10))
    assert float(trainer.callback_metrics["val/accuracy"]) > 0.9
    [optimizer] = trainer.optimizers
    assert isinstance(optimizer, torch.optim.Adam)
    # Without a monitor the rate stays.
    assert (optimizer.param_groups[0]["lr"], trainer.lr_scheduler_configs) == (1e-2, [])


def test_saved_and_loaded_it_scores_the_same_without_the_file(vectors: str, tmp_path: Path) -> None:
    module = _small(vectors, num_choices=3)
    records = [*RECORDS, Record("new", "which is a yak", ("yak", "cat"), 0)]
    expected = scores(module, records)
    module.save_pretrained(tmp_path / "saved")
    Path(vectors).unlink()
    loaded = ESIM.from_folder(tmp_path / "saved")
    assert loaded.num_choices == 3
    with pytest.raises(
        PretrainedError, match="saved with num_choices 3, so num_choices=5 does not"
    ):
        ESIM.from_folder(tmp_path / "saved", num_choices=5)
    assert model_fingerprint(loaded) == model_fingerprint(module)
    torch.testing.assert_close(scores(loaded, records[::-1]).flip(0), expected)
    notices = loaded.encoder().encode(records).notices
    assert "is missing" in notices[0]
    assert notices[1].endswith(": yak")
