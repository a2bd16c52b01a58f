"""What a training takes in memory, told before it starts, and how it takes less.

A step is simulated: the module's own forward pass, the loss and the backward pass run on tensors
that have shapes and no numbers (`FakeTensorMode`), and what is alive at once is counted.
"""

from __future__ import annotations

import inspect
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from unittest.mock import patch

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.strategies import FSDPStrategy
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import PreTrainedModel

from probelight.datamodules.choices import ChoiceDataModule
from probelight.encoding.packed import PADDING
from probelight.io.errors import UsageError
from probelight.io.escaping import brief
from probelight.lightning_modules.base import ChoiceModule, choice_loss
from probelight.models.answering import PRECISIONS
from probelight.models.networks import Batch, own_random_state
from probelight.runs.context import RunContext
from probelight.runs.memory import GB, LARGE, MemoryNeed, machine_memory
from probelight.runs.settings import TrainerSettings
from probelight.training.sharding import gathered_at_once

T = TypeVar("T")
# A CPU's C library does not give back smaller blocks that lie between others that are in use: with
# SmolLM2-135M, peaks of processes were above what was in use by this share of the smaller blocks.
_MAPPED = 32 << 20
_UNRETURNED = 0.9
_WEIGHTS_ALIKE = {"bf16-true": torch.bfloat16, "16-true": torch.float16, "64-true": torch.float64}


@dataclass(frozen=True)
class Processes:
    """Where a training runs: on how many devices, and of what type ("cpu", "cuda")."""

    device_type: str
    number: int = 1
    is_sharded: bool = False  # whether weights, gradients and moments are divided among them


def trained_weights(weights: Iterable[Tensor]) -> list[Tensor]:
    """Return the weights that are trained."""
    return [weight for weight in weights if weight.requires_grad]


def weight_bytes(module: nn.Module) -> int:
    """Return the bytes of a module's weights and buffers, each counted once."""
    return sum(t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers()))


