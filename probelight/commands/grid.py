"""`train.py grid`: zero-shot predictions over all pairs of values (Talmor 2020, figures 2A and 3).

Table 4 of the paper is of the same grids. A job fills one grid with one model; grid.json of its run
has the predictions for all pairs, for the figures.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from math import fsum, tanh
from typing import Annotated, Any, ClassVar, Literal, get_args

from probelight.builders import prediction_grids
from probelight.builders.prediction_grids import AGES, BIRTH_YEARS, OBJECTS, SIZES, PredictionGrid
from probelight.commands.command import Command, command
from probelight.evaluation.evaluate import evaluate
from probelight.evaluation.scorers import answered_by, loaded_scorer, model_row, refuse_untrained
from probelight.io.errors import UsageError
from probelight.io.files import DataFile
from probelight.io.ranges import Distinct, Names, PathText, Within
from probelight.io.settings import Settings
from probelight.metrics.choices import best_of_each, item_score
from probelight.models.chosen_models import chosen_models
from probelight.models.registry import DEFAULT_MODEL, ModelSettings
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import chance_of, groups_of
from probelight.probes.source import ProbeData
from probelight.results.load import GRID_FILE
from probelight.results.measured import (
    Predictions,
    accuracy_row,
    grouped_row,
    proportion_row,
    tied_row,
)
from probelight.results.predictions import write_predictions
from probelight.results.record import RunRecord, changed_since
from probelight.results.row import Row, Subset
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.run import run_command
from probelight.runs.settings import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    TrainerSettings,
)
from probelight.runs.spec import Job, ModelRunSpec

PROTOCOL = "grid"
Panel = Literal["A", "B", "C", "D", "sizes"]
Age = Annotated[int, Within(0, 1_000)]
Year = Annotated[int, Within(0, 9_999)]


@dataclass(frozen=True)
class GridSettings(Settings):
    """Which grids to fill, over which values.

    Args:
        panels: "A" ages in the age sentence, "B" birth years in the birth-year sentence, "C" birth
            years in the age sentence, "D" ages in the birth-year sentence, "sizes" objects.
        first_age: Smallest age. According to the paper, models compare ages from 15 to 105 and
            fail outside.
        last_age: Largest age.
        first_year: Earliest birth year.
        last_year: Latest birth year.
        step: Step between neighbouring ages or years; 1 takes every one.
        wordings: Wordings of the age sentence: "paper", "released", or both.
    """

    panels: Annotated[list[Panel], Distinct()] = field(
        default_factory=lambda: list(get_args(Panel))
    )
    first_age: Age = AGES[0]
    last_age: Age = AGES[-1]
    first_year: Year = BIRTH_YEARS[0]
    last_year: Year = BIRTH_YEARS[-1]
    step: Annotated[int, Within(1, 1_000)] = 1
    wordings: Annotated[list[prediction_grids.Wording], Distinct()] = field(
        default_factory=lambda: ["paper"]
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        ages, years = (self.first_age, self.last_age), (self.first_year, self.last_year)
        for name, (first, last) in {"age": ages, "year": years}.items():
            if last < first + self.step:
                raise UsageError(
                    f"--grid.first_{name} {first} and --grid.last_{name} {last} with a step of "
                    f"{self.step} give one value or none; at least two are needed"
                )

    def grids(self) -> list[PredictionGrid]:
        """Return the wanted grids, wording by wording."""
        ages = range(self.first_age, self.last_age + 1, self.step)
        years = range(self.first_year, self.last_year + 1, self.step)
        grids: list[PredictionGrid] = []
        for wording in self.wordings:
            grids += prediction_grids.age_grids(ages, years, wording)
            grids.append(prediction_grids.grid_of(SIZES, OBJECTS, wording))
        return [grid for grid in grids if grid.name in self.panels]


DEFAULT_GRID = GridSettings()


@command(
    Command(
        example="train.py grid --grid.panels A,B --grid.step 10 --output_dir runs/grid",
        options="output_dir models model.name_or_path random_weights grid.panels grid.wordings "
        "grid.first_age grid.last_age grid.step trainer.accelerator trainer.precision",
    )
)
def prediction_grid(
    output_dir: PathText,
    models: Names = (),
    model: ModelSettings = DEFAULT_MODEL,
    random_weights: bool = False,
    grid: GridSettings = DEFAULT_GRID,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
) -> None:
    """Predicts zero-shot over all pairs of ages, birth years and object sizes.

    Rerun the same command to resume; finished grids are not filled again.

    Args:
        output_dir: Folder of the results.
        models: Models, separated by commas: names in configs/model/, paths of such files, folders
            or Hub names.
        model: Settings of a single model, instead of `models`.
        random_weights: Also run every model with random weights (the architecture control).
        grid: Which grids to fill, over which values.
        trainer: Device and batch settings.
        engine: Where the runs are computed: in this process, or on Ray.

    Raises:
        UsageError: If a model is a baseline, which would have to be trained first.
    """
    chosen = chosen_models(models, model, random_weights)
    refuse_untrained(chosen, "grid")
    config = {
        "command": "grid",
        "models": [settings.config() for settings in chosen],
        "grid": asdict(grid),
        **trainer.precisions(),
    }
    jobs = [grid_job(*pair, trainer) for pair in product(chosen, grid.grids())]
    run_command(output_dir, config, jobs, RunContext(trainer, engine=engine), table=PROTOCOL)


@dataclass(frozen=True, kw_only=True)
class GridSpec(ModelRunSpec):
    """One grid filled by one model.

    Args:
        model: The model.
        grid: Name of the grid.
        wording: Wording of its sentences.
        values: Values of its axes.
        stems: Checksum of its sentences.
    """

    protocol: ClassVar[str] = PROTOCOL

    model: ModelSettings
    grid: str
    wording: prediction_grids.Wording
    values: tuple[prediction_grids.Value, ...]
    stems: str

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"grid-{self.grid}-{self.wording}-{self.model.label}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Make the run of one model and grid, if its sentences are still those of the plan."""
        grid = prediction_grids.grid_of(self.grid, self.values, self.wording)
        items = grid_items(grid)
        if items.files[0].sha256 != self.stems:
            raise changed_since([items.files[0].path])
        scorer = loaded_scorer(context, self.model, "mc_mlm")
        evaluation = evaluate(scorer, items, trainer=context.trainer)
        row = replace(model_row(self.model), protocol=PROTOCOL, probe=grid.probe)
        rows = grid_rows(evaluation.predictions, grid, replace(row, mode=evaluation.mode))
        write_predictions(run, evaluation.predictions.lines())
        run.write(GRID_FILE, grid_matrix(evaluation.predictions, grid))
        run.write_metrics(rows)
        record = evaluation.record(row, rows, evaluation.accuracy_notices)
        return answered_by(record, self.model, scorer)


