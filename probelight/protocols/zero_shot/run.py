"""Zero-shot: what a model knew before anything was trained (Talmor 2020, section 3).

MC-MLM probes are read off the mask. MC-QA has no pre-trained head: a model that was fine-tuned
here answers with its head, any other with the pseudo-log-likelihood of each answer behind its
question (Salazar et al. 2020).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from probelight.probes.splits import groups_of
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.model_source import source_of
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.predictions import (
    near_tie_notices,
    score_notices,
)
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import RunContext
from probelight.protocols.zero_shot.data import read_set
from probelight.protocols.zero_shot.jobs import PROTOCOL
from probelight.protocols.zero_shot.pairs import DEFAULT_RULES, pair_notices, pair_rows, rule_rows
from probelight.protocols.zero_shot.panel import Stems, panel_of
from probelight.protocols.zero_shot.ranks import rank_rows, ranks_of
from probelight.protocols.zero_shot.rows import zero_shot_rows
from probelight.results.provenance import check_data, data_files
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder


def score_set(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Makes the run of one model and set.

    Raises:
        UsageError: If the set is another one than when the run was planned.
    """
    start = time.perf_counter()
    model, name = ModelSettings(**config["model"]), config["probe"]
    loaded = read_set(name, config["split"], context)
    check_data(config["data"], [loaded])
    setup = loaded.config.setup
    # A model is loaded once a setup, for all sets that come one after the other.
    scorer = context.remembered(f"scorer {setup}", model, lambda: scorer_for(model, setup))
    predictions = predict(scorer, {name: loaded.records}, context.trainer)[name]
    base = replace(
        model.row,
        protocol=PROTOCOL,
        probe=loaded.config.name,
        control="standard",
        mode=scorer.mode,
        num_train=0,
        split=config["split"],
    )
    notices = [*loaded.notices, *predictions.notices, *score_notices(predictions)]
    notices += near_tie_notices(predictions)
    notices += pair_notices(predictions.records)
    group_by, pairs = loaded.config.group_by, setup == "minimal_pair"
    rows = (pair_rows if pairs else zero_shot_rows)(predictions, loaded, base)
    if config.get("ranks") and setup == "mc_mlm":
        ranked = ranks_of(scorer, predictions, context.trainer)
        rows += rank_rows(ranked, groups_of(ranked.records, group_by), base)
        notices += [n for n in ranked.notices if n not in notices]
    run.write_metrics(rows)
    rules = config.get("scoring") or (DEFAULT_RULES if pairs else ())
    stems = Stems.of(setup, config.get("domain_stem", ""))
    panel = panel_of(scorer, predictions, rules, stems, context.trainer)
    groups = groups_of(predictions.records, group_by)
    rows += panel.rows(groups, base)
    rows += rule_rows(panel, group_by, base) if pairs else []
    notices += [n for n in panel.notices if n not in notices]
    run.write_lines("predictions.jsonl", panel.lines(groups))
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
