"""`train.py check`: what did a fine-tuning break? Both models answer a panel of probes.

It is `zero-shot` of two models and `forgetting` of their answers, with one verdict per probe.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from probelight.commands.command import Command, command
from probelight.commands.forgetting import folder_pairs
from probelight.commands.zero_shot import zero_shot_jobs
from probelight.evaluation.answers import read_answers
from probelight.evaluation.scorers import refuse_untrained
from probelight.evaluation.sets import LoadedSet, context_of, load_sets
from probelight.io.atomic import whole_folder, write_text_atomic
from probelight.io.errors import UsageError
from probelight.io.escaping import json_text
from probelight.io.ranges import Mirror, Names, NumItems, PathText, Points
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.metrics.verdicts import MARGIN
from probelight.models.checkpoint_files import CheckpointRef, without_adapter
from probelight.models.chosen_models import chosen_models, model_of
from probelight.models.registry import DEFAULT_MODEL, TRANSFORMER, ModelSettings, weights_bytes
from probelight.probes.user_files import DEFAULT_FILE
from probelight.results.pairs import Pair, pair_of
from probelight.results.predictions import PREDICTIONS
from probelight.results.record import RESULT, check_artifact, checksums
from probelight.results.run_folder import FORMAT_FILE, CommandFolder
from probelight.results.systems import System
from probelight.runs.context import RunContext
from probelight.runs.estimates import Plan, plan_of
from probelight.runs.run import check_jobs, run_jobs
from probelight.runs.settings import DEFAULT_TRAINER, TrainerSettings
from probelight.runs.spec import Job

# Of a set whose test answers were not released, published numbers are those of its dev split.
PANELS: dict[str, tuple[str, ...]] = {
    "shipped": (
        *("capitals", "continents", "elements", "arithmetic", "agreement"),
        *("taxonomy_small", "antonym_small", "age_small", "definitions_small", "hypernymy_small"),
    ),
    "knowledge": (
        *("mmlu:test", "arc_easy:test", "arc_challenge:test", "openbookqa:test", "sciq:test"),
        *("hellaswag:dev", "piqa:dev", "commonsense_qa:dev", "social_iqa:dev"),
        *("truthfulqa_mc1:dev", "boolq:dev"),
    ),
    "language": ("agreement", "blimp:test"),
}
FAILED = 3  # exit code of a check whose condition holds
SUMMARY, COMMENT = "check.json", "check.md"
FORMAT = 1  # of check.json
PanelName = Literal["shipped", "knowledge", "language", "all"]
FailOn = Literal["none", "forgot", "cannot_tell"]


@command(
    Command(
        example="train.py check runs/base runs/tuned --output_dir runs/check",
        options="models output_dir panel probes margin fail_on limit base_results dry_run mirror "
        "trainer.accelerator",
        positional=True,
    )
)
def check(
    models: list[str],
    output_dir: PathText = "runs/check",
    panel: PanelName = "shipped",
    probes: Names = (),
    split: str = "test",
    limit: NumItems | None = None,
    margin: Points = 100 * MARGIN,
    fail_on: FailOn = "none",
    base_results: Path | None = None,
    dry_run: bool = False,
    mirror: Mirror | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> Plan | None:
    """Says what a fine-tuning broke: one verdict per probe on a model before and after it.

    Forgot and gained are claims, adjusted for all probes (Holm). Kept means that the loss is
    clearly below the margin. Rerun the same command to resume.

    Args:
        models: The model before and the model after: names in configs/model/, folders, Hub names,
            or BASE+ADAPTER. Of an adapter's folder alone, the model before is its base. Or two
            folders of results, such as those of zero-shot.
        output_dir: Folder of the results, check.json, check.md and their page.
        panel: What to ask without `probes`: "shipped", ten small probes; "knowledge", standard sets
            of the Hub; "language", agreement and BLiMP; or "all" of them.
        probes: Probes, by commas, as in `zero-shot`.
        split: Split of the probes, unless NAME:SPLIT names one.
        limit: Most items of each probe that are asked; whole groups are drawn.
        margin: The loss of accuracy that does not matter, in percentage points.
        fail_on: Exit with code 3 if a probe was forgotten (forgot), or if for any known before it
            cannot be told either (cannot_tell).
        base_results: Folder of an earlier check or zero-shot, whose answers of the model before
            (and of the one after, if they are there) are taken over.
        dry_run: Only print how many runs it would take, and how much time and memory.
        mirror: Folder or address with copies of the released files.
        trainer: Device and batch settings.
        wandb: Logging to Weights & Biases: the verdicts as summary, the tables and the page.

    Raises:
        UsageError: If the models are one, or the adapter is that of another model.
        SystemExit: With code 3 if the condition of `fail_on` holds.
    """
    from probelight.reports import verdicts
    from probelight.reports.build import build_report
    from probelight.reports.forgetting import changed
    from probelight.reports.formats import page_line
    from probelight.results.load import load_results

    folder_path = Path(output_dir)
    config: dict[str, Any] = {"command": "check", "margin": margin}
    are_measured = all(_has_results(model) for model in models) and len(models) == 2
    if panel != "shipped" and (probes or are_measured):
        raise UsageError(
            f"--panel {panel} says what to ask, but so do --probes, and results; give one"
        )
    if are_measured:
        pairs = [*folder_pairs([Path(model) for model in models], probes)]
        config["measured"] = [pair.checksum for pair in pairs]
        folder = CommandFolder(folder_path, config)
        title = f"{models[0]} → {models[1]}"
    else:
        both = before_and_after(models)
        refuse_untrained(both, "check")
        sets = load_sets(probes or panel_probes(panel), DEFAULT_FILE, split, mirror, limit)
        jobs = zero_shot_jobs(sets, both, trainer)
        if dry_run:
            plan = plan_of([_sized(job, sets) for job in jobs], folder_path)
            plan.show()
            return plan
        config |= {
            "models": [model.config() for model in both],
            "probes": [[loaded.name, loaded.split, *checksums(loaded.data)] for loaded in sets],
            "limit": limit,
            **trainer.precisions(),
        }
        context = context_of(sets, RunContext(trainer, mirror=mirror))
        check_jobs(jobs, folder_path, context)
        folder = CommandFolder(folder_path, config, [loaded.data for loaded in sets])
        if base_results is not None:
            _take_over(base_results, folder, jobs)
        run_jobs([replace(job, bar="asking both models") for job in jobs], folder, context)
        order = {loaded.name: number for number, loaded in enumerate(sets)}
        pairs = sorted(_pairs_of(folder, jobs, both), key=lambda pair: order[pair.probe])
        title = " → ".join(model.label for model in both)
        records = filter(None, (folder.result(job.key) for job in jobs))
        if len({record.source.tokenizer_sha256 for record in records}) > 1:
            print("the models have two tokenizers: each reads its own pieces of the same words")
    for number, pair in enumerate(pairs, start=1):
        pair.write(folder, number, margin / 100)
    folder.write_results()
    rows = changed(load_results(folder.path))
    print(f"{title} (accuracy in %, change in points)", *verdicts.lines(rows), sep="\n")
    values = {
        "format": FORMAT,
        "models": title.split(" → "),
        "margin": margin / 100,
        "probes": verdicts.as_values(rows),
        "all_probes": verdicts.mean_values(rows),
    }
    write_text_atomic(folder.path / SUMMARY, json_text(values, indent=1) + "\n")
    write_text_atomic(folder.path / COMMENT, verdicts.markdown(rows, title))
    print(page_line(build_report(folder.path)))
    if wandb.project:
        from probelight.integrations.wandb import publish

        summary = {f"{row.set}/verdict": row.verdict for row in rows.itertuples()}
        changes = {f"{row.set}/change": -row.net_loss for row in rows.itertuples()}
        publish(folder.path, wandb, summary=summary | changes)
    words = {"forgot": {"forgot"}, "cannot_tell": {"forgot", "cannot tell"}}.get(fail_on, set())
    if broken := [row.set for row in rows.itertuples() if row.verdict in words]:
        print(f"--fail_on {fail_on}: {', '.join(broken)}")
        sys.exit(FAILED)
    return None


def panel_probes(panel: PanelName) -> tuple[str, ...]:
    """Return the probes of a panel, each once."""
    panels = [*PANELS] if panel == "all" else [panel]
    return tuple(dict.fromkeys(probe for name in panels for probe in PANELS[name]))


def before_and_after(names: Sequence[str]) -> list[ModelSettings]:
    """Return the model before and the one after; of an adapter alone, its base is before.

    Raises:
        UsageError: If they are not two models, or the adapter is that of another model.
    """
    if len(names) not in (1, 2):
        raise UsageError(
            "check: give the model before and the model after, or one adapter's folder"
        )
    ref = CheckpointRef.parse(names[-1], reads_revision=True)
    below, adapter = (ref, None) if ref.in_memory else without_adapter(ref)
    texts = [*names]
    if adapter is not None and not ref.adapter:
        texts = [str(below), f"{below}+{adapter}"]
        if len(names) == 2:
            base = model_of(names[0]).checkpoint
            folders = base.folder, below.folder
            is_same = str(base) == str(below) or (
                all(map(Path.is_dir, folders)) and folders[0].samefile(folders[1])
            )
            if not is_same:
                raise UsageError(
                    f"{names[1]} is an adapter of {below}, not of {names[0]}; leave out "
                    f"{names[0]}, or give {names[0]}+{names[1]} to check them together, as a "
                    "different model"
                )
            texts = [names[0], f"{names[0]}+{adapter}"]
    elif len(names) == 1 and adapter is None:
        raise UsageError(f"{names[0]} is no adapter, so give the model before it too: BASE TUNED")
    elif len(names) == 1:
        texts = [str(below), names[0]]
    if model_of(texts[0]) == model_of(texts[1]):
        raise UsageError(f"{texts[0]} is given twice: nothing could have changed")
    return chosen_models(texts, DEFAULT_MODEL, random_weights=False)


def _has_results(text: str) -> bool:
    """Return whether it is the folder of a command, or of several commands."""
    return any(
        next(Path(text).glob(pattern), None) for pattern in (FORMAT_FILE, f"*/{FORMAT_FILE}")
    )


def _sized(job: Job, sets: Sequence[LoadedSet]) -> Job:
    """Return a job with what decides the time that it takes."""
    spec: Any = job.spec
    data = next(loaded.data for loaded in sets if loaded.name == spec.probe)
    num_texts = len(data.records)
    if spec.model.kind == TRANSFORMER and data.config.setup != "mc_mlm":
        # The pseudo-log-likelihood of a choice takes a text for each of its words, and of a stem's.
        texts = (f"{record.stem} {choice}" for record in data.records for choice in record.choices)
        num_texts = sum(len(text.split()) for text in texts)
    return replace(job, num_texts=num_texts, weights_bytes=weights_bytes(spec.model))


def _take_over(earlier: Path, folder: CommandFolder, jobs: Sequence[Job]) -> None:
    """Copy the finished runs of an earlier folder that are runs of this check too."""
    jobs_taken_over = []
    for job in jobs:
        source, path = earlier / "runs" / job.key, folder.runs_dir / job.key
        if not (source / RESULT).is_file():
            continue
        jobs_taken_over.append(job)
        if not (path / RESULT).is_file():
            check_artifact(source, PREDICTIONS)
            with whole_folder(path) as fresh:
                shutil.copytree(source, fresh, dirs_exist_ok=True)
    if not jobs_taken_over:
        raise UsageError(
            f"--base_results {earlier}: it has no answers to these items by "
            f"{jobs[0].title.partition(', ')[2]}; it must be the same model (with the same "
            "settings), the same probes, split and limit"
        )
    print(f"{earlier}: {len(jobs_taken_over)} of {len(jobs)} runs are taken over")


def _pairs_of(
    folder: CommandFolder, jobs: Sequence[Job], both: Sequence[ModelSettings]
) -> list[Pair]:
    """Return the answers of both models to each set; jobs are those of one, then of the other."""
    [(answers, *_)] = read_answers([folder.path], mixed=True)
    systems = {scores.path: System((scores,)) for scores in answers}
    names = [model.label for model in both]
    half = len(jobs) // 2
    return [
        pair_of(systems[f"runs/{first.key}"], systems[f"runs/{second.key}"], *names)
        for first, second in zip(jobs[:half], jobs[half:], strict=True)
    ]
