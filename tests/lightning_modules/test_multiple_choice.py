from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import AutoModelForMultipleChoice, AutoTokenizer

from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.loading import has_choice_head
from probelight.probes.record import Record
from tests.fixtures.architectures import CONFIGS, ref_of

RECORDS = [
    Record("1", "which animal is larger ?", ("a dog", "the cat", "a plant of size two"), 2),
    Record("2", "is he ready ?", ("not really", "the red dog was ready to rest"), 0),
]
HAVE_ONE = ["albert", "bert", "deberta_v2", "distilbert", "electra", "modernbert", "mpnet"]
HAVE_ONE += ["roberta", "xlm_r"]


@pytest.fixture(params=HAVE_ONE)
def fine_tuned(
    request: pytest.FixtureRequest, checkpoint: Callable[..., Path], tmp_path: Path
) -> Path:
    """A folder as somebody's script leaves it: no weight, bias or norm is as it was drawn."""
    torch.manual_seed(3)
    model = AutoModelForMultipleChoice.from_config(CONFIGS[request.param]())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path / "theirs")
    AutoTokenizer.from_pretrained(checkpoint()).save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def _plain(folder: Path, record: Record) -> Tensor:
    """Logits (K) of one question by transformers alone."""
    model = AutoModelForMultipleChoice.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    names = inspect.signature(model.forward).parameters
    logits = []
    for choice in record.choices:  # one pair at a time: no padding
        pair = tokenizer([record.stem], [choice], return_tensors="pt")
        with torch.no_grad():
            logits.append(model(**{n: v[None] for n, v in pair.items() if n in names}).logits[0, 0])
    return torch.stack(logits)


def _scores(module: SentenceChoice) -> Tensor:
    with torch.no_grad():
        scores: Tensor = module(module.encoder().encode(RECORDS).collate([0, 1]))
    return scores


@pytest.mark.thorough
def test_the_logits_are_those_of_transformers(fine_tuned: Path, tmp_path: Path) -> None:
    assert has_choice_head(ref_of(fine_tuned))
    module = SentenceChoice(str(fine_tuned))
    scores = _scores(module)
    for row, record in zip(scores, RECORDS, strict=True):
        expected = _plain(fine_tuned, record)
        torch.testing.assert_close(row[: len(expected)], expected, rtol=0, atol=1e-6)
    assert scores[1, 2] == -torch.inf
    module.save_pretrained(tmp_path / "ours")
    for again in (SentenceChoice.from_folder(tmp_path / "ours"), SentenceChoice(str(fine_tuned))):
        assert torch.equal(_scores(again), scores)
    torch.testing.assert_close(_plain(tmp_path / "ours", RECORDS[0]), scores[0], rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*no `val_dataloader`", "ignore:.*LeafSpec.*")
@pytest.mark.parametrize("fine_tuned", ["bert", "deberta_v2"], indirect=True)
def test_all_weights_of_a_given_model_are_trained(
    fine_tuned: Path, tmp_path: Path, quiet_trainer: Callable[..., Any]
) -> None:
    module = SentenceChoice.from_folder(fine_tuned, learning_rate=0.05)
    initial = {name: value.clone() for name, value in module.transformer.named_parameters()}
    batch = module.encoder().encode(RECORDS).collate([0, 1])
    quiet_trainer(max_epochs=2).fit(module, DataLoader([batch], batch_size=None))
    parameters = dict(module.transformer.named_parameters())
    moved = {name for name, value in initial.items() if not torch.equal(parameters[name], value)}
    assert {"classifier.weight"} < moved
    module.eval().save_pretrained(tmp_path / "trained")
    expected = _scores(module)[0]
    torch.testing.assert_close(
        _plain(tmp_path / "trained", RECORDS[0]), expected, rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("fine_tuned", ["roberta"], indirect=True)
def test_another_head_begins_with_its_encoder(fine_tuned: Path) -> None:
    module = SentenceChoice(str(fine_tuned), head="mlp")
    assert module.head_kind == "mlp"
    theirs = AutoModelForMultipleChoice.from_pretrained(fine_tuned).state_dict()
    name = "encoder.layer.0.output.dense.weight"
    assert torch.equal(module.transformer.state_dict()[name], theirs[f"roberta.{name}"])


@pytest.mark.parametrize("fine_tuned", ["bert"], indirect=True)
def test_a_multiple_choice_model_cannot_fill_a_mask(fine_tuned: Path) -> None:
    with pytest.raises(PretrainedError, match="give it probes of setup mc_qa"):
        MaskedChoice(str(fine_tuned))


def test_other_checkpoints_have_no_such_head(
    checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    assert not has_choice_head(ref_of(tmp_path))
    assert not has_choice_head(ref_of("dictionary-lm"))
    assert not has_choice_head(ref_of(checkpoint("roberta")))
