"""`train.py explain`: what models are shown of one item, and what they make of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from probelight.protocols.cli.command import Command, command
from probelight.protocols.engine.chosen_models import chosen_models
from probelight.protocols.engine.kinds import refuse_untrained
from probelight.protocols.engine.settings import (
    DEFAULT_FILE,
    DEFAULT_MODEL,
    FileSettings,
    ModelSettings,
)
from probelight.protocols.explain.find import find_item
from probelight.protocols.jobs.context import DEFAULT_TRAINER, TrainerSettings
from probelight.protocols.zero_shot.data import load_sets
from probelight.reports.explain.facts import Explained, Item


@command(
    Command(
        "what models are shown of one item, and make of it",
        example="train.py explain --probes age_small --item @1",
        shown="item probes models model.name_or_path data.path data.setup split mirror "
        "trainer.accelerator",
    )
)
def explain(
    item: str,
    model: ModelSettings = DEFAULT_MODEL,
    models: str | list[str] = "",
    probes: str | list[str] = "",
    data: FileSettings = DEFAULT_FILE,
    split: str | None = None,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
) -> list[Explained]:
    """Shows one item as each model reads it: its pieces, scores, ranks and best words.

    Nothing is written. What a kind of model cannot answer is said.

    Args:
        item: The item's id; `id@line` where ids repeat; or `@line` of its file.
        model: Which model, in place of `models`.
        models: Names in configs/model/, paths of such files, folders or Hub names, by commas;
            `name@revision` is one of a model's revisions.
        probes: Names in configs/probe/ or paths of such files, separated by commas.
        data: A file of one's own in place of `probes`.
        split: Split of the probes; none takes dev, or test where there is no dev file.
        mirror: Folder or address that stands for the addresses of the released files.
        trainer: Device and batch settings.

    Returns:
        What is printed, a model each.

    Raises:
        UsageError: If there is no such item or it is not clear which one is meant, or a model is a
            baseline.
    """
    sets = load_sets(probes, data, split, mirror)
    one, record = find_item(sets, item)
    chosen = chosen_models(models, model, random_weights=False)
    refuse_untrained(chosen, "explain")
    # Only now: they import torch and Lightning, which takes seconds.
    from probelight.protocols.explain.asked import explained
    from probelight.reports.explain.text import print_explained

    quiet = replace(trainer, progress_bar=False)
    found = [explained(own, one.data.config.setup, record, quiet) for own in chosen]
    where = f"item {record.id}, line {record.position}"
    name = f"{one.name} ({one.split})" if one.split else f"the file {Path(data.path or '').name}"
    print_explained(Item(name, where, record.stem, record.choices, record.answer), found)
    return found
