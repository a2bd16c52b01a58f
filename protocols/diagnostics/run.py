"""Makes the run of one model on one diagnostic set."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jobs.context import RunContext
from probes.diagnostics.sets import SETS, DiagnosticSet, load_set
from protocols.diagnostics.jobs import PROTOCOL, RECORDED
from protocols.diagnostics.questions import Questions, questions_of
from protocols.diagnostics.rows import diagnostic_rows, known_contrasts
from results.importers.recorded import Recorded, find_recorded, read_recorded
from results.model_outputs import ModelOutputs
from results.provenance import changed_since, check_data, data_files
from results.record import RunRecord
from results.row import Row
from results.run_folder import RunFolder


def measure_recorded(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Makes the run of outputs that another program recorded.

    Raises:
        UsageError: If a file is another one than when the run was planned.
        RecordError: If a file is malformed.
    """
    start = time.perf_counter()
    name, model = config["probe"], config["model"]
    load = partial(load_set, name, context.mirror)
    data = context.remembered(f"diagnostic {name}", context.mirror, load)
    check_data(config["data"], [data])
    recorded = planned(config, context)
    outputs = read_recorded(recorded, asked_of(data))
    asked = questions_of(data)
    row = Row(protocol=PROTOCOL, model=model, probe=name, role="model", kind=RECORDED)
    rows = diagnostic_rows(asked, outputs, row)
    run.write_lines("predictions.jsonl", prediction_lines(data, asked, outputs))
    run.write_metrics(rows)
    run.finish(
        RunRecord(
            protocol=PROTOCOL,
            model=model,
            probe=name,
            rows=tuple(rows),
            counts={"items": len(data.items), "prompts": len(data.prompts)},
            notices=(*data.notices, *left_out(asked, outputs, f"{model} on {data.source.title}")),
            data=data_files([data, recorded]),
            seconds=round(time.perf_counter() - start, 3),
        )
    )


def asked_of(data: DiagnosticSet) -> list[tuple[str, str]]:
    """Context and target of each prompt."""
    return [(prompt.context, prompt.target) for prompt in data.prompts]


def planned(config: Mapping[str, Any], context: RunContext) -> Recorded:
    """The files that a run was planned with."""
    folder, name = context.paths[RECORDED], SETS[config["probe"]].recorded_as
    for one in find_recorded(Path(folder), [source.recorded_as for source in SETS.values()]):
        if (one.recorded_as, one.model) == (name, config["model"]):
            if [file.sha256 for file in one.files] != config["recorded"]:
                raise changed_since(file.path for file in one.files)
            return one
    raise changed_since([folder])


def prediction_lines(
    data: DiagnosticSet, asked: Questions, outputs: ModelOutputs
) -> list[dict[str, Any]]:
    """What the model said of each prompt, and what would be right, for predictions.jsonl."""
    expected = {one.prompt: one.expected for one in asked.completions}
    probabilities = outputs.probabilities or (None,) * len(data.prompts)
    return [
        {
            "context": prompt.context,
            "target": prompt.target,
            "expected": list(expected.get(place, ())),
            "predictions": list(words),
            "probability": probability,
        }
        for place, (prompt, words, probability) in enumerate(
            zip(data.prompts, outputs.predictions, probabilities, strict=True)
        )
    ]


def left_out(asked: Questions, outputs: ModelOutputs, name: str) -> list[str]:
    """How many items have no sensitivity, as a target has no probability."""
    if outputs.probabilities is None:
        return []
    number = len(asked.contrasts) - len(known_contrasts(asked, outputs.probabilities))
    said = f"{name}: {number} of {len(asked.contrasts)} comparisons left out of the sensitivities"
    return [f"{said}, as a word has no probability"] if number else []
