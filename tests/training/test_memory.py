"""What a training takes in memory: counted by hand, said, refused, and made less."""

from __future__ import annotations

import copy
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
import transformers
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from probelight.commands.inoculation import original_task, runs
from probelight.datamodules.choices import ChoiceDataModule
from probelight.io.errors import UsageError
from probelight.lightning_modules.base import ChoiceModule, choice_loss
from probelight.lightning_modules.inoculation import Inoculation
from probelight.lightning_modules.keeping import L2SP, Distillation, Penalty
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.loading import outlines
from probelight.models.networks import Batch
from probelight.models.registry import ModelSettings
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.memory import machine_memory
from probelight.runs.settings import TrainerSettings
from probelight.training import memory
from probelight.training.fit import FitPlan, compile_transformers, fit_choices
from probelight.training.memory import (
    Processes,
    checkpoint_gradients,
    memory_need,
    outermost_transformers,
)
from probelight.training.modules import module_for
from probelight.training.settings import Fit
from tests.commands.inoculation.conftest import run
from tests.fixtures.tiny import questions

TRAINER = TrainerSettings(accelerator="cpu", threads=1, progress_bar=False, checkpoint_every=100)


class TwoLayers(ChoiceModule):
    """Two maps of vectors that a batch holds, one after the other."""

    def __init__(self) -> None:
        super().__init__(0.1)
        self.first, self.second = nn.Linear(1000, 500, bias=False), nn.Linear(500, 1, bias=False)

    def forward(self, batch: Batch) -> Tensor:
        logits: Tensor = self.second(self.first(batch["vectors"]))[..., 0]
        return logits.masked_fill(~batch["choice_mask"], float("-inf"))

    def encoder(self) -> Any:
        return None


class OneBatch(ChoiceDataModule):
    """32 items of 4 choices, or twice as many to measure."""

    def __init__(self, measured: int | None = None) -> None:
        super().__init__(None, {})
        self.measured = measured

    def largest_batches(self, epochs: int) -> tuple[Batch, Batch | None]:
        return vectors(32), None if self.measured is None else vectors(self.measured)


def vectors(num_items: int) -> Batch:
    return {
        "vectors": torch.zeros(num_items, 4, 1000),
        "choice_mask": torch.ones(num_items, 4, dtype=torch.bool),
        "labels": torch.zeros(num_items, dtype=torch.long),
        "weights": torch.ones(num_items),
        "item": torch.arange(num_items),
    }


ONE = Processes("cpu")
WEIGHTS = 4 * (1000 * 500 + 500)
VECTORS, HIDDEN = 4 * 32 * 4 * 1000, 4 * 32 * 4 * 500  # bytes of what goes in, and comes out
REST = 12_000  # at most: labels, masks, logits, the parts of the loss


def test_two_layers_by_hand() -> None:
    need = memory_need(TwoLayers(), OneBatch(), 1, TRAINER, ONE)
    assert (need.weights, need.gradients, need.moments) == (WEIGHTS, WEIGHTS, 2 * WEIGHTS)
    # At the end of the forward pass, with the gradients of the step before: the backward pass has
    # the first weight's instead, and no more of the hidden layer than a gradient of its size.
    assert need.activations is not None
    assert VECTORS + HIDDEN < need.activations < VECTORS + HIDDEN + REST
    # All of these tensors are small. At the end of the backward pass there are both gradients too.
    small = need.unreturned / memory._UNRETURNED
    assert VECTORS + HIDDEN + WEIGHTS < small < VECTORS + 2 * HIDDEN + WEIGHTS + REST
    assert need.total == 4 * WEIGHTS + need.activations + need.unreturned
    assert memory_need(TwoLayers(), OneBatch(), 1, TRAINER, Processes("cuda")).unreturned == 0


def test_a_step_reads_texts_and_what_the_decoder_writes() -> None:
    class Texts(OneBatch):
        def largest_batches(self, epochs: int) -> tuple[Batch, Batch | None]:
            read, written = torch.tensor([[1, 1, 1], [1, 0, 0]]), torch.tensor([[1], [1], [0], [1]])
            masks = {"attention_mask": read, "decoder_attention_mask": written}
            return {**vectors(32), **masks}, None

    need = memory_need(TwoLayers(), Texts(), 1, replace(TRAINER, accumulate=2), ONE)
    assert need.step_tokens == 2 * (6 + 4)
    assert need.batch == "batches of 32 items (10 tokens, 30% of them padding)"


