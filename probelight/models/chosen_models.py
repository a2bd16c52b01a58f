"""The models that a command names: configs, folders or names on the Hub, and their model types.

`--model.kind auto` is resolved here by the checkpoint's config, never by its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from probelight.io.documents import read_yaml
from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.io.files import distinct_ends
from probelight.io.package import CONFIGS
from probelight.io.settings import typed
from probelight.models.checkpoint_files import (
    CheckpointRef,
    PretrainedError,
    base_of,
    check_config,
    is_word_folder,
    model_folder,
    resolve,
)
from probelight.models.registry import AUTO, MODEL_TYPES, TRANSFORMER, module_of, saved_model_type
from probelight.models.settings import DEFAULT_MODEL, ModelSettings, model_type_of

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
        if not model_type_of(named).is_baseline:
            changes.pop("vectors", None)
        if not model_type_of(named).heads and len(names) > 1:
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
            if model_type_of(trained).has_checkpoint and not trained.random_weights
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
        keeps_label = model_type_of(model).title or model.name or len(namesakes) == 1
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
        model = replace(model, adapter=ref.adapter)
    return model if revision is None else replace(model, revision=revision)


# A class that ends so was trained for something else than to say which words come.
_OTHER_HEAD = re.compile(
    r"For(?!CausalLM|ConditionalGeneration|MaskedLM|PreTraining|MultipleChoice)\w+$"
)
_CALLED = {"causal": "causal language model", "seq2seq": "encoder-decoder language model"}


@dataclass(frozen=True)
class _Description:
    """What the config of a checkpoint says about its model type."""

    source: str  # the checkpoint, as the user gave it
    family: str  # its `model_type`
    architectures: tuple[str, ...]  # the classes that it was saved from; none in some configs
    is_one_way: bool  # whether a family that could read both ways is set to read one way

    @classmethod
    def of(cls, source: str, config: dict[str, Any]) -> _Description:
        """Read the keys of a config.json, or of transformers' settings as a mapping."""
        classes = config.get("architectures")
        names = tuple(map(str, classes)) if isinstance(classes, list | tuple) else ()
        # The last one is XLM's word for it.
        one_way = any(config.get(key) for key in ("is_encoder_decoder", "is_decoder", "causal"))
        return cls(source, str(config.get("model_type")), names, one_way)

    @property
    def class_names(self) -> str:
        """The architectures, or else the family, as messages name them."""
        names = ", ".join(self.architectures)
        return visible(f"architectures {names}" if names else f"model_type {self.family}")

    def ends_in(self, *endings: str) -> bool:
        """Return whether a class that it was saved from has a name with one of these ends."""
        return any(name.endswith(endings) for name in self.architectures)


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
        kind, line = found_model_type(model.checkpoint)
        print(line)
        model = replace(model, kind=kind)
    else:
        _refuse_other_type(model)
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


def _refuse_other_type(model: ModelSettings) -> None:
    """Refuse a folder whose config.json says that it is of another type than the settings say.

    Models of the Hub may not be here yet; they are refused when they are first read.
    """
    if not MODEL_TYPES[model.kind].has_checkpoint:
        return
    base, _ = base_of(model.checkpoint)
    folder = Path(resolve(base.name))
    if not folder.is_dir() or is_word_folder(folder):
        return
    description = _Description.of(visible(base.name), check_config(folder))
    fills_masks = description.ends_in("MaskedLM", "PreTraining") and not description.is_one_way
    if model.kind == TRANSFORMER and fills_masks:
        return  # nothing heavy is imported for most
    config, fitting = _fitting_types(base)
    if model.kind in fitting:
        return
    subject = f"{description.source}: {config.model_type} ({type(config).__name__}) is"
    if not fitting:
        raise PretrainedError(f"{subject} not a kind of language model that Probelight can load")
    kind = fitting[0]
    title = _CALLED.get(kind, "masked language model")
    article = "an" if title.startswith("e") else "a"
    raise PretrainedError(
        f"{subject} {article} {title}, but another kind is expected (model.kind {model.kind}); "
        f"give model.kind {kind}"
    )


def _fitting_types(ref: CheckpointRef) -> tuple[Any, list[str]]:
    """Return a checkpoint's settings, and the types that load it in a form which admits them."""
    from probelight.models.loading import read_config

    config = read_config(ref)
    return config, [
        name
        for name, model_type in MODEL_TYPES.items()
        if model_type.has_checkpoint
        and any(form.admits(config) for form in module_of(model_type).FORMS.values())
    ]


def found_model_type(ref: CheckpointRef) -> tuple[str, str]:
    """Return the type of a checkpoint, and a line that says how it was found."""
    source = visible(str(ref))
    if is_word_folder(ref.folder):
        kind = saved_model_type(ref)
        raise UsageError(
            f"{source} has a trained baseline (kind {kind}), which works only as "
            f"--original.checkpoint; --models {kind} trains a new one"
        )
    base, _ = base_of(ref)
    folder = Path(resolve(base.name))
    if folder.is_dir():
        description = _Description.of(source, check_config(folder))
        if description.ends_in("ForMaskedLM") and not description.is_one_way:
            # Nothing heavy is imported for most.
            return TRANSFORMER, _type_line(TRANSFORMER, description)
    config, fitting = _fitting_types(base)
    description = _Description.of(source, config.to_dict())
    subject = f"{source}: {description.family} ({description.class_names})"
    if not fitting:
        end = "; an encoder alone predicts no words" if description.ends_in("EncoderModel") else ""
        raise UsageError(f"{subject} is not a kind of language model that Probelight can load{end}")
    if len(fitting) > 1:
        either = " or ".join(f"--model.kind {kind}" for kind in fitting)
        raise UsageError(f"{subject} can be loaded as more than one kind; give {either}")
    [kind] = fitting
    if why := _doubt(kind, description):
        raise UsageError(
            f"{source} ({description.class_names}) {why}; to use it anyway, give --model.kind "
            f"{kind} with --model.name_or_path, or `kind` in a model's config"
        )
    return kind, _type_line(kind, description)


def _doubt(kind: str, description: _Description) -> str:
    """Return why a checkpoint was saved for something else than its type; "" if it was not."""
    # XLMWithLMHeadModel and the like fill masks, or read one way: their config says it.
    one_way = description.ends_in("ForCausalLM", "LMHeadModel") and not description.ends_in(
        "WithLMHeadModel"
    )
    if kind == "causal" and description.ends_in("ForMaskedLM"):
        return "fills masks, but its config makes it a causal model"
    if kind == TRANSFORMER and (one_way or description.is_one_way):
        return "claims both to be a causal model and to fill masks"
    if kind != TRANSFORMER and any(map(_OTHER_HEAD.search, description.architectures)):
        return "was trained for a task other than predicting words"
    return ""


def _type_line(kind: str, description: _Description) -> str:
    fills_masks = description.ends_in("ForMaskedLM", "ForPreTraining", "LMHeadModel")
    title = _CALLED.get(kind) or ("masked language model" if fills_masks else "encoder")
    return f"{description.source}: {title} ({description.class_names})"
