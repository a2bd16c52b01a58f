"""`train.py export`: a pre-training state as the model folder that the repository ships."""

from __future__ import annotations

from pathlib import Path

from probelight.io.package import ASSETS
from probelight.io.ranges import PathText
from probelight.protocols.cli.command import Command, command

MODEL_DIR = ASSETS / "dictionary-lm"


@command(
    Command(
        "a training state as a model folder",
        example="train.py export runs/fit/checkpoints/last.ckpt --output_dir runs/model",
        shown="state output_dir",
        positional=True,
    )
)
def export_language_model(state: PathText, output_dir: PathText = str(MODEL_DIR)) -> Path:
    """Turns a pre-training state into a model folder with its measured model card.

    The weights are stored in half precision, which halves the file, and the accuracies in the
    card are measured on the weights as stored.

    Args:
        state: last.ckpt of `train.py fit --config configs/experiment/pretrain_dictionary_lm.yaml`.
        output_dir: Folder to write, loadable by `from_pretrained`.

    Returns:
        The folder.
    """
    # Only now: it imports torch and Lightning, which takes seconds.
    from probelight.protocols.engine.export import export_state

    return export_state(Path(state), Path(output_dir))
