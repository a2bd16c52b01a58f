"""Find the checkpoint that a name means, and check its files before anything is loaded."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from safetensors import safe_open

from probelight.encoding.chat import MAX_TEMPLATE
from probelight.io.atomic import write_text_atomic
from probelight.io.errors import UsageError
from probelight.io.files import user_path
from probelight.io.package import ASSETS, BUNDLED_MODEL, BUNDLED_MODELS
from probelight.io.ranges import MAX_CHOICES, MAX_LENGTH, WeightsDtype
from probelight.models import gguf
from probelight.models.checkpoint_errors import PretrainedError, cause_of, one_error, similar_names

T = TypeVar("T")
CONFIG = "config.json"
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"  # as peft has them
TRAINED_ON = "trained_on.json"  # of an adapter: what the model without it answered
HEAD_SETTINGS = "choice_head.json"  # of MC-QA, in its encoder's folder
HEAD_KINDS = ("mlp", "linear", "pooler", "multiple_choice")
LIKELIHOOD = "likelihood"  # in the place of a head, where the model's own is all there is
HEAD_FORMAT = 1
ORIGINAL_TASK = "original_task"  # in the settings of a question model: how it was trained
DEFAULT_MAX_LENGTH = 256  # of texts, where nothing else is asked for
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.*", "*.model", "*.bpe")
_WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")  # the first that is there is loaded
_OTHER_WEIGHTS = {".h5", ".msgpack", ".onnx", ".gguf"}
_MOST_CONFIG_BYTES = 16 << 20
# By name or ending; the largest known vocabularies have 35 MB, the longest chat templates 50 kB.
_MOST_TOKENIZER_BYTES = {"tokenizer_config.json": _MOST_CONFIG_BYTES, ".jinja": MAX_TEMPLATE}
# Of a baseline over word vectors: its settings, and the version of their form.
WORD_SETTINGS, WORD_FORMAT = "word_module.json", 1

# Larger ones are no encoder's; without a bound the modules of a million layers are made one by one.
_COUNTS = {
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layers", "n_layer"), 1000),
    **dict.fromkeys(("num_hidden_groups", "inner_group_num", "num_attention_heads"), 1000),
    **dict.fromkeys(("n_heads", "n_head"), 1000),
    **dict.fromkeys(("hidden_size", "intermediate_size", "embedding_size", "d_model"), 1 << 20),
    **dict.fromkeys(("dim", "hidden_dim", "n_embd", "num_labels"), 1 << 20),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "vocab_size"), 1 << 26),
}


# Of a model: peft's wrapper around it, which is no part of it, as it would hold itself.
ADAPTER_WRAPPER = "_probelight_adapter"
# Of an adapter's settings: where things are, and who made them, which change no answer.
_NOT_OF_ANSWERS = {
    *("base_model_name_or_path", "revision", "inference_mode", "peft_version", "auto_mapping"),
    "task_type",
}


# Models in memory and their tokenizers, by the name that stands for each in a `CheckpointRef`.
IN_MEMORY: dict[str, tuple[Any, Any]] = {}


@dataclass(frozen=True)
class CheckpointRef:
    """Which weights: a model with a revision and an adapter, or its architecture with fresh ones.

    Attributes:
        name: "bookshelf-lm" or another bundled model, a folder, a name on the Hub, or a key of
            `IN_MEMORY`; of a model that has other adapters already, `MODEL+ADAPTER`.
        revision: Branch, tag or commit on the Hub.
        adapter: Folder of an adapter to put into it, besides one that a folder itself may have.
        random_weights: The same architecture with fresh weights, as a control of it.
        seed: Of fresh weights, and of the fresh head or adapter that is put on them.
    """

    name: str
    revision: str | None = None
    adapter: str | None = None
    random_weights: bool = False
    seed: int = 0

    @classmethod
    def parse(
        cls, text: str | Path, *, reads_revision: bool = False, **settings: Any
    ) -> CheckpointRef:
        """Read `MODEL+ADAPTER`, or `MODEL@REVISION+ADAPTER` with `reads_revision`.

        A path that is there is a model, whatever it is called. `settings` are further attributes.
        """
        name, _, adapter = (text := str(text)).rpartition("+")
        if not (name and adapter) or os.path.lexists(user_path(text)):
            name, adapter = text, ""
        if reads_revision and not (name.endswith((".yaml", ".yml")) or user_path(name).exists()):
            base, at, revision = name.rpartition("@")
            if at:
                name, settings = base, {**settings, "revision": revision}
        return cls(name, adapter=adapter or None, **settings)

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"{self.name}{revision}" + (f"+{self.adapter}" if self.adapter else "")

    @property
    def in_memory(self) -> tuple[Any, Any] | None:
        """The model and its tokenizer, where they are in memory."""
        return IN_MEMORY.get(self.name)

    @property
    def folder(self) -> Path:
        """The adapter's folder, or else the model's; it need not be there."""
        return model_folder(self.adapter or self.name)


def read_settings(path: Path) -> dict[str, Any]:
    """Return the object in a small JSON file of a model's folder; else raise PretrainedError."""
    if not path.is_file():
        raise PretrainedError(f"{path} cannot be read: it is not a regular file")
    if (size := path.stat().st_size) > _MOST_CONFIG_BYTES:
        raise PretrainedError(
            f"{path} cannot be read: {size:,} bytes are too many for a settings file"
        )
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise PretrainedError(f"{path} cannot be read: {cause_of(error)}") from error
    if not isinstance(settings, dict):
        raise PretrainedError(
            f"{path} cannot be read: it has a {type(settings).__name__} instead of an object"
        )
    return settings


