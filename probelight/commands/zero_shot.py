"""`train.py zero-shot`: what a model knew before anything was trained.

In this order: the spec of one run, what is checked before the first one, how it is made; the plan
of all runs; the command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from probelight.commands.command import Command, command
from probelight.evaluation import prompting, scorers
from probelight.evaluation.asking import Asking, as_in_harness, chosen_rules, refuse_sets
from probelight.evaluation.evaluate import ProbeQuestion, evaluate
from probelight.evaluation.letters import ByLetter
from probelight.evaluation.measures import PROTOCOL
from probelight.evaluation.phrasings import InPhrasing
from probelight.evaluation.ranks import Ranks
from probelight.evaluation.rules import ByRule
from probelight.evaluation.sets import LoadedSet, context_of, load_sets, read_set
from probelight.integrations.wandb import publish_results
from probelight.io.errors import UsageError
from probelight.io.ranges import Mirror, Names, NumItems, NumShots, PathText
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.metrics.scoring_rules import HARNESS, LETTER
from probelight.models.checkpoint_files import scoring_of
from probelight.models.chosen_models import chosen_models
from probelight.models.registry import DEFAULT_MODEL, TRANSFORMER, ModelSettings
from probelight.probes.catalog import DOMAIN_STEMS
from probelight.probes.controls import (
    STANDARD,
    controlled_stems,
    fitting_controls,
    phrasings_named,
)
from probelight.probes.prompts import (
    Chat,
    LetterSettings,
    Orders,
    Prompts,
    PromptSettings,
    PromptSpec,
    facts_in,
)
from probelight.probes.source import ProbeData
from probelight.probes.user_files import DEFAULT_FILE, FileSettings
from probelight.results.predictions import write_predictions
from probelight.results.record import RunRecord, check_data, checksums
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
from probelight.runs.spec import Job, ModelRunSpec

DEFAULT_LETTERS = LetterSettings()


@dataclass(frozen=True, kw_only=True)
class ZeroShotSpec(ModelRunSpec):
    """One model asked about one set (Talmor 2020, section 3).

    MC-MLM probes are read off the mask. MC-QA has no pre-trained head: a model that was fine-tuned
    here answers with its head, any other with the pseudo-log-likelihood of each answer after its
    question (Salazar et al. 2020).

    Args:
        model: The model.
        probe: Name of the probe.
        split: Its split; empty for a file without a config.
        data_sha256: Checksums of its files.
        ranks: Whether the ranks of MC-MLM candidates are measured.
        scoring: Further rules, in the order of `RULES`.
        domain_stem: The stem that `pmi` compares with; empty without that rule.
        letters: Orders in which choices are listed; None where no letters are asked for.
        prompt: How items are put to the model; None where they are as they are.
        examples: Checksums of the train split, where examples are drawn from it.
        chat_template: Checksum of the model's chat template, where it is asked in a chat.
        phrasings: Texts of further wordings, by name.
        limit: Most of the set's items that are asked.
        control: What is done to the questions, one of `CONTROLS`; nothing if it is "standard".
    """

    protocol: ClassVar[str] = PROTOCOL

    model: ModelSettings
    probe: str
    split: str
    data_sha256: tuple[str, ...]
    ranks: bool = False
    scoring: tuple[str, ...] = ()
    domain_stem: str = ""
    letters: Orders | None = None
    prompt: PromptSpec | None = None
    examples: tuple[str, ...] = ()
    chat_template: str = ""
    phrasings: Mapping[str, str] = field(default_factory=dict)
    limit: NumItems | None = None
    control: str = STANDARD

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"zero-shot-{self.probe}-{self.model.label}"

    def prompted_set(self, context: RunContext) -> tuple[ProbeData, Prompts]:
        """Return the set, whose stems say what is one group, and how it is asked in their place."""
        probe, prompts = prompted_set(context, self.probe, self.split, self.prompt, self.limit)
        return probe, replace(prompts, controlled_stems=controlled_stems(self.control, probe))

    def questions(self, probe: ProbeData, context: RunContext) -> list[ProbeQuestion[Any]]:
        """Return what is asked in addition to the scores of the choices."""
        setup = probe.config.setup
        # Without rules, the accuracy of minimal pairs by the mean per token is there all the same.
        rules = self.scoring or (("mean_token",) if setup == "minimal_pair" else ())
        questions: list[ProbeQuestion[Any]] = []
        if self.ranks and setup == "mc_mlm":
            questions.append(Ranks())
        if word_rules := tuple(rule for rule in rules if rule != LETTER):
            questions.append(ByRule(word_rules, self.domain_stem))
        if self.letters:
            questions.append(
                ByLetter(self.letters, lambda: scorers.loaded_scorer(context, self.model, "mc_mlm"))
            )
        if self.phrasings:
            questions.append(InPhrasing(tuple(self.phrasings)))
        return questions

    def check(self, context: RunContext) -> None:
        """Refuse items that cannot be asked about so, and a set that the model cannot answer."""
        probe, prompts = self.prompted_set(context)
        setup, model = probe.config.setup, self.model
        questions = tuple(self.questions(probe, context))
        check_items(context, self.probe, self.split, self.prompt, self.limit, questions)
        templates = self.prompt.templates if self.prompt else None
        has_texts = setup == "mc_qa" and bool(templates and templates.words_mc_qa)
        is_by_rule = self.scoring or (self.prompt and self.prompt.shots) or has_texts
        if has_texts and scoring_of(model.checkpoint, model.scoring, setup) == LETTER:
            raise UsageError(
                f"{model.label} answers questions by letters, in texts of its own; leave out "
                "--prompt.file, whose `words_mc_qa` is for words"
            )
        if is_by_rule and model.kind == TRANSFORMER and setup == "mc_qa":
            from probelight.models.pair_choice import answers_questions

            if answers_questions(model.checkpoint):
                raise UsageError(
                    f"{model.label} answers questions with its fine-tuned head, which has no "
                    "log-likelihoods, only one number per choice; leave out --scoring, --shots, "
                    "--chat and --prompt.file"
                )
        texts = [prompts.words_template, templates.mc_qa if templates and self.letters else ""]
        facts = [fact for text in texts for fact in facts_in(text)]
        if facts and self.control != STANDARD:
            raise UsageError(
                f"--controls {self.control}: the text around {self.probe} has {{{facts[0]}}}, "
                "which controls do not change; leave out --controls, or use another text"
            )
        records = [prompts.controlled(record) for record in probe.records]
        scorers.check_records(context, model, setup, [records])

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Make the run of one model and set."""
        probe, prompts = self.prompted_set(context)
        check_data(self.data_sha256, [probe])
        examples = [read_set(context, self.probe, prompting.TRAIN, None)] if self.examples else []
        check_data(self.examples, examples)
        scorer = scorers.loaded_scorer(context, self.model, probe.config.setup)
        questions = self.questions(probe, context)
        evaluation = evaluate(scorer, probe, questions, prompts=prompts, trainer=context.trainer)
        labels = self.model.gold_labels(probe.config.setup, evaluation.predictions.records)
        if probe.config.setup != "minimal_pair":
            evaluation = replace(evaluation, gold_labels=labels)
        row = replace(
            scorers.model_row(self.model),
            protocol=PROTOCOL,
            control=self.control,
            num_train=0,
            split=self.split,
        )
        own_rows = evaluation.own_rows(row)
        run.write_metrics([*own_rows, *evaluation.question_rows(row, Ranks)])
        lines, stems = evaluation.lines(), prompts.controlled_stems
        if stems:
            lines = [replace(n, question=stems[n.name], control=self.control) for n in lines]
        write_predictions(run, lines)
        notices = [*evaluation.notices]
        reader = scorers.loaded_scorer(context, self.model, "mc_mlm") if self.letters else scorer
        is_in_chat = evaluation.prompts.in_chat or prompting.in_chat(reader, prompts)
        if prompts.chat == "auto" and not is_in_chat:
            label = self.model.label
            notices.append(f"{label} has no chat template, so it was asked without a chat")
        rows = [*own_rows, *evaluation.question_rows(row)]
        record = evaluation.record(row, rows, notices, examples)
        return scorers.answered_by(record, self.model, scorer)