def memory_need(
    module: ChoiceModule,
    data: ChoiceDataModule | None,
    epochs: int,
    settings: TrainerSettings,
    processes: Processes,
) -> MemoryNeed:
    """Return what each process of a training takes at its peak; without `data` no activations.

    `data` has encoded its records. The module may hold weights without numbers (`outlines`).
    """
    alike, number = _WEIGHTS_ALIKE.get(settings.precision), processes.number

    def num_bytes(tensors: Iterable[Tensor]) -> int:
        dtypes = ((t, alike if alike and t.is_floating_point() else t.dtype) for t in tensors)
        return sum(tensor.numel() * dtype.itemsize for tensor, dtype in dtypes)

    weights, held = num_bytes((*module.parameters(), *module.buffers())), num_bytes(module.held())
    trained = num_bytes(trained_weights(module.parameters()))
    if processes.is_sharded:
        shares = [-(-size // number) for size in (weights, trained, 2 * trained)]
        need = MemoryNeed(shares[0] + held, shares[1], shares[2], held=held)
    else:
        # DDP reduces gradients in buckets, which are a copy of all of them.
        copies = 2 if number > 1 else 1
        need = MemoryNeed(weights + held, trained * copies, 2 * trained, held=held)
    if data is None:
        return need
    train, evaluation = data.largest_batches(epochs)
    try:
        simulated = _Simulation(module, settings.precision, processes.device_type)
        keeps_gradients = settings.accumulate > 1 or processes.is_sharded
        forward, step = simulated.step(train, keeps_gradients)
        measured = simulated.measuring(evaluation) if evaluation is not None else 0
    # Whatever a network does that takes numbers: an estimate is no reason not to train.
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        return replace(need, problem=f"{type(error).__name__}: {brief(first)}")
    if processes.is_sharded:
        # One layer computes, and the next one is gathered, or the gradients of the one before are
        # divided. Gradients that are accumulated are not divided before they are complete.
        outside, layer = gathered_at_once(module)
        gathered, whole_gradients = (
            num_bytes(outside_weights) + 2 * num_bytes(layer_weights)
            for outside_weights, layer_weights in (
                (outside, layer),
                (trained_weights(outside), trained_weights(layer)),
            )
        )
        if settings.accumulate > 1:
            whole_gradients, forward = trained, forward + trained
        training = gathered + max(forward, step + whole_gradients)
        measured += gathered
    elif settings.accumulate > 1:
        training = step
    else:
        # Lightning drops the gradients of the step before behind the forward pass.
        training = max(forward, step - trained)
    batch, step_tokens = f"batches of {len(train['labels'])} items", 0
    masks = [train[name] for name in ("attention_mask", "decoder_attention_mask") if name in train]
    if "segments" in train:  # packed rows
        masks = [train["segments"] != PADDING]
    if num_places := sum(mask.numel() for mask in masks):
        padding = 1 - sum(int(mask.sum()) for mask in masks) / num_places
        batch += f" ({num_places:,} tokens, {padding:.0%} of them padding)"
        step_tokens = num_places * settings.accumulate
    if settings.gradient_checkpointing:
        batch += " with gradient checkpointing"
    if measured > training:
        batch = f"measuring in batches of {settings.max_eval_tokens} tokens"
    unreturned = 0 if simulated.on_gpu else int(_UNRETURNED * simulated.small)
    return replace(
        need,
        activations=max(training, measured, 0),
        batch=batch,
        step_tokens=step_tokens,
        unreturned=unreturned,
    )


class _Simulation:
    """A module on tensors without numbers, as many and as large as those of a training.

    They are a CPU's, whatever the device: what a GPU does otherwise, `_as_on_gpu` says.
    """

    def __init__(self, module: ChoiceModule, precision: str, device_type: str) -> None:
        # Only now: it takes a second, and small models do not need it.
        from torch._subclasses.fake_tensor import FakeTensorMode

        self.module, self.on_gpu = _Running(module), device_type != "cpu"
        self.small = 0  # bytes at once in blocks that are not mapped, at most
        self.autocast = PRECISIONS.get(precision)
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        alike = _WEIGHTS_ALIKE.get(precision)
        self.state: dict[str, Tensor] = {}
        with self.mode:
            named = (*self.module.named_parameters(), *self.module.named_buffers())
            for name, tensor in named:
                dtype = alike if alike is not None and tensor.is_floating_point() else tensor.dtype
                fake = torch.empty(tensor.shape, dtype=dtype, device="cpu")
                if isinstance(tensor, nn.Parameter):
                    fake = nn.Parameter(fake, requires_grad=tensor.requires_grad)
                self.state[name] = fake

    def step(self, batch: Batch, keeps_gradients: bool) -> tuple[int, int]:
        """Return the peaks of bytes in the forward pass, and in forward and backward pass.

        Weights are not among them; the gradients are, unless they are those of batches before.
        """
        live = LiveBytes(self.state.values())
        with own_random_state(0), self.mode:
            if keeps_gradients:
                for weight in self.state.values():
                    if weight.requires_grad:
                        weight.grad = torch.empty_like(weight)
                        live.ignore(weight.grad)

            def run() -> int:
                loss = self._loss(batch)
                forward = live.peak
                loss.backward()  # type: ignore[no-untyped-call]
                return forward

            with live:
                forward = self._run(run)
            for weight in self.state.values():
                weight.grad = None
        self.small = max(self.small, live.peak_small)
        return forward, live.peak

    @torch.no_grad()
    def measuring(self, batch: Batch) -> int:
        """Return the peak of bytes of measuring a batch."""
        live = LiveBytes(self.state.values())
        with own_random_state(0), self.mode, live:
            self._run(lambda: self._loss(batch, training=False))
        self.small = max(self.small, live.peak_small)
        return live.peak

    def _run(self, run: Callable[[], T]) -> T:
        modes = {submodule: submodule.training for submodule in self.module.modules()}
        compiled = any(getattr(submodule, "_compiled_call_impl", None) for submodule in modes)
        eager = torch.compiler.set_stance("force_eager") if compiled else nullcontext()
        try:
            with eager, _as_on_gpu() if self.on_gpu else nullcontext():
                output: T = functional_call(self.module, self.state, (run,))
            return output
        finally:
            for submodule, mode in modes.items():
                submodule.training = mode

    def _loss(self, batch: Batch, training: bool = True) -> Tensor:
        inputs = {n: torch.empty(t.shape, dtype=t.dtype) for n, t in batch.items()}
        self.module.train(training)
        dtype = self.autocast
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            logits = self.module.module(inputs).float()
            loss, _ = choice_loss(
                logits, inputs["labels"], inputs["weights"], inputs["choice_mask"]
            )
        return loss


class _Running(nn.Module):
    """A module as the part of another, which runs what is given while its weights are replaced.

    Layers that are computed again in the backward pass read them there once more.
    """

    def __init__(self, module: ChoiceModule) -> None:
        super().__init__()
        self.module = module

    def forward(self, run: Callable[[], T]) -> T:
        return run()


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of tensors that are made inside and are still alive, views not twice."""

    def __init__(self, ignored_tensors: Any = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = self.small = self.peak_small = 0
        self._storages: dict[int, int] = {}
        for tensor in ignored_tensors:
            self.ignore(tensor)

    def ignore(self, tensor: Tensor) -> None:
        """Leave a tensor, and views of it, uncounted."""
        self._storages[tensor.untyped_storage()._cdata] = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(output):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                if (key := storage._cdata) not in self._storages:
                    self._count(storage.nbytes(), 1)
                    self._storages[key] = storage.nbytes()
                    weakref.finalize(storage, self._freed, key)
        self.peak = max(self.peak, self.now)
        self.peak_small = max(self.peak_small, self.small)
        return output

    def _freed(self, key: int) -> None:
        self._count(self._storages.pop(key), -1)

    def _count(self, num_bytes: int, sign: int) -> None:
        self.now += sign * num_bytes
        self.small += sign * num_bytes * (num_bytes < _MAPPED)


@contextmanager
def _as_on_gpu() -> Iterator[None]:
    """Keep of a forward pass what a GPU keeps, where a CPU would keep something else.

    A GPU's kernels of attention draw dropout anew instead of keeping scores; under autocast its
    norms compute in single precision. The functions are replaced: a `TorchFunctionMode` is not
    there where layers are computed again.
    """
    attend, norm = F.scaled_dot_product_attention, F.layer_norm

    def attend_anew(*args: Any, **kwargs: Any) -> Tensor:
        return attend(*args, **{**kwargs, "dropout_p": 0.0})

    def norm_in_single_precision(inputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        single = inputs.float() if torch.is_autocast_enabled("cpu") else inputs
        return norm(single, *args, **kwargs)

    with (
        patch.object(F, "scaled_dot_product_attention", attend_anew),
        patch.object(F, "layer_norm", norm_in_single_precision),
    ):
        yield


class MemoryCheck(Callback):
    """Says what a fit of a large model takes in memory before it starts, or refuses it.

    Args:
        epochs: Of the fit, whose largest batch decides.
        context: With the settings of the trainer, and whether to go on regardless.
    """

    def __init__(self, epochs: int, context: RunContext) -> None:
        self.epochs, self.context = epochs, context

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Say it, once the data is encoded and before the module is on its device."""
        data = trainer.datamodule  # type: ignore[attr-defined]
        large = weight_bytes(pl_module) > LARGE
        if not (large and isinstance(pl_module, ChoiceModule) and stage == "fit"):
            return
        assert isinstance(data, ChoiceDataModule)
        settings, device = self.context.trainer, trainer.strategy.root_device
        processes = Processes(
            device.type, trainer.world_size, isinstance(trainer.strategy, FSDPStrategy)
        )
        capacity, device_name = device_memory(device)
        sharing = trainer.num_devices if device.type != "cuda" else 1
        need = memory_need(pl_module, None, self.epochs, settings, processes)
        if sharing * need.fixed > capacity and not self.context.force:
            raise UsageError(
                f"training needs {sharing * need.fixed / GB:.1f} GB for weights, gradients and "
                f"AdamW's moments alone, but {device_name} has only {capacity / GB:.1f} GB; "
                "--config configs/trainer/fsdp.yaml divides this among GPUs, and --model.dtype "
                "bfloat16 halves it, but then small learning rates train almost nothing "
                "(activations come on top; --trainer.gradient_checkpointing true and a higher "
                "--trainer.accumulate reduce them); --force true trains anyway"
            )
        if not trainer.is_global_zero:
            return
        need = memory_need(pl_module, data, self.epochs, settings, processes)
        per = "" if trainer.world_size == 1 else f" in each of {trainer.world_size} processes"
        self.context.say(f"memory: {need.describe(per)}")
        if sharing * need.total > capacity:
            less = (
                [] if settings.gradient_checkpointing else ["--trainer.gradient_checkpointing true"]
            )
            less.append(f"a higher --trainer.accumulate (now {settings.accumulate})")
            warnings.warn(
                f"training will probably need more memory than {device_name} has "
                f"({capacity / GB:.1f} GB); {' or '.join(less)} reduces it",
                RuntimeWarning,
                stacklevel=2,
            )


def device_memory(device: torch.device) -> tuple[int, str]:
    """Return the bytes of memory that a device has, and what to call it."""
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return properties.total_memory, properties.name
    return machine_memory(), "this machine"


def outermost_transformers(module: nn.Module) -> list[PreTrainedModel]:
    """Return the models of transformers inside a module, without those that are a part of one."""
    if isinstance(module, PreTrainedModel):
        return [module]
    return [model for child in module.children() for model in outermost_transformers(child)]


def checkpoint_gradients(module: nn.Module) -> None:
    """Let the transformers in a module compute their layers again in the backward pass.

    Random states are kept, so dropout is the same both times, and so are the gradients.

    Raises:
        UsageError: If nothing is trained in it that can do so.
    """
    trained = [
        model
        for model in outermost_transformers(module)
        if any(weight.requires_grad for weight in model.parameters())
    ]
    able = [model for model in trained if model.supports_gradient_checkpointing]
    if not able:
        name = type(trained[0] if trained else module).__name__
        raise UsageError(
            f"--trainer.gradient_checkpointing: {name} has no transformer layers that can be "
            "recomputed in the backward pass; leave it out"
        )
    for model in able:
        # Its older name, which transformers 5 had alone at first.
        names = ("activation_checkpointing_enable", "gradient_checkpointing_enable")
        enable = next(method for n in names if (method := getattr(model, n, None)) is not None)
        enable({"use_reentrant": False})
        for submodule in model.modules():
            if not isinstance(submodule, PreTrainedModel):
                continue
            if "use_cache" in inspect.signature(submodule.forward).parameters:
                submodule.register_forward_pre_hook(_without_cache, with_kwargs=True)


def _without_cache(model: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
    """Ask for no keys and values, which nobody reads: a layer would drop them, with a warning."""
    if not model.training:
        return None
    if kwargs.get("use_cache") or kwargs.get("past_key_values") is not None:
        raise UsageError(
            "--trainer.gradient_checkpointing: this training reads the shared beginning of texts "
            "only once, and recomputed layers would lose it; leave it out"
        )
    return args, {**kwargs, "use_cache": False}
