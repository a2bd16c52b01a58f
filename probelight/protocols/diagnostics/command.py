"""`train.py diagnose`: the psycholinguistic diagnostics of what models say."""

from __future__ import annotations

from pathlib import Path

from probelight.io.errors import UsageError, nearest
from probelight.io.ranges import NumShuffles, PathText
from probelight.probes.diagnostics.sets import SETS, load_set
from probelight.protocols.cli.command import Command, command
from probelight.protocols.diagnostics.jobs import (
    PROTOCOL,
    RECORDED,
    label_of,
    model_job,
    recorded_job,
)
from probelight.protocols.diagnostics.run import asked_of
from probelight.protocols.diagnostics.written import file_name, write_outputs
from probelight.protocols.engine.chosen_models import chosen_models
from probelight.protocols.engine.kinds import refuse_untrained
from probelight.protocols.engine.models import check_scorer
from probelight.protocols.engine.settings import DEFAULT_MODEL, ModelSettings, listed
from probelight.protocols.jobs.context import DEFAULT_TRAINER, RunContext, TrainerSettings
from probelight.protocols.jobs.run import Part, run_jobs, unfinished
from probelight.protocols.jobs.settings import DEFAULT_ENGINE, EngineSettings
from probelight.results.importers.recorded import Recorded, find_recorded, read_recorded
from probelight.results.provenance import FromFiles
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder


@command(
    Command(
        "psycholinguistic diagnostics",
        example="train.py diagnose --models embedded --output_dir runs/diagnose",
        shown="output_dir models model.name_or_path random_weights sets recorded mirror "
        "shuffles write_recorded trainer.accelerator trainer.precision engine.kind",
    )
)
def diagnose(
    output_dir: PathText,
    models: str | list[str] = "",
    model: ModelSettings = DEFAULT_MODEL,
    random_weights: bool = False,
    sets: str | list[str] = "",
    recorded: PathText | None = None,
    mirror: str | None = None,
    shuffles: NumShuffles = 100,
    write_recorded: PathText | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
) -> list[Row]:
    """Word prediction and sensitivity on CPRAG-102, ROLE-88, NEG-136, ROLE-1500 and NEG-1500-SIMP.

    The same command goes on where it stopped: a set that a model has answered is not asked again.

    Args:
        output_dir: Folder of the results.
        models: Names in configs/model/, paths of such files, folders or Hub names, by commas.
        model: Which model, in place of `models`; none is asked where `recorded` alone is given.
        random_weights: Also every model with random weights (the architecture control).
        sets: Which of cprag, role, neg_simp, neg_nat, role_1500, neg_1500_simp_temp and
            neg_1500_simp_gen, by commas; none takes all.
        recorded: Folder of outputs that another program recorded, as modelpreds-SET-MODEL and
            modeltgtprobs-SET-MODEL (SET is cprag, role, negsimp or negnat), or as SET/MODEL.txt
            (SET is ROLE-1500, NEG-1500-SIMP-TEMP or NEG-1500-SIMP-GEN); any number of models.
        mirror: Folder or address that stands for the addresses of the released files.
        shuffles: In how many random orders the words of CPRAG-102's first sentences are put, for
            the mean accuracy and its standard deviation; 0 leaves these perturbations out.
        write_recorded: Folder in which the outputs of `models` or `model` are written too, in the
            forms that `recorded` reads, so that the sets' authors' programs can score them.
        trainer: Device and batch settings.
        engine: Where the runs are made: here, or on Ray.

    Returns:
        The rows of results.csv.

    Raises:
        UsageError: If there is no such set, a model is a baseline, there are no recorded outputs,
            or one of their files is missing.
        RecordError: If a file is malformed.
    """
    from probelight.reports.terminal import print_tables

    names = _chosen_sets(sets)
    asked: list[ModelSettings] = []
    if listed(models) or model != DEFAULT_MODEL or random_weights or recorded is None:
        asked = chosen_models(models, model, random_weights)
        refuse_untrained(asked, "diagnose")
    if write_recorded is not None:
        _check_written(write_recorded, recorded, [own.label for own in asked])
    found = [] if recorded is None else _found(recorded, names)
    if not asked:
        names = list(dict.fromkeys(name for name, _ in found))
    loaded = {name: load_set(name, mirror) for name in names}
    for name, one in found:  # all of them, before the first is measured
        read_recorded(one, asked_of(loaded[name]))
    for own in asked:
        check_scorer(own, "mc_mlm", [])
    plan = [recorded_job(loaded[name], one) for name, one in found]
    plan += [model_job(data, own, trainer, shuffles) for own in asked for data in loaded.values()]
    config = {"command": PROTOCOL, "runs": [dict(job.config) for job in plan]}
    files: list[FromFiles] = [*loaded.values(), *(one for _, one in found)]
    folder = CommandFolder(Path(output_dir), config, files)
    missing = {job.key for job in unfinished(plan, folder)}
    for job in plan:
        if job.key not in missing:
            print(f"{job.config['probe']}, {label_of(job)}: complete")
    paths = {} if recorded is None else {RECORDED: recorded}
    context = RunContext(trainer, mirror=mirror, paths=paths, engine=engine)
    run_jobs([Part([job]) for job in plan], folder, context)
    if write_recorded is not None:
        write_outputs(folder.path, plan[len(found) :], Path(write_recorded))
        print(f"recorded outputs: {write_recorded}")
    print_tables(folder.path, PROTOCOL)
    return folder.rows()


def _chosen_sets(sets: str | list[str]) -> list[str]:
    chosen = listed(sets) or list(SETS)
    for name in chosen:
        if name not in SETS:
            near = nearest(name.lower(), list(SETS))
            raise UsageError(
                f"--sets {name}: there is no such set{near}; choose from {', '.join(SETS)}"
            )
    return list(dict.fromkeys(chosen))


def _found(recorded: str, names: list[str]) -> list[tuple[str, Recorded]]:
    """The recorded outputs on some sets, each with the set's name."""
    sets = {source.recorded_as: name for name, source in SETS.items()}
    every = find_recorded(Path(recorded), list(sets))
    found = [(sets[one.recorded_as], one) for one in every if sets[one.recorded_as] in names]
    if not found:
        there = ", ".join(dict.fromkeys(sets[one.recorded_as] for one in every))
        raise UsageError(f"{recorded}: recorded are {there}, and none of --sets {','.join(names)}")
    return found


def _check_written(folder: str, recorded: PathText | None, labels: list[str]) -> None:
    """Refuses outputs that could not be told apart when they are read again."""
    if not labels:
        raise UsageError("--write_recorded writes what models say; give --models or --model")
    if recorded is not None and Path(folder).resolve() == Path(recorded).resolve():
        raise UsageError(f"--write_recorded {folder} is where --recorded reads; give another one")
    names = [file_name(label) for label in labels]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(
            f"--write_recorded: two models would be called {min(repeated)!r}; give them names "
            "(`name:` in a config of a model)"
        )
