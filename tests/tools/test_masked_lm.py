from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.optim import AdamW, Muon, Optimizer
from transformers import BertForPreTraining, BertTokenizer

from probelight.io.errors import UsageError
from probelight.models.checkpoint_errors import PretrainedError
from tools.masked_lm import MaskedLanguageModel, MuonAdamW, begin_with


def module_and_batch() -> tuple[MaskedLanguageModel, dict[str, Tensor]]:
    torch.manual_seed(0)
    module = MaskedLanguageModel(
        vocab_size=50, hidden_size=16, num_layers=2, num_heads=2, max_length=12
    )
    batch = {
        "input_ids": torch.randint(5, 50, (3, 10)),
        "attention_mask": torch.tensor([[1] * 10, [1] * 8 + [0] * 2, [1] * 6 + [0] * 4]),
        "token_type_ids": torch.tensor([[0] * 4 + [1] * 6] * 3),
        "labels": torch.full((3, 10), -100),
        "is_next": torch.tensor([1, 0, 1]),
    }
    batch["labels"][0, 2], batch["labels"][1, 5], batch["labels"][2, 1] = 7, 8, 9
    return module.eval(), batch


def test_the_loss_is_that_of_the_full_model() -> None:
    module, batch = module_and_batch()
    # The library counts "B continues A" as class 0.
    inputs = {name: value for name, value in batch.items() if name != "is_next"}
    output = module.model(**inputs, next_sentence_label=1 - batch["is_next"])
    next_loss = torch.nn.functional.cross_entropy(
        output.seq_relationship_logits, 1 - batch["is_next"]
    )
    expected = output.loss - next_loss + 0.3 * next_loss
    assert module._losses(batch)["loss"].item() == pytest.approx(expected.item(), abs=1e-5)


def test_pairs_without_a_second_half_do_not_count() -> None:
    module, batch = module_and_batch()
    batch["is_next"][:] = -100
    out = module._losses(batch)
    assert out["next_correct"].numel() == 0
    assert out["loss"].item() == pytest.approx(out["masked_loss"].item())


def trained(module: MaskedLanguageModel, batch: dict[str, Tensor], *optimizers: Optimizer) -> None:
    for optimizer in optimizers:
        optimizer.zero_grad()
    module._losses(batch)["loss"].backward()
    for optimizer in optimizers:
        optimizer.step()


def test_muon_with_adamw_is_each_on_its_own_weights() -> None:
    module, batch = module_and_batch()
    reference = copy.deepcopy(module)
    named = dict(reference.model.named_parameters())
    matrices = [p for name, p in named.items() if ".layer." in name and p.ndim == 2]
    assert len(matrices) == 2 * 6  # query, key, value, output and the two of the feed-forward part
    others_named = {n: p for n, p in named.items() if not any(p is matrix for matrix in matrices)}
    plain = [p for n, p in others_named.items() if n.endswith("bias") or "LayerNorm" in n]
    decayed = [p for p in others_named.values() if not any(p is weight for weight in plain)]
    muon = Muon(matrices, lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    adamw = AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
        lr=0.01,
        betas=(0.9, 0.98),
        fused=True,
    )
    optimizer = MuonAdamW(module.model, 0.01, 0.1)
    for _ in range(3):
        trained(module, batch, optimizer)
        trained(reference, batch, muon, adamw)
    for name, parameter in module.model.named_parameters():
        assert torch.equal(parameter, named[name]), name


def test_muon_with_adamw_goes_on_from_its_state_bit_for_bit(tmp_path: Path) -> None:
    module, batch = module_and_batch()
    optimizer = MuonAdamW(module.model, 0.01, 0.1)
    trained(module, batch, optimizer)
    torch.save([module.state_dict(), optimizer.state_dict()], tmp_path / "state.pt")
    trained(module, batch, optimizer)

    resumed, _ = module_and_batch()
    weights, state = torch.load(tmp_path / "state.pt", weights_only=True)
    resumed.load_state_dict(weights)
    second = MuonAdamW(resumed.model, 0.5, 0.0)
    second.load_state_dict(state)
    trained(resumed, batch, second)
    for name, parameter in resumed.state_dict().items():
        assert torch.equal(parameter, module.state_dict()[name]), name


def saved(folder: Path, pieces: list[str], hidden_size: int = 16) -> BertForPreTraining:
    """Write a model with a vocabulary of its own, and return it."""
    torch.manual_seed(1)
    module = MaskedLanguageModel(len(pieces), hidden_size, num_layers=2, num_heads=2, max_length=12)
    module.model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(pieces))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return module.model


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_a_start_gives_its_weights_and_new_pieces_the_mean_of_their_old_ones(
    tmp_path: Path,
) -> None:
    old = [*SPECIAL, "cat", "fish", "dog", "##s"]
    start = saved(tmp_path / "old", old).state_dict()
    new = [*SPECIAL, "dog", "catfish", "dogs", "##s", "##cat"]
    torch.manual_seed(2)
    module = MaskedLanguageModel(len(new), 16, num_layers=2, num_heads=2, max_length=12)
    begin_with(module.model, new, str(tmp_path / "old"))
    trained = module.model.state_dict()
    words = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(trained[words][:5], start[words][:5])
    assert torch.equal(trained[words][5], start[words][7])  # dog
    assert torch.equal(trained[words][6], start[words][1])  # no pieces make catfish: [UNK]
    assert torch.equal(trained[words][7], (start[words][7] + start[words][8]) / 2)  # dog ##s
    assert torch.equal(trained[words][9], start[words][5])  # ##cat as cat
    bias = "cls.predictions.bias"
    assert torch.equal(trained[bias][7], (start[bias][7] + start[bias][8]) / 2)
    names = [n for n in trained if trained[n].shape == start[n].shape]
    assert len(names) == len(trained) - 4  # words and decoder, and the bias under two names
    assert all(torch.equal(trained[name], start[name]) for name in names)


def test_a_start_of_other_sizes_is_refused(tmp_path: Path) -> None:
    saved(tmp_path / "old", [*SPECIAL, "cat"], hidden_size=32)
    module = MaskedLanguageModel(6, 16, num_layers=2, num_heads=2, max_length=12)
    message = r"other sizes: hidden_size, .* \[32, 2, 2\], not \[16, 2, 2\]"
    with pytest.raises(UsageError, match=message):
        begin_with(module.model, [*SPECIAL, "cat"], str(tmp_path / "old"))
    with pytest.raises(PretrainedError, match="no folder"):
        begin_with(module.model, [*SPECIAL, "cat"], str(tmp_path / "gone"))