def test_only_small_tensors_are_not_given_back() -> None:
    live = memory.LiveBytes()
    with live:
        large = torch.zeros(memory._MAPPED, dtype=torch.uint8)
        small = torch.zeros(1000, dtype=torch.uint8)
        del large, small
        torch.zeros(200, dtype=torch.uint8)
    assert (live.peak, live.peak_small) == (memory._MAPPED + 1000, 1000)


@pytest.mark.slow
@pytest.mark.real
def test_the_estimate_is_that_of_a_real_decoder(real_decoder: Path) -> None:
    """With LoRA, by the most memory that a process of its own ever had."""
    command = [sys.executable, "-m", "benchmarks.memory", "--models", str(real_decoder)]
    command += ["--tuning", "lora", "--batch_size", "8", "--threads", "2"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    match = re.search(r"([\d.]+) GB measured, ([\d.]+) predicted", printed)
    assert match is not None
    assert float(match[2]) == pytest.approx(float(match[1]), rel=0.15)


def test_batches_that_are_accumulated_keep_the_gradients_of_those_before() -> None:
    need = memory_need(TwoLayers(), OneBatch(), 1, replace(TRAINER, accumulate=2), ONE)
    # The first weight's gradient, before it is added to that of the batches before.
    expected = VECTORS + HIDDEN + 4 * 1000 * 500
    assert need.activations is not None
    assert expected < need.activations < expected + REST


def test_measuring_counts_where_its_batches_are_larger() -> None:
    need = memory_need(TwoLayers(), OneBatch(320), 1, TRAINER, ONE)
    assert need.activations is not None
    assert 10 * (VECTORS + HIDDEN) < need.activations < 10 * (VECTORS + HIDDEN + REST)
    assert need.batch == "measuring in batches of 8192 tokens"
    small = memory_need(TwoLayers(), OneBatch(4), 1, TRAINER, ONE)
    assert small == memory_need(TwoLayers(), OneBatch(), 1, TRAINER, ONE)


def test_what_is_frozen_has_neither_gradients_nor_moments() -> None:
    module = TwoLayers()
    module.first.requires_grad_(False)
    need = memory_need(module, OneBatch(), 1, TRAINER, ONE)
    assert (need.weights, need.gradients, need.moments) == (WEIGHTS, 2000, 4000)


@pytest.mark.parametrize("penalty", [L2SP(1.0), Distillation(1.0)])
def test_the_model_before_is_counted_with_the_weights(penalty: Penalty) -> None:
    plain = memory_need(Inoculation(TwoLayers()), None, 1, TRAINER, ONE)
    need = memory_need(Inoculation(TwoLayers(), penalty=penalty), None, 1, TRAINER, ONE)
    assert need == replace(plain, weights=plain.weights + 4 * 500_500, held=4 * 500_500)
    assert "weights 0.0 (0.0 a copy from before training), gradients" in need.describe()
    # It is no part of what FSDP divides.
    shards = Processes("cuda", 4, is_sharded=True)
    need = memory_need(Inoculation(TwoLayers(), penalty=penalty), None, 1, TRAINER, shards)
    assert need.weights == 500_500 + 4 * 500_500


def test_processes_copy_gradients_or_divide_all_of_it() -> None:
    two_processes = memory_need(TwoLayers(), None, 1, TRAINER, Processes("cuda", 2))
    assert (two_processes.gradients, two_processes.fixed) == (2 * WEIGHTS, 5 * WEIGHTS)
    shards = memory_need(TwoLayers(), None, 1, TRAINER, Processes("cuda", 4, is_sharded=True))
    assert shards.fixed == WEIGHTS
    assert shards.activations is None


@pytest.mark.parametrize("accumulate", [1, 2])
def test_what_processes_divide_is_whole_where_it_is_computed(accumulate: int) -> None:
    class Layers(TwoLayers):
        """The first map is a layer of a transformer, as FSDP sees it."""

        def __init__(self) -> None:
            super().__init__()
            self.first = Layer()

    class Layer(GradientCheckpointingLayer):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(1000, 500, bias=False)

        def forward(self, vectors: Tensor) -> Any:
            return self.map(vectors)

    settings = replace(TRAINER, accumulate=accumulate)
    shards = Processes("cuda", 4, is_sharded=True)
    need = memory_need(Layers(), OneBatch(), 1, settings, shards)
    # Two layers, as the next one is on its way, and what is outside of layers; gradients likewise,
    # but all of them are whole as long as they are added up.
    gathered = WEIGHTS + 4 * 500_000
    gradients = WEIGHTS if accumulate > 1 else gathered
    assert need.fixed == WEIGHTS
    # In the backward pass the gradient of the first map is there once more before it is added.
    expected = gathered + gradients + VECTORS + HIDDEN + 4 * 500_000
    assert need.activations == pytest.approx(expected, abs=HIDDEN + REST)


def test_lower_precision() -> None:
    mixed = memory_need(TwoLayers(), OneBatch(), 1, replace(TRAINER, precision="bf16-mixed"), ONE)
    # What is multiplied is copied in half as many bytes, the first weight too.
    expected = VECTORS * 1.5 + HIDDEN / 2 + WEIGHTS / 2
    assert mixed.weights == WEIGHTS
    assert mixed.activations == pytest.approx(expected, abs=REST)
    half = memory_need(TwoLayers(), None, 1, replace(TRAINER, precision="bf16-true"), ONE)
    assert half.fixed == 2 * WEIGHTS


class Choosy(TwoLayers):
    def forward(self, batch: Batch) -> Tensor:
        if batch["vectors"].sum().item() > 0:
            raise AssertionError
        return super().forward(batch)


def test_a_network_that_looks_at_numbers_is_trained_without_an_estimate() -> None:
    need = memory_need(Choosy(), OneBatch(), 1, TRAINER, ONE)
    assert need.activations is None
    assert need.describe().startswith(
        "0.0 GB: weights 0.0, gradients 0.0, AdamW 0.0; plus activations "
    )


@pytest.mark.thorough
def test_a_compiled_module_is_simulated_as_it_is_written(tiny_model: Path) -> None:
    needs = []
    for compiled in (False, True):
        module = SentenceChoice(str(tiny_model))
        data = ChoiceDataModule(questions("first", 20, 1), {})
        data.encode(module.encoder())
        if compiled:
            compile_transformers(module)
        needs.append(memory_need(module, data, 1, TRAINER, ONE))
    assert needs[0] == needs[1]


def test_nothing_is_left_of_the_simulation(tiny_model: Path) -> None:
    module = SentenceChoice(str(tiny_model))
    weights, random = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    data = ChoiceDataModule(questions("first", 20, 1), {"held": questions("first", 8, 2)})
    data.encode(module.encoder())
    checkpoint_gradients(module)
    memory_need(module, data, 1, TRAINER, ONE)
    assert torch.equal(torch.get_rng_state(), random)
    assert not module.training
    assert all(type(p) is nn.Parameter and p.grad is None for p in module.parameters())
    assert all(torch.equal(w, weights[name]) for name, w in module.state_dict().items())


@pytest.mark.parametrize("head", ["mlp", "linear"])
def test_a_module_without_numbers_needs_what_the_module_does(head: Any, tiny_model: Path) -> None:
    settings = ModelSettings(name_or_path=str(tiny_model), head=head, kind="transformer")
    with outlines():
        outline = module_for(settings, "mc_qa")
    module = module_for(settings, "mc_qa")
    assert next(outermost_transformers(outline)[0].parameters()).is_meta
    needs = []
    for module_read in (outline, module):
        data = ChoiceDataModule(questions("first", 20, 1), {})
        data.encode(module_read.encoder())
        needs.append(memory_need(module_read, data, 2, TRAINER, ONE))
    assert needs[0] == needs[1]
    assert needs[0].activations


def test_a_masked_model_is_outlined_too(tiny_model: Path) -> None:
    with outlines():
        module = module_for(
            ModelSettings(name_or_path=str(tiny_model), kind="transformer"), "mc_mlm", mode="full"
        )
    assert all(weight.is_meta for weight in module.parameters())


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/", {"memory.max": "max"}, None),
        ("0::/", {"memory.max": "4096"}, 4096),
        ("0::/job/step", {"job/memory.max": "8192", "job/step/memory.max": "max"}, 8192),
        ("5:memory:/job", {"memory/job/memory.limit_in_bytes": "512"}, 512),
        ("5:cpu:/job", {"memory/job/memory.limit_in_bytes": "512"}, None),
    ],
)
def test_a_control_group_limits_the_memory(
    lines: str, files: dict[str, str], expected: int | None, tmp_path: Path
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"{lines}\n")
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    assert machine_memory(tmp_path) == expected or machine_memory(tmp_path / "none")


