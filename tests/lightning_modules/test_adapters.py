"""An adapter is trained as a plain loop over peft trains it, and saved as peft saves it."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from probelight.callbacks.last_state import AgreedStop, LastState, read_state
from probelight.datamodules.choices import ChoiceDataModule
from probelight.io.errors import UsageError
from probelight.lightning_modules.causal_choice import CausalChoice
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models import adapters
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.loading import MASKED_LM, load_pretrained
from probelight.models.tuning import Tuning
from probelight.probes.record import Record
from probelight.training.memory import checkpoint_gradients
from probelight.training.modules import saved_module
from tests.fixtures.architectures import ref_of
from tests.fixtures.causal import causal_folder
from tests.fixtures.seq2seq import seq2seq
from tests.lightning_modules.losses import Losses, without_dropout

__all__ = ["causal_folder", "seq2seq"]
Folder = Callable[..., Path]

STEPS, RATE = 20, 1e-2
TUNING = Tuning("lora", rank=4, alpha=8.0)
CHOICES = ("the red cat", "a dog", "green plant")
QUESTIONS = [
    Record(str(i), f"{stem} is best ?", CHOICES, i % 3)
    for i, stem in enumerate(["which animal", "what", "which dog", "which cat", "what plant"])
]
MASKED = [
    Record(str(i), f"the {stem} is [MASK] than a dog .", ("older", "younger", "smaller"), i % 3)
    for i, stem in enumerate(["cat", "plant", "red cat", "animal", "size"])
]


def plain_lora(auto_class: Any, folder: Path) -> Any:
    model = auto_class.from_pretrained(folder)
    torch.manual_seed(0)
    return peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=8))


def plain_losses(
    modules: list[nn.Module], logits_of: Callable[[Record], Tensor], records: Any
) -> Any:
    """Losses of 20 steps on all records at once, by torch's AdamW on what peft lets be trained."""
    for module in modules:
        without_dropout(module.train())
    trained = [p for module in modules for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in trained if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in trained if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=RATE,
        betas=(0.9, 0.98),
    )
    by_step = []
    for step in range(STEPS):
        for group in optimizer.param_groups:  # a step of warm-up, then down to 0
            group["lr"] = RATE * min(1.0, (STEPS - step) / 19)
        losses = [F.cross_entropy(logits_of(r)[None], torch.tensor([r.answer])) for r in records]
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        by_step.append(loss.item())
    return by_step


def assert_same_losses(
    module: Any, records: list[Record], expected: list[float], quiet_trainer: Callable[..., Any]
) -> None:
    without_dropout(module)
    losses = Losses()
    trainer = quiet_trainer(max_epochs=STEPS, callbacks=[losses])
    trainer.fit(module, datamodule=ChoiceDataModule(records, {}, len(records)))
    print(max(abs(a - b) for a, b in zip(losses.by_step, expected, strict=True)))
    assert losses.by_step == pytest.approx(expected, abs=1e-5)
    assert expected[-1] < 0.9 * expected[0]


@pytest.mark.thorough
def test_twenty_steps_on_questions_have_the_losses_of_a_plain_loop(
    checkpoint: Folder, quiet_trainer: Callable[..., Any]
) -> None:
    folder = checkpoint()
    module = SentenceChoice(str(folder), learning_rate=RATE, tuning=TUNING)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), plain_lora(AutoModel, folder)
    dense, score = nn.Linear(32, 32), nn.Linear(32, 1)
    dense.load_state_dict(module.head.dense.state_dict())
    score.load_state_dict(module.head.score.state_dict())

    def logits_of(record: Record) -> Tensor:
        texts = [tokenizer(record.stem, choice, return_tensors="pt") for choice in record.choices]
        read = torch.cat([model(**text).last_hidden_state[:, 0] for text in texts])
        logits: Tensor = score(torch.tanh(dense(read)))[:, 0]
        return logits

    expected = plain_losses([model, dense, score], logits_of, QUESTIONS)
    assert_same_losses(module, QUESTIONS, expected, quiet_trainer)


