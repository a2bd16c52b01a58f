"""Base class of modules that choose among K answers: loss, scores and optimiser."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.strategies import FSDPStrategy
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.io.errors import UsageError
from probelight.io.ranges import GradNorm, LearningRate, Seed, ShareOrAll, WeightDecay, WeightsDtype
from probelight.metrics.accuracy import WeightedAccuracy, score_sum, weighted_scores
from probelight.models.answering import batch_scores, say_if_bfloat16_is_slow
from probelight.models.checkpoint_files import CheckpointRef
from probelight.models.networks import Batch, bit_sum
from probelight.models.tuning import Tuning, tuning_of

_FUSED_DEVICES = {"cpu", "cuda"}
FROZEN = "frozen_weights"  # in a state: weights that it leaves to their checkpoint, and their bits


class ChoiceModule(pl.LightningModule, ABC):
    """Scores the K choices of each item: a softmax over them, and cross-entropy on the gold one.

    A batch has `labels` (B,), `weights` (B,) (0 for padding items), `item` (B,), `choice_mask`
    (B, K) and the inputs of the subclass, which defines `forward` and `encoder`.

    Args:
        learning_rate: Peak learning rate of AdamW.
        weight_decay: Weight decay on everything but biases and norms.
        warmup_share: Share of the steps in which the learning rate rises; then it falls to 0.
        max_grad_norm: Clip gradients to this norm; None does not clip.
    """

    # Questions are filled up to so many choices with empty ones, which compete; None leaves them as
    # they are. It is saved with the module.
    num_choices: int | None = None
    notices: tuple[str, ...] = ()  # what a reader of the results should know of how it is run
    why_frozen = "all its parameters are frozen"  # in the error if nothing is to be trained

    def __init__(
        self,
        learning_rate: LearningRate,
        weight_decay: WeightDecay = 0.1,
        warmup_share: ShareOrAll = 0.06,
        max_grad_norm: GradNorm | None = None,
    ) -> None:
        super().__init__()
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.warmup_share = warmup_share
        self.max_grad_norm = max_grad_norm
        self.accuracies = nn.ModuleDict()
        self.evaluation_names = [""]
        self._frozen_bits: dict[str, int] = {}

    def held(self) -> Iterator[Tensor]:
        """Yield weights that training keeps in memory in addition to the module's own."""
        yield from ()

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Return logits (B, K) of the choices, -inf where `choice_mask` is False."""

    @abstractmethod
    def encoder(self) -> ChoiceEncoder:
        """Return the encoder that turns items into batches for this model."""

    @property
    def evaluation_names(self) -> list[str]:
        """Return the names of the evaluation sets, one per validation (or test) loader."""
        return self._evaluation_names

    @evaluation_names.setter
    def evaluation_names(self, names: list[str]) -> None:
        self._evaluation_names = list(names)
        for stage in ("val", "test"):
            metrics = nn.ModuleList(WeightedAccuracy() for _ in names)
            self.accuracies[stage] = metrics.to(self.device)

    def setup(self, stage: str) -> None:
        if stage != "fit":
            return
        if not any(p.requires_grad for p in self.parameters()):
            raise RuntimeError(f"{type(self).__name__} has nothing to train: {self.why_frozen}")
        # When a state is saved, "bf16-true" has them in half precision.
        weights = self.state_dict()
        self._frozen_bits = {name: bit_sum(weights[name]) for name in frozen_names(self)}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Leave out frozen weights, except under FSDP, which loads a state before any hook."""
        if self._frozen_bits and not isinstance(self.trainer.strategy, FSDPStrategy):
            checkpoint[FROZEN] = self._frozen_bits
            for name in self._frozen_bits:
                del checkpoint["state_dict"][name]

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the frozen weights that the module has from its checkpoint.

        Raises:
            UsageError: If they are not those that the state was saved with.
        """
        weights = self.state_dict()
        for name, bits in checkpoint.get(FROZEN, {}).items():
            if name not in weights or bit_sum(weights[name]) != bits:
                raise UsageError(
                    f"the frozen weight {name} is not the one that this training began with, so it "
                    "cannot be resumed: put the model's checkpoint back as it was, or remove the "
                    "run's checkpoints/*.ckpt* to train again from the start"
                )
            checkpoint["state_dict"][name] = weights[name]

    def on_fit_start(self) -> None:
        # Lightning leaves the mode as it finds it, and `from_pretrained` gives models in eval mode.
        self.train()
        if any(p.requires_grad and p.dtype == torch.bfloat16 for p in self.parameters()):
            say_if_bfloat16_is_slow(self.device)
            warnings.warn(
                "bfloat16 weights change only in steps of 1/128 of their size, so at small "
                "learning rates most of AdamW's steps are rounded away; float32 weights with "
                "--trainer.precision bf16-mixed are about as fast and lose none",
                RuntimeWarning,
                stacklevel=2,
            )

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        logits = self(batch).float()
        loss_sum, stats = self.training_loss(batch, logits)
        stats = self.trainer.strategy.reduce(stats, reduce_op="sum")
        global_weight = stats[1].clamp(min=1e-12)
        size = len(batch["labels"])
        self.log("train/loss", stats[0] / global_weight, prog_bar=True, batch_size=size)
        self.log("train/accuracy", stats[2] / global_weight, prog_bar=True, batch_size=size)
        # The loss is the mean over the real items of the global batch. Processes may hold unequal
        # numbers of them, and DDP averages gradients over processes: with each process's own mean
        # an item of a shorter share would count for more. Dividing the local sum by the global
        # weight and multiplying by the number of processes makes that average the global mean.
        num_batches = self.trainer.accumulate_grad_batches
        if num_batches == 1:
            return loss_sum / global_weight * self.trainer.world_size
        # Lightning divides by the number of accumulated batches, which may be of unequal sizes,
        # and fewer at the end of an epoch: what counts is the mean over the items of the step.
        data: Any = self.trainer.datamodule  # type: ignore[attr-defined]
        step_items = data.step_items(batch_idx) if hasattr(data, "step_items") else None
        num_items = step_items or global_weight * num_batches
        return loss_sum / num_items * num_batches * self.trainer.world_size

    def training_loss(self, batch: Batch, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weighted sum of the items' losses, and the batch's part of the scores."""
        return choice_loss(logits, batch["labels"], batch["weights"], batch["choice_mask"])

    def validation_step(self, batch: Batch, batch_idx: int, dataloader_idx: int = 0) -> Tensor:
        """Return the logits (B, K), for callbacks."""
        return self._evaluate(batch, "val", dataloader_idx)

    def test_step(self, batch: Batch, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._evaluate(batch, "test", dataloader_idx)

    def _evaluate(self, batch: Batch, stage: str, dataloader_idx: int) -> Tensor:
        logits: Tensor = self(batch).float()
        metrics = self.accuracies[stage]
        assert isinstance(metrics, nn.ModuleList)
        metric = metrics[dataloader_idx]
        assert isinstance(metric, WeightedAccuracy)
        metric.update(logits, batch["labels"], batch["weights"], batch["choice_mask"])
        # A single set is `val/accuracy`, and also `val/NAME_accuracy` if it has a name, so that it
        # can be monitored as one of several.
        name = self.evaluation_names[dataloader_idx]
        logged = [f"{stage}/{name}_accuracy"] if name else []
        if len(self.evaluation_names) == 1:
            logged.append(f"{stage}/accuracy")
        for key in logged:
            self.log(
                key,
                metric,
                on_step=False,
                on_epoch=True,
                prog_bar=True,
                add_dataloader_idx=False,
                batch_size=len(batch["labels"]),
            )
        return logits

    def predict_step(
        self, batch: Batch, batch_idx: int, dataloader_idx: int = 0
    ) -> dict[str, Tensor]:
        """Return the scores of every choice, see `batch_scores`."""
        return batch_scores(batch, self(batch))

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Lightning's own clipping refuses fused optimisers under mixed precision.
        if self.max_grad_norm is None:
            return
        if isinstance(self.trainer.strategy, FSDPStrategy):
            sharded: Any = self.trainer.strategy.model
            sharded.clip_grad_norm_(self.max_grad_norm)  # the norm over all processes' shards
        else:
            nn.utils.clip_grad_norm_(self.parameters(), self.max_grad_norm)

    def configure_optimizers(self) -> Any:
        total = int(self.trainer.estimated_stepping_batches)
        schedule = slanted_triangular(total, self.warmup_share)
        return adamw(self, self.learning_rate, self.weight_decay, schedule, self._can_fuse())

    def _can_fuse(self) -> bool:
        # A fused optimiser removes the fp16 loss scale itself, after our clipping has seen it.
        scaled = self.trainer.precision == "16-mixed" and self.max_grad_norm is not None
        return not scaled and all(p.device.type in _FUSED_DEVICES for p in self.parameters())


class PretrainedChoice(ChoiceModule):
    """Base class of modules that begin with the weights of a checkpoint.

    Args:
        model_name_or_path: "bookshelf-lm", a folder, or a name on the Hub.
        learning_rate: Peak learning rate of AdamW.
        weight_decay: Weight decay on everything but biases and norms.
        warmup_share: Share of the steps in which the learning rate rises.
        revision: Branch, tag or commit on the Hub.
        random_weights: Use the same architecture with fresh weights.
        seed: Seed of fresh weights, and of a fresh head.
        max_grad_norm: Clip gradients to this norm; None does not clip.
        dtype: Precision of the weights; "auto" is float32, whatever the checkpoint has.
        tuning: Which weights to train: "full", "lora", or settings of an adapter. An adapter in the
            folder is merged first. None trains all weights, or, if the folder has an adapter, that
            adapter and the head.

    Raises:
        UsageError: If the weights are to be in float16, which cannot be trained.
    """

    def __init__(
        self,
        model_name_or_path: str,
        learning_rate: LearningRate,
        weight_decay: WeightDecay = 0.1,
        warmup_share: ShareOrAll = 0.06,
        revision: str | None = None,
        random_weights: bool = False,
        seed: Seed = 0,
        max_grad_norm: GradNorm | None = None,
        dtype: WeightsDtype = "auto",
        tuning: Tuning | str | None = None,
    ) -> None:
        # Only now: baselines need none of transformers.
        from probelight.models.loading import trained_reader

        super().__init__(learning_rate, weight_decay, warmup_share, max_grad_norm)
        self.adapters = tuning_of(tuning)
        self.save_hyperparameters()  # with the arguments of the subclass
        # As plain values, which a state can hold.
        self.hparams["tuning"] = self.adapters and asdict(self.adapters)
        self.ref = CheckpointRef.parse(
            model_name_or_path, revision=revision, random_weights=random_weights, seed=seed
        )
        self.read = trained_reader(self.adapters, dtype)


def frozen_names(module: nn.Module) -> list[str]:
    """Return the names of the frozen weights that a module has from a checkpoint."""
    return [
        f"{prefix}.{name}".lstrip(".")
        for prefix, submodule in module.named_modules()
        if isinstance(submodule, PretrainedChoice)
        for name, weight in submodule.named_parameters(remove_duplicate=False)
        if not weight.requires_grad
    ]


def weights_under(state_dict: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the weights of a submodule under its own names."""
    return {k.removeprefix(prefix): w for k, w in state_dict.items() if k.startswith(prefix)}


def choice_loss(
    logits: Tensor,
    labels: Tensor,
    weights: Tensor,
    choice_mask: Tensor,
    counted: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the weighted sum of the items' cross-entropies, and what the batch adds to the scores.

    Args:
        logits: (B, K), -inf where an item has no such choice.
        labels: (B,) gold choices.
        weights: (B,) weights; an item of weight 0 changes nothing, whatever its content.
        choice_mask: (B, K) which choices an item has.
        counted: Function from the cross-entropies (B,) to the losses (B,) that count instead.

    Returns:
        The sum, a scalar with gradient; and (3,) detached: the sum, the weight, and the weighted
        sum of the items' scores (see `probelight.metrics.accuracy`).
    """
    weights = weights.to(logits.dtype)
    padding = weights == 0
    # Before the softmax: 0 times the loss of a padding item without any choice would be NaN.
    safe = logits.masked_fill(padding[:, None], 0.0)
    losses = F.cross_entropy(safe, labels.masked_fill(padding, 0), reduction="none")
    if counted is not None:
        losses = counted(losses)
    loss_sum = (losses * weights).sum()
    with torch.no_grad():
        scores = weighted_scores(safe, labels.masked_fill(padding, 0), weights, choice_mask)
        stats = torch.stack([loss_sum.detach(), weights.sum(), score_sum(scores)])
    return loss_sum, stats


def adamw_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return the trainable parameters in two groups: biases and norms have no weight decay."""
    norms = {
        id(parameter)
        for layer in module.modules()
        if "norm" in type(layer).__name__.lower()
        for parameter in layer.parameters(recurse=False)
    }
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            exempt = name.endswith("bias") or id(parameter) in norms
            (plain if exempt else decayed).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def adamw(
    module: nn.Module,
    learning_rate: float,
    weight_decay: float,
    schedule: Callable[[int], float],
    fused: bool = True,
) -> dict[str, Any]:
    """Return AdamW with a schedule of its learning rate per step, for `configure_optimizers`."""
    groups = adamw_groups(module, weight_decay)
    optimizer = AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), fused=fused)
    scheduler = {"scheduler": LambdaLR(optimizer, schedule), "interval": "step"}
    return {"optimizer": optimizer, "lr_scheduler": scheduler}


def trapezoid(warmup_steps: int, total_steps: int, cooldown: float) -> Callable[[int], float]:
    """Return a linear warm-up, a plateau, and a linear fall to 0 over the last `cooldown` share."""

    def factor(step: int) -> float:
        up = min(1.0, (step + 1) / max(1, warmup_steps))
        down = (total_steps - step) / max(1.0, cooldown * total_steps)
        return max(0.0, min(up, down, 1.0))

    return factor


def slanted_triangular(total_steps: int, warmup_share: float = 0.06) -> Callable[[int], float]:
    """Return a linear warm-up over `warmup_share` of the steps, then a fall to 0 (Talmor 2020)."""
    warmup_steps = max(1, round(warmup_share * total_steps))
    return trapezoid(warmup_steps, total_steps, 1.0 - warmup_steps / max(1, total_steps))


def halving(optimizer: Optimizer) -> ReduceLROnPlateau:
    """Return the baselines' scheduler (Talmor 2020): halve the rate if an epoch is no better."""
    return ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=0)
