"""Pre-training of a small BERT from scratch: masked tokens and next-sentence prediction."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import AdamW, Muon, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torchmetrics import MeanMetric
from transformers import BertConfig, BertForPreTraining, BertTokenizer

from probelight.io import ranges
from probelight.io.errors import UsageError
from probelight.lightning_modules.base import adamw, adamw_groups, trapezoid
from probelight.models.checkpoint_errors import one_error, quiet_transformers
from probelight.models.checkpoint_files import resolve

IGNORE = -100


class MaskedLanguageModel(pl.LightningModule):
    """BERT with both of its pre-training heads; the MLM head runs at the masked positions only.

    Args:
        vocab_size: V, the size of the vocabulary.
        hidden_size: H, the size of the hidden states.
        num_layers: Number of transformer layers.
        num_heads: Number of attention heads.
        max_length: Number of positions.
        start: Folder or bundled name of a model of the same sizes to start from. A token that is
            not in its vocabulary starts as the mean of the tokens into which it splits.
        optimizer: "adamw" for all weights; or "muon" for the matrices of the layers (Jordan et al.
            2024) and AdamW for the rest, which reaches the same loss in fewer steps.
        learning_rate: Peak learning rate; Muon's updates are scaled to AdamW's (Liu et al. 2025).
        weight_decay: Weight decay on everything but biases and LayerNorm.
        warmup_steps: Steps of the linear warm-up.
        cooldown: Share of all steps, at the end, in which the learning rate falls to 0; before
            that it is constant.
        next_sentence_weight: Weight of the next-sentence loss; the masked loss has weight 1.
        max_grad_norm: Clip gradients to this norm.
    """

    def __init__(
        self,
        vocab_size: ranges.NumItems = 12000,
        hidden_size: ranges.Width = 256,
        num_layers: ranges.Width = 4,
        num_heads: ranges.Width = 4,
        max_length: ranges.MaxLength = 256,
        start: ranges.PathText | None = None,
        optimizer: Literal["adamw", "muon"] = "adamw",
        learning_rate: ranges.LearningRate = 1e-3,
        weight_decay: ranges.WeightDecay = 0.01,
        warmup_steps: Annotated[int, ranges.Within(0, 10_000_000)] = 500,
        cooldown: ranges.ShareOrAll = 0.3,
        next_sentence_weight: Annotated[float, ranges.Within(0, 1_000)] = 0.3,
        max_grad_norm: ranges.GradNorm = 1.0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.start = start
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.warmup_steps = warmup_steps
        self.cooldown = cooldown
        self.next_sentence_weight = next_sentence_weight
        self.max_grad_norm = max_grad_norm
        config = BertConfig(
            vocab_size=vocab_size,
            hidden_size=hidden_size,
            num_hidden_layers=num_layers,
            num_attention_heads=num_heads,
            intermediate_size=4 * hidden_size,
            max_position_embeddings=max_length,
            # A model of this size sees each text a few times at most: it underfits.
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=0,
        )
        self.model = BertForPreTraining(config)
        self._seconds_before = 0.0
        self._resumed_at = time.monotonic()
        self.val_metrics = nn.ModuleDict(
            {name: MeanMetric() for name in ("loss", "masked_accuracy", "next_accuracy")}
        )

    def _losses(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        encoded = self.model.bert(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            token_type_ids=batch["token_type_ids"],
        )
        chosen = batch["labels"] != IGNORE  # (B, L)
        gold = batch["labels"][chosen]
        logits = self.model.cls.predictions(encoded.last_hidden_state[chosen]).float()
        next_logits = self.model.cls.seq_relationship(encoded.pooler_output).float()
        has_next = batch["is_next"] != IGNORE
        # The checkpoint's convention: class 0 is "B continues A".
        next_gold = 1 - batch["is_next"][has_next]
        next_loss = F.cross_entropy(next_logits[has_next], next_gold) if has_next.any() else 0.0
        masked_loss = F.cross_entropy(logits, gold)
        return {
            "loss": masked_loss + self.next_sentence_weight * next_loss,
            "masked_loss": masked_loss.detach(),
            "masked_correct": (logits.argmax(-1) == gold).float(),
            "next_correct": (next_logits[has_next].argmax(-1) == next_gold).float(),
        }

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        out = self._losses(batch)
        self.log("train/loss", out["loss"])
        self.log("train/masked_loss", out["masked_loss"], prog_bar=True)
        self.log("train/masked_accuracy", out["masked_correct"].mean(), prog_bar=True)
        if out["next_correct"].numel():
            self.log("train/next_accuracy", out["next_correct"].mean(), prog_bar=True)
        return out["loss"]

    def setup(self, stage: str) -> None:
        if stage == "fit" and self.start is not None:  # a state that is resumed comes after it
            data: Any = self.trainer.datamodule  # type: ignore[attr-defined]
            pieces = data.vocab_path.read_text(encoding="utf-8").splitlines()
            begin_with(self.model, pieces, self.start)

    def on_train_start(self) -> None:
        if self.device.type == "cpu":  # the fused attention's backward pass is slow there
            self.model.set_attn_implementation("eager")
        self._resumed_at = time.monotonic()

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        elapsed = time.monotonic() - self._resumed_at
        checkpoint["train_seconds"] = self._seconds_before + elapsed
        checkpoint["precision"] = self.trainer.precision

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self._seconds_before = checkpoint.get("train_seconds", 0.0)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Lightning's own clipping refuses fused optimisers under mixed precision.
        nn.utils.clip_grad_norm_(self.parameters(), self.max_grad_norm)

    def validation_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        out = self._losses(batch)
        count = out["masked_correct"].numel()
        for name, value, weight in (
            ("loss", out["masked_loss"], count),
            ("masked_accuracy", out["masked_correct"], 1),
            ("next_accuracy", out["next_correct"], 1),
        ):
            metric = self.val_metrics[name]
            assert isinstance(metric, MeanMetric)
            if value.numel():
                metric.update(value, weight)
            self.log(f"val/{name}", metric, on_step=False, on_epoch=True, prog_bar=True)

    def configure_optimizers(self) -> Any:
        total = int(self.trainer.estimated_stepping_batches)
        schedule = trapezoid(self.warmup_steps, total, self.cooldown)
        if self.optimizer == "adamw":
            return adamw(self.model, self.learning_rate, self.weight_decay, schedule)
        optimizer = MuonAdamW(self.model, self.learning_rate, self.weight_decay)
        scheduler = {"scheduler": LambdaLR(optimizer, schedule), "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


def begin_with(model: BertForPreTraining, pieces: Sequence[str], start: str) -> None:
    """Copy weights from a model of the same sizes that has another vocabulary.

    Args:
        model: Model that gets the weights.
        pieces: Its vocabulary, in the order of the ids.
        start: Folder or name of the model to copy from.

    Raises:
        PretrainedError: If that model cannot be read.
        UsageError: If its sizes differ.
    """
    folder = resolve(start)
    with quiet_transformers(), one_error(folder, "model"):
        source = BertForPreTraining.from_pretrained(folder, dtype=torch.float32)
        tokenizer = BertTokenizer.from_pretrained(folder)
    piece_ids = tokenizer.get_vocab()
    rows = []
    for piece in pieces:
        is_in_source = piece in piece_ids
        source_pieces = [piece] if is_in_source else tokenizer.tokenize(piece.removeprefix("##"))
        rows.append(torch.tensor([piece_ids[source_piece] for source_piece in source_pieces]))
    weights = source.state_dict()
    for name, weight in weights.items():
        if weight.shape[:1] == (len(piece_ids),):  # word embeddings, and what is tied to them
            weights[name] = torch.stack([weight[row].mean(dim=0) for row in rows])
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads")
        has, needed = ([getattr(c, size) for size in sizes] for c in (source.config, model.config))
        raise UsageError(
            f"model.start {start} has other sizes: {', '.join(sizes)} are {has}, not {needed}"
        ) from None


class MuonAdamW(Optimizer):
    """Muon for the matrices of an encoder's layers and AdamW for the rest, as one optimiser.

    Both share one `state_dict`, so a fit resumes as with any other optimiser.
    """

    def __init__(self, model: BertForPreTraining, lr: float, weight_decay: float) -> None:
        matrices = [p for p in model.bert.encoder.parameters() if p.ndim == 2]
        chosen = {*map(id, matrices)}
        adamw_params = adamw_groups(model, weight_decay)
        for group in adamw_params:
            group["params"] = [p for p in group["params"] if id(p) not in chosen]
        self._optimizers: list[Optimizer] = [
            Muon(matrices, lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"),
            AdamW(adamw_params, lr=lr, betas=(0.9, 0.98), fused=True),
        ]
        super().__init__([group for o in self._optimizers for group in o.param_groups], {})
        self._share()

    def _share(self) -> None:
        """Let both optimisers work on this one's groups and state."""
        muon, adamw = self._optimizers
        muon.param_groups, adamw.param_groups = self.param_groups[:1], self.param_groups[1:]
        muon.state = adamw.state = self.state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of both optimisers."""
        super().load_state_dict(state_dict)
        self._share()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step with each optimiser, after the closure that computes the gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for optimizer in self._optimizers:
            optimizer.step()
        return loss
