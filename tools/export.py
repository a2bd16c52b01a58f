"""A pre-trained language model as a folder like the shipped ones, in half precision.

`python -m tools.export runs/first/checkpoints/last.ckpt --output_dir runs/first-lm` writes one.
"""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from jsonargparse import auto_cli
from torch import nn
from transformers import BertTokenizer

from probelight.callbacks.last_state import read_state
from probelight.io.atomic import whole_folder, write_text_atomic
from probelight.io.errors import UsageError
from probelight.io.files import sha256_of
from probelight.io.package import ASSETS, BUNDLED_MODEL
from probelight.results.record import git_commit
from probelight.runs.settings import TrainerSettings
from probelight.training.fit import make_trainer
from tools.dictionary_text import DictionaryText
from tools.masked_lm import MaskedLanguageModel
from tools.pretraining_text import source_titles

MODEL_DIR = ASSETS / BUNDLED_MODEL
CARD_TEMPLATE = Path(__file__).with_name("model_card.md")

Rebuilt = TypeVar("Rebuilt")


def export_language_model(state: str, output_dir: str = str(MODEL_DIR)) -> Path:
    """Write a pre-trained model in half precision, its card with accuracies of those weights.

    Args:
        state: last.ckpt of `train.py fit --config tools/configs/pretrain_bookshelf_lm.yaml`.
        output_dir: Folder to write; `from_pretrained` can load it.

    Returns:
        The folder.

    Raises:
        UsageError: If it is a state of something else.
    """
    folder, checkpoint = Path(output_dir), read_state(Path(state))
    module = _rebuilt(MaskedLanguageModel, checkpoint, "hyper_parameters", state)
    module.load_state_dict(checkpoint["state_dict"])
    nn.Module.float(nn.Module.half(module.model))
    data = _rebuilt(DictionaryText, checkpoint, "datamodule_hyper_parameters", state)
    trainer = make_trainer(TrainerSettings(), logger=False, enable_checkpointing=False)
    scores = trainer.validate(module, datamodule=data, verbose=False)[0]
    nn.Module.half(module.model)
    tokenizer = BertTokenizer(str(data.vocab_path), model_max_length=module.hparams["max_length"])
    with whole_folder(folder) as fresh:
        module.model.save_pretrained(fresh)
        tokenizer.save_pretrained(fresh)
        shutil.copy(data.vocab_path, fresh / "vocab.txt")
        weights, steps = fresh / "model.safetensors", checkpoint["global_step"]
        batches_per_step = checkpoint.get("accumulate", 1)
        card = CARD_TEMPLATE.read_text(encoding="utf-8").format(
            name=folder.name,
            start=module.start or "random weights",
            mask_rate=f"{100 * data.mask_rate:.0f}",
            definition_rate=f"{100 * data.definition_rate:.0f}",
            step_tokens=f"{batches_per_step * data.max_tokens:,}",
            optimizer={"muon": "Muon and AdamW", "adamw": "AdamW"}[module.optimizer],
            sources="\n".join(f"- {title}" for title in source_titles(data.hparams["sources"])),
            common_words=f"{data.hparams['common_words']:,}",
            parameters=f"{sum(p.numel() for p in module.model.parameters()):,}",
            layers=module.hparams["num_layers"],
            hidden=module.hparams["hidden_size"],
            vocab=f"{module.hparams['vocab_size']:,}",
            documents=f"{len(data.train_documents):,}",
            held_out=f"{len(data.held_out_documents):,}",
            tokens=f"{int(data.store.ids.size):,}",
            steps=f"{steps:,}",
            precision=checkpoint.get("precision", "unknown"),
            epochs=f"{steps * batches_per_step / len(data.train_dataloader()):.2f}",
            hours=f"{checkpoint.get('train_seconds', 0.0) / 3600:.2f}",
            threads=torch.get_num_threads(),
            masked_accuracy=f"{100 * scores['val/masked_accuracy']:.1f}",
            next_accuracy=f"{100 * scores['val/next_accuracy']:.1f}",
            perplexity=f"{torch.exp(torch.tensor(scores['val/loss'])).item():.1f}",
            size=f"{weights.stat().st_size / 1e6:.1f}",
            sha256=sha256_of(weights),
            commit=git_commit() or "unknown",
        )
        write_text_atomic(fresh / "README.md", card)
        weights.chmod(0o644)
    print(f"{folder}: held-out {json.dumps(scores)}")
    return folder


def _rebuilt(
    module_type: type[Rebuilt], checkpoint: Mapping[str, Any], arguments: str, state: str
) -> Rebuilt:
    """Return the module or data module of a state, made with the arguments that the state has."""
    noted = checkpoint.get(arguments, {})
    # Without what LightningCLI notes for itself, such as `_class_path`.
    options = {name: value for name, value in noted.items() if not name.startswith("_")}
    try:
        inspect.signature(module_type).bind(**options)
    except TypeError as error:
        raise UsageError(
            f"{state}: its {arguments} are not those of {module_type.__name__} ({error}); give a "
            "state of train.py fit --config tools/configs/pretrain_bookshelf_lm.yaml"
        ) from None
    return module_type(**options)


def main(arguments: list[str] | None = None) -> None:
    """Run `export_language_model` with the arguments of a command line, by default this one's."""
    auto_cli(export_language_model, args=arguments, as_positional=True)


if __name__ == "__main__":
    main()
