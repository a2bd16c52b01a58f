"""`train.py unigrams`: does the model that read more of a probe's words do better?

Per probe, the difference of two models' accuracies against that of the mean log probability of the
probe's content words in their corpora; over probes, the correlation (Talmor 2020, section 5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from probelight.commands.command import Command, command
from probelight.io.errors import UsageError
from probelight.io.files import DataFile, sha256_of
from probelight.io.ranges import Mirror, PathText
from probelight.probes.catalog import load_probe_config
from probelight.probes.source import ProbeData, load_probe
from probelight.probes.words import CorpusFit, corpus_fit, read_unigrams, words_of_records
from probelight.results.details import UnigramDetails
from probelight.results.load import RunSet, load_results
from probelight.results.record import RunRecord, changed_since, check_data, checksums, data_files
from probelight.results.row import Row, Subset
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext, cached
from probelight.runs.run import run_command
from probelight.runs.spec import Job, RunSpec

PROTOCOL = "unigrams"
COUNTS = ("counts_a", "counts_b")  # in `RunContext.paths`
MODES = ("mlp", "full")  # a curve of either counts: MC-MLM has the first, MC-QA the second
STANDARD = ("", "standard")
Measure = Literal["zero_shot", "max"]
Accuracies = dict[str, dict[str, float]]  # probe, then model


@dataclass(frozen=True, kw_only=True)
class UnigramsSpec(RunSpec):
    """The comparison of two models over the probes that both answered.

    Args:
        models: Their names.
        counts: Checksums of the word counts of their corpora.
        measure: Which accuracy is compared.
        accuracies: Those of the two models, by probe.
        data_sha256: Checksums of the probes' files.
    """

    protocol = PROTOCOL

    models: tuple[str, str]
    counts: tuple[str, ...]
    measure: Measure
    accuracies: dict[str, tuple[float, float]]
    data_sha256: tuple[str, ...]

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return "-".join([PROTOCOL, *self.models])

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Make the run of two models: their differences and the correlation over probes."""
        model_a, model_b = self.models
        paths = [context.paths[name] for name in COUNTS]
        counts = [DataFile(path=Path(path).name, sha256=sha256_of(path)) for path in paths]
        if tuple(file.sha256 for file in counts) != self.counts:
            raise changed_since(paths)
        by_probe = {probe: {model_a: a, model_b: b} for probe, (a, b) in self.accuracies.items()}
        sets = {probe: _items(context, probe) for probe in sorted(by_probe)}
        check_data(self.data_sha256, sets.values())
        words = {probe: words_of_records(items.records) for probe, items in sets.items()}
        all_words = {word for probe_words in words.values() for word in probe_words}
        first, second = (read_unigrams(path, all_words) for path in paths)
        fits = {
            p: (corpus_fit(probe_words, first), corpus_fit(probe_words, second))
            for p, probe_words in words.items()
        }
        notices = []
        for index, file in enumerate(counts):
            unseen = sum(pair[index].num_unseen for pair in fits.values())
            total = sum(pair[index].num_words for pair in fits.values())
            notices.append(f"{file.path}: {unseen:,} of {total:,} content words are missing")
        return RunRecord(
            protocol=PROTOCOL,
            model=f"{model_a} against {model_b}",
            rows=tuple(unigram_rows(by_probe, fits, (model_a, model_b))),
            counts={"probes": len(by_probe)},
            notices=tuple(notices),
            data=(*data_files(sets.values()), *counts),
            details=(UnigramDetails(models=(model_a, model_b), measure=self.measure),),
        )


