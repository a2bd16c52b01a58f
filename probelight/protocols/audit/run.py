"""A baseline's run: trained on the probe itself, or asked as it is, and measured on the rest."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from probelight.io.ranges import settings_from
from probelight.models.scorers.base import Scorer
from probelight.models.scorers.trained import TrainedScorer
from probelight.probes.controls import STANDARD
from probelight.probes.splits import groups_of
from probelight.protocols.audit.data import AuditData, read_audit, under
from probelight.protocols.audit.jobs import is_trained
from probelight.protocols.audit.settings import PROTOCOL, AuditSettings
from probelight.protocols.engine.direct import Direct, fit_directly
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.model_source import source_of
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.predictions import (
    Predictions,
    accuracy_row,
    chance_rows,
    score_notices,
    subset_rows,
    tied_row,
    untouched_of,
)
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import RunContext
from probelight.results.provenance import check_data, data_files
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder


def ask_baseline(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Makes the run of one baseline on one probe, with one seed.

    Raises:
        UsageError: If the probe is another one than when the run was planned.
    """
    began = time.perf_counter()
    model = ModelSettings(**config["model"])
    settings = settings_from(AuditSettings, config["settings"])
    data = read_audit(config["probe"], settings, context)
    check_data(config["data"], data.parts.values())
    notices = list(data.notices)
    control = config.get("control", STANDARD)
    posed = under(control, data)
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
    # Which items are alike hangs on their stems, whatever was seen of them.
    said = {split: replace(one, records=data.measured[split]) for split, one in found.items()}
    row = replace(row, mode=scorer.mode, seed=seed)
    notices += [notice for one in said.values() for notice in one.notices]
    notices += score_notices(*said.values())
    rows = [own for split, one in said.items() for own in _rows(data, one, split, row)]
    lines = (one.rows(groups_of(one.records, data.config.group_by)) for one in said.values())
    run.write_lines("predictions.jsonl", chain.from_iterable(lines))
    if seed is None:
        run.write_metrics(rows)  # a training has left its own
    run.finish(
        RunRecord(
            protocol=PROTOCOL,
            model=model.label,
            probe=data.config.name,
            rows=tuple(rows),
            counts={
                "train": len(data.train),
                "held out": len(data.held_out),
                **{split: len(one.records) for split, one in said.items()},
            },
            notices=tuple(dict.fromkeys(notices)),
            seeds=() if seed is None else (seed,),
            data=data_files(data.parts.values()),
            source=source_of(model),
            model_sha256=scorer.fingerprint(),
            seconds=round(time.perf_counter() - began, 3),
        )
    )
    shutil.rmtree(run.checkpoint_dir, ignore_errors=True)


def _rows(data: AuditData, said: Predictions, split: str, row: Row) -> list[Row]:
    """Accuracy with its ties and chance, and that of items without a relative in train."""
    records, row = said.records, replace(row, split=split)
    groups = groups_of(records, data.config.group_by)
    clean = untouched_of(data.untouched(records))
    chance = chance_rows(said, replace(row, num_items=len(records)))
    rows = [accuracy_row(said, groups, row), tied_row(said, row), *chance]
    return rows + subset_rows(said, groups, clean, replace(row, metric="accuracy"))
