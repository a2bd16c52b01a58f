from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModel

from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import CheckpointRef, is_sentence_choice_folder
from probelight.models.pair_choice import HEAD_WEIGHTS

Checkpoint = Callable[..., Path]
Batch = dict[str, Tensor]


def _cls_output(folder: Path, batch: Batch) -> Tensor:
    """h_CLS (P, H), one pair at a time and without padding, from a plain AutoModel."""
    model = AutoModel.from_pretrained(folder).eval()
    takes_types = model.config.model_type not in {"distilbert", "modernbert", "mpnet"}
    rows = []
    for row, length in enumerate(batch["attention_mask"].sum(1).tolist()):
        names = ["input_ids", *(["token_type_ids"] if takes_types else [])]
        with torch.no_grad():
            output = model(**{name: batch[name][row : row + 1, :length] for name in names})
        rows.append(output.last_hidden_state[0, 0])
    return torch.stack(rows)


def _same_scores(a: SentenceChoice, b: SentenceChoice, batch: Batch) -> bool:
    with torch.no_grad():
        return torch.equal(a.eval()(batch), b.eval()(batch))


def test_the_mlp_head_by_hand(architecture: str, checkpoint: Checkpoint, pair_batch: Batch) -> None:
    """Logit of a pair = w^T tanh(W h + b) + c; h without padding, so padding changes nothing."""
    folder = checkpoint(architecture)
    module = SentenceChoice(str(folder))
    generator = torch.Generator().manual_seed(5)
    dense, score = module.head.dense, module.head.score
    with torch.no_grad():
        for parameter in module.head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
        h = _cls_output(folder, pair_batch)
        logits = torch.tanh(h @ dense.weight.T + dense.bias) @ score.weight[0] + score.bias
        actual = module(pair_batch)
    expected = [[logits[0], logits[1], logits[2]], [logits[3], logits[1], -torch.inf]]
    torch.testing.assert_close(actual, torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_the_linear_head_by_hand(checkpoint: Checkpoint, pair_batch: Batch) -> None:
    module = SentenceChoice(str(checkpoint()), head="linear")
    assert set(dict(module.head.named_parameters())) == {"score.weight", "score.bias"}
    with torch.no_grad():
        module.head.score.bias.fill_(0.5)
        logits = _cls_output(checkpoint(), pair_batch) @ module.head.score.weight[0] + 0.5
        actual = module(pair_batch)
    torch.testing.assert_close(actual[0], logits[:3], rtol=0, atol=1e-5)


@pytest.mark.thorough
def test_the_pooler_head_uses_the_checkpoint_s_pooler(
    checkpoint: Checkpoint, pair_batch: Batch, tmp_path: Path
) -> None:
    source = AutoModel.from_pretrained(checkpoint())
    with torch.no_grad():
        source.pooler.dense.weight.normal_(generator=torch.Generator().manual_seed(3))
    source.save_pretrained(tmp_path)
    for path in checkpoint().glob("tokenizer*"):
        shutil.copy(path, tmp_path)
    module = SentenceChoice(str(tmp_path), head="pooler")
    with torch.no_grad():
        pooled = torch.tanh(source.pooler.dense(_cls_output(tmp_path, pair_batch)))
        logits = pooled @ module.head.score.weight[0] + module.head.score.bias
        torch.testing.assert_close(module(pair_batch)[0], logits[:3], rtol=0, atol=1e-5)


def test_a_pooler_that_is_not_in_the_checkpoint_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(
        PretrainedError, match=r"2 weights of BertModel are missing \(pooler.*'mlp'"
    ):
        SentenceChoice(str(checkpoint("bert")), head="pooler")
    with pytest.raises(PretrainedError, match="DistilBertModel has no pooler"):
        SentenceChoice(str(checkpoint("distilbert")), head="pooler")


def test_every_parameter_is_trained(
    architecture: str, checkpoint: Checkpoint, pair_batch: Batch
) -> None:
    """An encoder's unused pooler would make DDP wait for a gradient that never comes."""
    module = SentenceChoice(str(checkpoint(architecture)))
    torch.nn.functional.cross_entropy(module(pair_batch), pair_batch["labels"]).backward()
    without = [name for name, p in module.named_parameters() if p.grad is None]
    assert without == []


@pytest.mark.parametrize("head", ["mlp", "linear"])
def test_saving_and_loading_is_exact(
    architecture: str, head: Any, checkpoint: Checkpoint, pair_batch: Batch, tmp_path: Path
) -> None:
    module = SentenceChoice(str(checkpoint(architecture)), head=head, max_length=40, num_choices=5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    folder = tmp_path / "saved"
    module.save_pretrained(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert not [p for p in folder.rglob("*") if p.suffix in {".bin", ".pt", ".pkl", ".ckpt"}]
    assert is_sentence_choice_folder(CheckpointRef(str(folder)))
    names = {name for name, _ in module.head.named_parameters()}
    assert set(load_file(folder / HEAD_WEIGHTS)) == names
    for loaded in (SentenceChoice.from_folder(folder), SentenceChoice(str(folder))):
        assert _same_scores(module, loaded, pair_batch)
        assert (loaded.head_kind, loaded.max_length, loaded.num_choices) == (head, 40, 5)
    encoder = AutoModel.from_pretrained(folder)
    for name, weight in module.transformer.state_dict().items():
        assert torch.equal(encoder.state_dict()[name], weight), name


def test_a_pooler_model_is_saved_with_its_pooler(
    checkpoint: Checkpoint, pair_batch: Batch, tmp_path: Path
) -> None:
    module = SentenceChoice(str(checkpoint()), head="pooler", random_weights=True)
    module.save_pretrained(tmp_path / "saved")
    assert _same_scores(module, SentenceChoice.from_folder(tmp_path / "saved"), pair_batch)
    with pytest.raises(
        PretrainedError, match="saved with head 'pooler', so head='linear' does not"
    ):
        SentenceChoice(str(tmp_path / "saved"), head="linear")
    with pytest.raises(PretrainedError, match="has no saved model"):
        SentenceChoice.from_folder(checkpoint())


def test_a_failed_save_leaves_what_was_there(
    checkpoint: Checkpoint, pair_batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = SentenceChoice(str(checkpoint()))
    module.save_pretrained(tmp_path / "saved")
    expected = SentenceChoice.from_folder(tmp_path / "saved")

    def full(*_: Any, **__: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("probelight.models.pair_choice.save_file", full)
    with pytest.raises(OSError, match="No space left"):
        module.save_pretrained(tmp_path / "saved")
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert _same_scores(expected, SentenceChoice.from_folder(tmp_path / "saved"), pair_batch)


def test_random_weights_of_a_saved_folder_have_a_fresh_head(
    checkpoint: Checkpoint, pair_batch: Batch, tmp_path: Path
) -> None:
    module = SentenceChoice(str(checkpoint()), seed=4)
    module.save_pretrained(tmp_path / "saved")
    fresh = SentenceChoice(str(tmp_path / "saved"), random_weights=True, seed=5)
    twin = SentenceChoice(str(tmp_path / "saved"), random_weights=True, seed=5)
    assert not _same_scores(module, fresh, pair_batch)
    assert _same_scores(fresh, twin, pair_batch)
    assert not torch.equal(module.head.dense.weight, fresh.head.dense.weight)
