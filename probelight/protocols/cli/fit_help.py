"""`train.py fit | validate | test | predict --help`, without Lightning, whose import takes seconds.

LightningCLI makes hundreds of options of its Trainer and of the classes that a user chooses. Those
that matter are written down here, and a test finds each among the options that it makes.
"""

from __future__ import annotations

from probelight.protocols.cli.command import Command
from probelight.protocols.cli.help import Option, short_help

_RUN = "output_dir ckpt_path"
_DEVICES = "trainer.accelerator trainer.devices trainer.strategy trainer.precision"
_EVALUATION = f"config model data {_RUN} {_DEVICES} trainer.enable_progress_bar"
_CONFIG = "--config configs/experiment/fit_masked_choice.yaml"
_STATE = "--ckpt_path runs/fit/checkpoints/last.ckpt"

LIGHTNING = {
    "fit": Command(
        "train one module on one data module (LightningCLI)",
        example=f"train.py fit {_CONFIG} --trainer.max_epochs 1 --output_dir runs/fit",
        shown=f"config model data {_RUN} checkpoint_every checkpoint_minutes seed_everything "
        "trainer.max_epochs trainer.gradient_clip_val trainer.accumulate_grad_batches "
        f"{_DEVICES}",
    ),
    "validate": Command(
        "evaluate on the validation sets",
        example=f"train.py validate {_CONFIG} {_STATE}",
        shown=_EVALUATION,
    ),
    "test": Command(
        "evaluate on the test sets",
        example=f"train.py test {_CONFIG} {_STATE}",
        shown=_EVALUATION,
    ),
    "predict": Command(
        "write the score of every choice",
        example=f"train.py predict {_CONFIG} {_STATE} --output_dir runs/predictions",
        shown=_EVALUATION,
    ),
}

_TEXTS = {
    "config": "YAML file with any of these keys; of several the last one holds.",
    "model": "The module, a class of lightning_modules, such as "
    "probelight.lightning_modules.masked_choice.MaskedChoice; its arguments are --model.NAME, and "
    "--model.help CLASS shows them.",
    "data": "The data module, such as probelight.datamodules.probe.ProbeDataModule; its arguments "
    "are --data.NAME, and --data.help CLASS shows them.",
    "output_dir": "Folder of the run: states, metrics, predictions, config. (default: runs/fit)",
    "ckpt_path": "A state to begin with; fit goes on by itself from the newest one in output_dir.",
    "checkpoint_every": "Steps between two states. (default: none, by the clock)",
    "checkpoint_minutes": "Minutes between two states at least, by the clock. (default: 2)",
    "seed_everything": "Seed of the order of items, of fresh weights and of dropout. (default: 0)",
    "trainer.max_epochs": "Passes over the train items.",
    "trainer.gradient_clip_val": "Clip gradients to this norm.",
    "trainer.accumulate_grad_batches": "Batches per optimiser step. (default: 1)",
    "trainer.accelerator": "cpu, gpu, or whatever there is. (default: auto)",
    "trainer.devices": "Devices, one process each; -1 takes all there are. (default: auto)",
    "trainer.strategy": "ddp for several devices. (default: auto)",
    "trainer.precision": "Such as bf16-mixed; less than 32 bits does change the numbers.",
    "trainer.enable_progress_bar": "Show progress and the time left. (default: true)",
}


def fit_help(command: str) -> str:
    """The short help of one of the four commands."""
    said = LIGHTNING[command]
    options = [Option(f"--{name}", _TEXTS[name]) for name in said.shown.split()]
    summary = f"{said.summary[0].upper()}{said.summary[1:]}."
    return short_help(f"train.py {command}", summary, options, said.example)
