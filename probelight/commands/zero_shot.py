"""`train.py zero-shot`: what a model knew before anything was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from probelight.commands.command import Command, command
from probelight.evaluation.letters import ask_letters
from probelight.evaluation.measures import (
    PROTOCOL,
    pair_notices,
    pair_rows,
    paradigm_rows,
    rank_rows,
    rule_predictions,
    zero_shot_rows,
)
from probelight.evaluation.phrasings import PhrasingPredictions
from probelight.evaluation.predictions import ask, predict
from probelight.evaluation.prompting import (
    DEFAULT_PROMPT,
    TRAIN,
    examples_of,
    has_words_text,
    in_chat,
    mode_of,
    prompt_config,
    prompts_of,
    refuse_cut,
    refuse_unused,
    relevant_settings,
    template_sha256,
)
from probelight.evaluation.scorers import (
    check_scorer,
    loaded_scorer,
    model_row,
    refuse_untrained,
    source_of,
)
from probelight.evaluation.sets import LoadedSet, load_sets, own_configs, read_set
from probelight.io.errors import UsageError, nearest
from probelight.io.ranges import Mirror, Names, NumShots, PathText
from probelight.metrics.scoring_rules import DEBIASED, LETTER, OF_THE_ITEM, RULES
from probelight.models.checkpoint_files import scoring_of
from probelight.models.chosen_models import chosen_models
from probelight.models.registry import TRANSFORMER
from probelight.models.settings import DEFAULT_MODEL, ModelSettings
from probelight.probes.catalog import DOMAIN_STEMS
from probelight.probes.controls import phrased, phrasings_named
from probelight.probes.prompts import Chat, LetterSettings, PromptSettings, orders_of
from probelight.probes.record import Record, Setup, groups_of
from probelight.probes.source import ProbeData
from probelight.probes.user_files import DEFAULT_FILE, FileSettings
from probelight.results.measured import near_tie_notices, score_notices
from probelight.results.predictions import write_predictions
from probelight.results.record import RunRecord, check_data, checksums, data_files
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.job import Job
from probelight.runs.run import run_command
from probelight.runs.settings import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    TrainerSettings,
)

DEFAULT_LETTERS = LetterSettings()


@command(
    Command(
        example="train.py zero-shot --probes age_small,taxonomy_small --output_dir runs/zero_shot",
        options="output_dir probes models model.name_or_path data.path data.setup data.choices "
        "data.gold split ranks scoring letters.orders shots chat mirror trainer.accelerator "
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
    mirror: Mirror | None = None,
    ranks: bool = False,
    scoring: Names = (),
    letters: LetterSettings = DEFAULT_LETTERS,
    shots: NumShots = 0,
    chat: Chat = "never",
    prompt: PromptSettings = DEFAULT_PROMPT,
    phrasings: Names = (),
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
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
        mirror: Folder or address with copies of the released files.
        ranks: Also report the ranks of MC-MLM candidates in the whole vocabulary.
        scoring: Also score by these rules, by commas: sum (acc of lm-evaluation-harness),
            mean_token, mean_char (acc_norm), pmi, calibrated, letter. Reports the accuracy, and the
            share of items with another answer.
        letters: How to ask with `--scoring letter`.
        shots: Number of examples from the probe's train split before each item, from other groups.
            With letters, each label is right equally often.
        chat: Whether to use the chat template of a model's tokenizer: "always", "never", or "auto"
            (if it has one). Only causal models can chat.
        prompt: Texts around the items.
        phrasings: Also ask in other wordings from the probe's config: their names, by commas, or
            all. Reports the accuracy in each, consistency, and how well each item is known.
        trainer: Device and batch settings.
        engine: Where the runs are computed: in this process, or on Ray.

    Returns:
        The rows of results.csv.

    Raises:
        UsageError: If you give neither or both of `probes` and `data.path`, if a model is a
            baseline, if you ask for ranks of minimal pairs, or if a probe does not allow a rule,
            has too few examples, or a model has no chat.
    """
    rules = chosen_rules(scoring)
    chosen = chosen_models(models, model, random_weights=False)
    refuse_untrained(chosen, "zero-shot")
    sets = load_sets(probes, data, split, mirror)
    if ranks and (
        pair_sets := [loaded.name for loaded in sets if loaded.data.config.setup == "minimal_pair"]
    ):
        raise UsageError(
            f"--ranks: {', '.join(pair_sets)} has minimal pairs, which are whole sentences without "
            "a mask, so words have no ranks; leave it out"
        )
    sentence_sets = [loaded.name for loaded in sets if loaded.data.config.setup not in DOMAIN_STEMS]
    stem_rules = [rule for rule in rules if rule not in OF_THE_ITEM]
    if sentence_sets and stem_rules:
        raise UsageError(
            f"--scoring {','.join(stem_rules)} puts other stems before the choices, but the items "
            f"of {sentence_sets[0]} are whole sentences; give only {', '.join(OF_THE_ITEM)}"
        )
    if LETTER not in rules and letters != DEFAULT_LETTERS:
        raise UsageError("--letters is only for the rule letter; add --scoring letter")
    prompt_settings = prompt_config(shots, chat, prompt)
    setups = {loaded.data.config.setup for loaded in sets}
    refuse_unused(prompt, prompt_settings, LETTER in rules, setups)
    letter_settings = {"letters": {"orders": letters.orders}}
    question_settings: dict[str, Any] = letter_settings if LETTER in rules else {}
    has_context = bool(shots) or chat != "never"  # whether items are more than their own texts
    if question_settings or has_context or (has_words_text(prompt_settings) and "mc_qa" in setups):
        question_settings["prompt"] = prompt_settings
    if has_context and ranks:
        raise UsageError("--ranks needs sentences as they are; leave out --shots and --chat")
    if has_context and sentence_sets and LETTER not in rules:
        raise UsageError(
            f"--shots and --chat: {sentence_sets[0]} has whole sentences, not answers; add "
            "--scoring letter, or leave them out"
        )
    phrasings_by_set: dict[str, list[str]] = {}
    for loaded in sets if phrasings else ():
        probe = loaded.data.config
        phrasings_by_set[loaded.name] = phrasings_named(probe, phrasings, "--phrasings")
        for record, name in product(loaded.data.records, phrasings_by_set[loaded.name]):
            phrased(record, probe, name)  # refused before any of them is scored
    examples: dict[str, ProbeData] = {}
    for loaded in sets:
        if shots:
            examples[loaded.name] = examples_of(loaded.data, loaded.split, mirror)
        prompts = prompts_of(
            question_settings.get("prompt"), loaded.data, examples.get(loaded.name)
        )
        for record in loaded.data.records:  # refused before any of them is scored
            prompts.shots(record)
            if LETTER in rules:
                prompts.letters(record, orders_of(record, letters.orders)[0])
    config = {
        "command": "zero-shot",
        "models": [model.config() for model in chosen],
        "probes": [
            {"name": loaded.name, "split": loaded.split, "sha256": checksums(loaded.data)}
            for loaded in sets
        ],
        **trainer.precisions(),
        "ranks": ranks,
        "scoring": rules,
        **question_settings,
        "phrasings": phrasings_by_set,
    }
    return run_command(
        output_dir,
        config,
        zero_shot_jobs(
            sets, chosen, trainer, ranks, rules, question_settings, examples, phrasings_by_set
        ),
        RunContext(trainer, mirror=mirror, user_probes=own_configs(sets), engine=engine),
        files=[*(loaded.data for loaded in sets), *examples.values()],
        table=PROTOCOL,
        check=partial(check_models, sets=sets),
    )


