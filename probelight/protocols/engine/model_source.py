"""What a run records of where its model comes from, so that a report need not go by names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from probelight.encoding.vector_source import vectors_label
from probelight.io.files import user_path
from probelight.protocols.engine.models import model_type_of
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.inoculation.settings import OriginalTask
from probelight.results.details import OriginalParts
from probelight.results.record import ModelSource, RunRecord

EMBEDDED = "embedded"


def hub_id(model: ModelSettings) -> str | None:
    """The model's id on the Hub; None for a folder, a baseline or random weights."""
    name = model.name_or_path
    if not model_type_of(model).has_checkpoint or model.random_weights or name == EMBEDDED:
        return None
    return None if user_path(name).exists() else name


def source_of(model: ModelSettings) -> ModelSource:
    """Where a model comes from, for its result.json."""
    at = f"@{model.revision}" if model.revision else ""
    has_checkpoint = model_type_of(model).has_checkpoint
    return ModelSource(
        loaded_from=f"{model.name_or_path}{at}" if has_checkpoint else model.vectors,
        hub_id=hub_id(model),
        revision=model.revision,
        vectors="" if has_checkpoint else vectors_label(model.vectors),
        control_of=replace(model, random_weights=False).label if model.random_weights else "",
    )


def original_source(
    model: ModelSettings, task: OriginalTask
) -> tuple[ModelSource, OriginalParts | None]:
    """The same of an original-task model, with the parts of the task.

    Of a given checkpoint it is what the run that trained it recorded, if the folder still holds the
    weights of that run; of any other one nothing is known.
    """
    source = source_of(model)
    if task.checkpoint is None:
        return source, OriginalParts(sets=tuple(task.sets), train_items=task.train_items)
    recorded = _recorded(Path(task.checkpoint))
    if recorded is None:
        return replace(source, hub_id=None, revision=None), None
    known = recorded.source
    source = replace(source, hub_id=known.hub_id, revision=known.revision)
    return source, recorded.detail(OriginalParts)


def _recorded(checkpoint: Path) -> RunRecord | None:
    """What the run `RUN/checkpoints/best` is of wrote; None where it is none, or has changed."""
    path = checkpoint.resolve().parent.parent / "result.json"
    try:
        record = RunRecord.read(path)
    except (OSError, ValueError):
        return None
    if record.protocol != "original":
        return None
    # Only here: it imports torch and transformers.
    from probelight.models.networks import model_fingerprint
    from probelight.protocols.engine.models import saved_module

    same = model_fingerprint(saved_module(checkpoint)) == record.model_sha256
    return record if same else None
