"""The commands as functions of `import probelight`: they take objects too and return `Results`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from io import StringIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from probelight.io.atomic import whole_folder, write_text_atomic
from probelight.io.documents import as_settings
from probelight.io.errors import UsageError
from probelight.io.from_python import quietly, required_path
from probelight.reports.notebook import Results
from probelight.runs.settings import TrainerSettings

# jsonargparse looks every command up by its shortest name, which is a function here: what is heavy
# is imported where it is used.
Trainer = TrainerSettings | Mapping[str, Any] | None


def load(folder: str | Path) -> Results:
    """Load the results in the output folder of a command, or in a folder of several of these.

    Raises:
        MissingFileError: If there is no such folder, or no result in it.
    """
    return Results(folder)


def zero_shot(
    models: Any,
    probes: Any = (),
    *,
    data: Mapping[str, Any] | None = None,
    split: str | None = None,
    scoring: Sequence[str] = (),
    letters: Mapping[str, Any] | None = None,
    shots: int = 0,
    chat: str = "never",
    prompt: Mapping[str, Any] | None = None,
    phrasings: Sequence[str] = (),
    ranks: bool = False,
    output_dir: str | Path | None = None,
    mirror: str | None = None,
    trainer: Trainer = None,
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
        scoring: Rules by which to measure accuracy too, such as ["mean_token", "letter"].
        letters: How the rule "letter" asks, such as {"orders": "cyclic"}.
        shots: Number of examples from the train split before each item.
        chat: "auto" or "always" puts items into the chat template of a model's tokenizer.
        prompt: Texts around items, such as {"system": "Answer by one letter."}, or
            {"file": "configs/prompt/harness.yaml"} for those of lm-evaluation-harness.
        phrasings: Other wordings in the probes' configs to ask too; ["all"] for all of them.
        ranks: Also measure the ranks of the candidates in the whole vocabulary.
        output_dir: Folder of the results, where the same call resumes; by default a temporary one.
        mirror: Folder or address with copies of the released files.
        trainer: Device and batch settings, such as {"accelerator": "cpu"}.

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.zero_shot import zero_shot as command
    from probelight.probes.prompts import LetterSettings, PromptSettings
    from probelight.probes.user_files import FileSettings

    with _call_folder(output_dir, "zero_shot", trainer) as (folder, shared):
        if not (probe_list := _as_list(probes)) and not data:
            raise UsageError("probes: give a name, a file of items, or items as a list of dicts")
        names: list[str] = []
        for entry in probe_list:
            number = 1 + sum(_is_items(earlier) for earlier in probe_list[: len(names)])
            names.append(_probe_name(entry, folder, number))
        options: dict[str, Any] = {"split": split, "ranks": ranks, "mirror": mirror}
        options |= {"scoring": scoring, "shots": shots, "chat": chat, "phrasings": phrasings}
        options["letters"] = as_settings(LetterSettings, letters or {}, "letters")
        options["prompt"] = as_settings(PromptSettings, prompt or {}, "prompt")
        options |= _files(data, folder, FileSettings)
        command(**shared, **_models(models, folder), probes=names, **options)
    return folder.results()


def curve(
    models: Any,
    probes: Any = (),
    *,
    data: Mapping[str, Any] | None = None,
    grid: Mapping[str, Any] | None = None,
    setup: str | None = None,
    random_weights: bool = False,
    dry_run: bool = False,
    force: bool = False,
    output_dir: str | Path | None = None,
    mirror: str | None = None,
    trainer: Trainer = None,
) -> Results:
    """Trace learning curves of models on probes, with controls (Talmor 2020, section 3).

    Args:
        models: As in `zero_shot`.
        probes: One or several names of probes.
        data: Your own files instead of probes: {"train": ..., "dev": ...}. Each may be a path or
            items in memory.
        grid: Points of the curve, such as {"sizes": [62, 125], "modes": ["mlp"]}.
        setup: "mc_qa" turns MC-MLM probes into questions with the candidates as answers.
        random_weights: Also trace the same architectures with random weights.
        dry_run: Train nothing. `Results.plan` says how many runs and steps it would take, and how
            much time and memory.
        force: Train even if the estimate says that it does not fit into memory.
        output_dir: As in `zero_shot`.
        mirror: As in `zero_shot`.
        trainer: As in `zero_shot`.

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.curve.command import curve as command
    from probelight.commands.curve.settings import CurveSettings
    from probelight.probes.user_files import SplitFiles

    with _call_folder(output_dir, "curve", trainer) as (folder, shared):
        options = _files(data, folder, SplitFiles) | {"setup": setup, "mirror": mirror}
        options |= {"random_weights": random_weights}
        options |= {"grid": as_settings(CurveSettings, grid or {}, "grid")}
        names = _as_list(probes)
        if any(not isinstance(name, str | Path) for name in names):
            raise UsageError("probes: give names; pass items in memory as data={'train': ...}")
        options |= {"probes": [str(name) for name in names], "dry_run": dry_run}
        command(**shared, **_models(models, folder), **options, force=force)
    return folder.results(dry_run)


