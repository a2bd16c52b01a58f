"""`train.py diagnose`: the psycholinguistic diagnostics of what models predict.

There is a job for each model and set: a model of ours predicts (`measure_model`), outputs that
another program recorded are read (`measure_recorded`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Self

from probelight.commands.command import Command, command
from probelight.commands.diagnose import measures
from probelight.commands.diagnose.word_predictions import (
    file_name,
    predict_words,
    write_recorded_files,
)
from probelight.evaluation.scorers import (
    answered_by,
    check_records,
    loaded_scorer,
    model_row,
    refuse_untrained,
)
from probelight.integrations.wandb import publish_results
from probelight.io.errors import UsageError, nearest
from probelight.io.ranges import Mirror, Names, NumShuffles, PathText
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.models.chosen_models import chosen_models
from probelight.models.registry import DEFAULT_MODEL, ModelSettings
from probelight.probes.diagnostics.sets import SETS, DiagnosticSet, load_set, perturbations_of
from probelight.results.load import load_results
from probelight.results.model_outputs import ModelOutputs, Recorded, find_recorded, read_recorded
from probelight.results.predictions import PREDICTIONS, ContextLine, write_predictions
from probelight.results.record import (
    FromFiles,
    RunRecord,
    changed_since,
    check_data,
    checksums,
)
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext, cached
from probelight.runs.run import run_command
from probelight.runs.settings import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    TrainerSettings,
)
from probelight.runs.spec import Job, ModelRunSpec, RunSpec

PROTOCOL = "diagnose"
RECORDED = "recorded"  # in `RunContext.paths`: the folder of the outputs


@dataclass(frozen=True, kw_only=True)
class DiagnosisSpec(ModelRunSpec):
    """A model on a set.

    Args:
        model: The model.
        probe: Name of the set.
        data_sha256: Checksums of its files.
        shuffles: Number of random word orders; 0 where the set has none.
    """

    protocol = PROTOCOL

    model: ModelSettings
    probe: str
    data_sha256: tuple[str, ...]
    shuffles: NumShuffles = 0

    @classmethod
    def of(cls, data: DiagnosticSet, model: ModelSettings, shuffles: int) -> Self:
        """Return the spec of a model on a set."""
        return cls(
            model=model,
            probe=data.source.name,
            data_sha256=checksums(data),
            shuffles=shuffles if any(p.is_drawn for p in perturbations_of(data)) else 0,
        )

    @property
    def label(self) -> str:
        """Name of the model."""
        return self.model.label

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"diagnose-{self.probe}-{self.label}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Make the run of a model of ours, if the set is still the one that was planned."""
        data, model, shuffles = _loaded_set(context, self.probe), self.model, self.shuffles
        check_data(self.data_sha256, [data])
        scorer = loaded_scorer(context, model, "mc_mlm")
        perturbed = measures.perturbed_sets(data, shuffles)
        words = predict_words(scorer, words_by_context(data, perturbed), context.trainer)
        outputs = words.outputs(data.prompts)
        row = replace(model_row(model), protocol=PROTOCOL, probe=data.source.name)
        record = _record_of_outputs(run, data, outputs, row)
        rows, lines = list(record.rows), list[dict[str, Any]]()
        for perturbation in perturbed:
            rows += measures.perturbed_rows(perturbation, words, outputs, row)
            lines += measures.perturbed_lines(perturbation, data, words)
        if perturbed:
            run.write_lines("perturbations.jsonl", lines)
        name = f"{model.label} on {data.source.title}"
        record = replace(
            record,
            rows=tuple(rows),
            seeds=tuple(range(shuffles)),
            notices=(*record.notices, *(f"{name}: {notice}" for notice in words.notices)),
        )
        return answered_by(record, model, scorer)

    def check(self, context: RunContext) -> None:
        """Refuse a model that does not predict words."""
        check_records(context, self.model, "mc_mlm")


@dataclass(frozen=True, kw_only=True)
class RecordedSpec(RunSpec):
    """The outputs of another program's model on a set.

    Args:
        probe: Name of the set.
        label: Name of the model.
        data_sha256: Checksums of the files of the set.
        recorded: Checksums of the files with the outputs.
    """

    protocol = PROTOCOL

    probe: str
    label: str
    data_sha256: tuple[str, ...]
    recorded: tuple[str, ...]

    @classmethod
    def of(cls, data: DiagnosticSet, outputs: Recorded) -> Self:
        """Return the spec of recorded outputs on a set."""
        return cls(
            probe=data.source.name,
            label=outputs.model,
            data_sha256=checksums(data),
            recorded=checksums(outputs),
        )

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"diagnose-{self.probe}-{self.label}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Make the run of recorded outputs, if no file has changed since the plan."""
        data, model = _loaded_set(context, self.probe), self.label
        check_data(self.data_sha256, [data])
        folder = context.paths[RECORDED]
        by_set = _recorded_outputs(folder)
        recorded = next((o for name, o in by_set if (name, o.model) == (self.probe, model)), None)
        if recorded is None:
            raise changed_since([folder])
        if checksums(recorded) != self.recorded:
            raise changed_since(file.path for file in recorded.files)
        outputs = read_recorded(recorded, prompt_pairs(data))
        row = Row(protocol=PROTOCOL, model=model, probe=self.probe, role="model", kind=RECORDED)
        return _record_of_outputs(run, data, outputs, row, [recorded])


