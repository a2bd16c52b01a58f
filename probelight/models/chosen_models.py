"""The models that a command names: configs, folders or names on the Hub, and their model types.

`--model.kind auto` is resolved here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from probelight.io.documents import read_yaml
from probelight.io.errors import UsageError
from probelight.io.files import distinct_ends
from probelight.io.package import CONFIGS
from probelight.io.settings import typed
from probelight.models.checkpoint_files import CheckpointRef, model_folder
from probelight.models.registry import (
    AUTO,
    DEFAULT_MODEL,
    MODEL_TYPES,
    ModelSettings,
    detected_type,
    refuse_other_type,
)

MODEL_CONFIGS = CONFIGS / "model"
DEFAULT = vars(DEFAULT_MODEL)


def chosen_models(
    names: Sequence[str], model: ModelSettings, random_weights: bool
) -> list[ModelSettings]:
    """Return the models that are compared, with their random-weights controls if asked for.

    `names` are configs in configs/model/ (names or paths), folders, or names on the Hub, with
    `@REVISION` behind them if need be, and `+ADAPTER`, a folder, behind that. Without any, `model`
    is the one model; else it holds the settings for all of them.
    """
    models = []
    if not names:
        models = [with_model_type(model)]
    for name in names:
        named = with_model_type(model_of(name))
        changes = {key: value for key, value in vars(model).items() if value != DEFAULT[key]}
        model_keys = {"name_or_path", "revision", "random_weights", "kind", "name", "adapter"}
        if conflicts := changes.keys() & model_keys:
            raise UsageError(f"give either --models a,b or --model.{min(conflicts)}, not both")
        if not named.type.is_baseline:
            changes.pop("vectors", None)
        if not named.type.heads and len(names) > 1:
            changes.pop("scoring", None)
        models.append(with_model_type(replace(named, **changes)))
    models = _with_distinct_names(models)
    for index, name in enumerate(names):
        ref = CheckpointRef.parse(name, reads_revision=True)
        if ref.revision is not None:
            label = replace(models[index], random_weights=False).label
            plain, plus, end = label.partition("+") if ref.adapter else (label, "", "")
            models[index] = replace(models[index], name=f"{plain}@{ref.revision}{plus}{end}")
    if random_weights:
        controls = (  # models that differ by their adapters have one
            replace(trained, random_weights=True, adapter=None, name=None)
            if trained.adapter
            else replace(trained, random_weights=True)
            for trained in models
            if trained.type.has_checkpoint and not trained.random_weights
        )
        models += dict.fromkeys(controls)
    labels = [chosen.label for chosen in models]
    if repeated := {label for label in labels if labels.count(label) > 1}:
        raise UsageError(
            f"two models are called {min(repeated)!r} in tables; leave one out, or give them "
            "different names (`name:` in a model's config)"
        )
    return models


def _with_distinct_names(models: Sequence[ModelSettings]) -> list[ModelSettings]:
    """Name models in folders of one name by as much of their paths as differs."""
    distinguished = []
    for model in models:
        namesakes = [namesake for namesake in models if namesake.label == model.label]
        keeps_label = model.type.title or model.name or len(namesakes) == 1
        path_ends = []
        for name in () if keeps_label else ("name_or_path", "adapter"):
            paths = [getattr(namesake, name) for namesake in namesakes]
            if (path := getattr(model, name)) is not None:
                last_name = path.rstrip("/").rsplit("/", 1)[-1]
                path_ends.append(distinct_ends(paths)[path] if len(set(paths)) > 1 else last_name)
        distinguished.append(replace(model, name="+".join(path_ends)) if path_ends else model)
    return distinguished


def model_of(text: str) -> ModelSettings:
    """Return the settings of a config, or of a folder or Hub name, whose type is still open."""
    ref = CheckpointRef.parse(text, reads_revision=True)
    name, revision = ref.name, ref.revision
    if revision is not None and not (name and revision):
        raise UsageError(f"--models {name}@{revision}: give NAME@REVISION")
    path = Path(name) if name.endswith((".yaml", ".yml")) else MODEL_CONFIGS / f"{name}.yaml"
    if path.is_file():
        content = read_yaml(path)
        if not isinstance(content, dict) or content.keys() != {"model"}:
            raise UsageError(f"{path}: not a model's config; put the settings under `model:`")
        values = content["model"] or {}
        model = typed(ModelSettings, values, str(path), UsageError, within="model")
    elif path == Path(name):
        raise UsageError(f"--models {name}: there is no such file")
    else:
        model = ModelSettings(name_or_path=name, kind=AUTO)
    if ref.adapter:
        label = f"{model.name}+{Path(ref.adapter).name}" if model.name else None
        model = replace(model, adapter=ref.adapter, name=label)
    return model if revision is None else replace(model, revision=revision)


def with_model_type(model: ModelSettings) -> ModelSettings:
    """Return the settings with their model type; where it is "auto", find it and print it."""
    if model.revision is not None:
        name, kind = model.name_or_path, model.kind
        if kind != AUTO and not MODEL_TYPES[kind].has_checkpoint:
            name = kind
        elif not model_folder(model.checkpoint.name).exists():
            name = ""
        if name:
            raise UsageError(
                f"model.revision {model.revision}: {name} is not on the Hub, so it has no "
                "revisions; leave it out (if you meant a folder with @ in its name, it does not "
                "exist)"
            )
    if model.kind == AUTO:
        kind, line = detected_type(model.checkpoint)
        print(line)
        model = replace(model, kind=kind)
    else:
        refuse_other_type(model.kind, model.checkpoint)
    if model.scoring != AUTO and not MODEL_TYPES[model.kind].heads:
        raise UsageError(
            f"model.scoring {model.scoring} is only for kinds causal and seq2seq, but "
            f"{model.label} is of kind {model.kind}; leave it out"
        )
    # "auto" may be a head, where the folder was trained with one.
    has_head = model.scoring in (AUTO, "last_token") and model.head != "pooler"
    is_asked = model.head != DEFAULT["head"]
    if MODEL_TYPES[model.kind].heads and is_asked and not has_head:
        raise UsageError(
            f"model.head {model.head}: a model of kind {model.kind} has a head only with "
            "model.scoring last_token, and then mlp or linear; leave it out"
        )
    return model
