"""`train.py probes audit`: can a probe be answered without its question?

One job counts what gives the answers away: simple rules, words, whole answers. The others train a
baseline that sees a part of each item, one per seed, or apply one that needs no training. All are
measured on items that were not trained on.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from probelight.builders import giveaways
from probelight.builders.hygiene import asked_stems
from probelight.commands.audit import items
from probelight.commands.command import Command, command
from probelight.evaluation.scorers import answered_by, check_records, model_row, predict, scorer_for
from probelight.io.errors import UsageError, nearest
from probelight.io.ranges import Mirror, Names, PathText, Seed
from probelight.models.chosen_models import MODEL_CONFIGS, chosen_models
from probelight.models.registry import DEFAULT_MODEL, ModelSettings
from probelight.probes.catalog import probe_names
from probelight.probes.controls import CHOICE_ONLY, STANDARD
from probelight.probes.record import chance_of, groups_of
from probelight.results import measured
from probelight.results.predictions import ItemLine, write_predictions
from probelight.results.record import RunRecord, check_data, checksums, data_files
from probelight.results.row import Row, Subset
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.run import run_command
from probelight.runs.settings import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    TrainerSettings,
)
from probelight.runs.spec import Job, ModelRunSpec, RunSpec
from probelight.training.modules import check_module

PROTOCOL = "audit"
LABEL = "the answers alone"
MOST = 10  # words, and answers, that are shown of either end
ALL = "all"  # the split of what is counted on the items of all splits
PARTS = {"word": giveaways.word_set, "answer": giveaways.whole_answer}
DEFAULT_BASELINES = ("choice_only", "vec_similarity")


@command(
    Command(
        example="train.py probes audit hypernymy_small --output_dir runs/audit",
        options="probes output_dir baselines vectors training.seeds mirror trainer.threads "
        "engine.kind",
        positional=True,
    )
)
def audit(
    probes: str,
    output_dir: PathText | None = None,
    baselines: Names = DEFAULT_BASELINES,
    vectors: str | None = None,
    training: items.AuditSettings = items.DEFAULT_AUDIT,
    mirror: Mirror | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
) -> None:
    """Checks whether a probe can be answered without its question.

    Trains baselines that see only a part of each item, and counts what gives the answers away.
    Rerun the same command to resume.

    Args:
        probes: Probes, separated by commas: names, folders that `probes build` wrote, configs or
            files of items.
        output_dir: Folder of the results.
        baselines: Baselines, separated by commas: names in configs/model/ or paths of such files. A
            transformer is trained on the choices alone.
        vectors: Word vectors of the baselines, a file in GloVe's text format. By default each uses
            its own.
        training: How the baselines are trained.
        mirror: Folder or address with copies of the released files.
        trainer: Device and batch settings.
        engine: Where the runs are computed: in this process, or on Ray.

    Raises:
        UsageError: If you give no output folder, if two probes have the same name, or if a model
            in `baselines` cannot answer questions.
    """
    if output_dir is None:
        raise UsageError("give --output_dir FOLDER for the results")
    if not baselines:
        raise UsageError(f"give --baselines, such as {','.join(DEFAULT_BASELINES)}")
    model_names = sorted(path.stem for path in MODEL_CONFIGS.glob("*.yaml"))
    for name in baselines:
        if name not in model_names and not name.endswith((".yaml", ".yml")):
            near = nearest(name, model_names)
            raise UsageError(
                f"--baselines: there is no model {name!r}{near}; choose from "
                f"{', '.join(model_names)}, or give the path of a .yaml file"
            )
    models = chosen_models(baselines, DEFAULT_MODEL, random_weights=False)
    if vectors is not None:
        models = [replace(m, vectors=vectors) if m.type.title else m for m in models]
    probe_arguments = [name for name in map(str.strip, probes.split(",")) if name]
    configs = {name: items.probe_config(name) for name in probe_arguments}
    if not configs:
        raise UsageError("give a probe or a file of items; `train.py probes list` shows the probes")
    names = [configs[name].name for name in probe_arguments]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(
            f"two probes are called {min(repeated)!r}, so tables could not distinguish them; give "
            "each only once, or audit them one by one"
        )
    sets = [items.load_audit(config, training, mirror) for config in configs.values()]
    user_configs = {
        config.name: config for name, config in configs.items() if name not in probe_names()
    }
    context = RunContext(trainer, mirror=mirror, user_probes=user_configs, engine=engine)
    jobs = [job for data in sets for job in audit_jobs(data, models, training, trainer)]
    config = {
        "command": "probes audit",
        "probes": [
            {"name": data.config.name, "sha256": checksums(*data.splits.values())} for data in sets
        ],
        "baselines": [model.config() for model in models],
        "settings": asdict(training),
        **trainer.precisions(),
    }
    files = [split_data for data in sets for split_data in data.splits.values()]
    run_command(output_dir, config, jobs, context, files=files, table=PROTOCOL)


@dataclass(frozen=True, kw_only=True)
class GiveawaysSpec(RunSpec):
    """The counts of what gives a probe's answers away.

    Args:
        settings: How train and held-out items are divided.
        frequency: Where the frequencies of words are from.
        stems: What finds the stems of words.
    """

    protocol = PROTOCOL

    probe: str
    data_sha256: tuple[str, ...]
    settings: items.AuditSettings
    frequency: str
    stems: str

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"audit-{self.probe}-giveaways"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Make the run that counts what gives a probe away."""
        data = items.read_audit(context, self.probe, self.settings)
        check_data(self.data_sha256, data.splits.values())
        probe = data.config.name
        base = Row(protocol=PROTOCOL, model=LABEL, probe=probe, control=STANDARD, role="baseline")
        rows = list(rule_rows(data, self.frequency, base))
        for kind in PARTS:
            rows += giveaway_rows(data, kind, replace(base, split=ALL))
        run.write_metrics(rows)
        return RunRecord(
            protocol=PROTOCOL,
            model=LABEL,
            probe=probe,
            rows=tuple(rows),
            counts={split: len(split_data.records) for split, split_data in data.splits.items()},
            notices=data.notices,
            data=data_files(data.splits.values()),
            facts={"word frequencies": self.frequency, "stems": self.stems},
        )


