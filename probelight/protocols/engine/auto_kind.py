"""`--model.kind auto`: which kind of model a checkpoint is, by its config and never by its name.

"auto" is a setting and no kind: it is resolved before a config or a key is made of the settings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.io.files import user_path
from probelight.lightning_modules.baselines.word_settings import is_word_folder
from probelight.models.checkpoint_files import EMBEDDED, PretrainedError, check_config, resolve
from probelight.protocols.engine.kinds import AUTO, KINDS, TRANSFORMER, check_questions, saved_kind

if TYPE_CHECKING:
    from probelight.protocols.engine.settings import ModelSettings

# A class that ends so was trained for something else than to say which words come.
_OTHER_HEAD = re.compile(
    r"For(?!CausalLM|ConditionalGeneration|MaskedLM|PreTraining|MultipleChoice)\w+$"
)
_CALLED = {"causal": "causal language model", "seq2seq": "encoder-decoder language model"}


@dataclass(frozen=True)
class _Said:
    """What a checkpoint's config says of its kind.

    Attributes:
        source: The checkpoint, as people gave it.
        family: Its `model_type`.
        architectures: The classes that it was saved from; none in some configs.
        is_one_way: Whether a family that could read both ways is set to read one way.
    """

    source: str
    family: str
    architectures: tuple[str, ...]
    is_one_way: bool

    @classmethod
    def of(cls, source: str, facts: dict[str, Any]) -> _Said:
        """Reads the keys of a config.json, or of transformers' settings as a mapping."""
        given = facts.get("architectures")
        names = tuple(map(str, given)) if isinstance(given, list | tuple) else ()
        # The last one is XLM's word for it.
        one_way = any(facts.get(key) for key in ("is_encoder_decoder", "is_decoder", "causal"))
        return cls(source, str(facts.get("model_type")), names, one_way)

    @property
    def shown(self) -> str:
        """What the decision went by, for people."""
        names = ", ".join(self.architectures)
        return visible(f"architectures {names}" if names else f"model_type {self.family}")

    def ends_in(self, *endings: str) -> bool:
        """Whether it was saved from a class with such a name."""
        return any(name.endswith(endings) for name in self.architectures)


def with_kind(model: ModelSettings) -> ModelSettings:
    """The settings with their kind, where it is "auto", found out and said on a line.

    Raises:
        UsageError: If the config leaves several kinds, or says that this is no language model. If a
            revision is given of what is not on the Hub, which would be recorded and not loaded.
        PretrainedError: If there is no such model, its config cannot be read, or it is of another
            kind than the settings say.
    """
    if model.revision is not None:
        name, kind = model.name_or_path, model.kind
        if kind != AUTO and not KINDS[kind].has_checkpoint:
            name = kind
        elif name != EMBEDDED and not user_path(name).exists():
            name = ""
        if name:
            raise UsageError(
                f"model.revision {model.revision}: {name} is not on the Hub, so it has no "
                "revisions; leave it out (a folder with @ in its name must be there)"
            )
    if model.kind != AUTO:
        _refuse_other_kind(model)
        return model
    kind, line = found_kind(model.name_or_path, model.revision)
    print(line)
    return replace(model, kind=kind)


def question_model(model: ModelSettings, checkpoint: str | None, place: str = "") -> ModelSettings:
    """The settings of an original task's model `with_kind`, refused as by `check_questions`."""
    if model.kind != AUTO:
        check_questions(model, checkpoint, place)
        return with_kind(model)
    model = with_kind(model)
    check_questions(model, checkpoint, place)
    return model