@cached(most=None)
def prompted_set(
    context: RunContext, name: str, split: str, prompt: PromptSpec | None, limit: int | None
) -> tuple[ProbeData, Prompts]:
    """Return a set, and how its items are put to models; examples are drawn once for all models."""
    probe = read_set(context, name, split, limit)
    examples = read_set(context, name, prompting.TRAIN, None) if prompt and prompt.shots else None
    return probe, prompting.prompts_of(prompt, probe, examples)


@cached(most=None)
def check_items(
    context: RunContext,
    name: str,
    split: str,
    prompt: PromptSpec | None,
    limit: int | None,
    questions: Sequence[ProbeQuestion[Any]],
) -> None:
    """Refuse items with too few examples, or that a question does not fit, once for all models."""
    probe, prompts = prompted_set(context, name, split, prompt, limit)
    for record in probe.records:
        prompts.words(record)
    for question in questions:
        question.check(probe, prompts)


def zero_shot_jobs(
    sets: Sequence[LoadedSet],
    models: Sequence[ModelSettings],
    trainer: TrainerSettings,
    *,
    ranks: bool = False,
    asking_by_set: Mapping[str, Asking] | None = None,
    examples: Mapping[str, ProbeData] | None = None,
    phrasings_by_set: Mapping[str, Sequence[str]] | None = None,
) -> list[Job]:
    """Return the jobs that score each set with each model; a model is loaded once per setup.

    By the name of the set `asking_by_set` has how it is asked, in one chat or none for all sets,
    `examples` what its prompt draws from, and `phrasings_by_set` its phrasings. Under its controls
    a set is asked in its own wording alone.
    """
    jobs = []
    asking_by_set = asking_by_set or {loaded.name: Asking() for loaded in sets}
    prompt = next(iter(asking_by_set.values())).prompt if asking_by_set else None
    for model in models:
        template = prompting.template_sha256(model, prompt)
        for loaded in sorted(sets, key=lambda loaded: loaded.data.config.setup):
            probe = loaded.data.config
            asking = asking_by_set[loaded.name]
            phrasings = phrasings_by_set[loaded.name] if phrasings_by_set else ()
            stem = probe.domain_stem or DOMAIN_STEMS.get(probe.setup, "")
            spec = ZeroShotSpec(
                model=model,
                probe=loaded.name,
                split=loaded.split,
                data_sha256=checksums(loaded.data),
                ranks=ranks,
                scoring=tuple(asking.rules),
                domain_stem=stem if "pmi" in asking.rules else "",
                letters=asking.orders,
                prompt=asking.relevant_prompt(probe.setup),
                examples=checksums(examples[loaded.name]) if examples else (),
                chat_template=template,
                phrasings={name: probe.phrasings[name] for name in phrasings},
                limit=loaded.limit,
            ).under(trainer)
            title = f"{loaded.name}, {model.label}"
            jobs.append(Job(spec, title=title))
            for control in loaded.controls:
                controlled = replace(spec, control=control, ranks=False, phrasings={})
                jobs.append(Job(controlled, title=f"{title}, {control}"))
    return jobs