@command(
    Command(
        example="train.py unigrams --results runs/curve --model_a roberta-large --counts_a "
        "books.txt.gz --model_b bert-large-uncased --counts_b wiki.txt.gz --output_dir runs/words",
        options="output_dir results model_a counts_a model_b counts_b measure mirror",
    )
)
def unigrams(
    output_dir: PathText,
    results: PathText,
    counts_a: PathText,
    counts_b: PathText,
    model_a: str,
    model_b: str,
    measure: Measure = "max",
    mirror: Mirror | None = None,
) -> None:
    """Tests whether the model whose corpus has more of a probe's words does better on the probe.

    It correlates, over probes, the difference in accuracy of two models with the difference in mean
    log probability of the probe's content words in their corpora. Content words are the words of
    stems and choices except function words (probes/content_words.py). A word's probability is
    (count + 1) / (tokens + types + 1) of the corpus.

    Args:
        output_dir: Folder of the results.
        results: Folder of finished curve or zero-shot runs of both models.
        counts_a: Word counts of the first model's corpus: one word and its count per line; .gz too.
        counts_b: Word counts of the second model's corpus.
        model_a: Name of the first model in tables.
        model_b: Name of the second model in tables.
        measure: Accuracy to compare: "max", the best point of the learning curve, or "zero_shot",
            before training.
        mirror: Folder or address with copies of the released files.

    Raises:
        UsageError: If both models answered fewer than two probes in common.
    """
    models = (model_a, model_b)
    context = RunContext(mirror=mirror, paths={"counts_a": counts_a, "counts_b": counts_b})
    by_probe = accuracies(load_results(Path(results)), measure)
    shared = {probe: by_probe[probe] for probe in by_probe if {*models} <= by_probe[probe].keys()}
    if len(shared) < 2:
        known_models = sorted(set().union(*by_probe.values()))
        other_measure = "zero_shot" if measure == "max" else "max"
        raise UsageError(
            f"--results {results}: fewer than two probes have results of both "
            f"{' and '.join(models)}; with --measure {measure} (you can also try {other_measure}) "
            f"there are results of {', '.join(known_models) or 'no model'}"
        )
    spec = UnigramsSpec(
        models=models,
        counts=tuple(sha256_of(context.paths[name]) for name in COUNTS),
        measure=measure,
        accuracies={
            probe: (by_model[model_a], by_model[model_b]) for probe, by_model in shared.items()
        },
        data_sha256=checksums(*(_items(context, probe) for probe in sorted(shared))),
    )
    job = Job(spec, title=f"{PROTOCOL}, {' against '.join(models)}")
    config = {"command": PROTOCOL, **spec.to_config()}
    run_command(output_dir, config, [job], context, table=PROTOCOL)


def accuracies(results: RunSet, measure: Measure) -> Accuracies:
    """Return the accuracy of each model on each probe.

    "max" is the best point with N > 0 of the curve averaged over seeds.
    """
    import pandas as pd

    accuracy_rows = [
        (row.probe, row.model, row.num_train or 0, row.value)
        for row in results.rows
        if row.metric == "accuracy" and not (row.subset or row.perturbation)
        if row.protocol in ("zero_shot", "curve") and row.control in STANDARD
        if (not row.num_train) == (measure == "zero_shot")
        if (row.mode in MODES if row.num_train else not row.scoring)
    ]
    rows = pd.DataFrame(accuracy_rows, columns=["probe", "model", "size", "value"])
    points = rows.groupby(["probe", "model", "size"])["value"].mean()
    best = points.groupby(["probe", "model"]).max()
    return {
        probe: probe_accuracies.droplevel("probe").to_dict()
        for probe, probe_accuracies in best.groupby("probe")
    }


@cached(most=None)
def _items(context: RunContext, probe: str) -> ProbeData:
    split = "dev" if "dev" in load_probe_config(probe).splits else "test"
    return load_probe(probe, split, mirror=context.mirror)


def unigram_rows(
    by_probe: Accuracies,
    fits: Mapping[str, tuple[CorpusFit, CorpusFit]],
    models: tuple[str, str],
) -> list[Row]:
    """Return per probe both differences (first model minus second), and their correlation."""
    # Only now: it imports scipy.stats, which takes half a second.
    from probelight.metrics.correlation import spearman

    row = Row(protocol=PROTOCOL, model=" against ".join(models))
    rows: list[Row] = []
    accuracy: list[float] = []
    probability: list[float] = []
    for probe, probe_fits in fits.items():
        accuracy.append(by_probe[probe][models[0]] - by_probe[probe][models[1]])
        probability.append(probe_fits[0].mean_log_probability - probe_fits[1].mean_log_probability)
        probe_row = replace(row, probe=probe)
        for model, fit in zip(models, probe_fits, strict=True):
            model_row = replace(probe_row, subset=Subset.of("model", model, label=model))
            word_row = replace(model_row, metric="mean_log_probability", num_items=fit.num_words)
            rows.append(replace(word_row, value=fit.mean_log_probability))
            rows.append(replace(model_row, metric="accuracy", value=by_probe[probe][model]))
        rows.append(replace(probe_row, metric="accuracy_difference", value=accuracy[-1]))
        rows.append(replace(probe_row, metric="log_probability_difference", value=probability[-1]))
    correlation = spearman(accuracy, probability)
    row = replace(row, num_items=correlation.num_pairs)
    if not math.isnan(correlation.rho):
        interval = replace(row, ci_low=correlation.low, ci_high=correlation.high)
        rows.append(replace(interval, metric="spearman", value=correlation.rho))
    rows.append(replace(row, metric="spearman_p", value=correlation.p_value))
    return rows