def _refuse_other_kind(model: ModelSettings) -> None:
    """Refuses a folder whose config.json says that it is no model of the kind that is given.

    Of the Hub's nothing may be here yet; they are refused when they are first read.

    Raises:
        PretrainedError: The message names the kind that it is of.
    """
    name, forms = model.name_or_path, KINDS[model.kind].forms
    folder = Path(resolve(name)) if forms else Path()
    if not forms or not folder.is_dir() or is_word_folder(folder):
        return
    said = _Said.of(visible(name), check_config(folder))
    if (
        model.kind == TRANSFORMER
        and not said.is_one_way
        and said.ends_in("MaskedLM", "PreTraining")
    ):
        return  # nothing heavy is imported for most
    config, fitting = _fitting_kinds(name, model.revision)
    if model.kind in fitting:
        return
    own = f"{said.source}: {config.model_type} ({type(config).__name__}) is"
    if not fitting:
        raise PretrainedError(f"{own} of no kind of language model that is read here")
    kind = fitting[0]
    called = _CALLED.get(kind, "masked language model")
    called = f"an {called}" if called.startswith("e") else f"a {called}"
    scored = f" where it is scored, as {kind} models are not trained here"
    use = kind if KINDS[kind].trained else f"{kind}{scored}"
    raise PretrainedError(
        f"{own} {called}, and was to be read as another kind, model.kind {model.kind}; give "
        f"model.kind {use}"
    )


def _fitting_kinds(name_or_path: str, revision: str | None) -> tuple[Any, list[str]]:
    """A checkpoint's settings, and the kinds that are loaded in a form which admits them."""
    from probelight.models.loading import read_config

    config = read_config(name_or_path, revision)
    return config, [
        name
        for name, kind in KINDS.items()
        if any(resolve_name(form).admits(config) for form in kind.forms)
    ]


def found_kind(name_or_path: str, revision: str | None = None) -> tuple[str, str]:
    """The kind of a checkpoint, and a line that says what was taken and by what.

    Raises:
        UsageError: As `with_kind`.
        PretrainedError: As `with_kind`.
    """
    source = visible(f"{name_or_path}@{revision}" if revision else name_or_path)
    if is_word_folder(name_or_path):
        kind = saved_kind(name_or_path)
        raise UsageError(
            f"{source} holds a baseline that was trained (kind {kind}), which is only gone on with "
            f"as --original.checkpoint; --models {kind} trains a new one"
        )
    folder = Path(resolve(name_or_path))
    if folder.is_dir():
        said = _Said.of(source, check_config(folder))
        if said.ends_in("ForMaskedLM") and not said.is_one_way:
            return TRANSFORMER, _line(TRANSFORMER, said)  # nothing heavy is imported for most
    kind, said = _by_forms(source, name_or_path, revision)
    _refuse_unclear(kind, said)
    return kind, _line(kind, said)


def _by_forms(source: str, name_or_path: str, revision: str | None) -> tuple[str, _Said]:
    """The one kind that is loaded in a form which admits the config."""
    config, fitting = _fitting_kinds(name_or_path, revision)
    said = _Said.of(source, config.to_dict())
    if len(fitting) == 1:
        return fitting[0], said
    what = f"{source}: {said.family} ({said.shown})"
    if fitting:
        either = " or ".join(f"--model.kind {kind}" for kind in fitting)
        raise UsageError(f"{what} can be read in more than one way: give {either}")
    end = "; its encoder alone says no words" if said.ends_in("EncoderModel") else ""
    raise UsageError(f"{what} is of no kind of language model that is read here{end}")


def _refuse_unclear(kind: str, said: _Said) -> None:
    """Refuses what was saved for something else than what it would be loaded as."""
    # XLMWithLMHeadModel and the like fill masks, or read one way: their config says it.
    one_way = said.ends_in("ForCausalLM", "LMHeadModel") and not said.ends_in("WithLMHeadModel")
    if kind == "causal" and said.ends_in("ForMaskedLM"):
        why = "fills masks, but its config says that it reads one way"
    elif kind == TRANSFORMER and (one_way or said.is_one_way):
        why = "says both that it reads one way and that it does not"
    elif kind != TRANSFORMER and any(map(_OTHER_HEAD.search, said.architectures)):
        why = "was trained for another task than to say which words come"
    else:
        return
    raise UsageError(
        f"{said.source} ({said.shown}) {why}; if you mean it, give --model.kind {kind} with "
        "--model.name_or_path, or `kind` in a config of a model"
    )


def _line(kind: str, said: _Said) -> str:
    fills_masks = said.ends_in("ForMaskedLM", "ForPreTraining", "LMHeadModel")
    called = _CALLED.get(kind) or ("masked language model" if fills_masks else "encoder")
    return f"{said.source}: {called} ({said.shown})"
