"""MC-MLM (Talmor 2020): choose which of K candidate words belongs at the mask.

Shapes: B batch, L tokens, K choices, H hidden, V vocabulary.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from probelight.encoding.candidates import MultiToken
from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.io import ranges
from probelight.io.atomic import whole_folder
from probelight.io.errors import UsageError
from probelight.io.package import BUNDLED_MODEL
from probelight.lightning_modules.base import PretrainedChoice
from probelight.models.adapters import save_weights, train_adapter
from probelight.models.checkpoint_errors import quiet_transformers
from probelight.models.masked import MaskedLM
from probelight.models.networks import Batch
from probelight.models.tuning import FULL_TUNING, Tuning, tuning_of

Mode = Literal["zero_shot", "mlp", "linear", "full"]


class MaskedChoice(PretrainedChoice):
    """A masked language model that chooses a word for its mask (MC-MLM, Talmor et al. 2020).

    h (H) is the encoder's output at the mask; the checkpoint's own head scores the candidates. If
    the encoder is frozen, it runs in eval mode and the decoder is untied from the input embeddings,
    so no training can change h.

    Args:
        model_name_or_path: "bookshelf-lm", a folder, or a name on the Hub.
        mode: What to train: nothing (`zero_shot`), the head (`mlp`), only its decoder (`linear`),
            or everything, tied as in the checkpoint (`full`).
        answer_prefix: Text before a candidate; "auto" finds it out from the tokenizer.
        multi_token: What to do with a candidate of more than one token. With
            "pseudo_log_likelihood" the encoder lists such candidates, and `PseudoLogLikelihood`
            scores them.
        max_length: Longest input in tokens.
        learning_rate: Peak learning rate of AdamW.
        tuning: Which weights mode `full` trains: "full", "lora", or settings of an adapter. An
            adapter in the folder is merged first. None trains all weights, or, if the folder has an
            adapter, only that.
        options: The other arguments of `PretrainedChoice`.

    Raises:
        PretrainedError: If the checkpoint cannot be loaded completely, or the form of its head is
            unknown.
    """

    why_frozen = "mode zero_shot trains nothing; choose mlp, linear or full"

    def __init__(
        self,
        model_name_or_path: str = BUNDLED_MODEL,
        mode: Mode = "zero_shot",
        answer_prefix: str = "auto",
        multi_token: MultiToken = "error",
        max_length: ranges.MaxLength = 256,
        learning_rate: ranges.LearningRate = 1e-4,
        tuning: Tuning | str | None = None,
        **options: Any,
    ) -> None:
        if mode not in get_args(Mode):
            raise ValueError(f"mode={mode!r}: choose one of {', '.join(get_args(Mode))}")
        adapters = tuning_of(tuning)
        if mode != "full" and adapters is not None and adapters != FULL_TUNING:
            raise UsageError(f"tuning {adapters.method} needs mode full, but mode is {mode}")
        if mode in ("mlp", "linear"):
            adapters = FULL_TUNING  # an adapter below the head is saved with it, so it is merged
        super().__init__(model_name_or_path, learning_rate, tuning=adapters, **options)
        self.mode = mode
        self.encoder_is_frozen = mode != "full"
        self.masked = MaskedLM(self.ref, answer_prefix, multi_token, max_length, self.read)
        self.model, self.tokenizer = self.masked.model, self.masked.tokenizer
        self.head, self.notices = self.masked.head, self.masked.reader.by_length.notices
        self.max_length = max_length
        if self.encoder_is_frozen and self.mode != "zero_shot":
            self.head.untie()
        self.model.requires_grad_(False)
        # Only what takes part: DDP waits for the gradient of every parameter that asks for one.
        if self.mode == "full":
            self.head.encoder.requires_grad_(True)
        if self.mode in ("full", "mlp"):
            for parameter in self.head.transform_parameters():
                parameter.requires_grad_(True)
        if self.mode != "zero_shot":
            for parameter in self.head.decoder_parameters():
                parameter.requires_grad_(True)
        if self.mode == "full":
            train_adapter(self.model, nn.Identity(), keeps_head=True)
        self.eval()

    def train(self, mode: bool = True) -> MaskedChoice:
        """Set train or eval mode; a frozen encoder stays in eval mode, so its h has no dropout."""
        super().train(mode)
        if self.encoder_is_frozen:
            self.head.encoder.eval()
        return self

    def encoder(self) -> ChoiceEncoder:
        return self.masked.encoder()

    def features(self, batch: Batch) -> Tensor:
        """Return the encoder's output h (B, H) at the mask of each item."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.encoder_is_frozen):
            return self.masked.features(batch)

    def forward(self, batch: Batch) -> Tensor:
        return self.masked.choice_logits(self.features(batch), batch)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write a folder for `AutoModelForMaskedLM.from_pretrained`, completely or not at all.

        If the model has an adapter, the folder is for `peft.PeftModel.from_pretrained`.
        """
        self.head.sync_bias()
        with quiet_transformers(), whole_folder(Path(folder)) as fresh:
            save_weights(self.model, fresh)
            self.tokenizer.save_pretrained(fresh)
