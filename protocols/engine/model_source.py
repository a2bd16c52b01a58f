"""What a run records of where its model comes from, so that a report need not go by names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from protocols.engine.kinds import kind_of
from protocols.engine.settings import ModelSettings
from protocols.inoculation.settings import OriginalTask
from storage.files import read_json
from storage.folders import user_path

EMBEDDED = "embedded"
_RECORDED = ("model_hub_id", "model_revision", "original_parts")


def hub_id(model: ModelSettings) -> str | None:
    """The model's id on the Hub; None for a folder, a baseline or random weights."""
    name = model.name_or_path
    if not kind_of(model).has_checkpoint or model.random_weights or name == EMBEDDED:
        return None
    return None if user_path(name).exists() else name


def source_of(model: ModelSettings) -> dict[str, Any]:
    """The id on the Hub and the revision of a model, for its result.json."""
    return {"model_hub_id": hub_id(model), "model_revision": model.revision}


def original_source(model: ModelSettings, task: OriginalTask) -> dict[str, Any]:
    """The same of an original-task model, with the parts of the task.

    Of a given checkpoint it is what the run that trained it recorded, if the folder still holds the
    weights of that run; of any other one nothing is known.
    """
    if task.checkpoint is None:
        parts = {"sets": list(task.sets), "train_items": task.train_items}
        return {**source_of(model), "original_parts": parts}
    recorded = _recorded(Path(task.checkpoint))
    return {name: recorded.get(name) for name in _RECORDED}


def _recorded(checkpoint: Path) -> Mapping[str, Any]:
    """What the run `RUN/checkpoints/best` is of wrote; empty where it is none, or has changed."""
    path = checkpoint.resolve().parent.parent / "result.json"
    if not path.is_file():
        return {}
    try:
        result = read_json(path)
    except (OSError, ValueError):
        return {}
    if not isinstance(result, Mapping) or result.get("protocol") != "original":
        return {}
    # Only here: it imports torch and transformers.
    from lightning_modules.checkpoints.weights import model_fingerprint
    from protocols.engine.models import saved_module

    same = model_fingerprint(saved_module(checkpoint)) == result.get("model_sha256")
    return result if same else {}
