"""A command called from Python: its folder, and the objects in memory that become its arguments."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import finalize

from probelight.io.atomic import whole_folder, write_text_atomic
from probelight.io.errors import ProbelightError, UsageError, nearest, quietly, required_path
from probelight.io.settings import as_settings
from probelight.probes.importers.items import ProbeLike, as_list, is_items
from probelight.reports.notebook import Results
from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from probelight.models.registry import ModelSettings

R = TypeVar("R", bound=Results)
# A name, a folder, settings, or a model of transformers and its tokenizer.
ModelLike: TypeAlias = (
    "str | Path | ModelSettings | Mapping[str, Any] | "
    "tuple[PreTrainedModel, PreTrainedTokenizerBase]"
)


def model_arguments(
    models: ModelLike | Sequence[ModelLike], settings_of: Callable[[Any, Any], ModelSettings]
) -> dict[str, Any]:
    """Return the argument `model` or `models` of a command.

    `settings_of` makes the settings of a model in memory from it and its tokenizer.
    """
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
        return {"model": settings_of(*models)}
    names = list(models) if isinstance(models, list | tuple | set) else [models]
    if not names or not all(isinstance(name, str | Path) for name in names):
        raise UsageError(
            "models: give names or folders, or one model in memory with its tokenizer, "
            "(model, tokenizer)"
        )
    return {"models": [str(name) for name in names]}


def _saved_settings(network: Any, tokenizer: Any, folder: Path) -> ModelSettings:
    """Write a model that is trained from, in a folder named by its weights: training changes it."""
    from probelight.models.loading import name_of
    from probelight.models.networks import model_fingerprint
    from probelight.models.registry import AUTO, ModelSettings

    if any(type(module).__module__.startswith("peft.") for module in network.modules()):
        raise UsageError(
            f"models: {name_of(network)} has an adapter, and only that would be saved: its base "
            "would be read from the disk as it is there; score it with probelight.score, which "
            "saves nothing, or merge the adapter first"
        )
    path = folder / "given" / model_fingerprint(network)[:12] / name_of(network)
    if not path.exists():
        with whole_folder(path) as fresh:
            network.save_pretrained(fresh)
            tokenizer.save_pretrained(fresh)
    return ModelSettings(name_or_path=str(path), kind=AUTO)


def probe_names(probes: ProbeLike | Sequence[ProbeLike] | None, folder: Path) -> list[str]:
    """Return how a command names probes; items in memory are written to a file in `folder`."""
    names: list[str] = []
    num_written = 0
    for probe in as_list(probes):
        if is_items(probe):
            num_written += 1
            number = num_written if num_written > 1 else ""
            names.append(str(_items_file(f"items{number}.jsonl", probe, folder)))
        elif isinstance(probe, str | Path):
            names.append(str(probe))
        else:
            kind = type(probe).__name__
            raise UsageError(f"probes: {kind} is not a name, a file or a list of dicts")
    return names


def file_arguments(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the user's own files as a command's argument `data`; items are written to files."""
    if not isinstance(data, Mapping):
        raise UsageError("data: give the files by split, such as {'train': ..., 'dev': ...}")
    files = dict(data)
    item_settings = {name: files.get(name) for name in ("setup", "choices", "gold")}
    for split in ("path", "train", "dev", "test"):
        if is_items(files.get(split)):
            name = f"items{'' if split == 'path' else f'-{split}'}.jsonl"
            files[split] = _items_file(name, files[split], folder, **item_settings)
        if files.get(split) is not None:
            files[split] = str(required_path(files[split], f"data.{split}"))
    return files


def _items_file(name: str, rows: Any, folder: Path, **settings: Any) -> Path:
    """Write items that were given in memory, in a folder named by what they are."""
    from probelight.probes.importers.items import items_text
    from probelight.probes.source import load_items

    load_items(rows, **settings)  # errors name items, not lines of the file
    text = items_text(rows)
    path = folder / "given" / sha256(text.encode()).hexdigest()[:12] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomic(path, text)
    return path


def trainer_of(trainer: Any, device: str | None, batch_tokens: int | None) -> TrainerSettings:
    """Return the settings of a trainer with a device and a size of batches given by themselves."""
    with quietly():
        settings: TrainerSettings = as_settings(TrainerSettings, trainer or {}, "trainer")
        default = TrainerSettings()
        for name, value in (("accelerator", device), ("max_eval_tokens", batch_tokens)):
            if value is None:
                continue
            if getattr(settings, name) not in (getattr(default, name), value):
                short = "device" if name == "accelerator" else "batch_tokens"
                raise UsageError(f"{short}= and trainer's {name} differ; give one of the two")
            changes: dict[str, Any] = {name: value}
            settings = replace(settings, **changes)
        return settings