def chosen_rules(scoring: Sequence[str]) -> list[str]:
    """Return the wanted scoring rules in the order of `RULES`; refuse unknown ones."""
    for rule in scoring:
        if rule not in RULES:
            near = nearest(rule.lower(), RULES)
            raise UsageError(
                f"--scoring: there is no rule {rule!r}{near}; choose from {', '.join(RULES)}"
            )
    return [rule for rule in RULES if rule in scoring]


def zero_shot_jobs(
    sets: Sequence[LoadedSet],
    models: Sequence[ModelSettings],
    trainer: TrainerSettings,
    ranks: bool = False,
    rules: Sequence[str] = (),
    question_settings: Mapping[str, Any] | None = None,
    examples: Mapping[str, ProbeData] | None = None,
    phrasings_by_set: Mapping[str, Sequence[str]] | None = None,
) -> list[Job]:
    """Return the jobs that score each set with each model; a model is loaded once per setup.

    `question_settings` says how letters are asked for and items put to the model; `examples` are
    what these are drawn from, and `phrasings_by_set` the phrasings, by the name of the set.
    """
    jobs = []
    for model in models:
        template = template_sha256(model, (question_settings or {}).get("prompt"))
        for loaded in sorted(sets, key=lambda loaded: loaded.data.config.setup):
            probe = loaded.data.config
            domain_stem = probe.domain_stem or DOMAIN_STEMS.get(probe.setup, "")
            phrasings = phrasings_by_set[loaded.name] if phrasings_by_set else ()
            config = {
                "protocol": PROTOCOL,
                "model": model.config(),
                "probe": loaded.name,
                "split": loaded.split,
                "data": checksums(loaded.data),
                **trainer.precisions(),
                "ranks": ranks,
                "scoring": list(rules),
                "domain_stem": domain_stem if "pmi" in rules else "",
                **relevant_settings(question_settings or {}, probe.setup),
                "examples": checksums(examples[loaded.name]) if examples else [],
                "chat_template": template,
                "phrasings": {phrasing: probe.phrasings[phrasing] for phrasing in phrasings},
            }
            name = f"zero-shot-{loaded.name}-{model.label}"
            jobs.append(Job(name, config, score_set, title=f"{loaded.name}, {model.label}"))
    return jobs