def test_twenty_steps_on_masks_have_the_losses_of_a_plain_loop(
    checkpoint: Folder, quiet_trainer: Callable[..., Any]
) -> None:
    folder = checkpoint()
    module = MaskedChoice(str(folder), "full", learning_rate=RATE, tuning=TUNING)
    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        plain_lora(AutoModelForMaskedLM, folder),
    )

    def logits_of(record: Record) -> Tensor:
        text = tokenizer(record.stem, return_tensors="pt")
        mask = text.input_ids[0].tolist().index(tokenizer.mask_token_id)
        logits: Tensor = model(**text).logits[0, mask]
        return logits[tokenizer.convert_tokens_to_ids(list(record.choices))]

    assert_same_losses(module, MASKED, plain_losses([model], logits_of, MASKED), quiet_trainer)


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_twenty_steps_of_a_causal_model_have_the_losses_of_a_plain_loop(
    family: str, causal_folder: Folder, quiet_trainer: Callable[..., Any]
) -> None:
    folder = causal_folder(family)
    module = CausalChoice(str(folder), learning_rate=RATE, tuning=TUNING)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = plain_lora(AutoModelForCausalLM, folder)

    def logits_of(record: Record) -> Tensor:
        scores = []
        for choice in record.choices:
            first = len(tokenizer(record.stem).input_ids)
            ids = tokenizer(f"{record.stem} {choice}").input_ids
            logs = model(torch.tensor([ids])).logits[0].log_softmax(dim=-1)
            scores.append(torch.stack([logs[i - 1, ids[i]] for i in range(first, len(ids))]).mean())
        return torch.stack(scores)

    expected = plain_losses([model], logits_of, QUESTIONS)
    assert_same_losses(module, QUESTIONS, expected, quiet_trainer)


def trained_names(module: nn.Module) -> set[str]:
    named = module.named_parameters()
    return {
        name.split(".")[0] if "lora" not in name else "lora" for name, p in named if p.requires_grad
    }


def scores(module: Any, records: list[Record]) -> Tensor:
    module.eval()
    with torch.no_grad():
        logits: Tensor = module(module.encoder().encode(records).collate(range(len(records))))
    return logits


def fitted(module: Any, records: list[Record], quiet_trainer: Callable[..., Any]) -> Any:
    quiet_trainer(max_epochs=2).fit(module, datamodule=ChoiceDataModule(records, {}, 2))
    return module.eval()