@dataclass(frozen=True, kw_only=True)
class BaselineSpec(ModelRunSpec):
    """A baseline on a probe, trained with a seed or as it is.

    Args:
        settings: How it is trained, and on which items.
        seed: Seed of its training; None where it is not trained.
        control: The control that its items are put under.
    """

    protocol = PROTOCOL

    probe: str
    data_sha256: tuple[str, ...]
    settings: items.AuditSettings
    model: ModelSettings
    seed: Seed | None
    control: str

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"audit-{self.probe}-{self.model.label}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Train and measure the baseline."""
        # Only now: they import torch and Lightning.
        from probelight.models.scorer import Scorer, TrainedScorer
        from probelight.training.direct import Direct, fit_directly

        model, seed = self.model, self.seed
        data = items.read_audit(context, self.probe, self.settings)
        check_data(self.data_sha256, data.splits.values())
        notices = list(data.notices)
        seen = data if self.control == STANDARD else items.with_control(self.control, data)
        row = replace(
            model_row(model), protocol=PROTOCOL, probe=data.config.name, control=self.control
        )
        if is_trained(model):
            assert seed is not None
            has_checkpoint = model.type.has_checkpoint
            fit_settings = self.settings.transformer if has_checkpoint else self.settings.fit
            direct = Direct(model, fit_settings, seed, None, f"{data.config.name}, {model.label}")
            trained = fit_directly(run, direct, seen.train, seen.held_out, context)
            notices += trained.notices
            scorer: Scorer = TrainedScorer(trained.module)
            row = replace(
                row,
                role="baseline",
                num_train=len(data.train),
                epoch=trained.epoch,
                learning_rate=fit_settings.learning_rate,
            )
        else:
            scorer = scorer_for(model, "mc_qa", trainer=context.trainer)
        by_split = predict(scorer, seen.measured, context.trainer)
        # The groups of items depend on their stems, whatever was seen of them.
        scored = [
            replace(predicted, records=data.measured[split])
            for split, predicted in by_split.items()
        ]
        row = replace(row, mode=scorer.mode, seed=seed)
        notices += [notice for predicted in scored for notice in predicted.notices]
        notices += measured.score_notices(*scored)
        rows: list[Row] = []
        lines: list[ItemLine] = []
        for predicted in scored:
            groups = groups_of(predicted.records, data.config.group_by)
            untouched = measured.untouched_of(data.untouched(predicted.records))
            split_row = replace(row, split=predicted.name)
            rows.append(measured.accuracy_row(predicted, groups, split_row))
            rows.append(measured.tied_row(predicted, split_row))
            num_items = len(predicted.records)
            rows += measured.chance_rows(predicted, replace(split_row, num_items=num_items))
            subset_row = replace(split_row, metric="accuracy")
            rows += measured.subset_rows(predicted, groups, untouched, subset_row)
            lines += predicted.lines(groups)
        write_predictions(run, lines)
        if seed is None:
            run.write_metrics(rows)  # a training has left its own
        record = RunRecord.of(
            row,
            rows,
            data.splits.values(),
            counts={
                "train": len(data.train),
                "held out": len(data.held_out),
                **{predicted.name: len(predicted.records) for predicted in scored},
            },
            notices=tuple(dict.fromkeys(notices)),
            seeds=() if seed is None else (seed,),
            num_rescored=sum(predicted.num_rescored for predicted in scored),
        )
        record = answered_by(record, model, scorer)
        shutil.rmtree(run.checkpoint_dir, ignore_errors=True)  # the model is of no more use
        return record

    def check(self, context: RunContext) -> None:
        """Refuse a model that cannot answer questions."""
        if is_trained(self.model) or self.model.type.scorer is None:
            check_module(self.model, "mc_qa")
        else:
            check_records(context, self.model, "mc_qa")


