"""`train.py probes audit`: can a probe be answered without its question?

A job counts what gives the answers away (`audit.giveaways`); the others train a baseline that sees
a part of each item, one a seed, or ask one that needs no training. All are measured on items that
were not trained on.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from probelight.build.giveaways import STEMMER, frequency_source
from probelight.io.errors import UsageError, nearest
from probelight.io.ranges import Names, PathText, settings_from
from probelight.probes.catalog import probe_names
from probelight.probes.controls import CHOICE_ONLY, STANDARD
from probelight.probes.record import groups_of
from probelight.protocols.audit.giveaways import LABEL, PROTOCOL, count_giveaways
from probelight.protocols.audit.items import (
    DEFAULT_AUDIT,
    AuditData,
    AuditSettings,
    config_of,
    load_audit,
    read_audit,
    with_control,
)
from probelight.protocols.cli.command import Command, command
from probelight.protocols.engine.chosen_models import MODEL_CONFIGS, chosen_models
from probelight.protocols.engine.models import (
    check_module,
    check_scorer,
    model_type_of,
    scorer_for,
    source_of,
)
from probelight.protocols.engine.predictions import (
    Predictions,
    accuracy_row,
    chance_rows,
    predict,
    score_notices,
    subset_rows,
    tied_row,
    untouched_of,
)
from probelight.protocols.engine.settings import DEFAULT_MODEL, ModelSettings
from probelight.protocols.jobs.job import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    Job,
    RunContext,
    TrainerSettings,
)
from probelight.protocols.jobs.run import run_command
from probelight.results.predictions import write_predictions
from probelight.results.record import RunRecord, check_data, checksums, data_files
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder

DEFAULT_BASELINES = ("choice_only", "vec_similarity")


@command(
    Command(
        example="train.py probes audit hypernymy_small --output_dir runs/audit",
        shown="probes output_dir baselines vectors training.seeds mirror trainer.threads "
        "engine.kind",
        positional=True,
    )
)
def audit(
    probes: str,
    output_dir: PathText | None = None,
    baselines: Names = DEFAULT_BASELINES,
    vectors: str | None = None,
    training: AuditSettings = DEFAULT_AUDIT,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
) -> None:
    """Trains baselines that see a part of each item, and counts what gives the answers away.

    The same command goes on where it stopped.

    Args:
        probes: Names of probes, folders that `probes build` wrote, configs or files of items, by
            commas.
        output_dir: Folder of the results.
        baselines: Names in configs/model/ or paths of such files, by commas; a transformer is
            trained on the choices alone.
        vectors: Word vectors of the baselines: a file in GloVe's text format; none leaves each its
            own.
        training: How the baselines are trained.
        mirror: Folder or address that stands for the addresses of the released files.
        trainer: Device and batch settings.
        engine: Where the runs are made: here, or on Ray.

    Raises:
        UsageError: If no folder is given, two probes have one name, or a model of `baselines`
            answers no questions.
    """
    if output_dir is None:
        raise UsageError("give --output_dir: the results go there")
    models = _chosen_baselines(baselines, vectors)
    configs = {name: config_of(name) for name in map(str.strip, probes.split(",")) if name}
    if not configs:
        raise UsageError("name a probe, or a file of items; `train.py probes list` shows probes")
    names = [config.name for config in configs.values()]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(
            f"two probes are called {min(repeated)!r}, which tables could not tell apart; audit "
            "them one by one"
        )
    sets = [load_audit(config, training, mirror) for config in configs.values()]
    user_configs = {one.name: one for name, one in configs.items() if name not in probe_names()}
    context = RunContext(trainer, mirror=mirror, own=user_configs, engine=engine)
    for model in models:
        if is_trained(model) or model_type_of(model).scorer is None:
            check_module(model, "mc_qa")
        else:
            check_scorer(model, "mc_qa", [])
    jobs = [job for data in sets for job in audit_jobs(data, models, training, trainer)]
    config = {
        "command": "probes audit",
        "probes": [
            {"name": data.config.name, "sha256": checksums(*data.parts.values())} for data in sets
        ],
        "baselines": [model.config() for model in models],
        "settings": training.config(),
        "precision": trainer.precision,
    }
    files = [part for data in sets for part in data.parts.values()]
    run_command(output_dir, config, jobs, context, files=files, table=PROTOCOL)


def _chosen_baselines(baselines: str | Sequence[str], vectors: str | None) -> list[ModelSettings]:
    """Return the baselines, with other vectors if those are given."""
    names = baselines
    if not names:
        raise UsageError(f"give --baselines, such as {','.join(DEFAULT_BASELINES)}")
    known = sorted(path.stem for path in MODEL_CONFIGS.glob("*.yaml"))
    for name in names:
        if name not in known and not name.endswith((".yaml", ".yml")):
            near = nearest(name, known)
            raise UsageError(
                f"--baselines: there is no model {name!r}{near}; choose of {', '.join(known)}, or "
                "give the path of such a .yaml file"
            )
    models = chosen_models(names, DEFAULT_MODEL, random_weights=False)
    if vectors is not None:
        models = [replace(m, vectors=vectors) if model_type_of(m).title else m for m in models]
    return models


def audit_jobs(
    data: AuditData,
    models: Sequence[ModelSettings],
    settings: AuditSettings,
    trainer: TrainerSettings,
) -> list[Job]:
    """Return the jobs of a probe, those first that take seconds.

    Args:
        data: The probe.
        models: The baselines.
        settings: How they are trained.
        trainer: How they are run; its precision changes numbers.
    """
    name = data.config.name
    common = {
        "protocol": PROTOCOL,
        "probe": name,
        "data": checksums(*data.parts.values()),
        "settings": {**settings.config(), "seeds": [0]},
    }
    counted = {**common, "frequency": frequency_source(), "stems": STEMMER}
    jobs = [Job(f"audit-{name}-giveaways", counted, count_giveaways, title=f"{name}, {LABEL}")]
    for model in sorted(models, key=is_trained):
        trained = is_trained(model)
        for seed in settings.seeds if trained else [None]:
            config = {
                **common,
                "model": model.config(),
                "precision": trainer.precision,
                **({} if seed is None else {"seed": seed}),
                # A trained model that could read whole items is given their choices alone.
                **(
                    {"control": CHOICE_ONLY}
                    if trained and model_type_of(model).has_checkpoint
                    else {}
                ),
            }
            title = ", ".join([name, model.label, *([] if seed is None else [f"seed {seed}"])])
            jobs.append(Job(f"audit-{name}-{model.label}", config, ask_baseline, title=title))
    return jobs


def is_trained(model: ModelSettings) -> bool:
    """Return whether a baseline is trained on the probe; others answer as they are."""
    return "mc_qa" in model_type_of(model).trained


def ask_baseline(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Make the run of one baseline on one probe, with one seed.

    Raises:
        UsageError: If the probe is another one than when the run was planned.
    """
    # Only now: they import torch and Lightning.
    from probelight.models.scorer import Scorer, TrainedScorer
    from probelight.protocols.engine.training import Direct, fit_directly

    model = ModelSettings(**config["model"])
    settings = settings_from(AuditSettings, config["settings"])
    data = read_audit(context, config["probe"], settings)
    check_data(config["data"], data.parts.values())
    notices = list(data.notices)
    control = config.get("control", STANDARD)
    posed = with_control(control, data)
    row = replace(model.row, protocol=PROTOCOL, probe=data.config.name, control=control)
    seed: int | None = config.get("seed")
    if is_trained(model):
        assert seed is not None
        how = settings.fit_of(model.kind)
        direct = Direct(model, how, seed, None, f"{data.config.name}, {model.label}")
        trained = fit_directly(run, direct, posed.train, posed.held_out, context)
        notices += trained.notices
        scorer: Scorer = TrainedScorer(trained.module)
        row = replace(
            row,
            role="baseline",
            num_train=len(data.train),
            epoch=trained.epoch,
            learning_rate=how.learning_rate,
        )
    else:
        scorer = scorer_for(model, "mc_qa")
    found = predict(scorer, posed.measured, context.trainer)
    # The groups of items hang on their stems, whatever was seen of them.
    predictions = {
        split: replace(one, records=data.measured[split]) for split, one in found.items()
    }
    row = replace(row, mode=scorer.mode, seed=seed)
    notices += [notice for one in predictions.values() for notice in one.notices]
    notices += score_notices(*predictions.values())
    rows = [
        made
        for split, one in predictions.items()
        for made in _split_rows(data, one, replace(row, split=split))
    ]
    lines = (
        one.lines(groups_of(one.records, data.config.group_by)) for one in predictions.values()
    )
    write_predictions(run, chain.from_iterable(lines))
    if seed is None:
        run.write_metrics(rows)  # a training has left its own
    record = RunRecord(
        protocol=PROTOCOL,
        model=model.label,
        probe=data.config.name,
        rows=tuple(rows),
        counts={
            "train": len(data.train),
            "held out": len(data.held_out),
            **{split: len(one.records) for split, one in predictions.items()},
        },
        notices=tuple(dict.fromkeys(notices)),
        seeds=() if seed is None else (seed,),
        data=data_files(data.parts.values()),
        source=source_of(model),
        model_sha256=scorer.fingerprint(),
    )
    shutil.rmtree(run.checkpoint_dir, ignore_errors=True)  # the model is of no more use
    return record


def _split_rows(data: AuditData, predictions: Predictions, row: Row) -> list[Row]:
    """Return accuracy with its ties and chance, and that of items without a relative in train."""
    records = predictions.records
    groups = groups_of(records, data.config.group_by)
    clean = untouched_of(data.untouched(records))
    chance = chance_rows(predictions, replace(row, num_items=len(records)))
    rows = [accuracy_row(predictions, groups, row), tied_row(predictions, row), *chance]
    return rows + subset_rows(predictions, groups, clean, replace(row, metric="accuracy"))
