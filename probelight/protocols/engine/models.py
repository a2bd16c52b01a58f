"""The one factory of models: what answers as it is, what is trained, what a folder holds.

It asks the registry of kinds and imports what a kind is made by when it is first made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

from probelight.io.artifacts import check_model
from probelight.io.errors import RecordError, UsageError
from probelight.probes.record import Record, Setup
from probelight.protocols.engine.kinds import (
    KINDS,
    Trained,
    kind_of,
    refuse_untrained,
    saved_kind,
    trained_for,
)

if TYPE_CHECKING:
    from probelight.lightning_modules.base import ChoiceModule
    from probelight.models.scorer import ModelTypeModule, Posable, Scorer
    from probelight.protocols.engine.settings import ModelSettings

Refuse = Callable[[Sequence[Record], Sequence[int]], None]

# Settings whose argument of a constructor has another name.
_ARGUMENTS = {"name_or_path": "model_name_or_path"}


def scorer_for(model: ModelSettings, setup: Setup, seed: int = 0) -> Scorer:
    """What answers probes of a setup as it is, without being trained here.

    Args:
        model: The model.
        setup: The setup.
        seed: Of its weights, where they are random.

    Raises:
        UsageError: If its kind knows nothing before it is trained, or does not answer the setup.
        PretrainedError: If there is no such model, or it is of another kind.
        ValueError: If a finished run kept the model, and it has changed since.
    """
    source = _scorers_of(model)
    check_model(model.name_or_path)
    return source.load(model, setup, seed)


def check_scorer(
    model: ModelSettings,
    setup: Setup,
    sets: Iterable[Sequence[Record]],
    refuse: Refuse | None = None,
) -> None:
    """Refuses a model that cannot answer some records, before hours are spent on others.

    Weights are not read: a tokenizer and a config take a fraction of a second.

    Args:
        model: The model.
        setup: How the records are posed.
        sets: The records.
        refuse: Called with the records of each set and the places of those that can be posed.

    Raises:
        UsageError: As `scorer_for`.
        PretrainedError: As `scorer_for`, but for weights that lack or are damaged.
        RecordError: If it cannot tell candidates apart, or does not know one; the message names
            the model.
    """
    posable: Posable = _scorers_of(model).check(model, setup)
    for records in sets:
        try:
            kept = posable(records)
            if refuse is not None:
                refuse(records, kept)
        except RecordError as error:
            raise RecordError(f"{model.label}: {error}") from None


def module_for(model: ModelSettings, setup: Setup, **options: Any) -> ChoiceModule:
    """The module that is trained to answer probes of a setup.

    Args:
        model: Which model.
        setup: "mc_mlm", the masked sentence with K candidate words, or "mc_qa", the question with
            K answers.
        **options: Arguments of the module's constructor that say how it is trained, such as `mode`,
            `learning_rate`, `seed`, `num_choices` and `max_grad_norm`, the kind's own defaults
            where not given. `monitor` is the metric whose stand-still halves the rate of kinds
            without a schedule.

    Raises:
        UsageError: If the kind is not trained for the setup, or the model has an option that its
            kind does not know.
        PretrainedError: If there is no such model, or it is of another kind.
    """
    trained = trained_for(model, setup)
    if model.random_weights and not kind_of(model).has_checkpoint:
        raise UsageError(
            f"random_weights is the control of a transformer; kind {model.kind} has fresh weights "
            "anyway"
        )
    own = {_ARGUMENTS.get(name, name): getattr(model, name) for name in trained.reads}
    module: ChoiceModule = resolve_name(trained.made_by)(**own, **_known(trained, options))
    return module


def check_module(model: ModelSettings, setup: Setup) -> None:
    """Refuses a model that cannot be trained for a setup, without reading its weights.

    Raises:
        UsageError: As `module_for`.
        PretrainedError: If there is no such model, or it is of another kind.
    """
    form = trained_for(model, setup).loads
    if form is not None:
        from probelight.models.loading import check_pretrained

        given = model.name_or_path, model.revision, model.random_weights
        check_pretrained(resolve_name(form), *given)


def saved_module(
    folder: str | Path, *, monitor: str | None = None, **overrides: Any
) -> ChoiceModule:
    """The module that a folder holds, whichever kind wrote it; transformers' own among them.

    Args:
        folder: The folder.
        monitor: Metric whose stand-still halves a baseline's rate; transformers have a schedule.
        **overrides: Arguments of the module's constructor, such as `learning_rate`.

    Raises:
        PretrainedError: If the folder is not one of those, or is damaged.
        ValueError: If a finished run kept the model, and it has changed since.
    """
    check_model(folder)
    trained = KINDS[saved_kind(folder)].trained
    own = trained.get("mc_qa") or trained["mc_mlm"]
    options = _known(own, {"monitor": monitor, **overrides})
    module: ChoiceModule = resolve_name(own.made_by).from_folder(folder, **options)
    return module


def _scorers_of(model: ModelSettings) -> ModelTypeModule:
    refuse_untrained([model], "zero-shot scoring")
    name = kind_of(model).scorer
    assert name is not None
    return cast("ModelTypeModule", resolve_name(name))


def _known(trained: Trained, options: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in options.items() if k != "monitor" or trained.halves_rate}