@pytest.mark.thorough
def test_a_fresh_head_is_trained_and_a_saved_one_stays(
    checkpoint: Folder, quiet_trainer: Callable[..., Any], tmp_path: Path
) -> None:
    original = SentenceChoice(str(checkpoint()), learning_rate=1e-2)
    assert trained_names(original) == {"transformer", "head"}
    fitted(original, QUESTIONS, quiet_trainer).save_pretrained(tmp_path / "original")
    assert trained_names(SentenceChoice(str(checkpoint()), tuning="lora")) == {"lora", "head"}
    inoculated = SentenceChoice.from_folder(tmp_path / "original", tuning="lora", learning_rate=0.1)
    assert trained_names(inoculated) == {"lora"}
    initial = {name: weight.clone() for name, weight in inoculated.state_dict().items()}
    fitted(inoculated, QUESTIONS, quiet_trainer).save_pretrained(tmp_path / "a")
    moved = {
        name for name, weight in inoculated.state_dict().items() if not weight.equal(initial[name])
    }
    assert moved
    assert all("lora" in name for name in moved)

    adapter = saved_module(tmp_path / "a")  # gone on with: itself and its head
    assert trained_names(adapter) == {"lora", "head"}
    merged = saved_module(tmp_path / "a", tuning=Tuning())
    assert trained_names(merged) == {"transformer", "head"}
    upper = saved_module(tmp_path / "a", tuning=TUNING)
    assert trained_names(upper) == {"lora"}
    expected = scores(inoculated, QUESTIONS)
    assert scores(adapter, QUESTIONS).tolist() == expected.tolist()
    torch.testing.assert_close(scores(merged, QUESTIONS), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(scores(upper, QUESTIONS), expected, rtol=0, atol=1e-5)
    # An adapter over an adapter: the lower one is merged wherever the upper is read.
    fitted(upper, QUESTIONS, quiet_trainer).save_pretrained(tmp_path / "b")
    loaded = saved_module(tmp_path / "b")
    assert scores(loaded, QUESTIONS).tolist() == scores(upper, QUESTIONS).tolist()


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["lora", "peft.IA3Config", "peft.LoHaConfig", "peft.VeraConfig"])
def test_peft_loads_what_is_saved(
    method: str, checkpoint: Folder, quiet_trainer: Callable[..., Any], tmp_path: Path
) -> None:
    names = ["query", "value"] if method == "peft.LoHaConfig" else []
    tuning = Tuning(method, target_modules=names)
    module = MaskedChoice(str(checkpoint()), "full", learning_rate=0.05, tuning=tuning)
    untrained = scores(module, MASKED)
    fitted(module, MASKED, quiet_trainer).save_pretrained(tmp_path / "a")
    assert not scores(module, MASKED).equal(untrained)
    settings = json.loads((tmp_path / "a" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == str(checkpoint())
    assert not (tmp_path / "a" / "model.safetensors").exists()
    base = AutoModelForMaskedLM.from_pretrained(settings["base_model_name_or_path"])
    plain = peft.PeftModel.from_pretrained(base, tmp_path / "a").eval()
    ids = torch.tensor([[2, 10, 11, 4, 12, 3]])
    with torch.no_grad():
        expected = plain(input_ids=ids).logits
        torch.testing.assert_close(module.model(input_ids=ids).logits, expected, rtol=0, atol=1e-6)
    loaded = MaskedChoice(str(tmp_path / "a"))
    assert scores(loaded, MASKED).tolist() == scores(module, MASKED).tolist()
    merged = MaskedChoice(str(tmp_path / "a"), "full", tuning="full")
    torch.testing.assert_close(scores(merged, MASKED), scores(module, MASKED), rtol=0, atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("scoring", ["auto", "last_token"])
def test_gathered_weights_of_an_adapter_are_saved_as_its_own(
    scoring: Any, causal_folder: Folder, quiet_trainer: Callable[..., Any], tmp_path: Path
) -> None:
    module: Any = CausalChoice(
        str(causal_folder("gpt2")), scoring, learning_rate=0.05, tuning="lora"
    )
    fitted(module, QUESTIONS, quiet_trainer)
    expected = scores(module, QUESTIONS)
    gathered = {name: weight.clone() for name, weight in module.state_dict().items()}
    with torch.no_grad():
        for weight in module.parameters():
            weight.zero_()  # as each process of a sharded fit has only a part
    module.save_pretrained(tmp_path / "saved", gathered)
    assert scores(saved_module(tmp_path / "saved"), QUESTIONS).tolist() == expected.tolist()


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_an_encoder_decoder_model_gets_an_adapter_too(
    family: str, seq2seq: Folder, quiet_trainer: Callable[..., Any], tmp_path: Path
) -> None:
    records = [Record(str(i), "which is [MASK] ?", ("a cat", "dog"), i % 2) for i in range(4)]
    module: Any = CausalChoice(
        str(seq2seq(family)), setup="mc_mlm", tuning="lora", learning_rate=0.1
    )
    fitted(module, records, quiet_trainer).save_pretrained(tmp_path / "a")
    loaded = CausalChoice.from_folder(tmp_path / "a")
    assert scores(loaded, records).tolist() == scores(module, records).tolist()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        *(("lora", {"init_lora_weights": i}) for i in (False, "gaussian", "orthogonal", "mica")),
        *(("lora", {name: True}) for name in ("use_dora", "use_rslora")),
        *((f"peft.{kind}Config", {}) for kind in ("BOFT", "Delora", "HRA", "OFT", "LoKr")),
        ("peft.C3AConfig", {"block_size": 4}),
        ("peft.FourierFTConfig", {"n_frequency": 10, "random_loc_seed": 5}),
        *((f"peft.{kind}Config", {"save_projection": False}) for kind in ("RandLora", "Vera")),
    ],
)
def test_peft_reads_what_was_drawn_by_another_seed(
    method: str, options: dict[str, Any], checkpoint: Folder, tmp_path: Path
) -> None:
    tuning = Tuning(method, target_modules=["query", "value"], options=options)
    module = MaskedChoice(str(checkpoint()), "full", tuning=tuning, seed=3)
    with torch.no_grad():
        for weight in module.model.parameters():
            if weight.requires_grad:
                weight.add_(0.05 * torch.randn_like(weight))
    module.save_pretrained(tmp_path / "a")
    base = AutoModelForMaskedLM.from_pretrained(checkpoint())
    ids = torch.tensor([[2, 10, 11, 4, 12, 3]])
    with torch.no_grad():
        trained = module.model(input_ids=ids).logits
        assert not trained.allclose(base(input_ids=ids).logits, atol=1e-5)
        plain = peft.PeftModel.from_pretrained(base, tmp_path / "a").eval()
        torch.testing.assert_close(plain(input_ids=ids).logits, trained, rtol=0, atol=1e-6)
    assert scores(MaskedChoice(str(tmp_path / "a")), MASKED).equal(scores(module, MASKED))


@pytest.mark.parametrize("start", ["pissa", "pissa_niter_4", "olora"])
def test_an_adapter_that_changes_the_model_below_is_refused(
    start: str, checkpoint: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = Tuning("lora", options={"init_lora_weights": start})
    with pytest.raises(PretrainedError, match=f"init_lora_weights {start} changes the weights"):
        SentenceChoice(str(checkpoint()), tuning=tuning, seed=3)
    model = AutoModelForMaskedLM.from_pretrained(checkpoint())
    config = peft.LoraConfig(r=4, init_lora_weights=start)  # type: ignore[arg-type]
    peft.get_peft_model(model, config).save_pretrained(tmp_path / "a")
    settings = json.loads((tmp_path / "a" / "adapter_config.json").read_text())
    for name in ("lora_ga", start):  # peft reads the first as gaussian, over the whole weights
        settings["init_lora_weights"] = name
        (tmp_path / "a" / "adapter_config.json").write_text(json.dumps(settings))
        with pytest.raises(PretrainedError, match=f"a: init_lora_weights {name} changes"):
            MaskedChoice(str(tmp_path / "a"))
    monkeypatch.setattr(adapters, "_TAKING", ("none",))  # as with one of a later peft
    for kind, name, options in (
        (SentenceChoice, str(checkpoint()), {"tuning": tuning, "seed": 3}),
        (MaskedChoice, str(tmp_path / "a"), {}),
    ):
        with pytest.raises(PretrainedError, match=f"init_lora_weights {start} changes"):
            kind(name, **options)  # type: ignore[arg-type]


def noisy(folder: Path, name: str, size: float) -> Path:
    """A copy of a model whose weights are changed by a part of their spread."""
    copied = shutil.copytree(folder, folder.parent / name)
    weights = load_file(copied / "model.safetensors")
    torch.manual_seed(1)
    for weight in weights.values():
        weight.add_(size * weight.std() * torch.randn_like(weight))
    save_file(weights, copied / "model.safetensors", {"format": "pt"})
    return copied


def test_an_adapter_is_refused_when_its_model_has_changed(
    checkpoint: Folder, tmp_path: Path
) -> None:
    base, adapter = shutil.copytree(checkpoint(), tmp_path / "base"), tmp_path / "a"
    SentenceChoice(str(base), tuning="lora").save_pretrained(adapter)
    same, changed = noisy(base, "same", 0.0), noisy(base, "other", 0.3)
    for weights in (same, base):  # as it is, in any precision, with its own head or without
        for dtype in ("float32", "bfloat16", "float16"):
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                load_pretrained(MASKED_LM, ref_of(f"{weights}+{adapter}"), dtype=dtype)  # type: ignore[arg-type]
    with pytest.warns(RuntimeWarning, match="together they are a different model"):
        load_pretrained(MASKED_LM, ref_of(f"{changed}+{adapter}"))
    shutil.copy(changed / "model.safetensors", base)
    with pytest.raises(PretrainedError, match="no longer the one that the adapter was trained on"):
        load_pretrained(MASKED_LM, ref_of(adapter))
    (adapter / "trained_on.json").unlink()
    load_pretrained(MASKED_LM, ref_of(adapter))


def test_two_processes_train_an_adapter_as_one(
    checkpoint: Folder, quiet_trainer: Callable[..., Any]
) -> None:
    def trained(**processes: Any) -> dict[str, Tensor]:
        module: Any = SentenceChoice(str(checkpoint()), tuning=TUNING)
        without_dropout(module)
        # Adam would make a whole step of a gradient that is nothing but rounding.
        weights = [p for p in module.parameters() if p.requires_grad]
        module.configure_optimizers = lambda: torch.optim.SGD(weights, lr=0.1)
        trainer = quiet_trainer(max_epochs=2, **processes)
        trainer.fit(module, datamodule=ChoiceDataModule(QUESTIONS, {"dev": QUESTIONS}, 4, seed=3))
        return {**module.state_dict(), **trainer.callback_metrics}

    single, double = trained(), trained(devices=2, strategy="ddp_fork")
    assert single["val/dev_accuracy"] == double["val/dev_accuracy"]
    for name, value in single.items():
        torch.testing.assert_close(double[name], value, rtol=1e-4, atol=1e-5, msg=name)


def test_a_state_is_loaded_with_its_adapter(
    checkpoint: Folder, quiet_trainer: Callable[..., Any], tmp_path: Path
) -> None:
    base, state = shutil.copytree(checkpoint(), tmp_path / "base"), tmp_path / "a.ckpt"
    module = SentenceChoice(str(base), tuning=TUNING, learning_rate=0.05)
    trainer = quiet_trainer(max_epochs=1)
    trainer.fit(module, datamodule=ChoiceDataModule(QUESTIONS, {}, 2))
    trainer.save_checkpoint(state)
    saved = set(torch.load(state, weights_only=True)["state_dict"])
    assert saved == {name for name, weight in module.named_parameters() if weight.requires_grad}
    loaded = SentenceChoice.load_from_checkpoint(state)
    assert scores(loaded, QUESTIONS).tolist() == scores(module, QUESTIONS).tolist()
    shutil.copy(noisy(base, "other", 0.3) / "model.safetensors", base)
    with pytest.raises(UsageError, match=r"weight transformer\..* put the model's checkpoint"):
        SentenceChoice.load_from_checkpoint(state)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": "bf16-true"},  # the frozen weights are halved only after a state is loaded
        pytest.param({"devices": 2, "strategy": "ddp_fork"}, marks=pytest.mark.slow),
    ],
)
def test_a_training_resumes_with_the_frozen_weights_of_its_checkpoint(
    options: dict[str, Any], checkpoint: Folder, quiet_trainer: Callable[..., Any], tmp_path: Path
) -> None:
    def trained(epochs: int, **more: Any) -> dict[str, Tensor]:
        module: Any = SentenceChoice(str(checkpoint()), tuning=TUNING)
        without_dropout(module)
        weights = [p for p in module.parameters() if p.requires_grad]
        module.configure_optimizers = lambda: torch.optim.SGD(weights, lr=0.1, momentum=0.9)
        states = LastState(str(tmp_path / str(epochs)), every_n_train_steps=100)
        plain = {"enable_checkpointing": True, "callbacks": [states, AgreedStop()], **options}
        trainer = quiet_trainer(max_epochs=epochs, **plain)
        trainer.fit(module, datamodule=ChoiceDataModule(QUESTIONS, {}, 4, seed=3), **more)
        weights_by_name: dict[str, Tensor] = module.state_dict()
        return weights_by_name

    at_once = trained(2)
    trained(1)
    state = tmp_path / "1" / "last.ckpt"
    assert not any("word_embeddings" in name for name in read_state(state)["state_dict"])
    resumed = trained(2, ckpt_path=state, weights_only=True)
    assert all(weight.equal(resumed[name]) for name, weight in at_once.items())


