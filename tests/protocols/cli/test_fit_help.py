from __future__ import annotations

import inspect

from pytorch_lightning import Trainer

from probelight.protocols.cli.fit_help import LIGHTNING, fit_help


def test_the_options_of_the_trainer_are_its_arguments() -> None:
    arguments = inspect.signature(Trainer).parameters
    for command in LIGHTNING:
        names = [w.removeprefix("trainer.") for w in LIGHTNING[command].shown.split() if "." in w]
        assert names
        assert set(names) <= arguments.keys()


def test_the_help_of_fit_names_the_classes_that_it_takes() -> None:
    for line in (
        "probelight.lightning_modules.masked_choice.MaskedChoice",
        "probelight.datamodules.probe.",
    ):
        assert line in fit_help("fit")
