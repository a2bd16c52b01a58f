"""`train.py export`: a trained model as a folder like the shipped ones, in half precision."""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path
from typing import Any, TypeVar

from probelight.io.atomic import whole_folder, write_text_atomic
from probelight.io.errors import UsageError
from probelight.io.files import sha256_of
from probelight.io.package import ASSETS, BUNDLED_MODEL, program
from probelight.io.ranges import PathText
from probelight.protocols.cli.command import Command, command
from probelight.results.record import git_commit

MODEL_DIR = ASSETS / BUNDLED_MODEL
CARD_TEMPLATE = ASSETS / "model_card.md"

Made = TypeVar("Made")


@command(
    Command(
        example="train.py export runs/qa/runs/KEY/checkpoints/best --output_dir runs/model",
        shown="state output_dir merge",
        positional=True,
    )
)
def export_language_model(
    state: PathText, output_dir: PathText = str(MODEL_DIR), merge: bool = False
) -> Path:
    """Writes a trained model as a folder in half precision.

    A language model gets a model card with the accuracies of the weights as they are stored.

    Args:
        state: last.ckpt of `train.py fit --config configs/experiment/pretrain_bookshelf_lm.yaml`,
            or the folder of a model that was trained to answer questions (RUN/checkpoints/best).
        output_dir: Folder to write; `from_pretrained` can load it.
        merge: Merge an adapter into its model and write that in the model's own precision; `state`
            is then the adapter's folder, or MODEL+ADAPTER.

    Returns:
        The folder.
    """
    # Only now: torch and Lightning take seconds to import.
    import torch
    from torch import nn
    from transformers import BertTokenizer

    from probelight.build.pretraining_text import source_titles
    from probelight.callbacks.last_state import read_state
    from probelight.lightning_modules.masked_lm import MaskedLanguageModel
    from probelight.lightning_modules.sentence_choice import SentenceChoice
    from probelight.models.tuning import FULL_TUNING
    from probelight.protocols.engine.models import saved_module
    from probelight.protocols.engine.training import make_trainer
    from probelight.protocols.jobs.job import TrainerSettings
    from probelight.protocols.pretraining import DictionaryText

    folder = Path(output_dir)
    if merge:
        _write_merged(state, folder)
        print(folder)
        return folder
    if Path(state).is_dir():
        trained = saved_module(state, tuning=FULL_TUNING)
        if not isinstance(trained, SentenceChoice):
            raise UsageError(
                f"{state}: {type(trained).__name__} cannot be written in half precision"
            )
        trained.save_pretrained(folder, nn.Module.half(trained).state_dict())
        print(folder)
        return folder
    checkpoint = read_state(Path(state))

    def made_again(kind: type[Made], part: str) -> Made:
        noted = checkpoint.get(part, {})
        # Without what LightningCLI notes for itself, such as `_class_path`.
        arguments = {name: value for name, value in noted.items() if not name.startswith("_")}
        try:
            inspect.signature(kind).bind(**arguments)
        except TypeError as error:
            raise UsageError(
                f"{state}: its {part} are not those of {kind.__name__} ({error}); give a state of "
                f"{program()} fit --config configs/experiment/pretrain_bookshelf_lm.yaml"
            ) from None
        return kind(**arguments)

    module = made_again(MaskedLanguageModel, "hyper_parameters")
    module.load_state_dict(checkpoint["state_dict"])
    nn.Module.float(nn.Module.half(module.model))
    data = made_again(DictionaryText, "datamodule_hyper_parameters")
    trainer = make_trainer(TrainerSettings(), logger=False, enable_checkpointing=False)
    scores = trainer.validate(module, datamodule=data, verbose=False)[0]
    nn.Module.half(module.model)
    tokenizer = BertTokenizer(str(data.vocab_path), model_max_length=module.hparams["max_length"])
    with whole_folder(folder) as fresh:
        module.model.save_pretrained(fresh)
        tokenizer.save_pretrained(fresh)
        shutil.copy(data.vocab_path, fresh / "vocab.txt")
        weights, steps = fresh / "model.safetensors", checkpoint["global_step"]
        parts = checkpoint.get("accumulate", 1)  # batches of a step
        card = CARD_TEMPLATE.read_text(encoding="utf-8").format(
            name=folder.name,
            start=module.start or "random weights",
            mask_rate=f"{100 * data.mask_rate:.0f}",
            definition_rate=f"{100 * data.definition_rate:.0f}",
            step_tokens=f"{parts * data.max_tokens:,}",
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
            epochs=f"{steps * parts / len(data.train_dataloader()):.2f}",
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


def _write_merged(name: str, folder: Path) -> None:
    """Write a model with its adapter added to its weights, and the head that was saved with it."""
    from probelight.models.adapters import merge
    from probelight.models.checkpoint_files import base_of, head_settings, resolve
    from probelight.models.loading import load_pretrained, read_config
    from probelight.models.precision import own_dtype
    from probelight.models.tuning import FULL_TUNING
    from probelight.protocols.engine.models import module_of, saved_module
    from probelight.protocols.engine.settings import MODEL_TYPES, saved_model_type

    base, revision, adapters = base_of(name)
    if not adapters:
        raise UsageError(f"{name} has no adapter to merge; give its folder, or MODEL+ADAPTER")
    dtype = own_dtype(resolve(base), read_config(base, revision))
    if head_settings(name) is not None:
        trained: Any = saved_module(name, tuning=FULL_TUNING)
        trained.to(dtype).save_pretrained(folder)
        return
    form = module_of(MODEL_TYPES[saved_model_type(name)]).FORMS["mc_mlm"]
    model, tokenizer = load_pretrained(form, name)
    merge(model)
    with whole_folder(folder) as fresh:
        model.to(dtype).save_pretrained(fresh)  # type: ignore[arg-type]
        tokenizer.save_pretrained(fresh)
