"""Grids of zero-shot predictions over all pairs of values (Talmor 2020, figures 2A, 3, table 4)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from math import exp, fsum
from typing import Any

from probelight.build.prediction_grids import PredictionGrid, grid_of
from probelight.metrics.ties import best_of_each, credit_of
from probelight.probes.record import chance_of
from probelight.probes.splits import groups_of
from probelight.protocols.analyses.jobs import GRID, stems_sha256
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.model_source import source_of
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.predictions import (
    Predictions,
    accuracy_row,
    grouped_row,
    proportion_row,
    score_notices,
    tied_row,
)
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import RunContext
from probelight.results.load import GRID_FILE
from probelight.results.provenance import DataUse, changed_since
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.results.subset import GridWording


def fill_grid(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Makes the run of one model and grid.

    Raises:
        UsageError: If the sentences are others than when the run was planned.
    """
    start = time.perf_counter()
    model = ModelSettings(**config["model"])
    grid = grid_of(config["grid"], config["values"], config["wording"])
    sentences = DataUse(
        path=f"grid {grid.name} ({grid.wording} wording)",
        sha256=stems_sha256(grid),
        num_items=len(grid.records),
    )
    if sentences.sha256 != config["stems"]:
        raise changed_since([sentences.path])
    scorer = context.remembered("scorer mc_mlm", model, lambda: scorer_for(model, "mc_mlm"))
    name = f"grid {grid.name}"
    said = predict(scorer, {name: grid.records}, context.trainer)[name]
    rows = grid_rows(said, grid, replace(model.row, mode=scorer.mode))
    run.write_lines("predictions.jsonl", said.rows())
    run.write(GRID_FILE, grid_matrix(said, grid))
    run.write_metrics(rows)
    run.finish(
        RunRecord(
            protocol=GRID,
            model=model.label,
            probe=grid.probe,
            rows=tuple(rows),
            counts={"items": len(grid.records), "scored": len(said.records)},
            notices=(*said.notices, *score_notices(said)),
            data=(sentences,),
            source=source_of(model),
            model_sha256=scorer.fingerprint(),
            seconds=round(time.perf_counter() - start, 3),
        )
    )


def grid_rows(predictions: Predictions, grid: PredictionGrid, row: Row) -> list[Row]:
    """Accuracy, chance and the share of each answer; the panel is the row's `perturbation`.

    Args:
        predictions: What was said of the grid's pairs.
        grid: The grid.
        row: Whose columns of the model and the mode all rows have.
    """
    row = replace(
        row,
        protocol=GRID,
        probe=grid.probe,
        control="standard",
        num_train=0,
        subset=GridWording(grid.wording),
        perturbation=grid.name,
    )
    num_items = len(predictions.records)
    pairs = groups_of(predictions.records, "arguments")
    shares = [
        [credit_of(best, choice) for best in predictions.best]
        for choice in range(len(grid.candidates))
    ]
    chance = replace(row, metric="chance", value=chance_of(predictions.records))
    return [
        accuracy_row(predictions, pairs, row),
        tied_row(predictions, row),
        replace(chance, num_items=num_items),
        *(
            grouped_row(share, pairs, replace(row, metric=f"share_{name}"))
            for name, share in zip(grid.candidates, shares, strict=True)
        ),
        _order_row(predictions, row),
    ]


def _order_row(predictions: Predictions, row: Row) -> Row:
    """Share of unordered pairs whose two orders are told apart the right way.

    The first candidate must be more probable where it is right than where it is wrong. A model that
    always says one word, at 50% accuracy, may still tell all orders apart. Where it is as probable
    in both orders, the pair counts 1/2, as any tie of two.
    """
    margins: dict[frozenset[Any], dict[int, float]] = {}
    for record, scores, best in zip(
        predictions.records, predictions.scores, predictions.best, strict=True
    ):
        pair = frozenset(record.meta["arguments"])
        # -inf less -inf would be no number.
        margins.setdefault(pair, {})[record.answer] = (
            0.0 if len(best) > 1 else scores[0] - scores[1]
        )
    told_apart = best_of_each([[both[0], both[1]] for both in margins.values()])
    right = fsum(credit_of(best, 0) for best in told_apart)
    return proportion_row(right, len(margins), replace(row, metric="order_accuracy"))


def grid_matrix(predictions: Predictions, grid: PredictionGrid) -> dict[str, Any]:
    """What grid.json holds: the axes and, row by row, what was said of each pair.

    `probability` is p(first candidate) of the softmax over the two candidates, `prediction` and
    `answer` are indices of `candidates`; all are null on the diagonal and where an item was
    skipped. The prediction alone is null on a tie; a probability of NaN scores is null too.
    """
    place = {value: number for number, value in enumerate(grid.values)}
    size = len(grid.values)
    cells: dict[str, list[list[Any]]] = {
        name: [[None] * size for _ in range(size)]
        for name in ("probability", "prediction", "answer")
    }
    scored = zip(predictions.records, predictions.scores, predictions.best, strict=True)
    for record, (first, second), best in scored:
        row, column = (place[value] for value in record.meta["arguments"])
        if best:
            p = 0.5 if len(best) > 1 else _logistic(first - second)
            cells["probability"][row][column] = round(p, 6)
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


def _logistic(difference: float) -> float:
    """The softmax over two scores, from their difference; safe for any size of it."""
    small = exp(-abs(difference))
    return 1 / (1 + small) if difference >= 0 else small / (1 + small)
