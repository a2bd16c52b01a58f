from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import pytorch_lightning as pl
import yaml

import probelight.datamodules
import probelight.lightning_modules
import tools
from probelight import cli
from probelight.cli.lightning import LightningTrainer, check_options, run_options
from probelight.io.ranges import Within
from probelight.io.settings import RangeError, checked, hints_of
from probelight.models.scorer import Question
from probelight.probes.record import Record


def chosen_classes() -> list[type]:
    classes = []
    for package in (probelight.lightning_modules, probelight.datamodules, tools):
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for member in vars(importlib.import_module(info.name)).values():
                if (
                    isinstance(member, type)
                    and issubclass(member, pl.LightningModule | pl.LightningDataModule)
                    and member.__module__ == info.name
                ):
                    classes.append(member)
    return classes


def numbers(hint: Any, name: str, limits: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any, Any]]:
    """(name, limits, how a number becomes the setting's value) of every number that it holds."""
    if hint in (Record, Question):  # no settings: Python gives them to a module
        return
    if hint in (int, float):
        yield name, [limit for limit in limits if isinstance(limit, Within)], lambda value: value
    elif dataclasses.is_dataclass(hint):
        for key, of_key in hints_of(hint).items():  # type: ignore[arg-type]
            for path, metadata_of, wrap in numbers(of_key, f"{name}.{key}"):
                yield path, metadata_of, lambda value, wrap=wrap, key=key: {key: wrap(value)}
    else:
        metadata, origin = getattr(hint, "__metadata__", ()), get_origin(hint)
        suffix = "[0]" if origin is list else ".x" if origin is dict else ""
        for item_hint in get_args(hint)[:1] if metadata else get_args(hint):
            for path, metadata_of, wrap in numbers(item_hint, f"{name}{suffix}", metadata):
                if origin is list:
                    yield path, metadata_of, lambda value, wrap=wrap: [wrap(value)]
                elif origin is dict:
                    yield path, metadata_of, lambda value, wrap=wrap: {"x": wrap(value)}
                else:
                    yield path, metadata_of, wrap


def declared() -> list[tuple[Callable[..., Any], str, Any, Any]]:
    numbers_of = []
    commands = map(cli.function_of, cli.COMMANDS)
    for function in (*commands, *chosen_classes(), run_options, LightningTrainer):
        for name, hint in hints_of(function).items():
            if name != "return":
                for path, limits, wrap in numbers(hint, name):
                    numbers_of.append((function, path, limits, {name: wrap}))
    return numbers_of


def test_every_number_that_a_command_takes_has_a_range() -> None:
    numbers_taken = declared()
    assert len(numbers_taken) > 250
    assert not {f"{f.__module__}: {path}" for f, path, limits, _ in numbers_taken if not limits}


def test_what_is_outside_of_any_range_is_refused_by_name() -> None:
    for function, path, limits, wrapped in declared():
        [(name, wrap)] = wrapped.items()
        [limit] = limits
        for wrong in (limit.low - 3, limit.high + 1, float("inf"), float("-inf"), float("nan")):
            with pytest.raises(RangeError) as caught:
                checked(function, {name: wrap(wrong)}, "--{}".format)
            error = str(caught.value)
            assert error.startswith(f"--{path} ")
            assert error.endswith(f"give {limit}")


def test_every_number_of_lightnings_trainer_has_a_range() -> None:
    theirs = inspect.signature(pl.Trainer).parameters
    numeric = {
        name
        for name, parameter in theirs.items()
        if {int, float} & {parameter.annotation, *get_args(parameter.annotation)}
    }
    assert numeric <= set(hints_of(LightningTrainer))


@pytest.mark.parametrize(
    "path",
    sorted([*Path("configs").glob("[est]*/*.yaml"), *Path("tools/configs").iterdir()]),
    ids=str,
)
def test_the_configs_that_are_shipped_keep_to_the_ranges(path: Path) -> None:
    config = yaml.safe_load(path.read_text())
    if config.keys() & {"program", "method"}:  # W&B's own
        return
    if config.keys() & {"model", "data"} and "class_path" in str(config):
        check_options(config, "--{}".format)
        return
    for function in map(cli.function_of, cli.COMMANDS):
        if config.keys() <= {*hints_of(function), "config"}:
            with suppress(RangeError):  # of another command with arguments of these names
                checked(function, config, "--{}".format)
                return
    pytest.fail(f"no command takes {sorted(config)}")