def audit_jobs(
    data: items.AuditData,
    models: Sequence[ModelSettings],
    settings: items.AuditSettings,
    trainer: TrainerSettings,
) -> list[Job]:
    """Return the jobs of a probe, those that take seconds first."""
    name, sha256 = data.config.name, checksums(*data.splits.values())
    settings_of_run = replace(settings, seeds=[0])  # a run has one seed, or none
    counts = GiveawaysSpec(
        probe=name,
        data_sha256=sha256,
        settings=settings_of_run,
        frequency=giveaways.frequency_source(),
        stems=giveaways.STEMMER,
    )
    jobs = [Job(counts, title=f"{name}, {LABEL}")]
    for model in sorted(models, key=is_trained):
        trained = is_trained(model)
        for seed in settings.seeds if trained else [None]:
            reads_items = trained and model.type.has_checkpoint
            baseline = BaselineSpec(
                probe=name,
                data_sha256=sha256,
                settings=settings_of_run,
                model=model,
                seed=seed,
                control=CHOICE_ONLY if reads_items else STANDARD,
            )
            title = f"{name}, {model.label}{'' if seed is None else f', seed {seed}'}"
            jobs.append(Job(baseline.under(trainer), title=title))
    return jobs


def is_trained(model: ModelSettings) -> bool:
    """Return whether a baseline is trained on the probe; others answer as they are."""
    return "mc_qa" in model.type.trained


def rule_rows(data: items.AuditData, frequency: str, row: Row) -> Iterator[Row]:
    """Yield the accuracy of each rule that any reader could go by, on each measured split.

    Rules of the asked word are left out where the notes of no item name one.
    """
    train = (*data.train, *data.held_out)
    common = giveaways.word_frequency(frequency, train)
    learned = giveaways.associations(train)
    rules = giveaways.surface_rules(common, learned, data.config.num_choices)
    for split, records in data.measured.items():
        names_asked = any(map(asked_stems, records))
        groups = groups_of(records, data.config.group_by)
        split_row = replace(row, split=split, num_items=len(records))
        yield replace(split_row, metric="chance", value=chance_of(records))
        for name, rule in rules.items():
            if name in giveaways.ASKED and not names_asked:
                continue
            scored = measured.Predictions(split, records, [rule(record) for record in records])
            yield measured.accuracy_row(scored, groups, replace(split_row, scoring=name))


def giveaway_rows(data: items.AuditData, kind: str, row: Row) -> Iterator[Row]:
    """Yield how often the gold has a word or answer that other choices lack, chance, and PMI."""
    parts_of_text = PARTS[kind]
    records = [record for split in data.splits.values() for record in split.records]
    associations = giveaways.associations(records, parts_of_text)
    most_telling = giveaways.most_telling(associations.values(), MOST)
    giveaway_by_text = {giveaway.feature: giveaway for giveaway in most_telling}
    groups = groups_of(records, data.config.group_by)
    outcomes_by_text: dict[str, list[tuple[float, str]]] = {text: [] for text in giveaway_by_text}
    for record, group in zip(records, groups, strict=True):
        for text, (right, _) in giveaways.telling_features(record, parts_of_text).items():
            if text in outcomes_by_text:
                outcomes_by_text[text].append((float(right), group))
    for text, giveaway in giveaway_by_text.items():
        subset = Subset.of("answer_part", f"{kind}={text}", of=kind, part=text)
        text_row = replace(row, subset=subset, num_items=giveaway.num_items)
        scores, members = zip(*outcomes_by_text[text], strict=True)
        yield measured.grouped_row(scores, members, replace(text_row, metric="right_share"))
        yield replace(text_row, metric="chance", value=giveaway.expected / giveaway.num_items)
        yield replace(text_row, metric="pmi", value=giveaway.pmi)
