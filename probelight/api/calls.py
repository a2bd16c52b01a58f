"""The commands as functions of `import probelight`: they take objects too and return `Results`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from probelight.api.call import ModelLike, called, probe_names, trainer_of
from probelight.io.errors import UsageError, required_path
from probelight.probes.importers.items import ProbeLike, as_list
from probelight.reports.notebook import Results
from probelight.runs.settings import TrainerSettings

# What is heavy is imported where it is used: `import probelight` takes no time.
if TYPE_CHECKING:
    from probelight.commands.explain.explanation import Explanation
    from probelight.io.wandb import WandbSettings
    from probelight.runs.estimates import Plan
    from probelight.runs.settings import EngineSettings

    Trainer: TypeAlias = TrainerSettings | Mapping[str, Any] | None
    Engine: TypeAlias = EngineSettings | Mapping[str, Any] | None
    Wandb: TypeAlias = WandbSettings | Mapping[str, Any] | None
    Folder: TypeAlias = str | Path


def load(folder: Folder) -> Results:
    """Load the results in the output folder of a command, or in a folder of several of these.

    Raises:
        MissingFileError: If there is no such folder, or no result in it.
    """
    return Results(folder)


def zero_shot(
    models: ModelLike | Sequence[ModelLike],
    probes: ProbeLike | Sequence[ProbeLike] = (),
    *,
    data: Mapping[str, Any] | None = None,
    split: str | None = None,
    limit: int | None = None,
    scoring: Sequence[str] = (),
    letters: Mapping[str, Any] | None = None,
    shots: int = 0,
    chat: str = "never",
    prompt: Mapping[str, Any] | None = None,
    phrasings: Sequence[str] = (),
    controls: str | Sequence[str] = (),
    ranks: bool = False,
    device: str | None = None,
    batch_tokens: int | None = None,
    output_dir: Folder | None = None,
    mirror: str | None = None,
    trainer: Trainer = None,
    engine: Engine = None,
    wandb: Wandb = None,
) -> Results:
    """Score probes with models that are not trained (Talmor 2020, section 3).

    Args:
        models: One or several names of configs, folders or Hub names; settings of one model, as a
            dict or `ModelSettings`; or a transformers model and its tokenizer, as a pair.
        probes: One or several names of probes, `name:split`, files of items, or items in memory: a
            list of dicts, a `datasets.Dataset` or a DataFrame (see
            `probelight.probes.importers.rows`).
        data: One file, or items in memory, instead of probes, with what is to be said of it, such
            as {"path": ..., "setup": "mc_qa", "gold": "index"}.
        split: Split of the probes; by default dev, or test if there is no dev.
        limit: Most items of each probe that are asked; whole groups are drawn.
        scoring: Rules by which to measure accuracy too, such as ["mean_token", "letter"].
        letters: How the rule "letter" asks, such as {"orders": "cyclic"}.
        shots: Number of examples from the train split before each item.
        chat: "auto" or "always" puts items into the chat template of a model's tokenizer.
        prompt: Texts around items, such as {"system": "Answer by one letter."}, or
            {"file": "configs/prompt/harness.yaml"} for those of lm-evaluation-harness.
        phrasings: Other wordings in the probes' configs to ask too; ["all"] for all of them.
        controls: Names of controls to ask the items under too, or "auto".
        ranks: Also measure the ranks of the candidates in the whole vocabulary.
        device: "cpu", "cuda" or "mps", as `accelerator` of `trainer`; by default a GPU if any.
        batch_tokens: Tokens per batch, including padding, as `max_eval_tokens` of `trainer`.
        output_dir: Folder of the results, where the same call resumes; by default a temporary one.
        mirror: Folder or address with copies of the released files.
        trainer: Device and batch settings, such as {"accelerator": "cpu"}.
        engine: Where the runs are computed, such as {"kind": "ray"}; by default in this process.
        wandb: Logging to Weights & Biases, such as {"project": "probes"}.

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.zero_shot import zero_shot as command

    trainer = trainer_of(trainer, device, batch_tokens)
    with called(command, output_dir, trainer) as call:
        call.take(
            split=split, limit=limit, ranks=ranks, mirror=mirror, scoring=scoring, letters=letters
        )
        call.take(
            shots=shots, chat=chat, prompt=prompt, phrasings=phrasings, engine=engine, wandb=wandb
        )
        call.take(controls=controls)
        if not as_list(probes) and not data:
            raise UsageError("probes: give a name, a file of items, or items as a list of dicts")
        call.take_probes(probes, data)
        call.take_models(models)
        return call.results("zero_shot")


