"""A pre-training state as a model folder with its measured card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import BertTokenizer

from probelight.callbacks.last_state import read_state
from probelight.io.atomic import whole_folder, write_text_atomic
from probelight.io.files import sha256_of
from probelight.io.package import ASSETS
from probelight.lightning_modules.masked_lm import MaskedLanguageModel
from probelight.protocols.engine.training import make_trainer
from probelight.protocols.jobs.context import TrainerSettings
from probelight.protocols.pretraining import DictionaryText
from probelight.results.provenance import git_commit

CARD_TEMPLATE = ASSETS / "model_card.md"


def export_state(state: Path, folder: Path) -> Path:
    """Writes the folder anew: weights in half precision, tokenizer, and a card measured on them."""
    checkpoint = read_state(state)
    module = MaskedLanguageModel(**_arguments(checkpoint["hyper_parameters"]))
    module.load_state_dict(checkpoint["state_dict"])
    nn.Module.float(nn.Module.half(module.model))
    data = DictionaryText(**_arguments(checkpoint["datamodule_hyper_parameters"]))
    trainer = make_trainer(TrainerSettings(), logger=False, enable_checkpointing=False)
    scores = trainer.validate(module, datamodule=data, verbose=False)[0]
    nn.Module.half(module.model)
    tokenizer = BertTokenizer(str(data.vocab_path), model_max_length=module.hparams["max_length"])
    with whole_folder(folder) as fresh:
        module.model.save_pretrained(fresh)
        tokenizer.save_pretrained(fresh)
        shutil.copy(data.vocab_path, fresh / "vocab.txt")
        write_text_atomic(fresh / "README.md", _card(checkpoint, module, data, scores, fresh))
        (fresh / "model.safetensors").chmod(0o644)
    print(f"{folder}: held-out {json.dumps(scores)}")
    return folder


def _arguments(saved: dict[str, Any]) -> dict[str, Any]:
    # LightningCLI saves its own notes, such as `_class_path`, among the arguments.
    return {name: value for name, value in saved.items() if not name.startswith("_")}


def _card(
    checkpoint: dict[str, Any],
    module: MaskedLanguageModel,
    data: DictionaryText,
    scores: Mapping[str, float],
    folder: Path,
) -> str:
    tokens = int(data.store.ids.size)
    return CARD_TEMPLATE.read_text(encoding="utf-8").format(
        parameters=f"{sum(p.numel() for p in module.model.parameters()):,}",
        layers=module.hparams["num_layers"],
        hidden=module.hparams["hidden_size"],
        vocab=f"{module.hparams['vocab_size']:,}",
        documents=f"{len(data.train_documents):,}",
        held_out=f"{len(data.held_out_documents):,}",
        tokens=f"{tokens:,}",
        steps=f"{checkpoint['global_step']:,}",
        epochs=f"{checkpoint['global_step'] / len(data.train_dataloader()):.2f}",
        hours=f"{checkpoint.get('train_seconds', 0.0) / 3600:.2f}",
        threads=torch.get_num_threads(),
        masked_accuracy=f"{100 * scores['val/masked_accuracy']:.1f}",
        next_accuracy=f"{100 * scores['val/next_accuracy']:.1f}",
        perplexity=f"{torch.exp(torch.tensor(scores['val/loss'])).item():.1f}",
        size=f"{(folder / 'model.safetensors').stat().st_size / 1e6:.1f}",
        sha256=sha256_of(folder / "model.safetensors"),
        commit=git_commit() or "unknown",
    )
