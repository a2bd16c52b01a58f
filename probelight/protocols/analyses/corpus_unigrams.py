"""Is the better model the one that read more of a probe's words? (Talmor 2020, section 5).

Per probe: which of two models does better, against which model's pre-training corpus gives the
probe's content words the higher mean log probability; over probes: Spearman's correlation of the
two differences. The paper has 0.22 for roberta-large against bert-large whole-word-masking.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from probelight.io.errors import UsageError
from probelight.io.files import sha256_of
from probelight.metrics.correlation import spearman
from probelight.metrics.scoring_rules import RULES
from probelight.probes.catalog import load_probe_config
from probelight.probes.source import ProbeData, load_probe
from probelight.probes.unigrams import CorpusFit, corpus_fit, read_unigrams, words_of_records
from probelight.protocols.analyses.settings import Measure
from probelight.protocols.jobs.context import RunContext
from probelight.protocols.jobs.job import Job
from probelight.results.load import Results, load_results
from probelight.results.provenance import DataUse, changed_since, check_data, data_files
from probelight.results.record import RunRecord, UnigramFacts
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.results.subset import OneModel

UNIGRAMS = "unigrams"
RUNNER = "probelight.protocols.analyses.corpus_unigrams:compare_words"
PATHS = ("counts_a", "counts_b")  # in `RunContext.paths`
MODES = ("mlp", "full")  # a curve of either counts: MC-MLM has the first, MC-QA the second
STANDARD = ("", "standard")
Accuracies = dict[str, dict[str, float]]  # probe, then model


@dataclass(frozen=True)
class Compared:
    """A model, as tables call it, and the file of the words it read in pre-training."""

    model: str
    counts: str

    @property
    def words(self) -> DataUse:
        """The file as a run records it."""
        return DataUse(path=Path(self.counts).name, sha256=sha256_of(self.counts))


def comparison_job(
    results: Path, compared: Sequence[Compared], measure: Measure, context: RunContext
) -> Job:
    """The job that compares two models.

    Args:
        results: Folder of finished runs of both.
        compared: The two; the context has the paths of their words under `PATHS`.
        measure: How good a model is.
        context: What the job will run under.

    Raises:
        UsageError: If fewer than two probes were answered by both models.
    """
    models = [one.model for one in compared]
    found = accuracies(load_results(results), measure)
    shared = {probe: own for probe, own in found.items() if own.keys() >= set(models)}
    if len(shared) < 2:
        raise UsageError(_too_few(found, results, models, measure))
    config = {
        "command": UNIGRAMS,
        "models": models,
        "counts": [one.words.sha256 for one in compared],
        "measure": measure,
        "accuracies": {probe: [own[model] for model in models] for probe, own in shared.items()},
        "data": [f.sha256 for probe in sorted(shared) for f in _items(probe, context).files],
    }
    return Job("-".join([UNIGRAMS, *models]), config, RUNNER)


def compare_words(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Makes the run of two models: their differences and the correlation over probes.

    Raises:
        UsageError: If a file is another one than when the run was planned.
    """
    start = time.perf_counter()
    compared = [
        Compared(model, context.paths[place])
        for model, place in zip(config["models"], PATHS, strict=True)
    ]
    model_a, model_b = (one.model for one in compared)
    counts_a, counts_b = (one.counts for one in compared)
    words = [one.words for one in compared]
    if [file.sha256 for file in words] != config["counts"]:
        raise changed_since([counts_a, counts_b])
    found = {probe: {model_a: a, model_b: b} for probe, (a, b) in config["accuracies"].items()}
    data = {probe: _items(probe, context) for probe in sorted(found)}
    check_data(config["data"], data.values())
    fits = corpus_fits(data, counts_a, counts_b)
    run.finish(
        RunRecord(
            protocol=UNIGRAMS,
            model=f"{model_a} against {model_b}",
            rows=tuple(unigram_rows(found, fits, (model_a, model_b))),
            counts={"probes": len(found)},
            notices=tuple(_notices(fits, (counts_a, counts_b))),
            data=(*data_files(data.values()), *words),
            seconds=round(time.perf_counter() - start, 3),
            unigrams=UnigramFacts(models=(model_a, model_b), measure=config["measure"]),
        )
    )