def test_layers_computed_again_give_an_adapter_the_same_gradients(checkpoint: Folder) -> None:
    grads = []
    for twice in (False, True):
        module = SentenceChoice(str(checkpoint()), tuning=Tuning("lora", dropout=0.3))
        if twice:
            checkpoint_gradients(module)
        module.train()
        torch.manual_seed(0)
        encoded = module.encoder().encode(QUESTIONS)
        module(encoded.collate(range(len(QUESTIONS)))).sum().backward()
        grads.append([p.grad for p in module.parameters() if p.requires_grad])
    assert all(a is not None and a.equal(b) for a, b in zip(*grads, strict=True))


def test_a_new_adapter_is_drawn_from_the_seed_alone(checkpoint: Folder) -> None:
    def drawn(seed: int) -> dict[str, Tensor]:
        torch.rand(seed + 3)
        return SentenceChoice(str(checkpoint()), tuning="lora", seed=seed).state_dict()

    first, same, reseeded = drawn(0), drawn(0), drawn(1)
    [name, *_] = [name for name in first if "lora_A" in name]
    assert all(weight.equal(same[key]) for key, weight in first.items())
    assert not first[name].equal(reseeded[name])


def test_what_no_adapter_can_be_is_refused(checkpoint: Folder) -> None:
    name = str(checkpoint())
    refused: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (UsageError, "did you mean 'lora'", lambda: Tuning("lorra")),
        (UsageError, "tuning.rank is only for lora", lambda: Tuning(rank=4)),
        (UsageError, "give it in tuning.options", lambda: Tuning("peft.IA3Config", rank=4)),
        (
            UsageError,
            "not a config class of peft",
            lambda: SentenceChoice(name, tuning="torch.Tensor"),
        ),
        (UsageError, "tuning.method peft.IA4", lambda: SentenceChoice(name, tuning="peft.IA4")),
        (
            UsageError,
            "no layer 'qurey' .did you mean 'query'",
            lambda: SentenceChoice(name, tuning=Tuning("lora", target_modules=["qurey", "value"])),
        ),
        (
            UsageError,
            "tuning.options of LoraConfig: .*rnk",
            lambda: SentenceChoice(name, tuning=Tuning("lora", options={"rnk": 3})),
        ),
        (
            PretrainedError,
            "learns a prompt",
            lambda: SentenceChoice(
                name,
                tuning=Tuning(
                    "peft.PromptTuningConfig",
                    options={"num_virtual_tokens": 3, "task_type": "CAUSAL_LM"},
                ),
            ),
        ),
        (
            UsageError,
            "init_lora_weights eva needs a pass over data",
            lambda: SentenceChoice(
                name, tuning=Tuning("lora", options={"init_lora_weights": "eva"})
            ),
        ),
        (
            UsageError,
            "should be a subset of `target_modules`",  # said when it was read, after the training
            lambda: SentenceChoice(name, tuning=Tuning("peft.IA3Config", target_modules=["query"])),
        ),
        (UsageError, "needs mode full", lambda: MaskedChoice(name, "mlp", tuning="lora")),
        (
            UsageError,
            "random weights are not in a file",
            lambda: SentenceChoice(name, tuning="lora", random_weights=True),
        ),
        (
            PretrainedError,
            "an adapter at its decoder",
            lambda: MaskedChoice(name, "full", tuning=Tuning("lora", target_modules=["decoder"])),
        ),
    ]
    for kind, message, make in refused:
        with pytest.raises(kind, match=message):
            make()