def check_input_sizes(path: Path, settings: Mapping[str, Any]) -> None:
    """Raise PretrainedError unless `max_length` and `num_choices` are possible numbers."""
    for name, least, most in (("max_length", 1, MAX_LENGTH), ("num_choices", 2, MAX_CHOICES)):
        value = settings.get(name)
        if value is not None and not (type(value) is int and least <= value <= most):
            raise PretrainedError(
                f"{path}: {name} is {value!r}, not a whole number from {least} to {most:,}"
            )


def agree(setting: str, given_value: T | None, saved_value: T | None, source: object) -> T | None:
    """Return what is asked for, or else what a model was saved with; refuse two that differ."""
    if given_value is not None and saved_value is not None and given_value != saved_value:
        raise PretrainedError(
            f"{source} was saved with {setting} {saved_value!r}, so {setting}={given_value!r} does "
            "not fit"
        )
    return saved_value if given_value is None else given_value


def head_settings(ref: CheckpointRef) -> dict[str, Any] | None:
    """Return the settings of an MC-QA head, its `head` among them; None for another checkpoint."""
    if not is_sentence_choice_folder(ref):
        return None
    path = ref.folder / HEAD_SETTINGS
    settings = read_settings(path)
    form, head = settings.get("format"), settings.get("head")
    if form != HEAD_FORMAT or head not in (*HEAD_KINDS, LIKELIHOOD):
        raise PretrainedError(f"{path}: unknown format {form!r} or head {head!r}")
    check_input_sizes(path, settings)
    return settings


def choice_settings_path(folder: Path) -> Path:
    """Return the file with the settings of a question model that was trained here."""
    path = folder / WORD_SETTINGS
    return path if path.is_file() else folder / HEAD_SETTINGS


def original_task_of(ref: CheckpointRef) -> Any:
    """Return how a question model was trained, as its folder says; None where it does not."""
    path = choice_settings_path(ref.folder)
    return read_settings(path).get(ORIGINAL_TASK) if path.is_file() else None


def write_original_task(folder: Path, task: Mapping[str, Any] | None) -> None:
    """Add how a question model was trained to the settings in its folder; None adds nothing."""
    if task is not None:
        path = choice_settings_path(folder)
        settings = {**read_settings(path), ORIGINAL_TASK: task}
        write_text_atomic(path, json.dumps(settings, indent=2) + "\n")


def scoring_of(ref: CheckpointRef, scoring: str, setup: str) -> str:
    """Return how the choices of a causal or encoder-decoder model get their scores.

    "auto" is what the folder was trained with for the setup, or else the mean over tokens for
    questions, as a sum would prefer short answers.
    """
    saved = head_settings(ref) or {}
    own_scoring = saved.get("scoring") if saved.get("setup") == setup else None
    given_scoring = None if scoring == "auto" else scoring
    agreed_scoring = agree("scoring", given_scoring, own_scoring, ref)
    return agreed_scoring or ("mean_token" if setup == "mc_qa" else "sum")


def length_of(ref: CheckpointRef, max_length: int | None) -> int:
    """Return the longest text in tokens of a language model: the default is its folder's own."""
    saved = (head_settings(ref) or {}).get("max_length")
    given_length = None if max_length == DEFAULT_MAX_LENGTH else max_length
    return given_length or saved or DEFAULT_MAX_LENGTH


