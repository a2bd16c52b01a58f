"""A causal model is trained as a plain loop over the raw model trains it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from probelight.datamodules.choices import ChoiceDataModule
from probelight.evaluation.scorers import scorer_for
from probelight.io.errors import UsageError
from probelight.lightning_modules.causal_choice import CausalChoice
from probelight.models.causal import CausalScorer
from probelight.models.registry import ModelSettings
from probelight.models.scorer import TrainedScorer
from probelight.probes.record import Record
from probelight.training.modules import saved_module
from tests.fixtures.answers import answers
from tests.fixtures.causal import causal_folder
from tests.lightning_modules.losses import Losses, without_dropout

__all__ = ["causal_folder"]
Folder = Callable[[str], Path]

CHOICES = ("an old red antelope", "a cat", "the dog")
RECORDS = [
    Record(str(i), f"{stem} is the largest one ?", CHOICES, i % 3)
    for i, stem in enumerate(["which animal", "what", "which dog", "which cat", "what snow"])
]
STEPS = 20


def plain_losses(folder: Path, learning_rate: float) -> list[float]:
    """Losses of 20 steps on all records, a choice at a time, with torch's AdamW."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    without_dropout(model)
    model.train()
    # Biases and norms, which have one dimension in these models, are not decayed.
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=learning_rate,
        betas=(0.9, 0.98),
    )
    step_losses = []
    for step in range(STEPS):
        # One step of warm-up (6% of 20), then down to 0 over the other 19.
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min(1.0, (STEPS - step) / 19)
        losses = []
        for record in RECORDS:
            scores = []
            for choice in record.choices:
                first = len(tokenizer(record.stem).input_ids)
                ids = tokenizer(f"{record.stem} {choice}").input_ids
                logs = model(torch.tensor([ids])).logits[0].log_softmax(dim=-1)
                summed = [logs[i - 1, ids[i]] for i in range(first, len(ids))]
                scores.append(torch.stack(summed).mean())
            losses.append(-torch.stack(scores).log_softmax(dim=0)[record.answer])
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step_losses.append(loss.item())
    return step_losses


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_twenty_steps_have_the_losses_of_a_plain_loop(
    family: str, causal_folder: Folder, quiet_trainer: Callable[..., Any]
) -> None:
    folder = causal_folder(family)
    module = CausalChoice(str(folder), learning_rate=1e-3)
    without_dropout(module)
    losses = Losses()
    trainer = quiet_trainer(max_epochs=STEPS, callbacks=[losses])
    trainer.fit(module, datamodule=ChoiceDataModule(RECORDS, {}, len(RECORDS)))
    expected = plain_losses(folder, 1e-3)
    print(family, max(abs(a - b) for a, b in zip(losses.by_step, expected, strict=True)))
    assert losses.by_step == pytest.approx(expected, abs=1e-5)
    assert expected[-1] < 0.9 * expected[0]


@pytest.mark.parametrize("scoring", ["auto", "last_token"])
def test_two_processes_train_as_one(
    scoring: Any, causal_folder: Folder, quiet_trainer: Callable[..., Any]
) -> None:
    # Five records in batches of four: the second batch is one record and one padding item.
    def fitted(**processes: Any) -> dict[str, Tensor]:
        module: Any = CausalChoice(str(causal_folder("gpt2")), scoring)
        without_dropout(module)
        # Adam would make a whole step of a gradient that is nothing but rounding.
        trained = [p for p in module.parameters() if p.requires_grad]
        module.configure_optimizers = lambda: torch.optim.SGD(trained, lr=0.1)
        trainer = quiet_trainer(max_epochs=2, **processes)
        trainer.fit(module, datamodule=ChoiceDataModule(RECORDS, {"dev": RECORDS}, 4, seed=3))
        return {**module.state_dict(), **trainer.callback_metrics}

    single, double = fitted(), fitted(devices=2, strategy="ddp_fork")
    assert single["val/dev_accuracy"] == double["val/dev_accuracy"]
    for name, value in single.items():
        torch.testing.assert_close(double[name], value, rtol=1e-4, atol=1e-5, msg=name)


def trained(folder: Path, quiet_trainer: Callable[..., Any], scoring: Any) -> CausalChoice:
    module = CausalChoice(str(folder), scoring, learning_rate=1e-2, head="linear", max_length=40)
    quiet_trainer().fit(module, datamodule=ChoiceDataModule(RECORDS, {}, 2))
    module.eval()
    return module


def scores(module: CausalChoice) -> Tensor:
    with torch.no_grad():
        logits: Tensor = module(module.encoder().encode(RECORDS).collate(range(len(RECORDS))))
    return logits