def grid_job(model: ModelSettings, grid: PredictionGrid, trainer: TrainerSettings) -> Job:
    """Return the job that fills a grid with a model's predictions."""
    spec = GridSpec(
        model=model,
        grid=grid.name,
        wording=grid.wording,
        values=grid.values,
        stems=grid_items(grid).files[0].sha256,
    ).under(trainer)
    return Job(spec, title=f"grid {grid.name} ({grid.wording} wording), {model.label}")


def grid_items(grid: PredictionGrid) -> ProbeData:
    """Return a grid's sentences as a probe, with their checksum as that of a file."""
    text = "\n".join(record.stem for record in grid.records)
    sentences = DataFile(
        path=f"grid {grid.name} ({grid.wording} wording)",
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        num_items=len(grid.records),
    )
    config = ProbeConfig(f"grid {grid.name}", "mc_mlm", 2, 0.5, group_by="arguments")
    return ProbeData(config, grid.records, (sentences,), ())


def grid_rows(predictions: Predictions, grid: PredictionGrid, row: Row) -> list[Row]:
    """Return accuracy, chance, the share of each answer, and `order_accuracy`.

    This is the share of unordered pairs for which the first candidate is more probable where it is
    right than where it is wrong: a model that always prefers one word, at 50% accuracy, may still
    be right about all orders. Equal probabilities count 1/2.
    """
    row = replace(
        row,
        control="standard",
        num_train=0,
        subset=Subset.of("wording", f"wording={grid.wording}", name=grid.wording),
        perturbation=grid.name,
    )
    records = predictions.records
    pairs = groups_of(records, "arguments")
    chance = replace(row, metric="chance", value=chance_of(records), num_items=len(records))
    rows = [accuracy_row(predictions, pairs, row), tied_row(predictions, row), chance]
    for choice, name in enumerate(grid.candidates):
        share = [item_score(best, choice) for best in predictions.best]
        rows.append(grouped_row(share, pairs, replace(row, metric=f"share_{name}")))
    margins_by_pair: dict[frozenset[Any], dict[int, float]] = {}
    for record, margin in zip(records, _margins(predictions), strict=True):
        margins_by_pair.setdefault(frozenset(record.meta["arguments"]), {})[record.answer] = margin
    orders = best_of_each([[margins[0], margins[1]] for margins in margins_by_pair.values()])
    right = fsum(item_score(best, 0) for best in orders)
    return [*rows, proportion_row(right, len(orders), replace(row, metric="order_accuracy"))]


def _margins(predictions: Predictions) -> list[float]:
    """Return for each item the first candidate's score less the second's; 0 where they tie."""
    pairs = zip(predictions.scores, predictions.best, strict=True)
    # -inf less -inf would be no number.
    return [0.0 if len(best) > 1 else scores[0] - scores[1] for scores, best in pairs]


def grid_matrix(predictions: Predictions, grid: PredictionGrid) -> dict[str, Any]:
    """Return the content of grid.json: the axes and, row by row, the prediction for each pair.

    `probability` is p(first candidate) of the softmax over the two candidates, `prediction` and
    `answer` are indices of `candidates`; all are null on the diagonal and where an item was
    skipped. The prediction alone is null on a tie; a probability of NaN scores is null too.
    """
    index_of_value = {value: number for number, value in enumerate(grid.values)}
    size = len(grid.values)
    cells: dict[str, list[list[Any]]] = {
        name: [[None] * size for _ in range(size)]
        for name in ("probability", "prediction", "answer")
    }
    margins = _margins(predictions)
    for record, margin, best in zip(predictions.records, margins, predictions.best, strict=True):
        row, column = (index_of_value[value] for value in record.meta["arguments"])
        if best:  # the softmax over two scores, safe for any size of them
            cells["probability"][row][column] = round((1 + tanh(margin / 2)) / 2, 6)
        cells["prediction"][row][column] = best[0] if len(best) == 1 else None
        cells["answer"][row][column] = record.answer
    return {
        "name": grid.name,
        "probe": grid.probe,
        "title": grid.title,
        "wording": grid.wording,
        "axes": list(grid.axes),
        "candidates": list(grid.candidates),
        "values": list(grid.values),
        **cells,
    }