def check_models(missing: Sequence[Job], sets: Sequence[LoadedSet]) -> None:
    """Refuse sets that a model cannot answer, before the first one is scored."""
    data_by_set = {(loaded.name, loaded.split): loaded.data for loaded in sets}
    records_by_model: dict[tuple[ModelSettings, Setup], list[Sequence[Record]]] = {}
    for job in missing:
        model = ModelSettings(**job.config["model"])
        loaded = data_by_set[job.config["probe"], job.config["split"]]
        setup = loaded.config.setup
        records_by_model.setdefault((model, setup), []).append(loaded.records)
        prompting = job.config.get("prompt", {})
        has_texts = setup == "mc_qa" and has_words_text(prompting)
        is_by_rule = bool(job.config["scoring"] or prompting.get("shots") or has_texts)
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
    for (model, setup), records in records_by_model.items():
        check_scorer(model, setup, records)


def score_set(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Make the run of one model and set (Talmor 2020, section 3).

    MC-MLM probes are read off the mask. MC-QA has no pre-trained head: a model that was fine-tuned
    here answers with its head, any other with the pseudo-log-likelihood of each answer after its
    question (Salazar et al. 2020).
    """
    model, name, split = ModelSettings(**config["model"]), config["probe"], config["split"]
    loaded = read_set(context, name, split)
    check_data(config["data"], [loaded])
    setup, group_by = loaded.config.setup, loaded.config.group_by
    examples = None
    if config["examples"]:
        examples = read_set(context, name, TRAIN)
        check_data(config["examples"], [examples])
    prompting = config.get("prompt")
    scorer = loaded_scorer(context, model, setup)
    prompts = prompts_of(prompting, loaded, examples)
    is_minimal_pair = setup == "minimal_pair"
    if not is_minimal_pair and (chatting := in_chat(scorer, prompting)):
        scorer, prompts = chatting, replace(prompts, in_chat=True)
    prompted = [prompts.words(record) for record in loaded.records]
    if prompts.num_shots and not (is_minimal_pair or prompts.in_chat):
        refuse_cut(scorer.choice_scores(), prompted, f"--shots {prompts.num_shots}")
    sets = {name: prompted}
    for phrasing in config["phrasings"]:
        rephrased = [phrased(record, loaded.config, phrasing) for record in loaded.records]
        sets[f"{name} ({phrasing})"] = [prompts.words(record) for record in rephrased]
    predictions, *phrased_predictions = predict(scorer, sets, context.trainer).values()
    originals = {id(p): record for p, record in zip(prompted, loaded.records, strict=True)}
    records = [originals[id(record)] for record in predictions.records]
    predictions = replace(predictions, records=records)
    num_shots, has_texts = 0 if is_minimal_pair else prompts.num_shots, bool(prompts.words_template)
    row = replace(
        model_row(model),
        protocol=PROTOCOL,
        probe=loaded.config.name,
        control="standard",
        mode=mode_of(scorer.mode, scorer.is_in_chat, num_shots, prompting, has_texts=has_texts),
        num_train=0,
        split=split,
    )
    notices = [*loaded.notices, *predictions.notices, *score_notices(predictions)]
    notices += near_tie_notices(predictions)
    notices += pair_notices(predictions.records)
    if is_minimal_pair:
        rows = pair_rows(predictions, loaded, row)
    else:
        labels = model.gold_labels(setup, predictions.records)
        rows = zero_shot_rows(predictions, loaded, row, gold_labels=labels)
    if config["ranks"] and setup == "mc_mlm":
        from probelight.models.vocabulary import candidate_ranks  # only now: it imports torch

        question, scored = candidate_ranks(scorer), {name: predictions.records}
        ranks = ask(scorer, question, scored, context.trainer)[name]
        rows += rank_rows(ranks, groups_of(ranks.records, group_by), row)
        notices += [notice for notice in ranks.notices if notice not in notices]
    run.write_metrics(rows)
    # Without rules, the accuracy of minimal pairs by the mean per token is there all the same.
    rules = config["scoring"] or (("mean_token",) if is_minimal_pair else ())
    word_rules = [rule for rule in rules if rule != LETTER]
    domain_stem = config["domain_stem"]
    panel = rule_predictions(scorer, predictions, word_rules, prompts, domain_stem, context.trainer)
    groups = groups_of(predictions.records, group_by)
    reader = scorer
    if letters := config.get("letters"):
        reader = loaded_scorer(context, model, "mc_mlm")  # a letter is put in a blank
        reader = in_chat(reader, prompting) or reader
        answers = ask_letters(reader, predictions, letters["orders"], prompts, context.trainer)
        mode = mode_of(scorer.mode, reader.is_in_chat, prompts.num_shots, prompting, has_texts=True)
        panel = replace(
            panel,
            by_rule={**panel.by_rule, **answers.by_rule},
            notices=panel.notices + answers.notices,
            modes={LETTER: mode, DEBIASED: f"{mode}, {letters['orders']} orders"},
        )
        rows += answers.rows(groups, replace(row, mode=mode))
    rows += panel.rows(groups, row)
    if is_minimal_pair:
        for rule, scored_by_rule in panel.by_rule.items():
            rows += paradigm_rows(scored_by_rule, group_by, panel.row_of(rule, row))
    if prompting and prompting["chat"] == "auto" and not (scorer.is_in_chat or reader.is_in_chat):
        notices.append(f"{model.label} has no chat template, so it was asked without a chat")
    notices += [notice for notice in panel.notices if notice not in notices]
    lines = panel.lines(groups)
    if phrased_predictions:
        by_phrasing = dict(zip(config["phrasings"], phrased_predictions, strict=True))
        phrased_set = PhrasingPredictions(predictions, by_phrasing)
        rows += phrased_set.rows(groups, row)
        lines = phrased_set.lines(lines)
    write_predictions(run, lines)
    return RunRecord(
        protocol=PROTOCOL,
        model=model.label,
        probe=name,
        rows=tuple(rows),
        counts={"items": len(loaded.records), "scored": len(predictions.records)},
        notices=tuple(notices),
        data=data_files([loaded, *([examples] if examples else [])]),
        dtype=scorer.dtype,
        num_rescored=predictions.num_rescored,
        model_sha256=scorer.fingerprint(),
        source=source_of(model),
    )
