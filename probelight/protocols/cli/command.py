"""What is declared of a command beside its function, and the short help that is made of it.

Those of LightningCLI are declared here: the help must not import Lightning, which takes seconds.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from probelight.io.package import as_typed, program

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Command:
    """The description of a command whose options are the arguments of a function.

    Args:
        example: A whole command line that can be typed.
        shown: The options that matter most, by spaces: --help explains them, --help_all all.
        positional: Required arguments are given by place.
        named: A function that gives the settings of what the first argument names: their fields
            are options too, and the command is called with `name` and `settings`.
        config: The YAML file, below the project's root, whose keys hold where none are given.
        summary: Its line among the commands, where it is no function's.
    """

    example: str = ""
    shown: str = ""
    positional: bool = False
    named: str = ""
    config: str | None = None
    summary: str = ""


_DECLARED: dict[Callable[..., Any], Command] = {}


def command(description: Command) -> Callable[[Function], Function]:
    """Declare a function as a command, and leave it as it is."""

    def declare(function: Function) -> Function:
        _DECLARED[function] = description
        return function

    return declare


def declared(function: Callable[..., Any]) -> Command:
    """Return what was declared of a function."""
    return _DECLARED[function]


WIDTH = 100
_TYPED = 26  # columns of an option as it is typed; a longer one has a line of its own
_wrapped = partial(textwrap.wrap, break_long_words=False, break_on_hyphens=False)


@dataclass(frozen=True)
class Option:
    """An option as it is typed, and what it is for."""

    typed: str
    text: str


def short_help(
    prog: str, summary: str, options: Sequence[Option], example: str, num_more: int | None = None
) -> str:
    """Return the text of `--help`: what it does, the dozen options that matter, an example.

    Args:
        prog: The command as it is typed, with what is given by place.
        summary: What it does.
        options: The options explained.
        example: A command line.
        num_more: How many other options `--help_all` shows; none leaves the number out.
    """
    others = "all others" if num_more is None else f"the other {num_more}"
    more = f"--help_all shows {others}; " if others != "the other 0" else ""
    end = (
        f"{more}--print_config prints all of them as YAML, and --config FILE.yaml takes such a "
        "file, or a part of it."
    )
    typed = _wrapped(as_typed(example), WIDTH - 4, initial_indent="  ", subsequent_indent="    ")
    lines = [f"usage: {prog} [--config FILE.yaml] [--option value ...]", ""]
    lines += [*_wrapped(as_typed(summary), WIDTH), ""]
    for option in options:
        texts = _wrapped(as_typed(option.text), WIDTH - _TYPED - 4) or [""]
        if len(option.typed) > _TYPED:
            lines.append(f"  {option.typed}")
        else:
            lines.append(f"  {option.typed:<{_TYPED}}  {texts.pop(0)}".rstrip())
        lines += [f"{'':{_TYPED + 4}}{text}" for text in texts]
    lines += ["", "example:", " \\\n".join(typed), "", *_wrapped(end, WIDTH)]
    return "\n".join(lines)


_RUN = "output_dir ckpt_path"
_DEVICES = "trainer.accelerator trainer.devices trainer.strategy trainer.precision"
_EVALUATION = f"config model data {_RUN} {_DEVICES} trainer.enable_progress_bar"
_CONFIG = "--config configs/experiment/fit_masked_choice.yaml"
_STATE = "--ckpt_path runs/fit/checkpoints/last.ckpt"

LIGHTNING = {
    "fit": Command(
        summary="train one module on one data module (LightningCLI)",
        example=f"train.py fit {_CONFIG} --trainer.max_epochs 1 --output_dir runs/fit",
        shown=f"config model data {_RUN} checkpoint_every checkpoint_minutes seed_everything "
        "trainer.max_epochs trainer.gradient_clip_val trainer.accumulate_grad_batches "
        f"{_DEVICES}",
    ),
    "validate": Command(
        summary="evaluate on the validation sets",
        example=f"train.py validate {_CONFIG} {_STATE}",
        shown=_EVALUATION,
    ),
    "test": Command(
        summary="evaluate on the test sets",
        example=f"train.py test {_CONFIG} {_STATE}",
        shown=_EVALUATION,
    ),
    "predict": Command(
        summary="write the score of every choice",
        example=f"train.py predict {_CONFIG} {_STATE} --output_dir runs/predictions",
        shown=_EVALUATION,
    ),
}

# A test finds each among the hundreds of options that LightningCLI makes.
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
    """Return the short help of one of the commands of LightningCLI."""
    description = LIGHTNING[command]
    options = [Option(f"--{name}", _TEXTS[name]) for name in description.shown.split()]
    summary = f"{description.summary[0].upper()}{description.summary[1:]}."
    return short_help(f"{program()} {command}", summary, options, description.example)