@command(
    Command(
        example="train.py zero-shot --probes age_small,taxonomy_small --output_dir runs/zero_shot",
        options="output_dir probes models model.name_or_path data.path data.setup data.choices "
        "split limit controls ranks scoring letters.orders shots chat mirror trainer.accelerator "
        "trainer.precision engine.kind",
    )
)
def zero_shot(
    output_dir: PathText,
    model: ModelSettings = DEFAULT_MODEL,
    models: Names = (),
    probes: Names = (),
    data: FileSettings = DEFAULT_FILE,
    split: str | None = None,
    limit: NumItems | None = None,
    mirror: Mirror | None = None,
    ranks: bool = False,
    scoring: Names = (),
    letters: LetterSettings = DEFAULT_LETTERS,
    shots: NumShots = 0,
    chat: Chat = "never",
    prompt: PromptSettings = prompting.DEFAULT_PROMPT,
    phrasings: Names = (),
    controls: Names = (),
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> list[Row]:
    """Scores probes with models as they are, without training, and prints one table.

    Rerun the same command to resume; finished probes are not scored again.

    Args:
        output_dir: Folder of the results.
        model: Settings of a single model, instead of `models`.
        models: Models, by commas: names in configs/model/, paths of such files, folders or Hub
            names. MODEL+FOLDER adds an adapter.
        probes: Probes, by commas: names in configs/probe/, paths of such files, or files of items.
            `name:split` chooses another split for one of them.
        data: Your own file instead of `probes`.
        split: Split of the probes; by default dev, or test if there is no dev file.
        limit: Most items of each probe that are asked; whole groups are drawn.
        mirror: Folder or address with copies of the released files.
        ranks: Also report the ranks of MC-MLM candidates in the whole vocabulary.
        scoring: Also score by these rules, by commas: sum (acc of lm-evaluation-harness),
            mean_token, mean_char (acc_norm), pmi, calibrated, letter; harness is those of each
            probe there, in its text. Reports accuracies and changed answers.
        letters: How to ask with `--scoring letter`.
        shots: Number of examples from the probe's train split before each item, from other groups.
            With letters, each label is right equally often.
        chat: Whether to use the chat template of a model's tokenizer: "always", "never", or "auto"
            (if it has one). Only causal models can chat.
        prompt: Texts around the items.
        phrasings: Also ask in other wordings from the probe's config: their names, by commas, or
            all. Reports the accuracy in each, consistency, and how well each item is known.
        controls: Controls to ask under too, by commas: auto, or choice_only, shuffled_words,
            other_question, no_language, perturbed_language.
        trainer: Device and batch settings.
        engine: Where the runs are computed: in this process, or on Ray.
        wandb: Logging to Weights & Biases: one run with the scores as summary, and the table.

    Returns:
        The rows of results.csv.

    Raises:
        UsageError: If you give neither or both of `probes` and `data.path`, if a model is a
            baseline, if you ask for ranks of minimal pairs, or if a probe does not allow a rule or
            a control, has too few examples, or a model has no chat.
    """
    rules = chosen_rules([rule for rule in scoring if rule != HARNESS])
    chosen = chosen_models(models, model, random_weights=False)
    scorers.refuse_untrained(chosen, "zero-shot")
    sets = load_sets(probes, data, split, mirror, limit)
    spec = prompting.prompt_spec(shots, chat, prompt)
    asking = Asking(rules, letters.orders if LETTER in rules else None, spec)
    asking_by_set = {loaded.name: asking for loaded in sets}
    if HARNESS in scoring:
        if chat != "never" or prompt.file != prompting.DEFAULT_PROMPT.file:
            raise UsageError(
                "--scoring harness asks each probe in its own text of lm-evaluation-harness; leave "
                "out --prompt.file and --chat"
            )
        asking_by_set = {
            loaded.name: as_in_harness(loaded.data.config, rules, letters, shots, prompt)
            for loaded in sets
        }
    has_letters = any(asking.orders for asking in asking_by_set.values())
    if not has_letters and letters != DEFAULT_LETTERS:
        raise UsageError("--letters is only for the rule letter; add --scoring letter")
    setups = {loaded.data.config.setup for loaded in sets}
    prompting.refuse_unused(prompt, spec, LETTER in rules, setups)
    refuse_sets(sets, rules, spec, ranks=ranks)
    phrasings_by_set = {
        loaded.name: phrasings_named(loaded.data.config, phrasings, "--phrasings")
        for loaded in (sets if phrasings else ())
    }
    examples = {
        loaded.name: prompting.examples_of(loaded.data, loaded.split, mirror)
        for loaded in (sets if shots else ())
    }
    sets = [loaded._replace(controls=fitting_controls(controls, loaded.data)) for loaded in sets]
    jobs = zero_shot_jobs(
        sets,
        chosen,
        trainer,
        ranks=ranks,
        asking_by_set=asking_by_set,
        examples=examples,
        phrasings_by_set=phrasings_by_set,
    )
    is_prompted = any(asking.relevant_prompt(setup) for setup in setups)
    texts = {"prompt": asdict(spec)} if is_prompted else {}
    if HARNESS in scoring:
        prompts = ((name, asking.prompt) for name, asking in asking_by_set.items())
        texts = {"prompts": {name: asdict(text) for name, text in prompts if text}}
    config = {  # without the controls, which are runs of their own and may be added later
        "command": "zero-shot",
        "models": [model.config() for model in chosen],
        "probes": [
            {"name": loaded.name, "split": loaded.split, "sha256": checksums(loaded.data)}
            for loaded in sets
        ],
        **({} if limit is None else {"limit": limit}),
        **trainer.precisions(),
        "ranks": ranks,
        "scoring": [rule for rule in [*rules, HARNESS] if rule in scoring],
        **({"letters": {"orders": letters.orders}} if has_letters else {}),
        **texts,
        "phrasings": phrasings_by_set,
    }
    rows = run_command(
        output_dir,
        config,
        jobs,
        context_of(sets, RunContext(trainer, mirror=mirror, engine=engine)),
        files=[*(loaded.data for loaded in sets), *examples.values()],
        table=PROTOCOL,
    )
    publish_results(output_dir, wandb, "zero-shot", rows)
    return rows