@command(
    Command(
        example="train.py diagnose --models bookshelf-lm --output_dir runs/diagnose",
        options="output_dir models model.name_or_path random_weights sets recorded mirror "
        "shuffles write_recorded trainer.accelerator trainer.precision engine.kind wandb.project",
    )
)
def diagnose(
    output_dir: PathText,
    models: Names = (),
    model: ModelSettings = DEFAULT_MODEL,
    random_weights: bool = False,
    sets: Names = (),
    recorded: PathText | None = None,
    mirror: Mirror | None = None,
    shuffles: NumShuffles = 100,
    write_recorded: PathText | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> list[Row]:
    """Measures word prediction and sensitivity on psycholinguistic diagnostics (Ettinger 2020).

    The sets are CPRAG-102, ROLE-88, NEG-136, ROLE-1500 and NEG-1500-SIMP. Rerun the same command to
    resume; finished sets are not measured again.

    Args:
        output_dir: Folder of the results.
        models: Models, separated by commas: names in configs/model/, paths of such files, folders
            or Hub names.
        model: Settings of a single model, instead of `models`. With `recorded` you need neither.
        random_weights: Also run every model with random weights (the architecture control).
        sets: Sets, separated by commas: cprag, role, neg_simp, neg_nat, role_1500,
            neg_1500_simp_temp and neg_1500_simp_gen; by default all.
        recorded: Folder with outputs of any number of models that another program recorded: files
            modelpreds-SET-MODEL and modeltgtprobs-SET-MODEL (SET is cprag, role, negsimp or
            negnat), or SET/MODEL.txt (SET is ROLE-1500, NEG-1500-SIMP-TEMP or NEG-1500-SIMP-GEN).
        mirror: Folder or address with copies of the released files.
        shuffles: Number of random word orders for the first sentences of CPRAG-102, which give a
            mean accuracy and its standard deviation; 0 leaves these perturbations out.
        write_recorded: Folder in which to write the models' outputs too, in the formats that
            `recorded` reads, so that programs of the sets' authors can score them.
        trainer: Device and batch settings.
        engine: Where the runs are computed: in this process, or on Ray.
        wandb: Logging to Weights & Biases: one run with the scores as summary, and the table.

    Returns:
        The rows of results.csv.

    Raises:
        UsageError: If there is no such set, a model is a baseline, there are no recorded outputs,
            or one of their files is missing.
        RecordError: If a file is malformed.
    """
    names = list(sets or SETS)
    if unknown_names := [name for name in names if name not in SETS]:
        near = nearest(unknown_names[0].lower(), list(SETS))
        raise UsageError(
            f"--sets {unknown_names[0]}: there is no such set{near}; choose from {', '.join(SETS)}"
        )
    chosen: list[ModelSettings] = []
    if models or model != DEFAULT_MODEL or random_weights or recorded is None:
        chosen = chosen_models(models, model, random_weights)
        refuse_untrained(chosen, "diagnose")
    if write_recorded is not None:
        _check_written(write_recorded, recorded, [settings.label for settings in chosen])
    recorded_outputs = []
    if recorded is not None:
        all_outputs = _recorded_outputs(recorded)
        recorded_outputs = [outputs for outputs in all_outputs if outputs[0] in names]
        if not recorded_outputs:
            raise UsageError(
                f"{recorded}: it has outputs for {', '.join(dict(all_outputs))}, but for none of "
                f"--sets {','.join(names)}"
            )
    if not chosen:
        names = list(dict.fromkeys(name for name, _ in recorded_outputs))
    loaded = {name: load_set(name, mirror) for name in names}
    for name, outputs in recorded_outputs:  # all of them, before the first is measured
        read_recorded(outputs, prompt_pairs(loaded[name]))
    recorded_specs = [RecordedSpec.of(loaded[name], outputs) for name, outputs in recorded_outputs]
    specs = [
        DiagnosisSpec.of(data, model, shuffles).under(trainer)
        for model, data in product(chosen, loaded.values())
    ]
    all_specs: list[RecordedSpec | DiagnosisSpec] = [*recorded_specs, *specs]
    jobs = [Job(spec, title=f"{spec.probe}, {spec.label}") for spec in all_specs]
    config = {"command": PROTOCOL, "runs": [job.spec.to_config() for job in jobs]}
    files: list[FromFiles] = [*loaded.values(), *(outputs for _, outputs in recorded_outputs)]
    paths = {} if recorded is None else {RECORDED: recorded}
    context = RunContext(trainer, mirror=mirror, paths=paths, engine=engine)
    rows = run_command(output_dir, config, jobs, context, files=files, table=PROTOCOL)
    if write_recorded is not None:
        results = load_results(Path(output_dir))
        runs = {run.key: run for run in results.runs}
        for spec in specs:
            lines = results.read(runs[spec.key], PREDICTIONS) or []
            write_recorded_files(Path(write_recorded), SETS[spec.probe], spec.label, lines)
        print(f"recorded outputs: {write_recorded}")
    publish_results(output_dir, wandb, PROTOCOL, rows)
    return rows


def _recorded_outputs(folder: str) -> list[tuple[str, Recorded]]:
    """Return the recorded outputs in a folder, each with the name of its set."""
    sets = {source.recorded_as: name for name, source in SETS.items()}
    return [(sets[o.recorded_as], o) for o in find_recorded(Path(folder), list(sets))]


def _check_written(folder: str, recorded: PathText | None, labels: list[str]) -> None:
    """Refuse outputs of several models that would have one name when they are read again."""
    if not labels:
        raise UsageError("--write_recorded writes outputs of models; give --models or --model")
    if recorded is not None and Path(folder).resolve() == Path(recorded).resolve():
        raise UsageError(
            f"--write_recorded {folder} is the folder that --recorded reads; give another one"
        )
    names = [file_name(label) for label in labels]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(
            f"--write_recorded: two models would be called {min(repeated)!r}; give them different "
            "names (`name:` in a model's config)"
        )


def words_by_context(
    data: DiagnosticSet, perturbed: Sequence[measures.PerturbedSet] = ()
) -> dict[str, list[str]]:
    """Return for each context, also perturbed, the targets and the words that count as right."""
    words_of_context: dict[str, list[str]] = {}
    for prompt in data.prompts:
        words_of_context.setdefault(prompt.context, []).append(prompt.target)
    for item in measures.comparisons_of(data).completions:
        words_of_context[data.prompts[item.prompt].context] += item.expected
    for perturbed_set in perturbed:
        for draw in perturbed_set.contexts:
            for context, completion in zip(draw, perturbed_set.completions, strict=True):
                words_of_context.setdefault(context, []).extend(completion.expected)
    return words_of_context


@cached(most=None)
def _loaded_set(context: RunContext, name: str) -> DiagnosticSet:
    return load_set(name, context.mirror)


def prompt_pairs(data: DiagnosticSet) -> list[tuple[str, str]]:
    """Return context and target of each prompt."""
    return [(prompt.context, prompt.target) for prompt in data.prompts]


def _record_of_outputs(
    run: RunFolder,
    data: DiagnosticSet,
    outputs: ModelOutputs,
    row: Row,
    more_data: Sequence[FromFiles] = (),
) -> RunRecord:
    """Return the record of a model's outputs, and write the run's files."""
    comparisons = measures.comparisons_of(data)
    rows = measures.diagnostic_rows(comparisons, outputs, row)
    write_predictions(run, context_lines(data, comparisons, outputs))
    run.write_metrics(rows)
    notices = []
    name = f"{row.model} on {data.source.title}"
    known_completions = measures.known_completions(comparisons.completions, outputs)
    if num_lost := len(comparisons.completions) - len(known_completions):
        notices.append(
            f"{name}: {num_lost} of {len(comparisons.completions)} contexts left out of the "
            "accuracies, because none of their expected words is one entry of the vocabulary"
        )
    if outputs.probabilities:
        contrasts = measures.known_contrasts(comparisons, outputs.probabilities)
        if num_lost := len(comparisons.contrasts) - len(contrasts):
            notices.append(
                f"{name}: {num_lost} of {len(comparisons.contrasts)} comparisons left out of the "
                "sensitivities, because a word has no probability"
            )
    if outputs.split:
        notices.append(
            f"{name}: {len(outputs.split)} words are not one entry of the vocabulary: "
            f"{', '.join(sorted(outputs.split)[:5])}{', ...' if len(outputs.split) > 5 else ''}"
        )
    return RunRecord.of(
        row,
        rows,
        [data, *more_data],
        counts={"items": len(data.items), "prompts": len(data.prompts)},
        notices=(*data.notices, *notices),
    )


def context_lines(
    data: DiagnosticSet, comparisons: measures.Comparisons, outputs: ModelOutputs
) -> list[ContextLine]:
    """Return the lines of predictions.jsonl; `split` has its words that are several tokens."""
    expected = {item.prompt: item.expected for item in comparisons.completions}
    probabilities = outputs.probabilities or (None,) * len(data.prompts)
    lines = []
    for index, prompt in enumerate(data.prompts):
        expected_words = expected.get(index, ())
        words = dict.fromkeys([prompt.target, *expected_words])
        line = ContextLine(
            context=prompt.context,
            target=prompt.target,
            expected=expected_words,
            predictions=outputs.predictions[index],
            probability=probabilities[index],
            split=tuple(word for word in words if word in outputs.split),
        )
        lines.append(line)
    return lines
