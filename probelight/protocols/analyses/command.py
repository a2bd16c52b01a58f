"""The analyses' commands: `train.py grid`, `taxonomy-distance` and `unigrams`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from probelight.build.sources.wordnet import DEFAULT_DIR
from probelight.io.errors import UsageError
from probelight.io.ranges import PathText
from probelight.protocols.analyses.jobs import DISTANCE, GRID, distance_job, grid_job
from probelight.protocols.analyses.settings import DEFAULT_GRID, GridSettings, Measure
from probelight.protocols.analyses.taxonomy import RESULTS, WORDNET, taxonomy_runs, wordnet_of
from probelight.protocols.cli.command import Command, command
from probelight.protocols.engine.chosen_models import chosen_models
from probelight.protocols.engine.kinds import refuse_untrained
from probelight.protocols.engine.settings import DEFAULT_MODEL, ModelSettings
from probelight.protocols.jobs.context import DEFAULT_TRAINER, RunContext, TrainerSettings
from probelight.protocols.jobs.run import Part, run_jobs, unfinished
from probelight.protocols.jobs.settings import DEFAULT_ENGINE, EngineSettings
from probelight.results.run_folder import CommandFolder


@command(
    Command(
        "answers to every pair of values",
        example="train.py grid --grid.panels [A,B] --grid.step 10 --output_dir runs/grid",
        shown="output_dir models model.name_or_path random_weights grid.panels grid.wordings "
        "grid.first_age grid.last_age grid.step trainer.accelerator trainer.precision",
    )
)
def prediction_grid(
    output_dir: PathText,
    models: str | list[str] = "",
    model: ModelSettings = DEFAULT_MODEL,
    random_weights: bool = False,
    grid: GridSettings = DEFAULT_GRID,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
) -> None:
    """Predictions of an untrained model over all pairs of ages, birth years and object sizes.

    The same command goes on where it stopped: a grid that is filled is not filled again.

    Args:
        output_dir: Folder of the results.
        models: Names in configs/model/, paths of such files, folders or Hub names, by commas.
        model: Which model, in place of `models`.
        random_weights: Also every model with random weights (the architecture control).
        grid: Which grids, over which values.
        trainer: Device and batch settings.
        engine: Where the runs are made: here, or on Ray.

    Raises:
        UsageError: If a model is a baseline, which would have to be trained first.
    """
    chosen = chosen_models(models, model, random_weights)
    refuse_untrained(chosen, "grid")
    config = {
        "command": "grid",
        "models": [one.config() for one in chosen],
        "grid": asdict(grid),
        "precision": trainer.precision,
    }
    folder = CommandFolder(Path(output_dir), config)
    from probelight.reports.terminal import print_tables

    grids, plan = grid.grids(), list[Part]()
    for one in chosen:
        jobs = [grid_job(one, own, trainer) for own in grids]
        num_done = len(jobs) - len(unfinished(jobs, folder))
        if num_done:
            print(f"{one.label}: {num_done} of {len(jobs)} grids complete")
        plan += [Part([job]) for job in jobs]
    run_jobs(plan, folder, RunContext(trainer, engine=engine))
    print_tables(folder.path, GRID)


@command(
    Command(
        "the nearer hypernym?",
        example="train.py taxonomy-distance --results runs/zero_shot --output_dir runs/distance",
        shown="output_dir results wordnet mirror",
    )
)
def taxonomy_distance(
    output_dir: PathText,
    results: PathText,
    wordnet: PathText = str(DEFAULT_DIR),
    mirror: str | None = None,
) -> None:
    """How often a model answered with a hypernym nearer to one concept than the right answer is.

    Args:
        output_dir: Folder of the results.
        results: Folder of finished zero-shot or curve runs; their predictions are read.
        wordnet: Folder of a WordNet 3.0 database.
        mirror: Folder or address that stands for the addresses of the released files.

    Raises:
        UsageError: If no run there answered a taxonomy probe.
    """
    from probelight.reports.terminal import print_tables

    context = RunContext(mirror=mirror, paths={RESULTS: results, WORDNET: wordnet})
    answered = list(taxonomy_runs(context))
    if not answered:
        raise UsageError(
            f"--results {results}: no zero-shot or curve run there answered a taxonomy probe "
            "(one whose stems name two concepts of which they are both a type)"
        )
    database = wordnet_of(context).sha256
    plan = [distance_job(path, record, database) for path, record in answered]
    folder = CommandFolder(Path(output_dir), {"command": "taxonomy-distance"})
    missing = unfinished(plan, folder)
    for job in plan:
        if job not in missing:
            print(f"{job.config['run']}: complete")
    run_jobs([Part(plan)], folder, context)
    print_tables(folder.path, DISTANCE)


@command(
    Command(
        "does the commoner probe go better?",
        example="train.py unigrams --results runs/curve --model_a roberta-large --counts_a "
        "books.txt.gz --model_b bert-large-uncased --counts_b wiki.txt.gz --output_dir runs/words",
        shown="output_dir results model_a counts_a model_b counts_b measure mirror",
    )
)
def unigrams(
    output_dir: PathText,
    results: PathText,
    counts_a: PathText,
    counts_b: PathText,
    model_a: str,
    model_b: str,
    measure: Measure = "max",
    mirror: str | None = None,
) -> None:
    """Correlates which of two models does better with whose corpus has more of a probe's words.

    Content words are those of stems and choices without function words (probes/content_words.py);
    a word's probability is (count + 1) / (tokens + types + 1) of its corpus.

    Args:
        output_dir: Folder of the results.
        results: Folder of finished curve or zero-shot runs of both models.
        counts_a: Words of the first model's corpus: a word and its count on each line; .gz too.
        counts_b: Words of the second model's corpus.
        model_a: The first model, as tables call it.
        model_b: The second model.
        measure: How good a model is: "max" is the best point of its learning curve, "zero_shot"
            its accuracy before training.
        mirror: Folder or address that stands for the addresses of the released files.

    Raises:
        UsageError: If fewer than two probes were answered by both models.
    """
    from probelight.protocols.analyses.corpus_unigrams import (
        PATHS,
        UNIGRAMS,
        Compared,
        comparison_job,
    )
    from probelight.reports.terminal import print_tables

    paths = dict(zip(PATHS, (counts_a, counts_b), strict=True))
    context = RunContext(mirror=mirror, paths=paths)
    compared = Compared(model_a, counts_a), Compared(model_b, counts_b)
    job = comparison_job(Path(results), compared, measure, context)
    folder = CommandFolder(Path(output_dir), job.config)
    run_jobs([Part([job])], folder, context)
    print_tables(folder.path, UNIGRAMS)