def curve(
    models: ModelLike | Sequence[ModelLike],
    probes: str | Path | Sequence[str | Path] = (),
    *,
    data: Mapping[str, Any] | None = None,
    grid: Mapping[str, Any] | None = None,
    setup: str | None = None,
    random_weights: bool = False,
    dry_run: bool = False,
    force: bool = False,
    output_dir: Folder | None = None,
    mirror: str | None = None,
    trainer: Trainer = None,
    engine: Engine = None,
    wandb: Wandb = None,
    **options: Any,
) -> Results | Plan:
    """Trace learning curves of models on probes, with controls (Talmor 2020, section 3).

    Args:
        models: As in `zero_shot`.
        probes: One or several names of probes.
        data: Your own files instead of probes: {"train": ..., "dev": ...}. Each may be a path or
            items in memory.
        grid: Points of the curve, such as {"sizes": [62, 125], "modes": ["mlp"]}.
        setup: "mc_qa" turns MC-MLM probes into questions with the candidates as answers.
        random_weights: Also trace the same architectures with random weights.
        dry_run: Train nothing, and return how many runs and steps it would take, and how much time
            and memory, as a `Plan`.
        force: Train even if the estimate says that it does not fit into memory.
        output_dir: As in `zero_shot`.
        mirror: As in `zero_shot`.
        trainer: As in `zero_shot`.
        engine: As in `zero_shot`.
        wandb: As in `zero_shot`.
        **options: Further options of `train.py curve`.

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.curve.command import curve as command

    with called(command, output_dir, trainer) as call:
        call.take(grid=grid, setup=setup, random_weights=random_weights, dry_run=dry_run)
        call.take(force=force, mirror=mirror, engine=engine, wandb=wandb, **options)
        if any(not isinstance(name, str | Path) for name in as_list(probes)):
            raise UsageError("probes: give names; pass items in memory as data={'train': ...}")
        call.take_probes(probes, data)
        call.take_models(models, are_trained=True)
        return call.run() if dry_run else call.results("curve")


def inoculate(
    model: ModelLike,
    probe: str | Path | Mapping[str, Any] | None,
    original: str | Path | Mapping[str, Any] | None = None,
    *,
    data: Mapping[str, Any] | None = None,
    dose: int | None = None,
    extra: str = "none",
    learning_rate: float = 1e-5,
    epochs: int = 3,
    batch_size: int = 16,
    tuning: str | Mapping[str, Any] = "full",
    keeping: str | Mapping[str, Any] = "none",
    seed: int = 0,
    dry_run: bool = False,
    force: bool = False,
    output_dir: Folder | None = None,
    mirror: str | None = None,
    trainer: Trainer = None,
    engine: Engine = None,
    wandb: Wandb = None,
) -> Results | Plan:
    """Fine-tune a model of an original task on a dose of a probe; measure what it gains and loses.

    Args:
        model: Name or settings of one model. If it already answers questions (a model trained here,
            or one of transformers' multiple-choice classes), it is inoculated as it is. Any other
            model is trained on the original task first.
        probe: Name of the probe, or a dict of `InoculatedProbe`'s settings; None with `data`.
        original: Name of the original task's probe, or a dict of `OriginalTask`'s settings; by
            default what the model was trained on, if it was trained here.
        data: Your own files instead of the probe, as in `curve`.
        dose: k, the number of probe examples; by default 100, or all if there are fewer.
        extra: Original-task examples to add per probe example: "none", "x1" or "x2".
        learning_rate: Peak learning rate.
        epochs: Number of epochs; the model after each is a candidate for M*, the reported one.
        batch_size: Questions per optimiser step.
        tuning: Which weights to train: "full", "lora", or a dict of `Tuning`'s settings.
        keeping: Method against forgetting: "none", "replay", "l2_sp", "distillation", or a dict of
            `Keeping`'s settings.
        seed: Seed of the dose, its order and dropout.
        dry_run: As in `curve`.
        force: As in `curve`.
        output_dir: As in `zero_shot`.
        mirror: As in `zero_shot`.
        trainer: As in `zero_shot`.
        engine: As in `zero_shot`.
        wandb: As in `curve`.

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.inoculation.command import inoculate as command

    with called(command, output_dir, trainer) as call:
        call.take(dose=dose, extra=extra, learning_rate=learning_rate, epochs=epochs, seed=seed)
        call.take(batch_size=batch_size, dry_run=dry_run, force=force, mirror=mirror)
        call.take(engine=engine, wandb=wandb)
        methods = {"tuning": tuning, "keeping": keeping}
        call.take(**{n: {"method": m} if isinstance(m, str) else m for n, m in methods.items()})
        call.take(probe={"name": str(probe)} if isinstance(probe, str | Path) else probe or {})
        call.take_probes(None, data)
        call.take_original(model, original)
        return call.run() if dry_run else call.results("inoculation")


def original(
    model: ModelLike,
    original: str | Path | Mapping[str, Any],
    output_dir: Folder,
    *,
    trainer: Trainer = None,
    **options: Any,
) -> Path:
    """Train the model of an original task once, for several inoculations to start from.

    Args:
        model: As in `inoculate`.
        original: As in `inoculate`.
        output_dir: Folder of the results, where the same call resumes.
        trainer: As in `zero_shot`.
        **options: Further options of `train.py original`, such as `wandb` and `engine`.

    Returns:
        Folder of the trained model, for `checkpoint` among the settings of `original`.
    """
    from probelight.commands.inoculation.command import original_task as command

    with called(command, output_dir, trainer) as call:
        call.take(**options)
        call.take_original(model, original)
        trained: Path = call.run()
        return trained


def sweep(
    grid: Mapping[str, Any],
    output_dir: Folder,
    *,
    dry_run: bool = False,
    trainer: Trainer = None,
    **options: Any,
) -> Results | Plan:
    """Run a sweep of inoculations on Ray; the same call goes on where it stopped.

    Args:
        grid: Models, original tasks, probes and settings, as `grid` of configs/sweep/released.yaml.
        output_dir: Folder of the sweep.
        dry_run: Plan it in the folder, and return the `Plan` without running it.
        trainer: As in `zero_shot`.
        **options: Further options of `train.py sweep plan`, such as `engine` and `wandb`.
    """
    from probelight.commands.inoculation.sweep import plan, run

    with called(plan, output_dir, trainer) as call:
        call.take(grid=grid, **options)
        planned: Plan = call.run()
        if dry_run:
            return planned
        run(str(call.folder))
        return call.results("inoculation", is_made=True)


def diagnose(
    models: ModelLike | Sequence[ModelLike],
    *,
    output_dir: Folder | None = None,
    trainer: Trainer = None,
    **options: Any,
) -> Results:
    """Measure word prediction and sensitivity on psycholinguistic diagnostics (Ettinger 2020).

    Args:
        models: As in `zero_shot`.
        output_dir: As in `zero_shot`.
        trainer: As in `zero_shot`.
        **options: Further options of `train.py diagnose`, such as `sets` and `shuffles`.
    """
    from probelight.commands.diagnose.diagnose import diagnose as command

    with called(command, output_dir, trainer) as call:
        call.take(**options)
        call.take_models(models)
        return call.results("diagnose")


def audit(
    probes: ProbeLike | Sequence[ProbeLike],
    *,
    output_dir: Folder | None = None,
    trainer: Trainer = None,
    **options: Any,
) -> Results:
    """Measure how much of a probe can be answered without its question.

    Args:
        probes: As in `zero_shot`.
        output_dir: As in `zero_shot`.
        trainer: As in `zero_shot`.
        **options: Further options of `train.py audit`, such as `baselines` and `training`.
    """
    from probelight.commands.audit.audit import audit as command

    with called(command, output_dir, trainer) as call:
        call.take(**options, probes=",".join(probe_names(probes, call.folder)))
        return call.results("audit")


def explain(
    models: ModelLike | Sequence[ModelLike],
    probe: ProbeLike,
    item: str = "@1",
    *,
    trainer: Trainer = None,
    **options: Any,
) -> list[Explanation]:
    """Show what each model reads for one item, and how it scores each choice.

    Args:
        models: As in `zero_shot`.
        probe: One of what `zero_shot` takes.
        item: Id of the item, or `@NUMBER` in its file.
        trainer: As in `zero_shot`.
        **options: Further options of `train.py explain`, such as `shots` and `chat`.
    """
    from probelight.commands.explain.explain import explain as command

    with called(command, None, trainer) as call:
        call.take(item=item, **options)
        call.take_probes(probe, None)
        call.take_models(models)
        explanations: list[Explanation] = call.run()
        return explanations


def import_results(
    format: str,
    files: Folder | Sequence[Folder],
    *,
    data: Mapping[str, Any] | None = None,
    output_dir: Folder | None = None,
    **options: Any,
) -> Results:
    """Import what another program measured.

    Args:
        format: "lm_eval", "minicons", "hf_trainer", "plain", "letters" or "pvi".
        files: One or several files in that format, one run each.
        data: As in `zero_shot`, for the items that were answered, or {"name": ...}.
        output_dir: As in `zero_shot`.
        **options: Further options of `train.py import`, such as `probe`, `model` and `gold`.
    """
    from probelight.commands.imports.imports import import_results as command

    with called(command, output_dir, None) as call:
        call.take(format=format, files=[str(file) for file in as_list(files)], **options)
        call.take_probes(None, data)
        return call.results("")


def compare(
    *results: Results | Folder,
    output_dir: Folder | None = None,
    probes: str | Sequence[str] = (),
    scoring: Sequence[str] = (),
    mix_rules: bool = False,
    wandb: Wandb = None,
) -> Results:
    """Compare models, or settings, by their answers to the same items.

    Args:
        *results: Two or more results, or folders of them; or one with several models.
        output_dir: Folder of the comparison; by default a temporary one.
        probes: Probes to compare on; by default all that the results share.
        scoring: Scoring rules of zero-shot runs to compare by; by default the model's own score.
        mix_rules: Compare different rules, and ways of asking, with each other.
        wandb: As in `zero_shot`.

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.compare import compare as command

    if not results:
        raise UsageError("compare: give two or more results, or one with several models")
    folders = [_folder_of(r, "compare") for r in results]
    with called(command, output_dir, None) as call:
        call.take(folders=folders, probes=as_list(probes), scoring=scoring, mix_rules=mix_rules)
        call.take(wandb=wandb)
        return call.results("compare")


def forgetting(
    before: Results | Folder,
    *after: Results | Folder,
    output_dir: Folder | None = None,
    probes: str | Sequence[str] = (),
    num_choices: int | None = None,
    margin: float = 5.0,
) -> Results:
    """Count the items that a model lost and gained between measurements (Harmon et al. 2026).

    Args:
        before: Results, their folder, or a column of a table, such as "scores.csv:base". Or a count
            of items that were right both times, lost, gained and wrong both times, such as
            "40,10,6,44".
        *after: One or several measurements after it; none with a count.
        output_dir: Folder of the results; by default a temporary one.
        probes: Probes to read from folders; by default all that both have.
        num_choices: Number of choices per item, for counts, and for tables without that column.
        margin: The loss of accuracy that does not matter, in percentage points.

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.forgetting import forgetting as command

    measured = [str(_folder_of(r, "forgetting")) for r in (before, *after)]
    with called(command, output_dir, None) as call:
        call.take(measured=measured, probes=as_list(probes), num_choices=num_choices, margin=margin)
        return call.results("forgetting")


def _folder_of(results: Any, argument: str) -> Path:
    return results.folder if isinstance(results, Results) else required_path(results, argument)
