"""Writes outputs on the diagnostics in the forms that `results.importers.recorded` reads.

The files have no ending, as the programs of Ettinger (2020) look for them, but for the lists of
Shivagunde et al. (2023). Read again, they give the same counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from probelight.io.atomic import write_text_atomic
from probelight.io.errors import UsageError
from probelight.probes.diagnostics.sets import SETS, SetSource
from probelight.probes.record import MASK
from probelight.protocols.diagnostics.jobs import label_of
from probelight.protocols.jobs.job import Job
from probelight.results.importers.recorded import LISTS, PREDICTIONS, PROBABILITIES, SPLIT
from probelight.results.load import load_results


def file_name(model: str) -> str:
    """A model's name as file names have it: with `-` for what no file of this form can have."""
    return re.sub(r"[/\\]|[^\S ]", "-", model)


def write_outputs(results: Path, jobs: Iterable[Job], folder: Path) -> None:
    """Writes the outputs of finished runs.

    Args:
        results: Folder of the command.
        jobs: The jobs of models of ours.
        folder: Folder of all sets and models.

    Raises:
        UsageError: As `write_recorded`.
        ValueError: If a run's files are not what it left.
    """
    found = load_results(results)
    runs = {run.key: run for run in found.runs}
    for job in jobs:
        lines = found.read(runs[job.key], "predictions.jsonl")
        write_recorded(folder, SETS[job.config["probe"]], label_of(job), lines or [])


def write_recorded(
    folder: Path, source: SetSource, model: str, lines: Sequence[Mapping[str, Any]]
) -> None:
    """Writes the files of one model on one set, each whole; those that are there are replaced.

    Where there is no probability stands `nan`, as the authors' program writes it of a word that is
    not in the vocabulary.

    Args:
        folder: The folder of all sets and models.
        source: The set.
        model: The model.
        lines: predictions.jsonl of its run.

    Raises:
        UsageError: If the model has said nothing behind a context, which no form has a place for.
    """
    said = [line["predictions"] for line in lines]
    if not all(said):
        raise UsageError(
            f"{model} on {source.title}: its numbers are none (NaN) behind some contexts, which "
            "recorded outputs cannot say"
        )
    of_set = source.recorded_as
    of_model = f"{of_set}-{file_name(model)}"
    if source.in_lists:
        _write(folder / of_set / f"{file_name(model)}.txt", map(repr, said))
    else:
        contexts, targets = (folder / f"{of_set}-{kind}" for kind in LISTS)
        _write(contexts, (f"{line['context']} {MASK}" for line in lines))
        _write(targets, (line["target"] for line in lines))
        numbers = (line["probability"] for line in lines)
        _write(
            folder / f"{PROBABILITIES}-{of_model}",
            ("nan" if number is None else repr(number) for number in numbers),
        )
        _write(folder / f"{PREDICTIONS}-{of_model}", map(" ".join, said))
    split = folder / f"{SPLIT}-{of_model}"
    if words := {word for line in lines for word in line.get("split", ())}:
        _write(split, sorted(words))
    else:
        split.unlink(missing_ok=True)  # of another model of this name


def _write(path: Path, lines: Iterable[str]) -> None:
    write_text_atomic(path, "".join(f"{line}\n" for line in lines))
