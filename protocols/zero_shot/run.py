"""Zero-shot: what a model knew before anything was trained (Talmor 2020, section 3).

MC-MLM probes are read off the mask. MC-QA has no pre-trained head: a model that was fine-tuned
here answers with its head, any other with the pseudo-log-likelihood of each answer behind its
question (Salazar et al. 2020).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from jobs.context import TrainerSettings
from lightning_modules.scorers.base import Scorer
from metrics.balance import macro_accuracy, majority_accuracy, predicted_shares
from probes.record import Setup, chance_of
from probes.source import ProbeData
from probes.splits import groups_of
from protocols.engine.evaluation import (
    Predictions,
    accuracy_row,
    predict,
    score_notices,
    subset_rows,
    templates_of,
    tied_row,
)
from protocols.engine.model_source import source_of
from protocols.engine.models import check_scorer, scorer_for
from protocols.engine.settings import ModelSettings
from protocols.zero_shot.data import LoadedSet, checksums
from protocols.zero_shot.ranks import rank_rows, ranks_of
from results.provenance import data_files
from results.record import RunRecord
from results.row import Row
from results.run_folder import CommandFolder, RunFolder
from results.subset import Answered

PROTOCOL = "zero_shot"


def score_sets(
    folder: CommandFolder,
    sets: Sequence[LoadedSet],
    models: Sequence[ModelSettings],
    trainer: TrainerSettings,
    ranks: bool = False,
) -> None:
    """Scores each set with each model in a run of its own and rewrites results.csv behind each.

    That every model loads and reads every set's candidates is checked before the first is scored.
    """
    missing = [_missing(folder, sets, model, trainer, ranks) for model in models]
    for model, runs in zip(models, missing, strict=True):
        _check(model, [loaded for (_, _, loaded), _ in runs])
    for model, runs in zip(models, missing, strict=True):
        _score(folder, runs, model, trainer, ranks)


def _missing(
    folder: CommandFolder,
    sets: Sequence[LoadedSet],
    model: ModelSettings,
    trainer: TrainerSettings,
    ranks: bool,
) -> list[tuple[LoadedSet, RunFolder]]:
    """The sets that a model has not scored yet, and the run of each."""
    found = []
    for name, split, loaded in sets:
        config = {
            "protocol": PROTOCOL,
            "model": model.config(),
            "probe": name,
            "split": split,
            "data": checksums(loaded),
            "precision": trainer.precision,
            **({"ranks": True} if ranks else {}),
        }
        run = folder.run(f"zero-shot-{name}-{model.label}", config)
        if run.result() is None:
            found.append(((name, split, loaded), run))
        else:
            print(f"{name}, {model.label}: complete")
    return found


def _check(model: ModelSettings, sets: Sequence[ProbeData]) -> None:
    for setup in dict.fromkeys(data.config.setup for data in sets):
        records = [data.records for data in sets if data.config.setup == setup]
        check_scorer(model, setup, records)


def _score(
    folder: CommandFolder,
    runs: Sequence[tuple[LoadedSet, RunFolder]],
    model: ModelSettings,
    trainer: TrainerSettings,
    ranks: bool,
) -> None:
    scorers: dict[Setup, Scorer] = {}  # made when first needed: a model is loaded once a setup
    for (name, split, loaded), run in runs:
        start = time.perf_counter()
        setup = loaded.config.setup
        if setup not in scorers:
            scorers[setup] = scorer_for(model, setup)
        scorer = scorers[setup]
        predictions = predict(scorer, {name: loaded.records}, trainer)[name]
        base = replace(
            model.row,
            protocol=PROTOCOL,
            probe=loaded.config.name,
            control="standard",
            mode=scorer.mode,
            num_train=0,
            split=split,
        )
        rows = zero_shot_rows(predictions, loaded, base)
        notices = [*loaded.notices, *predictions.notices, *score_notices(predictions)]
        if ranks and setup == "mc_mlm":
            ranked = ranks_of(scorer, predictions, trainer)
            own = groups_of(ranked.records, loaded.config.group_by)
            rows += rank_rows(ranked, own, base)
            notices += [n for n in ranked.notices if n not in notices]
        run.write_lines("predictions.jsonl", predictions.rows())
        run.write_metrics(rows)
        run.finish(
            RunRecord(
                protocol=PROTOCOL,
                model=model.label,
                probe=name,
                rows=tuple(rows),
                counts={"items": len(loaded.records), "scored": len(predictions.records)},
                notices=tuple(notices),
                data=data_files([loaded]),
                model_sha256=scorer.fingerprint(),
                source=source_of(model),
                seconds=round(time.perf_counter() - start, 3),
            )
        )
        folder.write_results()


def zero_shot_rows(predictions: Predictions, data: ProbeData, row: Row) -> list[Row]:
    """Accuracy with what it must be read beside: chance, majority, macro, predicted shares.

    Args:
        predictions: What was said.
        data: The probe.
        row: The columns that all rows share.
    """
    records = predictions.records
    num_items = len(records)
    by_position = not data.config.candidates
    gold = [_class(r.answer, r.choices, by_position) for r in records]
    said = [
        [_class(choice, record.choices, by_position) for choice in best]
        for best, record in zip(predictions.best, records, strict=True)
    ]
    groups = groups_of(records, data.config.group_by)
    rows = [accuracy_row(predictions, groups, row), tied_row(predictions, row)]
    row = replace(row, num_items=num_items)
    for metric, value in (
        ("chance", chance_of(records)),
        ("majority_accuracy", majority_accuracy(gold)),
        ("macro_accuracy", macro_accuracy(predictions.credit, gold)),
    ):
        rows.append(replace(row, metric=metric, value=value))
    for answer, share in predicted_shares(said).items():
        rows.append(replace(row, metric="predicted_share", subset=Answered(answer), value=share))
    # Accuracy per template, for probes whose items name theirs (Talmor 2020, table 6).
    return rows + subset_rows(predictions, groups, templates_of(records), row)


def _class(index: int, choices: Sequence[str], by_position: bool) -> str:
    return f"choice {index + 1}" if by_position else choices[index]