def inoculate(
    model: Any,
    probe: Any,
    original: Any,
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
    output_dir: str | Path | None = None,
    mirror: str | None = None,
    trainer: Trainer = None,
) -> Results:
    """Fine-tune a model of an original task on a dose of a probe; measure what it gains and loses.

    Args:
        model: Name or settings of one model. If it already answers questions (a model trained here,
            or one of transformers' multiple-choice classes), it is inoculated as it is. Any other
            model is trained on the original task first.
        probe: Name of the probe, or a dict of `InoculatedProbe`'s settings; None with `data`.
        original: Name of the original task's probe, or a dict of `OriginalTask`'s settings.
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

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.inoculation.command import inoculate as command
    from probelight.commands.inoculation.settings import Keeping, OriginalTask, ProbeOrFiles
    from probelight.models.checkpoint_files import (
        LIKELIHOOD,
        CheckpointRef,
        head_settings,
        local_folder,
    )
    from probelight.models.pair_choice import answers_questions
    from probelight.models.tuning import Tuning
    from probelight.probes.user_files import SplitFiles

    with _call_folder(output_dir, "inoculation", trainer) as (call_folder, shared):
        settings = _model_settings(_models(model, call_folder))
        if not original:
            raise UsageError(
                "original: give the name of the original task's probe, or its settings"
            )
        if isinstance(original, str | Path):
            task: Any = {"name": Path(original).stem, "sets": [str(original)]}
        else:
            task = original
        if "checkpoint" not in task and answers_questions(settings.checkpoint):
            folder = local_folder(settings.checkpoint)
            task = {**task, "checkpoint": folder}
            saved = head_settings(CheckpointRef(folder)) or {}
            if saved.get("head", LIKELIHOOD) != LIKELIHOOD:
                settings = replace(settings, head=saved["head"])
        fit = {"learning_rate": learning_rate, "epochs": epochs, "batch_size": batch_size}
        options = _files(data, call_folder, SplitFiles) | fit | {"extra": extra, "seed": seed}
        options |= {"mirror": mirror, "dry_run": dry_run, "force": force}
        for name, kind, value in (("tuning", Tuning, tuning), ("keeping", Keeping, keeping)):
            method_settings = {"method": value} if isinstance(value, str) else value
            options[name] = as_settings(kind, method_settings, name)
        chosen = {"name": str(probe)} if isinstance(probe, str | Path) else probe or {}
        options["probe"] = as_settings(ProbeOrFiles, chosen, "probe")
        task = as_settings(OriginalTask, task, "original")
        command(**shared, model=settings, original=task, dose=dose, **options)
    return call_folder.results(dry_run)


def compare(
    *results: Results | str | Path,
    output_dir: str | Path | None = None,
    probes: Any = (),
    scoring: Sequence[str] = (),
    mix_rules: bool = False,
) -> Results:
    """Compare models, or settings, by their answers to the same items.

    Args:
        *results: Two or more results, or folders of them; or one with several models.
        output_dir: Folder of the comparison; by default a temporary one.
        probes: Probes to compare on; by default all that the results share.
        scoring: Scoring rules of zero-shot runs to compare by; by default the model's own score.
        mix_rules: Compare different rules, and ways of asking, with each other.

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.compare import compare as command

    if not results:
        raise UsageError("compare: give two or more results, or one with several models")
    folders = [_folder_of(r, "compare") for r in results]
    with _call_folder(output_dir, "compare", None) as (folder, _):
        command(folders, folder.path, _as_list(probes), scoring, mix_rules)
    return folder.results()