def is_sentence_choice_folder(ref: CheckpointRef) -> bool:
    """Return whether this is a folder that `SentenceChoice.save_pretrained` wrote."""
    return (ref.folder / HEAD_SETTINGS).is_file()


def names_word_head(family: str, classes: Sequence[str]) -> bool:
    """Return whether a model was saved from a class that fills masks, of a family of encoders."""
    ends = ["ForMaskedLM", "LMHeadModel"]
    if family != "electra":  # which is pre-trained to tell which words were replaced
        ends.append("ForPreTraining")
    return any(name.endswith(tuple(ends)) for name in classes)


def check_config(folder: Path) -> dict[str, Any]:
    """Return the settings in a folder's config.json; refuse sizes that no model can have."""
    path = folder / CONFIG
    if not os.path.lexists(path):
        instead = "it is not a model's folder; give the one that save_pretrained wrote"
        if (folder / WORD_SETTINGS).exists():
            instead = "it has a baseline over word vectors, which this command cannot use"
        elif (best := folder / "checkpoints" / "best").is_dir():
            instead = f"it is a run's folder; give its model, {best}"
        raise PretrainedError(f"folder {folder} has no {CONFIG}: {instead}")
    config = read_settings(path)
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise PretrainedError(f"{path}: model_type is {kind!r}, not the name of a model type")
    for name, most in _COUNTS.items():
        value = config.get(name, 1)
        if value is not None and not (type(value) is int and 0 < value <= most):
            raise PretrainedError(
                f"{path}: {name} is {value!r}, not a whole number from 1 to {most:,}"
            )
    for name in ("attn_implementation", "_attn_implementation"):
        if "/" in str(config.get(name, "")):  # a kernel of somebody's repository
            raise PretrainedError(
                f"{path}: {name} {config[name]!r} is code, which Probelight never runs"
            )
    return config


def check_tokenizer_files(folder: Path) -> None:
    """Raise PretrainedError for a folder without a tokenizer: it would be an empty vocabulary."""
    paths = tokenizer_files(folder)
    for path in sorted({*paths, *folder.glob("*.json"), *folder.rglob("*.jinja")}):
        if not path.is_file():  # a pipe would be waited for
            raise PretrainedError(f"{path} cannot be read by a tokenizer: it is not a regular file")
        most = _MOST_TOKENIZER_BYTES.get(path.name, _MOST_TOKENIZER_BYTES.get(path.suffix, 1 << 30))
        if (size := path.stat().st_size) > most:
            raise PretrainedError(
                f"{path} cannot be read by a tokenizer: it has {size:,} bytes, more than {most:,}"
            )
    if not paths:
        raise PretrainedError(
            f"folder {folder} has no tokenizer (tokenizer.json, vocab.txt or similar); copy the "
            "tokenizer files of the model that it was trained from into it"
        )


def tokenizer_files(folder: Path) -> set[Path]:
    """Return the files of a tokenizer in a folder; none where it has none."""
    return {path for name in _TOKENIZER_FILES for path in folder.glob(name)}


def check_weights(folder: Path, weight_names: Set[str] = frozenset()) -> int:
    """Return the bytes of a folder's weights, without loading them; refuse missing files.

    Those of the `weight_names` that a file of safetensors has must be floating-point numbers.
    """
    for path in (files := _weight_files(folder)):
        if not path.is_file():
            raise PretrainedError(f"folder {folder}: its weights {path.name} are missing")
        if path.suffix == ".safetensors":
            with one_error(folder, "weights"), safe_open(path, framework="np") as tensors:
                for name in sorted(weight_names & {*tensors.keys()}):
                    dtype = tensors.get_slice(name).get_dtype()
                    refuse_integers(folder, name, dtype)
                    if re.match(r"F[468]", dtype):
                        raise PretrainedError(
                            f"{folder}: the weight {name} has {dtype} numbers, but {CONFIG} has no "
                            "quantization_config that says how they are scaled; copy it from where "
                            "the weights are from, or give the model that is not quantised"
                        )
    return sum(path.stat().st_size for path in files)


def refuse_integers(source: str | Path, name: str, dtype: str) -> None:
    """Raise PretrainedError for a weight that is no floating-point number: it would be cast."""
    if "f" not in dtype.lower():  # F32, BF16, torch.float16; I64, C64, BOOL, torch.complex64
        raise PretrainedError(
            f"{source}: the weight {name} has {dtype} numbers, not floating-point ones; save it as "
            "float32, or give the model that is not quantised"
        )


