"""Makes the run of one model on one diagnostic set."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from probelight.probes.diagnostics.sets import SETS, DiagnosticSet, load_set
from probelight.protocols.diagnostics.ask import Words, ask_words
from probelight.protocols.diagnostics.jobs import PROTOCOL, RECORDED, SHUFFLES
from probelight.protocols.diagnostics.perturbed import perturbed, perturbed_lines, perturbed_rows
from probelight.protocols.diagnostics.questions import Questions, questions_of
from probelight.protocols.diagnostics.rows import (
    diagnostic_rows,
    known_completions,
    known_contrasts,
)
from probelight.protocols.engine.model_source import source_of
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import RunContext
from probelight.results.importers.recorded import Recorded, find_recorded, read_recorded
from probelight.results.model_outputs import ModelOutputs
from probelight.results.provenance import changed_since, check_data, data_files
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder


def measure_recorded(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Makes the run of outputs that another program recorded.

    Raises:
        UsageError: If a file is another one than when the run was planned.
        RecordError: If a file is malformed.
    """
    start = time.perf_counter()
    data, model = _planned_set(config, context), config["model"]
    recorded = planned(config, context)
    outputs = read_recorded(recorded, asked_of(data))
    row = Row(protocol=PROTOCOL, model=model, probe=data.source.name, role="model", kind=RECORDED)
    record = _measured(run, data, outputs, row)
    files = data_files([data, recorded])
    run.finish(replace(record, data=files, seconds=round(time.perf_counter() - start, 3)))


def measure_model(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Makes the run of a model of ours.

    Raises:
        UsageError: If the set is another one than when the run was planned, or this kind of model
            has no probabilities over a vocabulary.
        RecordError: If a context cannot be posed.
    """
    start = time.perf_counter()
    data, model = _planned_set(config, context), ModelSettings(**config["model"])
    # A model is loaded once, for all sets that come one after the other.
    scorer = context.remembered("scorer mc_mlm", model, lambda: scorer_for(model, "mc_mlm"))
    less = perturbed(data, config.get(SHUFFLES, 0))
    words = words_of(data, *(one.words for one in less))
    answers = ask_words(scorer, words, context.trainer)
    outputs = answers.outputs(data.prompts)
    row = replace(model.row, protocol=PROTOCOL, probe=data.source.name)
    record = _measured(run, data, outputs, row)
    rows = [made for one in less for made in perturbed_rows(one, answers, outputs, row)]
    if less:
        lines = (line for one in less for line in perturbed_lines(one, data, answers))
        run.write_lines("perturbations.jsonl", lines)
    on = f"{model.label} on {data.source.title}"
    run.finish(
        replace(
            record,
            rows=(*record.rows, *rows),
            seeds=tuple(range(config.get(SHUFFLES, 0))),
            notices=(*record.notices, *(f"{on}: {notice}" for notice in answers.notices)),
            data=data_files([data]),
            model_sha256=scorer.fingerprint(),
            source=source_of(model),
            seconds=round(time.perf_counter() - start, 3),
        )
    )


def words_of(data: DiagnosticSet, *more: Words) -> dict[str, list[str]]:
    """For each context the words that something is asked about: targets and expected ones.

    Args:
        data: The set.
        more: Other contexts with their words.
    """
    words: dict[str, list[str]] = {}
    for prompt in data.prompts:
        words.setdefault(prompt.context, []).append(prompt.target)
    for one in questions_of(data).completions:
        words[data.prompts[one.prompt].context] += one.expected
    for context, own in (pair for one in more for pair in one.items()):
        words.setdefault(context, []).extend(own)
    return words


def _planned_set(config: Mapping[str, Any], context: RunContext) -> DiagnosticSet:
    name = config["probe"]
    load = partial(load_set, name, context.mirror)
    data = context.remembered(f"diagnostic {name}", context.mirror, load)
    check_data(config["data"], [data])
    return data


def _measured(run: RunFolder, data: DiagnosticSet, outputs: ModelOutputs, row: Row) -> RunRecord:
    """What a run records of a model's outputs; its files are written."""
    asked = questions_of(data)
    rows = diagnostic_rows(asked, outputs, row)
    run.write_lines("predictions.jsonl", prediction_lines(data, asked, outputs))
    run.write_metrics(rows)
    return RunRecord(
        protocol=PROTOCOL,
        model=row.model,
        probe=row.probe,
        rows=tuple(rows),
        counts={"items": len(data.items), "prompts": len(data.prompts)},
        notices=(*data.notices, *left_out(asked, outputs, f"{row.model} on {data.source.title}")),
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
    """What the model said of each prompt, and what would be right, for predictions.jsonl.

    `split` are those of its words that the vocabulary does not have as one, where it has not all.
    """
    expected = {one.prompt: one.expected for one in asked.completions}
    probabilities = outputs.probabilities or (None,) * len(data.prompts)
    lines: list[dict[str, Any]] = []
    for place, (prompt, words, probability) in enumerate(
        zip(data.prompts, outputs.predictions, probabilities, strict=True)
    ):
        right = list(expected.get(place, ()))
        split = [word for word in dict.fromkeys([prompt.target, *right]) if word in outputs.split]
        line = {
            "context": prompt.context,
            "target": prompt.target,
            "expected": right,
            "predictions": list(words),
            "probability": probability,
        }
        lines.append({**line, "split": split} if split else line)
    return lines


def left_out(asked: Questions, outputs: ModelOutputs, name: str) -> list[str]:
    """How many items have no accuracy, or no sensitivity, as the vocabulary splits a word."""
    notices = []
    num_contexts, num_contrasts = len(asked.completions), len(asked.contrasts)
    if number := num_contexts - len(known_completions(asked.completions, outputs)):
        notices.append(
            f"{name}: {number} of {num_contexts} contexts left out of the accuracies, as the "
            "vocabulary has none of their expected words as one entry"
        )
    known = known_contrasts(asked, outputs.probabilities) if outputs.probabilities else []
    if outputs.probabilities and (number := num_contrasts - len(known)):
        notices.append(
            f"{name}: {number} of {num_contrasts} comparisons left out of the sensitivities, as a "
            "word has no probability"
        )
    if outputs.split:
        notices.append(
            f"{name}: {len(outputs.split)} words asked for are not one entry of the vocabulary: "
            f"{', '.join(sorted(outputs.split)[:5])}{', ...' if len(outputs.split) > 5 else ''}"
        )
    return notices