@pytest.mark.thorough
@pytest.mark.parametrize("scoring", ["auto", "sum", "mean_char", "letter", "last_token"])
def test_what_is_saved_answers_as_what_was_trained(
    scoring: Any, causal_folder: Folder, quiet_trainer: Callable[..., Any], tmp_path: Path
) -> None:
    module = trained(causal_folder("opt"), quiet_trainer, scoring)
    fresh = scores(CausalChoice(str(causal_folder("opt")), scoring, head="linear", max_length=40))
    expected = scores(module)
    assert not torch.equal(expected, fresh)
    module.save_pretrained(tmp_path / "saved")
    assert scores(CausalChoice.from_folder(tmp_path / "saved")).tolist() == expected.tolist()
    again: Any = saved_module(tmp_path / "saved")
    assert scores(again).tolist() == expected.tolist()
    assert again.choice.max_length == 40
    # Zero-shot scoring of the folder goes by what it was trained with.
    scorer = scorer_for(ModelSettings(str(tmp_path / "saved"), kind="causal"), "mc_qa")
    by_tokens = scoring in ("auto", "sum")
    assert isinstance(scorer, CausalScorer if by_tokens else TrainedScorer)
    loaded_scores = [answers(scorer.choice_scores(), record)[0] for record in RECORDS]
    torch.testing.assert_close(torch.stack(loaded_scores), expected, rtol=1e-5, atol=1e-5)


def test_transformers_loads_what_is_saved_and_scores_it_alike(
    causal_folder: Folder, quiet_trainer: Callable[..., Any], tmp_path: Path
) -> None:
    module = trained(causal_folder("llama"), quiet_trainer, "sum")
    module.save_pretrained(tmp_path / "saved")
    raw = AutoModelForCausalLM.from_pretrained(tmp_path / "saved").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "saved")
    for row, record in zip(scores(module), RECORDS, strict=True):
        for score, choice in zip(row, record.choices, strict=True):
            first = len(tokenizer(record.stem).input_ids)
            ids = tokenizer(f"{record.stem} {choice}").input_ids
            with torch.no_grad():
                logs = raw(torch.tensor([ids])).logits[0].log_softmax(dim=-1)
            summed = sum(float(logs[i - 1, ids[i]]) for i in range(first, len(ids)))
            assert float(score) == pytest.approx(summed, abs=1e-4)


@pytest.mark.parametrize("scoring", ["auto", "last_token"])
def test_weights_that_were_gathered_are_saved_as_the_module_s_own(
    scoring: Any, causal_folder: Folder, quiet_trainer: Callable[..., Any], tmp_path: Path
) -> None:
    module = trained(causal_folder("gpt2"), quiet_trainer, scoring)  # embeddings are tied
    expected = scores(module)
    gathered = {name: value.clone() for name, value in module.state_dict().items()}
    with torch.no_grad():
        for weight in module.parameters():
            weight.zero_()  # as each process of a sharded fit has only a part
    module.save_pretrained(tmp_path / "saved", gathered)
    assert scores(CausalChoice.from_folder(tmp_path / "saved")).tolist() == expected.tolist()


def test_a_folder_of_transformers_alone_is_gone_on_with(causal_folder: Folder) -> None:
    module: Any = saved_module(causal_folder("qwen2"), learning_rate=2e-4)
    assert isinstance(module, CausalChoice)
    assert module.learning_rate == 2e-4
    assert module.choice.scoring == "mean_token"


def test_weights_in_half_precision_are_trained_in_it(
    causal_folder: Folder, quiet_trainer: Callable[..., Any], tmp_path: Path
) -> None:
    module = CausalChoice(str(causal_folder("llama")), learning_rate=1e-2, dtype="bfloat16")
    assert {p.dtype for p in module.parameters()} == {torch.bfloat16}
    assert module.choice.reader.packing.packs  # type: ignore[union-attr]
    half = scores(module)
    full = scores(CausalChoice(str(causal_folder("llama"))))
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, full, rtol=0.05, atol=0.05)
    losses = Losses()
    data = ChoiceDataModule(RECORDS, {}, len(RECORDS))
    with pytest.warns(RuntimeWarning, match="bfloat16 weights change only in steps of 1/128"):
        quiet_trainer(max_epochs=10, callbacks=[losses]).fit(module, datamodule=data)
    assert losses.by_step[-1] < 0.8 * losses.by_step[0]
    module.save_pretrained(tmp_path / "saved")
    module.eval()
    again: Any = saved_module(tmp_path / "saved", dtype="bfloat16")
    assert {p.dtype for p in again.parameters()} == {torch.bfloat16}
    assert scores(again).tolist() == scores(module).tolist()
    with pytest.raises(UsageError, match="float16: AdamW overflows"):
        CausalChoice(str(causal_folder("llama")), dtype="float16")
    head = CausalChoice(str(causal_folder("llama")), "last_token", dtype="bfloat16")
    assert scores(head).isfinite().all()
