"""The models that a command names: configs, folders or names on the Hub, told apart in tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from probelight.io.errors import UsageError
from probelight.io.files import user_path
from probelight.io.package import CONFIGS
from probelight.protocols.engine.auto_kind import with_kind
from probelight.protocols.engine.kinds import AUTO, kind_of
from probelight.protocols.engine.settings import DEFAULT_MODEL, ModelSettings, listed
from probelight.results.load import distinct_ends

MODEL_CONFIGS = CONFIGS / "model"


def chosen_models(
    names: str | Sequence[str], model: ModelSettings, random_weights: bool
) -> list[ModelSettings]:
    """The models compared, each transformer with its random-weights control if that is asked for.

    Args:
        names: Configs in configs/model/ (names or paths of .yaml files), folders, or names on the
            Hub, separated by commas; empty takes `model`. What stands behind an `@` is a revision
            on the Hub, and part of the name in tables.
        model: The one model where no names are given.
        random_weights: Add the same architectures with fresh weights.

    Raises:
        UsageError: If names and a model are given, a config is malformed, it is not clear of what
            kind a model is (`with_kind`), or two have the same name in tables. Folders of one name
            are told apart by their paths.
        PretrainedError: If there is no model of a name.
    """
    given = listed(names)
    if given and model != DEFAULT_MODEL:
        raise UsageError("give either --models a,b or --model, not both")
    models = [with_kind(model)]
    if given:
        models = _named_apart([with_kind(model_of(name)) for name in given])
        models = [_named_by(split_revision(n)[1], m) for n, m in zip(given, models, strict=True)]
    if random_weights:
        models += [
            replace(one, random_weights=True)
            for one in models
            if kind_of(one).has_checkpoint and not one.random_weights
        ]
    labels = [one.label for one in models]
    if repeated := {label for label in labels if labels.count(label) > 1}:
        raise UsageError(
            f"two models are called {min(repeated)!r} in tables; leave one out, or give them names "
            "(`name:` in a config of a model)"
        )
    return models


def _named_apart(models: Sequence[ModelSettings]) -> list[ModelSettings]:
    """The models, those in folders of one name called by as much of their paths as differs."""
    labels = [one.label for one in models]
    found = []
    for one in models:
        same = [other.name_or_path for other in models if other.label == one.label]
        alike = kind_of(one).title or one.name or len(set(same)) == 1
        tail = None if alike or labels.count(one.label) == 1 else distinct_ends(same)
        found.append(replace(one, name=tail[one.name_or_path]) if tail else one)
    return found


def model_of(name: str) -> ModelSettings:
    """The settings that a name stands for: a config's, or those of a folder or Hub name.

    Of what kind the latter is, is not found out yet.

    Raises:
        UsageError: If a config is missing or malformed; the message names the file.
    """
    name, revision = split_revision(name)
    if revision is not None and not (name and revision):
        raise UsageError(f"--models {name}@{revision}: give NAME@REVISION")
    model = _unrevised(name)
    return model if revision is None else replace(model, revision=revision)


def split_revision(name: str) -> tuple[str, str | None]:
    """A name and what stands behind its last @; a path that is there has no revision."""
    is_path = name.endswith((".yaml", ".yml")) or user_path(name).exists()
    base, at, revision = name.rpartition("@")
    return (base, revision) if at and not is_path else (name, None)


def _named_by(revision: str | None, model: ModelSettings) -> ModelSettings:
    """The model, called by the revision that was given with its name."""
    if revision is None:
        return model
    return replace(model, name=f"{replace(model, random_weights=False).label}@{revision}")


def _unrevised(name: str) -> ModelSettings:
    path = Path(name) if name.endswith((".yaml", ".yml")) else MODEL_CONFIGS / f"{name}.yaml"
    if path.is_file():
        return _read(path)
    if path == Path(name):
        raise UsageError(f"--models {name}: there is no such file")
    return ModelSettings(name_or_path=name, kind=AUTO)


def _read(path: Path) -> ModelSettings:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--model", type=ModelSettings, default=ModelSettings())
    try:
        settings: Any = parser.instantiate(parser.parse_path(str(path)))["model"]
    except Exception as error:
        # jsonargparse lets errors of several kinds through, YAML's among them.
        first = str(error).strip().splitlines()[0]
        raise UsageError(f"{path}: no config of a model: {first}") from error
    return ModelSettings(**{f.name: getattr(settings, f.name) for f in fields(ModelSettings)})
