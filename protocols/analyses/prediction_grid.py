"""Grids of zero-shot predictions over all pairs of values (Talmor 2020, figures 2A, 3, table 4)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from math import exp, fsum
from typing import Any

from jobs.context import TrainerSettings
from metrics.ties import best_of_each, credit_of
from probes.build.prediction_grids import PredictionGrid
from probes.record import chance_of
from probes.splits import groups_of
from protocols.engine.evaluation import (
    Predictions,
    accuracy_row,
    grouped_row,
    predict,
    proportion_row,
    score_notices,
    tied_row,
)
from protocols.engine.model_source import source_of
from protocols.engine.models import scorer_for
from protocols.engine.settings import ModelSettings
from results.load import GRID_FILE
from results.provenance import DataUse
from results.record import RunRecord
from results.row import Row
from results.run_folder import CommandFolder, RunFolder
from results.subset import GridWording

PROTOCOL = "grid"


def fill_grids(
    folder: CommandFolder,
    grids: Sequence[PredictionGrid],
    model: ModelSettings,
    trainer: TrainerSettings,
) -> None:
    """Fills each grid in a run of its own."""
    runs = [(one, _run_folder(folder, one, model, trainer)) for one in grids]
    missing = [(one, run) for one, run in runs if run.result() is None]
    if len(missing) < len(runs):
        print(f"{model.label}: {len(runs) - len(missing)} of {len(runs)} grids complete")
    if not missing:
        return
    scorer = scorer_for(model, "mc_mlm")
    for one, run in missing:
        start = time.perf_counter()
        predictions = predict(scorer, {f"grid {one.name}": one.records}, trainer)
        said = predictions[f"grid {one.name}"]
        rows = grid_rows(said, one, replace(model.row, mode=scorer.mode))
        run.write_lines("predictions.jsonl", said.rows())
        run.write(GRID_FILE, grid_matrix(said, one))
        run.write_metrics(rows)
        run.finish(
            RunRecord(
                protocol=PROTOCOL,
                model=model.label,
                probe=one.probe,
                rows=tuple(rows),
                counts={"items": len(one.records), "scored": len(said.records)},
                notices=(*said.notices, *score_notices(said)),
                data=(
                    DataUse(
                        path=f"grid {one.name} ({one.wording} wording)",
                        sha256=_stems_sha256(one),
                        num_items=len(one.records),
                    ),
                ),
                source=source_of(model),
                model_sha256=scorer.fingerprint(),
                seconds=round(time.perf_counter() - start, 3),
            )
        )
        folder.write_results()


def grid_rows(predictions: Predictions, grid: PredictionGrid, row: Row) -> list[Row]:
    """Accuracy, chance and the share of each answer; the panel is the row's `perturbation`.

    Args:
        predictions: What was said of the grid's pairs.
        grid: The grid.
        row: Whose columns of the model and the mode all rows have.
    """
    row = replace(
        row,
        protocol=PROTOCOL,
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


def _run_folder(
    folder: CommandFolder, grid: PredictionGrid, model: ModelSettings, trainer: TrainerSettings
) -> RunFolder:
    config = {
        "protocol": PROTOCOL,
        "model": model.config(),
        "grid": grid.name,
        "wording": grid.wording,
        "stems": _stems_sha256(grid),
        "precision": trainer.precision,
    }
    return folder.run(f"grid-{grid.name}-{grid.wording}-{model.label}", config)


def _stems_sha256(grid: PredictionGrid) -> str:
    text = "\n".join(record.stem for record in grid.records)
    return hashlib.sha256(text.encode()).hexdigest()
