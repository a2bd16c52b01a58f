"""`train.py zero-shot`: what a model knew before anything was trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probelight.io.errors import UsageError, nearest
from probelight.io.ranges import PathText
from probelight.metrics.scoring_rules import OF_THE_ITEM, RULES
from probelight.probes.catalog import DOMAIN_STEMS
from probelight.probes.source import ProbeData
from probelight.protocols.cli.command import Command, command
from probelight.protocols.engine.chosen_models import chosen_models
from probelight.protocols.engine.model_types import TRANSFORMER
from probelight.protocols.engine.models import check_scorer, refuse_untrained
from probelight.protocols.engine.settings import (
    DEFAULT_FILE,
    DEFAULT_MODEL,
    FileSettings,
    ModelSettings,
    listed,
)
from probelight.protocols.jobs.context import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    RunContext,
    TrainerSettings,
)
from probelight.protocols.jobs.run import run_jobs, unfinished
from probelight.protocols.zero_shot.data import LoadedSet, checksums, load_sets, own_configs
from probelight.protocols.zero_shot.jobs import PROTOCOL, zero_shot_job
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder


@command(
    Command(
        "what a model knows before any training",
        example="train.py zero-shot --probes age_small,taxonomy_small --output_dir runs/zero_shot",
        shown="output_dir probes models model.name_or_path data.path data.setup data.choices "
        "split ranks scoring mirror trainer.accelerator trainer.precision engine.kind",
    )
)
def zero_shot(
    output_dir: PathText,
    model: ModelSettings = DEFAULT_MODEL,
    models: str | list[str] = "",
    probes: str | list[str] = "",
    data: FileSettings = DEFAULT_FILE,
    split: str | None = None,
    mirror: str | None = None,
    ranks: bool = False,
    scoring: str | list[str] = "",
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
) -> list[Row]:
    """Scores probes with models that are not trained, and prints one table.

    The same command goes on where it stopped: a probe that is finished is not scored again.

    Args:
        output_dir: Folder of the results.
        model: Which model, in place of `models`.
        models: Names in configs/model/, paths of such files, folders or Hub names, by commas.
        probes: Names in configs/probe/ or paths of such files, separated by commas; `name:split`
            chooses another split for one of them.
        data: A file of one's own in place of `probes`.
        split: Split of the probes; none takes dev, or test where there is no dev file.
        mirror: Folder or address that stands for the addresses of the released files.
        ranks: Also the rank of MC-MLM candidates in the whole vocabulary.
        scoring: Also the accuracy by these rules, and the items whose answer hangs on them: sum,
            mean_token, mean_char, pmi, calibrated, by commas.
        trainer: Device and batch settings.
        engine: Where the runs are made: here, or on Ray.

    Returns:
        The rows of results.csv.

    Raises:
        UsageError: If neither or both of `probes` and `data.path` are given, a model is a
            baseline, ranks are asked of minimal pairs, or there is no such rule or none for a
            probe.
    """
    rules = chosen_rules(scoring)
    chosen = chosen_models(models, model, random_weights=False)
    refuse_untrained(chosen, "zero-shot")
    sets = load_sets(probes, data, split, mirror)
    if ranks and (pairs := [one.name for one in sets if one.data.config.setup == "minimal_pair"]):
        raise UsageError(
            f"--ranks: {', '.join(pairs)} has minimal pairs, whole sentences with no mask to ask "
            "for the rank of a word at"
        )
    _refuse_rules(rules, sets)
    config = {
        "command": "zero-shot",
        **_asked_of(chosen),
        "probes": [
            {"name": one.name, "split": one.split, "sha256": checksums(one.data)} for one in sets
        ],
        "precision": trainer.precision,
        **({"ranks": True} if ranks else {}),
        **({"scoring": rules} if rules else {}),
    }
    folder = CommandFolder(Path(output_dir), config, [one.data for one in sets])
    context = RunContext(trainer, mirror=mirror, engine=engine)
    score_sets(folder, sets, chosen, context, ranks, rules)
    from probelight.reports.terminal import print_tables

    print_tables(folder.path, PROTOCOL)
    return folder.rows()


def chosen_rules(scoring: str | list[str]) -> list[str]:
    """The rules that are asked for, in the order of `probelight.metrics.scoring_rules.RULES`.

    Raises:
        UsageError: If there is no such rule, or one is given twice.
    """
    given = listed(scoring)
    for rule in given:
        if rule not in RULES:
            near = nearest(rule.lower(), RULES)
            raise UsageError(
                f"--scoring: there is no rule {rule!r}{near}; choose of {', '.join(RULES)}"
            )
        if given.count(rule) > 1:
            raise UsageError(f"--scoring names {rule} twice")
    return [rule for rule in RULES if rule in given]


def _refuse_rules(rules: Sequence[str], sets: Sequence[LoadedSet]) -> None:
    """Refuses rules that ask for other stems where the items have none."""
    whole = [one.name for one in sets if one.data.config.setup not in DOMAIN_STEMS]
    unfit = [rule for rule in rules if rule not in OF_THE_ITEM]
    if whole and unfit:
        raise UsageError(
            f"--scoring {','.join(unfit)} puts other stems before the choices, and the items of "
            f"{whole[0]} are whole sentences; they take {', '.join(OF_THE_ITEM)}"
        )


def score_sets(
    folder: CommandFolder,
    sets: Sequence[LoadedSet],
    models: Sequence[ModelSettings],
    context: RunContext,
    ranks: bool = False,
    scoring: Sequence[str] = (),
) -> None:
    """Scores each set with each model in a run of its own.

    That every model loads and reads every set's candidates is checked before the first is scored.
    """
    context = replace(context, own=own_configs(sets))
    asked = [
        (model, one, zero_shot_job(model, one, context.trainer, ranks, scoring))
        for model in models
        for one in sets
    ]
    plan = [job for *_, job in asked]
    missing = {job.key for job in unfinished(plan, folder)}
    for model, one, job in asked:
        if job.key not in missing:
            context.say(f"{one.name}, {model.label}: complete")
    for model in models:
        own = [(one.data, job.key) for whose, one, job in asked if whose == model]
        _check(model, [data for data, key in own if key in missing], scoring)
    run_jobs(plan, folder, context)


def _check(model: ModelSettings, sets: Sequence[ProbeData], scoring: Sequence[str]) -> None:
    if scoring and model.kind == TRANSFORMER and any(d.config.setup == "mc_qa" for d in sets):
        from probelight.models.pair_choice import answers_questions

        if answers_questions(model.name_or_path, model.revision):
            raise UsageError(
                f"{model.label} answers questions with the head that it was fine-tuned with, which "
                "gives one number a choice and no log-likelihoods; give it without --scoring"
            )
    for setup in dict.fromkeys(data.config.setup for data in sets):
        records = [data.records for data in sets if data.config.setup == setup]
        check_scorer(model, setup, records)


def _asked_of(models: Sequence[ModelSettings]) -> dict[str, Any]:
    """What a config says of the models; of one as before there could be several."""
    first, *others = (model.config() for model in models)
    return {"models": [first, *others]} if others else {"model": first}
