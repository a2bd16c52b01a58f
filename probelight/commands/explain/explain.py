"""`train.py explain`: how models read one item, and how they answer it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from probelight.commands.command import Command, command
from probelight.commands.explain.explanation import Explanation, print_explanations
from probelight.evaluation.prompting import (
    DEFAULT_PROMPT,
    examples_of,
    prompt_spec,
    prompts_of,
    refuse_unused,
    template_sha256,
)
from probelight.evaluation.scorers import refuse_untrained
from probelight.evaluation.sets import LoadedSet, load_sets
from probelight.io.errors import UsageError
from probelight.io.ranges import Mirror, Names, NumShots
from probelight.models.chosen_models import chosen_models
from probelight.models.registry import DEFAULT_MODEL, ModelSettings
from probelight.probes.prompts import Chat, PromptSettings
from probelight.probes.record import Record
from probelight.probes.user_files import DEFAULT_FILE, FileSettings
from probelight.runs.settings import DEFAULT_TRAINER, TrainerSettings

MOST_IDS = 5  # that a message names


@command(
    Command(
        example="train.py explain --probes age_small --item @1",
        options="item probes models model.name_or_path data.path data.setup split shots chat "
        "mirror trainer.accelerator",
    )
)
def explain(
    item: str,
    model: ModelSettings = DEFAULT_MODEL,
    models: Names = (),
    probes: Names = (),
    data: FileSettings = DEFAULT_FILE,
    split: str | None = None,
    shots: NumShots = 0,
    chat: Chat = "never",
    prompt: PromptSettings = DEFAULT_PROMPT,
    mirror: Mirror | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
) -> list[Explanation]:
    """Shows what each model reads for one item, and how it scores each choice.

    It prints tokens, scores, letters, ranks and the model's best words, and saves nothing. Notes
    say what a type of model cannot show.

    Args:
        item: Id of the item, `id@line` if ids repeat, or `@line` in its file.
        model: Settings of a single model, instead of `models`.
        models: Models, separated by commas: names in configs/model/, paths of such files, folders
            or Hub names; `name@revision` is one of a model's revisions.
        probes: Probes, separated by commas: names in configs/probe/ or paths of such files.
        data: Your own file instead of `probes`.
        split: Split of the probes; by default dev, or test if there is no dev file.
        shots: Number of examples from the probe's train split before the item.
        chat: "auto" or "always" puts the item into the chat template of a model's tokenizer.
        prompt: Texts around the item.
        mirror: Folder or address with copies of the released files.
        trainer: Device and batch settings.

    Returns:
        What is printed, one explanation per model.

    Raises:
        UsageError: If there is no such item or several match, if a model is a baseline or has no
            chat template, or if there are too few examples.
    """
    sets = load_sets(probes, data, split, mirror)
    loaded, record = find_item(sets, item)
    chosen = chosen_models(models, model, random_weights=False)
    refuse_untrained(chosen, "explain")
    # Only now: it imports torch and Lightning, which takes seconds.
    from probelight.commands.explain.model_view import explain_record

    spec = prompt_spec(shots, chat, prompt)
    refuse_unused(prompt, spec, letters=True, setups={loaded.data.config.setup})
    for settings in chosen:
        template_sha256(settings, spec)  # which refuses models without a chat
    examples = examples_of(loaded.data, loaded.split, mirror) if shots else None
    prompts = prompts_of(spec, loaded.data, examples)
    quiet = replace(trainer, progress_bar=False)
    explanations = [explain_record(m, prompts, record, quiet) for m in chosen]
    name = (
        f"{loaded.name} ({loaded.split})"
        if loaded.split
        else f"the file {Path(data.path or '').name}"
    )
    print_explanations(name, record, explanations)
    return explanations


def find_item(sets: Sequence[LoadedSet], item: str) -> tuple[LoadedSet, Record]:
    """Return the item with an id, `id@line` or `@line`, and its set; else name the nearest ids."""
    records = [(loaded, record) for loaded in sets for record in loaded.data.records]
    query = item.strip()
    matches: list[tuple[LoadedSet, Record]] = []
    for key in (lambda r: r.id, lambda r: r.name, lambda r: f"@{r.position}"):
        matches = matches or [
            (loaded, record) for loaded, record in records if key(record) == query
        ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        several = len({loaded.name for loaded, _ in matches}) > 1
        names = [f"{r.name} of {loaded.name}" if several else r.name for loaded, r in matches]
        more = ", ..." if len(names) > MOST_IDS else ""
        raise UsageError(
            f"--item {item}: {len(matches)} items match: "
            f"{', '.join(names[:MOST_IDS])}{more}; "
            f"give {'only one of the sets' if several else 'one of these'}"
        )
    problem = f"--item {query}: no item of {' or '.join(loaded.name for loaded in sets)}"
    if query.startswith("@"):
        last = max(record.position for _, record in records)
        raise UsageError(f"{problem} is on that line; the last line is @{last}")
    ids = list(dict.fromkeys(record.id for _, record in records))
    near = difflib.get_close_matches(query, ids, n=MOST_IDS, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}" if near else f"the first are {', '.join(ids[:3])}"
    line = query if query.isdecimal() else 12
    raise UsageError(f"{problem} has that id ({hint}); you can also give its line, such as @{line}")