def trained_dtype(dtype: WeightsDtype) -> WeightsDtype:
    """Return the precision of weights that are trained; refuse one in which they would not move."""
    if dtype == "float16":
        raise UsageError(
            "dtype float16: AdamW overflows with float16 weights; train in float32, and to be "
            "faster add --trainer.precision 16-mixed or bf16-mixed"
        )
    return "float32" if dtype == "auto" else dtype


def _weight_files(folder: Path) -> list[Path]:
    for name in _WEIGHT_FILES:
        if os.path.lexists(folder / name):
            return [folder / name]
        index = folder / f"{name}.index.json"
        if os.path.lexists(index):
            break
    else:
        unreadable = [p.name for p in folder.iterdir() if p.suffix in _OTHER_WEIGHTS]
        hint = f"; {unreadable[0]} cannot be read" if unreadable else ""
        raise PretrainedError(
            f"folder {folder} has no weights: {_WEIGHT_FILES[0]} is missing{hint}"
        )
    settings = read_settings(index)
    names, suffix = settings.get("weight_map"), Path(name).suffix
    if not (isinstance(names, dict) and names and isinstance(settings.get("metadata"), dict)):
        raise PretrainedError(f"{index} has no metadata, or no weight_map of weights to files")
    shards = list(dict.fromkeys(names.values()))
    for shard in shards:
        if not isinstance(shard, str) or Path(shard).name != shard or Path(shard).suffix != suffix:
            raise PretrainedError(
                f"{index} names {shard!r}, which is not a {suffix} file next to it"
            )
    return [index.with_name(shard) for shard in shards]


def check_hub(ref: CheckpointRef) -> None:
    """Raise PretrainedError where the Hub is not reached: its client would try six times."""
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url, try_to_load_from_cache

    name, revision = ref.name, ref.revision
    if try_to_load_from_cache(name, CONFIG, revision=revision):
        return
    reason, cause = "HF_HUB_OFFLINE is set", None
    if not constants.HF_HUB_OFFLINE:
        try:
            get_hf_file_metadata(hf_hub_url(name, CONFIG, revision=revision))
            return
        except Exception as error:  # of an HTTP client that is not ours to name
            if not {"ConnectError", "ConnectTimeout"} & {e.__name__ for e in type(error).__mro__}:
                return
            reason, cause = cause_of(error), error
    of_revision = f" --revision {revision}" if revision else ""
    raise PretrainedError(
        f"there is no folder {str(ref)!r}{similar_names(name)}, and the Hub cannot be reached at "
        f"{constants.ENDPOINT} to look there ({reason}); where there is a network, run "
        f"`hf download {name}{of_revision} --local-dir FOLDER` and copy FOLDER here, or use "
        f"{BUNDLED_MODEL}, which is bundled"
    ) from cause


def model_folder(name: str | Path) -> Path:
    """Return the folder of a bundled model or of a GGUF file's, or else the path, if any."""
    if str(name) in BUNDLED_MODELS:
        return ASSETS / name
    file = gguf.file_of(name)
    return user_path(name) if file is None else gguf.folder_of(file)


def local_folder(ref: CheckpointRef) -> str:
    """Return the folder of a model; that of the Hub is downloaded."""
    if ref.folder.is_dir():
        return str(ref.folder)
    from huggingface_hub import snapshot_download

    patterns = ["*.json", "*.txt", "*.model", "*.safetensors"]
    return str(snapshot_download(ref.name, revision=ref.revision, allow_patterns=patterns))


def without_adapter(ref: CheckpointRef) -> tuple[CheckpointRef, Path | None]:
    """Return the model below the last adapter, and the adapter's folder.

    The adapter is the one that is named, or that the model's folder holds; None where none is.

    Raises:
        PretrainedError: If it does not say what its model is, or is not there.
    """
    folder = ref.folder
    has_adapter = (folder / ADAPTER).is_file()
    if not ref.adapter and ((folder / CONFIG).exists() or not has_adapter):
        return ref, None
    if not has_adapter:
        raise PretrainedError(
            f"{ref}: the adapter's folder {folder} does not exist, or has no {ADAPTER}"
        )
    settings = adapter_settings(folder)
    if ref.adapter:
        base, revision = ref.name, ref.revision
    elif ref.revision:
        raise PretrainedError(
            f"folder {folder}: it is not on the Hub, so it has no revision {ref.revision!r}; leave "
            "out the revision"
        )
    else:
        base, revision = settings["base"], settings["revision"]
    below = CheckpointRef.parse(
        base, revision=revision, random_weights=ref.random_weights, seed=ref.seed
    )
    is_missing = Path(below.name).is_absolute() and not Path(below.name).is_dir()
    if not ref.adapter and (is_missing or not base):
        problem = f"the model {base}, which does not exist" if base else "no model"
        raise PretrainedError(
            f"{folder / ADAPTER} names {problem}; give MODEL+{folder}, or correct its "
            "base_model_name_or_path"
        )
    return below, folder


