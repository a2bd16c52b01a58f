"""Which phrasing of a probe is kept: the one that models answer best before training.

Talmor 2020, section 3.1: the best by mean zero-shot accuracy over the models. It is chosen on train
rows, so that the rows measured had no say, and all phrasings are reported.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from probelight.io.errors import UsageError
from probelight.probes.controls import STANDARD
from probelight.probes.source import ProbeData, load_probe
from probelight.probes.splits import groups_of
from probelight.protocols.curve.settings import PROTOCOL
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.model_source import source_of
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.predictions import accuracy_row, score_notices, tied_row
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import RunContext
from probelight.protocols.jobs.job import Job
from probelight.protocols.jobs.run import Part, run_jobs
from probelight.results.provenance import check_data, data_files
from probelight.results.record import RunRecord
from probelight.results.run_folder import CommandFolder, RunFolder

RUNNER = "probelight.protocols.curve.phrasing:score_phrasing"


def best_phrasing(
    folder: CommandFolder,
    names: Sequence[str],
    models: Sequence[ModelSettings],
    split: str,
    context: RunContext,
) -> str:
    """The phrasing with the best mean accuracy on train rows; the first one on a tie.

    Args:
        folder: The command's folder; each (model, phrasing) is a job of its own in it.
        names: Probes that ask the same in other words.
        models: The models compared; random weights and baselines know no phrasing and have no say.
        split: The train split.
        context: What the runs are made under.

    Raises:
        UsageError: If a phrasing is no MC-MLM probe, or no model can judge.
    """
    judges = [m for m in models if m.role == "model"]
    for name in names:
        config = _load(name, split, context).config
        if config.setup != "mc_mlm":
            raise UsageError(f"--phrasings: {config.name} is no mc_mlm probe")
    if not judges:
        raise UsageError("--phrasings: none of the models is a pre-trained language model")
    plan = [
        _job(model, name, _load(name, split, context), split) for model in judges for name in names
    ]
    run_jobs([Part(plan)], folder, context)
    scores: dict[str, list[float]] = {name: [] for name in names}
    for job in plan:
        record = folder.result(job.key)
        assert record is not None
        scores[job.config["phrasing"]].append(record.rows[0].value)
    best = max(names, key=lambda name: fmean(scores[name]))
    for name in names:
        kept = " (kept)" if name == best else ""
        print(f"{name}: {fmean(scores[name]):.1%} zero-shot on {split} rows{kept}")
    return best


def _load(name: str, split: str, context: RunContext) -> ProbeData:
    mirror = context.mirror
    place = f"phrasing {name}"
    return context.remembered(place, split, lambda: load_probe(name, split, mirror=mirror))


def _job(model: ModelSettings, name: str, data: ProbeData, split: str) -> Job:
    own = data.config.name
    config = {
        "protocol": PROTOCOL,
        "phrasing": name,
        "probe": own,
        "model": model.config(),
        "split": split,
        "data": [file.sha256 for file in data.files],
    }
    return Job(f"phrasing-{own}-{model.label}", config, RUNNER)


def score_phrasing(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Zero-shot accuracy of one model on one phrasing.

    Raises:
        UsageError: If the phrasing is another one than when the run was planned.
    """
    start = time.perf_counter()
    model, split = ModelSettings(**config["model"]), config["split"]
    data = _load(config["phrasing"], split, context)
    check_data(config["data"], [data])
    own = data.config.name
    scorer = context.remembered("phrasing scorer", model, lambda: scorer_for(model, "mc_mlm"))
    said = predict(scorer, {own: data.records}, context.trainer)[own]
    groups = groups_of(said.records, data.config.group_by)
    row = replace(
        model.row,
        protocol=PROTOCOL,
        probe=own,
        control=STANDARD,
        mode=scorer.mode,
        num_train=0,
        split=split,
    )
    run.write_lines("predictions.jsonl", said.rows(groups))
    run.finish(
        RunRecord(
            protocol=PROTOCOL,
            model=model.label,
            probe=own,
            rows=(accuracy_row(said, groups, row), tied_row(said, row)),
            counts={"train": len(data.records), "scored": len(said.records)},
            notices=(*data.notices, *said.notices, *score_notices(said)),
            data=data_files([data]),
            source=source_of(model),
            model_sha256=scorer.fingerprint(),
            seconds=round(time.perf_counter() - start, 3),
        )
    )