def accuracies(results: Results, measure: Measure) -> Accuracies:
    """Accuracy of each model on each probe.

    "max" is the best point of the curve averaged over seeds, N = 0 not being a point of it.
    """
    import pandas as pd

    measured = [
        (row.probe, row.model, row.num_train or 0, row.value)
        for row in results.rows
        if row.metric == "accuracy" and not (row.subset or row.perturbation)
        if row.protocol in ("zero_shot", "curve") and row.control in STANDARD
        if (not row.num_train) == (measure == "zero_shot")
        if (row.mode in MODES if row.num_train else row.mode not in RULES)
    ]
    rows = pd.DataFrame(measured, columns=["probe", "model", "size", "value"])
    points = rows.groupby(["probe", "model", "size"])["value"].mean()
    best = points.groupby(["probe", "model"]).max()
    return {probe: own.droplevel("probe").to_dict() for probe, own in best.groupby("probe")}


def corpus_fits(
    data: Mapping[str, ProbeData], counts_a: str, counts_b: str
) -> dict[str, tuple[CorpusFit, CorpusFit]]:
    """How common the content words of each probe are in either corpus."""
    words = {probe: words_of_records(part.records) for probe, part in data.items()}
    wanted = {word for own in words.values() for word in own}
    first, second = (read_unigrams(path, wanted) for path in (counts_a, counts_b))
    return {
        probe: (corpus_fit(own, first), corpus_fit(own, second)) for probe, own in words.items()
    }


def unigram_rows(
    found: Accuracies,
    fits: Mapping[str, tuple[CorpusFit, CorpusFit]],
    models: tuple[str, str],
) -> list[Row]:
    """Both differences (first model minus second) per probe, and their correlation over probes."""
    row = Row(protocol=UNIGRAMS, model=" against ".join(models))
    rows: list[Row] = []
    accuracy: list[float] = []
    probability: list[float] = []
    for probe, pair in fits.items():
        accuracy.append(found[probe][models[0]] - found[probe][models[1]])
        probability.append(pair[0].mean_log_probability - pair[1].mean_log_probability)
        own = replace(row, probe=probe)
        for model, fit in zip(models, pair, strict=True):
            one = replace(own, subset=OneModel(model))
            common = replace(one, metric="mean_log_probability", num_items=fit.num_words)
            rows.append(replace(common, value=fit.mean_log_probability))
            rows.append(replace(one, metric="accuracy", value=found[probe][model]))
        rows.append(replace(own, metric="accuracy_difference", value=accuracy[-1]))
        rows.append(replace(own, metric="log_probability_difference", value=probability[-1]))
    whole = spearman(accuracy, probability)
    row = replace(row, num_items=whole.num_pairs)
    if not math.isnan(whole.rho):
        interval = replace(row, ci_low=whole.low, ci_high=whole.high)
        rows.append(replace(interval, metric="spearman", value=whole.rho))
    rows.append(replace(row, metric="spearman_p", value=whole.p_value))
    return rows


def _items(probe: str, context: RunContext) -> ProbeData:
    splits = load_probe_config(probe).splits
    split = "dev" if "dev" in splits else "test"
    read = partial(load_probe, probe, split, mirror=context.mirror)
    return context.remembered(f"words of {probe}", context.mirror, read)


def _too_few(found: Accuracies, results: Path, compared: Sequence[str], measure: Measure) -> str:
    models = sorted({model for own in found.values() for model in own})
    other = "zero_shot" if measure == "max" else "max"
    return (
        f"--results {results}: fewer than two probes have results of both "
        f"{' and '.join(compared)}; with --measure {measure} (there is also {other}) there are "
        f"results of {', '.join(models) or 'no model'}"
    )


def _notices(fits: Mapping[str, tuple[CorpusFit, CorpusFit]], paths: tuple[str, str]) -> list[str]:
    said = []
    for place, path in enumerate(paths):
        unseen = sum(pair[place].num_unseen for pair in fits.values())
        words = sum(pair[place].num_words for pair in fits.values())
        said.append(f"{Path(path).name}: {unseen:,} of {words:,} content words are not in it")
    return said