def base_of(ref: CheckpointRef) -> tuple[CheckpointRef, list[Path]]:
    """Return the model below all adapters, and their folders, the lowest first."""
    adapters: list[Path] = []
    while True:
        ref, folder = without_adapter(ref)
        if folder is None:
            return ref, adapters[::-1]
        if folder in adapters:
            raise PretrainedError(f"{folder / ADAPTER} names itself as its model")
        adapters.append(folder)


def check_folder(ref: CheckpointRef) -> bool:
    """Check a model's files without reading weights; return False where it is on the Hub."""
    base, adapters = base_of(ref)
    folder = Path(resolve(base.name))
    if not folder.is_dir():
        return False
    check_config(folder)
    if not any(map(tokenizer_files, adapters)):
        check_tokenizer_files(folder)
    if not ref.random_weights:
        check_weights(folder)
    return True


def adapter_sum(settings: Mapping[str, Any]) -> str:
    """Return the sha256 of what an adapter's settings say of its answers, as hex."""
    options = {name: value for name, value in settings.items() if name not in _NOT_OF_ANSWERS}
    modules = options.get("target_modules")
    options["target_modules"] = sorted(modules) if isinstance(modules, list | set) else modules
    return hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode()).hexdigest()


def adapter_settings(folder: Path) -> dict[str, Any]:
    """Return the `kind` of the adapter in a folder, its `base` and that one's `revision`."""
    path = folder / ADAPTER
    settings = read_settings(path)
    summary = {
        "kind": settings.get("peft_type"),
        "base": settings.get("base_model_name_or_path") or "",
        "revision": settings.get("revision"),
    }
    for name, value in summary.items():
        if not isinstance(value, str) and not (name == "revision" and value is None):
            raise PretrainedError(f"{path}: {name} is {value!r}, not text; this is not an adapter")
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise PretrainedError(f"folder {folder}: the adapter has no weights ({ADAPTER_WEIGHTS})")
    with one_error(folder, "adapter"), safe_open(folder / ADAPTER_WEIGHTS, framework="np"):
        pass
    return summary


def resolve(name_or_path: str) -> str:
    """Return the folder, or the name on the Hub, that `name_or_path` means.

    Raises:
        PretrainedError: If it can only be a folder and is not there.
    """
    with one_error(name_or_path, "folder"):  # such as a path through a folder that is closed
        path = model_folder(name_or_path)
        if path.is_dir():
            return str(path)
        is_there = os.path.lexists(path)
    if path.parent == ASSETS and not is_there:
        raise PretrainedError(f"the bundled model is missing: there is no folder {path}")
    if is_there:
        kind = "a file" if path.is_file() else "neither a folder nor a file"
        raise PretrainedError(f"{path} is {kind}; give the folder with its config.json and weights")
    if not re.fullmatch(r"[\w][\w.-]*(/[\w][\w.-]*)?", name_or_path):
        raise PretrainedError(f"there is no folder {name_or_path}, and it is not a Hub name either")
    return name_or_path


def hub_options(revision: str | None) -> dict[str, Any]:
    """Return the options of every `from_pretrained`."""
    # Without it a terminal is asked whether somebody's code may run.
    return {"trust_remote_code": False} | ({} if revision is None else {"revision": revision})


def is_word_folder(folder: str | Path) -> bool:
    """Return whether this is a folder that `WordModule.save_pretrained` wrote."""
    return (model_folder(folder) / WORD_SETTINGS).is_file()


def word_settings(folder: str | Path) -> dict[str, Any]:
    """Return the settings in a folder that `WordModule.save_pretrained` wrote, with its `kind`."""
    path = model_folder(folder) / WORD_SETTINGS
    settings = read_settings(path)
    settings.pop(ORIGINAL_TASK, None)
    if (form := settings.pop("format", None)) != WORD_FORMAT:
        raise PretrainedError(f"{path}: unknown format {form!r}")
    check_input_sizes(path, settings)
    return settings