class Call:
    """One call of a command: its folder, and the arguments that it gets.

    `held_models` lets go of models in memory when the call is over.
    """

    def __init__(
        self,
        command: Callable[..., Any],
        output_dir: str | Path | None,
        held_models: ExitStack,
    ) -> None:
        self._command = command
        self._held_models = held_models
        self._is_held = False
        self.known_names = {*inspect.signature(command).parameters}
        self._arguments: dict[str, Any] = {}
        self._is_temporary = output_dir is None
        folder = mkdtemp(prefix="probelight-") if output_dir is None else output_dir
        self.folder = required_path(folder, "output_dir")
        if "output_dir" in self.known_names:
            self._arguments["output_dir"] = str(self.folder)

    def take(self, **arguments: Any) -> None:
        """Add arguments; None stands for the command's default."""
        for name in arguments:
            if name not in self.known_names:
                near = nearest(name, [*self.known_names])
                raise UsageError(f"{self._command.__name__}: there is no option {name!r}{near}")
        self._arguments |= {name: v for name, v in arguments.items() if v is not None}

    def take_models(self, models: Any, *, are_trained: bool = False) -> None:
        """Add models; one in memory is scored where it is, but saved where it is trained from."""

        def settings_of(network: Any, tokenizer: Any) -> ModelSettings:
            if are_trained:
                return _saved_settings(network, tokenizer, self.folder)
            return self._held(network, tokenizer)

        self._arguments |= model_arguments(models, settings_of)

    def model_name(self, model: ModelLike) -> str:
        """Return how a command names a model; one in memory has a name as long as it is called."""
        if isinstance(model, tuple) and len(model) == 2 and hasattr(model[0], "save_pretrained"):
            return self._held(*model).name_or_path
        if not isinstance(model, str | Path):
            raise UsageError(
                "models: give a name, a folder, or a model in memory with its tokenizer, "
                f"(model, tokenizer), not {type(model).__name__}"
            )
        return str(model)

    def _held(self, network: Any, tokenizer: Any) -> ModelSettings:
        from probelight.models.in_memory import held

        self._is_held = True
        return self._held_models.enter_context(held(network, tokenizer))

    def take_probes(self, probes: Any, data: Mapping[str, Any] | None) -> None:
        """Add probes, or the user's own files."""
        if probes is not None:
            self._arguments["probes"] = probe_names(probes, self.folder)
        if data:
            self._arguments["data"] = file_arguments(data, self.folder)

    def take_original(self, model: ModelLike, original: Any) -> None:
        """Add one model and its original task; one that answers questions begins as it is."""
        from probelight.models.checkpoint_files import (
            LIKELIHOOD,
            CheckpointRef,
            head_settings,
            local_folder,
        )
        from probelight.models.chosen_models import model_of
        from probelight.models.pair_choice import answers_questions

        self.take_models(model, are_trained=True)
        arguments = self._arguments
        if len(names := arguments.get("models", [""])) != 1:
            raise UsageError("give one model; call inoculate once per model")
        settings: ModelSettings = arguments.get("model") or model_of(*names)
        if not original and answers_questions(settings.checkpoint):
            arguments["original"] = {"checkpoint": local_folder(settings.checkpoint)}
            for name in {"model", "models"} & arguments.keys():
                del arguments[name]
            return
        if not original:
            raise UsageError(
                "original: give the name of the original task's probe, or its settings"
            )
        if isinstance(original, str | Path):
            original = {"name": Path(original).stem, "sets": [str(original)]}
        if not isinstance(original, Mapping):
            raise UsageError(f"original {original!r}: give the name of a probe, or settings")
        if "checkpoint" not in original and answers_questions(settings.checkpoint):
            folder = local_folder(settings.checkpoint)
            original = {**original, "checkpoint": folder}
            saved = head_settings(CheckpointRef(folder)) or {}
            if saved.get("head", LIKELIHOOD) != LIKELIHOOD:
                settings = replace(settings, head=saved["head"])
        self._arguments |= {"model": settings, "original": original}
        self._arguments.pop("models", None)

    def run(self) -> Any:
        """Call the command, and return what it returns."""
        if self._is_held and self._runs_on_ray():
            raise UsageError(
                "engine: runs on Ray are in processes of their own, which cannot see a model in "
                "memory; save it, and give its folder"
            )
        has_results = False
        try:
            outcome = self._command(**self._arguments)
            has_results = "output_dir" in self.known_names
            return outcome
        finally:
            if self._is_temporary and not has_results:
                shutil.rmtree(self.folder, ignore_errors=True)

    def _runs_on_ray(self) -> bool:
        engine = self._arguments.get("engine", {})
        kind = engine.get("kind") if isinstance(engine, Mapping) else getattr(engine, "kind", "")
        return kind == "ray"

    def results(self, protocol: str, *, is_made: bool = False) -> Results:
        """Call the command, unless that is done, and return what is in its folder."""
        if not is_made:
            self.run()
        return self.removed_with(Results(self.folder, protocol))

    def removed_with(self, results: R) -> R:
        """Return results; with the last reference to them a temporary folder is removed."""
        if self._is_temporary:
            finalize(results, shutil.rmtree, self.folder, ignore_errors=True)
        return results


@contextmanager
def called(
    command: Callable[..., Any],
    output_dir: str | Path | None,
    trainer: TrainerSettings | Mapping[str, Any] | None,
) -> Iterator[Call]:
    """Yield a call of a command, which says nothing but a bar."""
    with quietly(), ExitStack() as held_models:
        call = Call(command, output_dir, held_models)
        if "trainer" in call.known_names:
            settings = as_settings(TrainerSettings, trainer or {}, "trainer")
            # The command's own bars are for terminals; there is one for all of its runs.
            call.take(trainer=replace(settings, progress_bar=False))
        try:
            yield call
        except SystemExit as stop:  # of runs on Ray, which have said why
            raise ProbelightError(
                f"not all runs of {call.folder} are finished (exit code {stop.code}); error.txt in "
                "the folder of a run says why it failed, and the same call goes on"
            ) from stop
