"""`train.py export`: a trained model as a folder like the shipped ones, in half precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from probelight.commands.command import Command, command
from probelight.io.atomic import whole_folder
from probelight.io.errors import UsageError
from probelight.io.ranges import PathText
from probelight.models.checkpoint_files import (
    CheckpointRef,
    original_task_of,
    write_original_task,
)


@command(
    Command(
        example="train.py export runs/qa/runs/KEY/checkpoints/best --output_dir runs/model",
        options="state output_dir merge",
        positional=True,
    )
)
def export(state: PathText, output_dir: PathText = "runs/model", merge: bool = False) -> Path:
    """Writes a trained question model as a folder in half precision.

    Args:
        state: Folder of a model that was trained to answer questions (RUN/checkpoints/best).
        output_dir: Folder to write; `from_pretrained` can load it.
        merge: Merge an adapter into its model and write that in the model's own precision; `state`
            is then the adapter's folder, or MODEL+ADAPTER.

    Returns:
        The folder.
    """
    from torch import nn  # not above: --help is quick

    from probelight.lightning_modules.sentence_choice import SentenceChoice
    from probelight.models.tuning import FULL_TUNING
    from probelight.training.modules import saved_module

    folder = Path(output_dir)
    if merge:
        _write_merged(state, folder)
    else:
        trained = saved_module(state, tuning=FULL_TUNING)
        if not isinstance(trained, SentenceChoice):
            raise UsageError(
                f"{state}: {type(trained).__name__} cannot be written in half precision"
            )
        trained.save_pretrained(folder, nn.Module.half(trained).state_dict())
    write_original_task(folder, original_task_of(CheckpointRef.parse(state)))
    print(folder)
    return folder


def _write_merged(state: str, folder: Path) -> None:
    """Write a model with its adapter added to its weights, and the head that was saved with it."""
    from probelight.models.adapters import merge
    from probelight.models.checkpoint_files import base_of, head_settings, resolve
    from probelight.models.loading import load_pretrained, read_config
    from probelight.models.networks import own_dtype
    from probelight.models.registry import MODEL_TYPES, module_of, saved_model_type
    from probelight.models.tuning import FULL_TUNING
    from probelight.training.modules import saved_module

    ref = CheckpointRef.parse(state)
    base, adapters = base_of(ref)
    if not adapters:
        raise UsageError(f"{state} has no adapter to merge; give its folder, or MODEL+ADAPTER")
    dtype = own_dtype(resolve(base.name), read_config(base))
    if head_settings(ref) is not None:
        trained: Any = saved_module(state, tuning=FULL_TUNING)
        trained.to(dtype).save_pretrained(folder)
        return
    form = module_of(MODEL_TYPES[saved_model_type(ref)]).FORMS["mc_mlm"]
    model, tokenizer = load_pretrained(form, ref)
    merge(model)
    with whole_folder(folder) as fresh:
        model.to(dtype).save_pretrained(fresh)  # type: ignore[arg-type]
        tokenizer.save_pretrained(fresh)