def fitted(folder: Path, model: Path, **options: Any) -> SentenceChoice:
    """Fit a tiny model for five steps, of 20 questions each; it has 0.1 MB of weights."""
    force, callbacks = options.pop("force", False), options.pop("callbacks", [])
    module = SentenceChoice(str(model), learning_rate=1e-3)
    context = RunContext(replace(TRAINER, **options), force=force)
    records, how = questions("first", 100, 1), Fit(epochs=1, batch_size=20)
    watched = {"held": questions("first", 8, 2)}
    plan = FitPlan(how, 0, callbacks, "tiny")
    fit_choices(module, records, watched, RunFolder(folder, "fit", {}), plan, context)
    return module


def in_a_machine_of(num_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LARGE", 0)
    monkeypatch.setattr(memory, "machine_memory", lambda: num_bytes)


def test_a_training_that_fits_is_told_in_one_line(
    tiny_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fitted(tmp_path / "small", tiny_model)
    assert "memory" not in capsys.readouterr().out
    in_a_machine_of(10**9, monkeypatch)
    fitted(tmp_path / "large", tiny_model)
    [line] = [line for line in capsys.readouterr().out.splitlines() if "memory" in line]
    assert line.startswith("memory: about 0.0 GB: weights 0.0, gradients 0.0, AdamW 0.0, activ")
    assert line.endswith("for batches of 20 items (990 tokens, 0% of them padding)")


def test_weights_gradients_and_moments_that_do_not_fit_are_refused(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_machine_of(100_000, monkeypatch)
    with pytest.raises(UsageError) as refused:
        fitted(tmp_path / "refused", tiny_model)
    text = str(refused.value)
    assert "\n" not in text
    assert text.startswith("training needs 0.0 GB for weights, gradients and AdamW's moments")
    for advice in (
        "this machine has only 0.0 GB",
        "--model.dtype bfloat16",
        "configs/trainer/fsdp.yaml",
        "--trainer.gradient_checkpointing true",
        "--trainer.accumulate",
        "--force true",
    ):
        assert advice in text
    with pytest.warns(RuntimeWarning, match="will probably need more memory than this machine has"):
        fitted(tmp_path / "forced", tiny_model, force=True)


def test_activations_that_do_not_fit_are_warned_of(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_machine_of(1_000_000, monkeypatch)
    advice = r"--trainer.gradient_checkpointing true or a higher --trainer.accumulate \(now 1\)"
    with pytest.warns(RuntimeWarning, match=advice):
        fitted(tmp_path, tiny_model)


Checkpoint = Callable[..., Path]
# Their layers can not be computed again.
WITHOUT = {"mpnet": "MPNetModel", "albert": "AlbertModel"}


def gradients(module: SentenceChoice, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
    torch.manual_seed(3)
    module.train()
    loss, _ = choice_loss(
        module(batch).float(), batch["labels"], batch["weights"], batch["choice_mask"]
    )
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach(), {n: p.grad for n, p in module.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("dropout", [True, False])
def test_layers_computed_again_give_the_same_gradients(
    architecture: str,
    dropout: bool,
    checkpoint: Checkpoint,
    pair_batch: Batch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without dropout the last layer is computed at one place alone, see `EncoderAt`."""

    def warn(_: Any, text: str, *__: Any, **___: Any) -> None:
        raise AssertionError(text)

    monkeypatch.setattr(logging.Logger, "warning_once", warn, raising=False)
    plain, again = (SentenceChoice(str(checkpoint(architecture))) for _ in range(2))
    for module in (plain, again):
        for layer in module.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = 0.3 if dropout else 0.0
    if architecture in WITHOUT:
        with pytest.raises(UsageError, match=f"{WITHOUT[architecture]} has no transformer layers"):
            checkpoint_gradients(again)
        return
    checkpoint_gradients(again)
    computed: list[int] = []
    for layer in again.modules():
        if isinstance(layer, transformers.modeling_layers.GradientCheckpointingLayer):
            first = next(layer.modules())
            linear = next(m for m in first.modules() if isinstance(m, nn.Linear))
            linear.register_forward_hook(lambda *_: computed.append(1))
    (loss, expected), (found_loss, actual) = (gradients(m, pair_batch) for m in (plain, again))
    assert torch.equal(loss, found_loss)
    assert expected.keys() == actual.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(actual[name], gradient, rtol=1e-5, atol=1e-8)
    assert len(computed) >= 3  # one of two layers at least was computed twice
    with torch.inference_mode():
        torch.testing.assert_close(again.eval()(pair_batch), plain.eval()(pair_batch))


class Killed(RuntimeError):
    pass


class KilledAfter(pl.Callback):
    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        if trainer.global_step == 3:
            raise Killed


@pytest.mark.thorough
def test_a_fit_that_is_killed_goes_on_with_or_without_it(tiny_model: Path, tmp_path: Path) -> None:
    reference = fitted(tmp_path / "whole", tiny_model).state_dict()
    stopped = {"checkpoint_every": 2, "gradient_checkpointing": True}
    for name, goes_on in (("with", True), ("without", False)):
        with pytest.raises(Killed):
            fitted(tmp_path / name, tiny_model, callbacks=[KilledAfter()], **stopped)
        resumed = {**stopped, "gradient_checkpointing": goes_on}
        resumed_state = fitted(tmp_path / name, tiny_model, **resumed).state_dict()
        assert all(torch.equal(resumed_state[n], weight) for n, weight in reference.items())


def test_texts_that_begin_alike_are_not_read_once_where_layers_are_computed_again() -> None:
    config = transformers.GPT2Config(
        vocab_size=60, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config).train()
    checkpoint_gradients(model)
    ids = torch.ones(1, 4, dtype=torch.long)
    assert model(ids).past_key_values is None
    with pytest.raises(UsageError, match="shared beginning of texts"):
        model(ids, use_cache=True)
    assert model.eval()(ids, use_cache=True).past_key_values is not None


@pytest.mark.thorough
def test_a_dry_run_says_what_a_large_model_takes(
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = {**inoculation_config, "dry_run": True}

    def need_text() -> str:
        assert run(config, tmp_path / "out", tmp_path) == 0
        [line] = [x for x in capsys.readouterr().out.splitlines() if x.startswith("memory: ")]
        return line

    assert need_text().endswith(
        "kB per run for weights, gradients and AdamW's moments; plus activations"
    )
    for module in (original_task, runs):
        monkeypatch.setattr(module, "LARGE", 0)
    assert need_text() == (
        "memory: about 0.0 GB per run: weights 0.0, gradients 0.0, AdamW 0.0, activations 0.0 for "
        "batches of 16 items (880 tokens, 0% of them padding)"
    )
    config["trainer"]["gradient_checkpointing"] = True
    assert need_text().endswith("padding) with gradient checkpointing")


@pytest.mark.thorough
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_layers_computed_again_take_less(device: str, precision: str, tiny_model: Path) -> None:
    activations = []
    for checkpointing in (False, True):
        module = SentenceChoice(str(tiny_model))
        if checkpointing:
            checkpoint_gradients(module)
        data = ChoiceDataModule(questions("first", 64, 1), {}, batch_size=64)
        data.encode(module.encoder())
        settings = replace(TRAINER, gradient_checkpointing=checkpointing, precision=precision)
        need = memory_need(module, data, 1, settings, Processes(device))
        assert not need.problem
        activations.append(need.activations)
    assert activations[1] < 0.7 * activations[0]  # type: ignore[operator]
