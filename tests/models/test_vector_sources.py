from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from probelight.encoding.word_vectors import WordVectorsError, vectors_label
from probelight.lightning_modules.baselines.partial_input import QuestionToChoice
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.networks import model_fingerprint
from probelight.models.registry import ModelSettings
from probelight.models.vec_similarity import load
from probelight.models.vector_sources import token_vectors
from probelight.probes.record import Record
from probelight.training.modules import saved_module

RECORDS = [
    Record("one", "which cat is larger than a dog ?", ("a red plant", "cat", ""), 0),
    Record("two", "antelope [MASK] the best animal", ("blue", "zebra cat"), 0),
]


@pytest.fixture(params=["bert", "roberta"])
def folder(request: pytest.FixtureRequest, checkpoint: Callable[..., Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint(request.param), tmp_path / request.param))


def states_of(folder: Path, text: str) -> Tensor:
    """(L, H) of a text alone, without its first and last special token."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    inputs = tokenizer(text.replace("[MASK]", tokenizer.mask_token), return_tensors="pt")
    with torch.no_grad():
        states: Tensor = model(**inputs).last_hidden_state[0, 1:-1]
    return states


def test_states_are_those_of_each_text_alone(folder: Path) -> None:
    vectors = token_vectors(f"encoder:{folder}")
    assert vectors.dimension == 32
    batch = vectors.encoder(256).encode(RECORDS).collate([0, 1])
    texts = {"question_ids": [r.stem for r in RECORDS]}
    texts["answer_ids"] = ["", *sorted({c for r in RECORDS for c in r.choices if c})]
    for name, stems in texts.items():
        states, mask = vectors.read(batch[name])
        expected = {text: states_of(folder, text) for text in stems}
        assert len(states) == len(expected)
        for row, real in zip(states, mask, strict=True):
            assert (row[~real] == 0).all()
            near = [
                text
                for text, states in expected.items()
                if len(states) == real.sum() and torch.allclose(row[real], states, atol=1e-5)
            ]
            assert len(near) == 1
            del expected[near[0]]


def test_it_is_trained_on_what_was_kept_while_it_was_asked(folder: Path) -> None:
    module = QuestionToChoice(f"encoder:{folder}", hidden_size=4)
    batch = module.encoder().encode(RECORDS).collate([0, 1])
    with torch.inference_mode():
        logits = module(batch)
    trained = module(batch)
    torch.testing.assert_close(logits, trained)
    trained[:, :2].sum().backward()
    assert module.weigh.weight.grad is not None
    assert [name for name, p in module.named_parameters() if name.startswith("words")] == []


def test_a_saved_baseline_asks_for_the_same_encoder(folder: Path, tmp_path: Path) -> None:
    module = QuestionToChoice(f"encoder:{folder}", hidden_size=4)
    batch = module.encoder().encode(RECORDS).collate([0, 1])
    module.save_pretrained(tmp_path / "saved")
    assert (tmp_path / "saved" / "model.safetensors").stat().st_size < 20_000
    again = saved_module(tmp_path / "saved")
    assert torch.equal(again(again.encoder().encode(RECORDS).collate([0, 1])), module(batch))
    module.vectors.__dict__["sha256"] = "00" * 32
    module.save_pretrained(tmp_path / "other")
    with pytest.raises(WordVectorsError, match="its weights differ from"):
        saved_module(tmp_path / "other").encoder()


def test_mean_cosine_of_states(folder: Path) -> None:
    settings = ModelSettings(kind="vec_similarity", vectors=f"encoder:{folder}")
    assert settings.label == f"VecSimilarity ({folder.name}, frozen)"
    scorer = load(settings, "mc_qa")
    question = scorer.choice_scores()
    cosines = question.answer(question.encoder.encode(RECORDS).collate([0, 1]))
    for row, record in zip(cosines, RECORDS, strict=True):
        sides = [states_of(folder, text) for text in (record.stem, *record.choices)]
        means = [torch.nn.functional.normalize(side).sum(0) / max(1, len(side)) for side in sides]
        expected = torch.stack([means[0] @ mean for mean in means[1:]])
        torch.testing.assert_close(row[: len(expected)], expected, rtol=1e-4, atol=1e-5)
    assert scorer.fingerprint() == model_fingerprint(
        AutoModel.from_pretrained(folder, add_pooling_layer=False)
    )


def test_names_and_what_is_no_encoder(tmp_path: Path) -> None:
    assert vectors_label("encoder:org/some-model/") == "some-model, frozen"
    assert vectors_label("other:org/some-model.txt") == "some-model"
    with pytest.raises(PretrainedError):
        token_vectors(f"encoder:{tmp_path}")
    with pytest.raises(WordVectorsError, match="encodr:bert: there is no such file"):
        token_vectors("encodr:bert")