def forgetting(
    before: Results | str | Path,
    *after: Results | str | Path,
    output_dir: str | Path | None = None,
    probes: Any = (),
    num_choices: int | None = None,
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

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.forgetting import forgetting as command

    measured = [str(_folder_of(r, "forgetting")) for r in (before, *after)]
    with _call_folder(output_dir, "forgetting", None) as (folder, _):
        command(measured, folder.path, _as_list(probes), num_choices)
    return folder.results()


class _CallFolder:
    """A folder that a call makes, with what it was given in memory."""

    def __init__(self, output_dir: str | Path | None, protocol: str, printed: StringIO) -> None:
        self.printed = printed  # by the command
        self._is_temporary = output_dir is None
        folder = mkdtemp(prefix="probelight-") if output_dir is None else output_dir
        self.path = required_path(folder, "output_dir")
        self._protocol = protocol

    def results(self, dry_run: bool = False) -> Results:
        plan = tuple(self.printed.getvalue().splitlines()) if dry_run else ()
        results = Results(self.path, self._protocol, plan)
        if self._is_temporary:  # removed with the last reference
            finalize(results, shutil.rmtree, self.path, ignore_errors=True)
        return results

    def items(self, name: str, rows: Any, **settings: Any) -> Path:
        """Write items that were given in memory, in a folder named by what they are."""
        from probelight.probes.importers.objects import items_text
        from probelight.probes.source import load_items

        load_items(rows, **settings)  # errors name items, not lines of the file
        text = items_text(rows)
        path = self.path / "given" / sha256(text.encode()).hexdigest()[:12] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomic(path, text)
        return path

    def model(self, network: Any, tokenizer: Any) -> Path:
        """Write a model that was given in memory, in a folder named by its weights."""
        from probelight.models.in_memory import name_of
        from probelight.models.networks import model_fingerprint

        if any(type(module).__module__.startswith("peft.") for module in network.modules()):
            raise UsageError(
                f"models: {name_of(network)} has an adapter, and only that would be saved: its "
                "base would be read from the disk as it is there; score it with probelight.score, "
                "which saves nothing, or merge the adapter first"
            )
        path = self.path / "given" / model_fingerprint(network)[:12] / name_of(network)
        if not path.exists():
            with whole_folder(path) as fresh:
                network.save_pretrained(fresh)
                tokenizer.save_pretrained(fresh)
        return path


@contextmanager
def _call_folder(
    output_dir: str | Path | None, protocol: str, trainer: Trainer
) -> Iterator[tuple[_CallFolder, dict[str, Any]]]:
    """Yield a call's folder, and the arguments that all commands have; say nothing but a bar."""
    with quietly() as printed:
        folder = _CallFolder(output_dir, protocol, printed)
        settings = as_settings(TrainerSettings, trainer or {}, "trainer")
        # The command's own bars are for terminals; there is one for all of its runs.
        settings = replace(settings, progress_bar=False)
        yield folder, {"output_dir": str(folder.path), "trainer": settings}


def _folder_of(results: Any, argument: str) -> Path:
    return results.folder if isinstance(results, Results) else required_path(results, argument)


def _as_list(argument: Any) -> list[Any]:
    """Return one thing, or several, as a list; items in memory are one thing."""
    if argument is None:
        return []
    if isinstance(argument, str | Path | Mapping) or _is_items(argument):
        return [argument]
    if not isinstance(argument, Iterable):
        raise UsageError(f"probes: {argument!r} is not a name, a file or a list of dicts")
    elements = list(argument)
    return [elements] if _is_items(elements) else elements


def _is_items(argument: Any) -> bool:
    if hasattr(argument, "column_names") or hasattr(argument, "columns"):  # a Dataset, a DataFrame
        return True
    return isinstance(argument, Sequence) and bool(argument) and isinstance(argument[0], Mapping)


def _probe_name(entry: Any, folder: _CallFolder, number: int) -> str:
    """Return how the command names a probe; items in memory are written to a file."""
    if isinstance(entry, str | Path):
        return str(entry)
    if not _is_items(entry):
        kind = type(entry).__name__
        raise UsageError(f"probes: {kind} is not a name, a file or a list of dicts")
    return str(folder.items(f"items{number if number > 1 else ''}.jsonl", entry))


def _files(data: Mapping[str, Any] | None, folder: _CallFolder, kind: type[Any]) -> dict[str, Any]:
    """Return the user's own files as the argument `data`, none where there are none."""
    if not data:
        return {}
    if not isinstance(data, Mapping):
        raise UsageError("data: give the files by split, such as {'train': ..., 'dev': ...}")
    files = dict(data)
    item_settings = {name: files.get(name) for name in ("setup", "choices", "gold")}
    for split in ("path", "train", "dev", "test"):
        if _is_items(files.get(split)):
            name = f"items{'' if split == 'path' else f'-{split}'}.jsonl"
            files[split] = folder.items(name, files[split], **item_settings)
        if files.get(split) is not None:
            files[split] = str(required_path(files[split], f"data.{split}"))
    return {"data": as_settings(kind, files, "data")}


def _models(models: Any, folder: _CallFolder) -> dict[str, Any]:
    """Return the arguments `model` or `models` of a command."""
    from probelight.models.registry import AUTO, MODEL_TYPES, ModelSettings

    if isinstance(models, ModelSettings):
        return {"model": models}
    if isinstance(models, Mapping):
        settings = as_settings(ModelSettings, {"kind": AUTO, **models}, "model")
        is_baseline = settings.kind != AUTO and MODEL_TYPES[settings.kind].is_baseline
        if "name_or_path" not in models and not is_baseline:
            raise UsageError("model: name_or_path is missing")
        return {"model": settings}
    if isinstance(models, tuple) and len(models) == 2 and hasattr(models[0], "save_pretrained"):
        return {"model": ModelSettings(name_or_path=str(folder.model(*models)), kind=AUTO)}
    names = list(models) if isinstance(models, list | tuple | set) else [models]
    if not names or not all(isinstance(name, str | Path) for name in names):
        raise UsageError(
            "models: give names or folders, or one model in memory with its tokenizer, "
            "(model, tokenizer)"
        )
    return {"models": [str(name) for name in names]}


def _model_settings(chosen: Mapping[str, Any]) -> Any:
    from probelight.models.chosen_models import model_of

    if "model" in chosen:
        return chosen["model"]
    if len(chosen["models"]) != 1:
        raise UsageError("give one model; call inoculate once per model")
    return model_of(chosen["models"][0])
