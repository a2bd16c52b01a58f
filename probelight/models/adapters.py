"""Adapters: few weights next to those of a model, which alone are trained (LoRA, Hu et al. 2021).

They are made, saved and read by peft, which is imported when the first is needed. It puts them into
the model in place, so that all else goes on with the model as it is.
"""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import make_dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from probelight.io.atomic import write_text_atomic
from probelight.io.bounded import Bounded, BoundedError
from probelight.io.errors import UsageError, nearest
from probelight.io.package import BUNDLED_MODELS
from probelight.io.ranges import Within
from probelight.io.settings import STRICT, typed
from probelight.models.checkpoint_errors import PretrainedError, one_error
from probelight.models.checkpoint_files import (
    ADAPTER,
    ADAPTER_WEIGHTS,
    ADAPTER_WRAPPER,
    TRAINED_ON,
    CheckpointRef,
    adapter_settings,
    read_settings,
)
from probelight.models.tuning import LORA, MAX_ALPHA, MAX_RANK, Tuning

if TYPE_CHECKING:
    from torch import Tensor, nn

_PREFIX = "base_model.model."  # of the model's weights in the wrapper
_matches = Bounded("probelight.io.bounded:matches")


def wrapper_of(model: nn.Module) -> Any:
    """Return peft's wrapper around a model with an adapter; None around one without."""
    return vars(model).get(ADAPTER_WRAPPER)


def attach_fresh(model: nn.Module, tuning: Tuning, base: CheckpointRef) -> None:
    """Put a new adapter into the model that was read from `base`, drawn from its seed.

    Raises:
        UsageError: If peft has no such adapter, or none for these layers.
    """
    config = _adapter_config(tuning)
    names, module_paths = tuning.target_modules, [f".{name}" for name, _ in model.named_modules()]
    for name in names if names != ["all-linear"] else ():
        if not any(path.endswith(f".{name}") for path in module_paths):
            layers = _layer_names(model)
            raise UsageError(
                f"tuning.target_modules: {type(model).__name__} has no layer {name!r}"
                f"{nearest(name, layers.split(', '))}; its layers are {layers}"
            )
    try:
        _attach(model, config, base, "tuning.options")
        replace(config)  # as it will be read
    except (ValueError, TypeError, NotImplementedError) as error:
        raise UsageError(
            f"tuning of {type(model).__name__}: {_first_line(error)}; choose the layers for the "
            f"adapter with tuning.target_modules from {_layer_names(model)}"
        ) from error


def attach_saved(model: nn.Module, folder: Path, base: CheckpointRef, num_tokens: int = 0) -> None:
    """Put the adapter in a folder into its model, which was read from `base`.

    A model with fewer rows than the adapter's tokenizer has tokens, `num_tokens`, gets more, as
    peft's `AutoPeftModel` adds them; the adapter must hold their weights.

    Raises:
        PretrainedError: If it is damaged, of a kind that is not read here, or of another model.
    """
    from peft import PeftConfig, set_peft_model_state_dict
    from safetensors.torch import load_file

    from probelight.models.added_tokens import add_rows, is_copy, saved_rows
    from probelight.models.networks import check_numbers

    settings, name = adapter_settings(folder), _text_of(base)
    is_outline = next(model.parameters()).is_meta
    with one_error(folder, "adapter"):
        tensors = {} if is_outline else load_file(folder / ADAPTER_WEIGHTS)
    check_numbers(folder, tensors.items())
    _check_saved_settings(folder / ADAPTER, model)
    try:
        config = PeftConfig.from_pretrained(str(folder))
        _refuse_other_kinds(config, str(folder))
        config.inference_mode = False  # so that peft says which weights are the adapter's
        num_added = add_rows(model, num_tokens)
        weights_by_name = _renamed_weights(tensors, model)
        if num_added:
            weights_by_name = saved_rows(model, num_added, weights_by_name, folder, _PREFIX)
        if not is_outline:
            _check_shapes(model, config, weights_by_name)
        _attach(model, config, replace(base, seed=0), str(folder))
        wrapper = wrapper_of(model)
        if is_outline:
            return
        _check_base(folder, settings["base"], base, wrapper.trained_on)
        loaded: Any = set_peft_model_state_dict(wrapper, weights_by_name)
        object.__setattr__(wrapper, "adds_tokens", num_added > 0)
    except (PretrainedError, UsageError):
        raise
    except Exception as error:
        raise PretrainedError(
            f"{folder}: the adapter does not fit {name} as {type(model).__name__}: "
            f"{_first_line(error)}"
        ) from error
    weights = {name for name, p in wrapper.named_parameters() if p.requires_grad}
    copies = {n for n in loaded.unexpected_keys if num_added and is_copy(n, weights_by_name)}
    problems = {
        "missing": sorted(weights.intersection(loaded.missing_keys)),
        "for other layers": sorted({*loaded.unexpected_keys} - copies),
    }
    for problem, names in problems.items():
        if names:
            raise PretrainedError(
                f"{folder}: the adapter does not fit {name} as {type(model).__name__}: "
                f"{len(names)} of its weights are {problem} ({names[0].removeprefix(_PREFIX)}"
                f"{', ...' if len(names) > 1 else ''}); it was trained with {settings['base']}"
            )


def merge(model: nn.Module) -> None:
    """Add an adapter to the weights of its model, which has none then."""
    import torch

    if (wrapper := wrapper_of(model)) is None:
        return
    is_outline = next(model.parameters()).is_meta
    with torch.no_grad():
        wrapper.unload() if is_outline else wrapper.merge_and_unload()
    delattr(model, ADAPTER_WRAPPER)
    model.requires_grad_(True)


def detach(model: nn.Module) -> None:
    """Take an adapter out of its model, whose weights are what they were before it was put in."""
    if (wrapper := wrapper_of(model)) is not None:
        wrapper.unload()
        delattr(model, ADAPTER_WRAPPER)


def train_adapter(model: nn.Module, head: nn.Module, keeps_head: bool) -> None:
    """Let nothing be trained but the adapter of a model, if it has one, and its head.

    With `keeps_head` the head, which was trained before, stays as it is too.
    """
    if (wrapper := wrapper_of(model)) is None:
        return
    model.requires_grad_(False)
    head.requires_grad_(not keeps_head)
    for name in wrapper.adapter_weights:
        model.get_parameter(name).requires_grad_(True)


def save_weights(model: Any, folder: Path, state_dict: Mapping[str, Tensor] | None = None) -> None:
    """Write a model as transformers does, or, as peft does, its adapter where it has one.

    `state_dict` holds the model's weights where they are sharded.
    """
    if (wrapper := wrapper_of(model)) is None:
        model.save_pretrained(folder, state_dict=state_dict)
        return
    for config in wrapper.peft_config.values():
        if isinstance(config.target_modules, set):  # which is written in another order each time
            config.target_modules = sorted(config.target_modules)
    full_state = None
    with _without_units(wrapper):
        if state_dict is not None:
            adapter_weights = {
                n: v for n, v in wrapper.state_dict().items() if not n.startswith(_PREFIX)
            }
            full_state = adapter_weights | {f"{_PREFIX}{n}": v for n, v in state_dict.items()}
        wrapper.save_pretrained(
            str(folder),
            state_dict=full_state,
            save_embedding_layers=getattr(wrapper, "adds_tokens", False),
        )
    write_text_atomic(folder / TRAINED_ON, json.dumps(wrapper.trained_on))
    (folder / "README.md").unlink(missing_ok=True)  # an empty form of a model card


@contextmanager
def _without_units(model: nn.Module) -> Iterator[None]:
    """Take a model's layers out of FSDP's units meanwhile: peft goes by the names of modules.

    A unit's `state_dict` would also wait for the other processes.
    """
    units = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child).__name__ == "FullyShardedDataParallel"
    ]
    for parent, name, unit in units:
        setattr(parent, name, unit.module)
    try:
        yield
    finally:
        for parent, name, unit in units:
            setattr(parent, name, unit)


def _adapter_config(tuning: Tuning) -> Any:
    import peft

    config_class: Any = peft.LoraConfig
    names = tuning.target_modules
    arguments: dict[str, Any] = {}
    if names:
        arguments["target_modules"] = names[0] if names == ["all-linear"] else names
    if tuning.method == LORA:
        arguments |= {"r": tuning.rank, "lora_alpha": tuning.alpha or tuning.rank}
        arguments |= {"lora_dropout": tuning.dropout}
    else:
        try:
            config_class = resolve_name(tuning.method)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(f"tuning.method {tuning.method}: {_first_line(error)}") from error
        if not (isinstance(config_class, type) and issubclass(config_class, peft.PeftConfig)):
            raise UsageError(
                f"tuning.method {tuning.method} is not a config class of peft, such as "
                "peft.IA3Config"
            )
    try:
        config = config_class(**arguments, **tuning.options)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"tuning.options of {config_class.__name__}: {_first_line(error)}"
        ) from error
    _refuse_other_kinds(config, f"tuning.method {tuning.method}")
    if getattr(config, "init_lora_weights", True) == "eva":
        raise UsageError(
            "tuning.options: init_lora_weights eva needs a pass over data before the training, "
            "which Probelight does not make; leave it out"
        )
    if getattr(config, "bias", "none") != "none":
        raise UsageError("tuning.options: bias trains weights outside the adapter; leave it out")
    return config


# Adapters that change layers in place, with nothing to be done around the model or between steps.
_KINDS = "BOFT C3A DELORA FOURIERFT HRA IA3 LN_TUNING LOHA LOKR LORA OFT RANDLORA VERA".split()
# Of LoRA: adapters that read the tokens, choose among several, and draw anew for each batch.
# Layers that are there several times are a model of another size.
_VARIANTS = "alora_invocation_tokens arrow_config layer_replication monteclora_config".split()
# Its initialisations that take a part out of the weights of the model below.
_TAKING = ("corda", "loftq", "lora_ga", "olora", "pissa")


def _refuse_other_kinds(config: Any, source: str) -> None:
    kind = getattr(config.peft_type, "value", config.peft_type)
    if str(getattr(config, "init_lora_weights", "")).startswith(_TAKING):
        raise _changed_below(config, source)
    if config.is_prompt_learning:
        why = "learns a prompt, which cannot be put before the texts of a probe"
    elif kind not in _KINDS or any(getattr(config, name, None) for name in _VARIANTS):
        why = "does more than change layers in place"
    else:
        return
    raise PretrainedError(
        f"{source}: an adapter of kind {kind} {why}; Probelight can use the kinds "
        f"{', '.join(_KINDS)}"
    )


def _attach(model: Any, config: Any, base: CheckpointRef, source: str) -> None:
    from probelight.models.networks import bit_sum, own_random_state

    is_outline = next(model.parameters()).is_meta
    weights_below = [(w, bit_sum(w)) for w in model.parameters() if not w.is_meta]
    trained_on = {} if is_outline else _sample_answers(model)
    with own_random_state(base.seed):
        wrapper = _wrapped(model, config, is_outline)
    if any(bit_sum(weight) != bits for weight, bits in weights_below):
        raise _changed_below(config, source)
    config.base_model_name_or_path, config.revision = _text_of(base), base.revision
    weights = [name for name, weight in model.named_parameters() if weight.requires_grad]
    object.__setattr__(wrapper, "adapter_weights", weights)
    object.__setattr__(wrapper, "trained_on", trained_on)
    object.__setattr__(model, ADAPTER_WRAPPER, wrapper)


def _wrapped(model: Any, config: Any, is_outline: bool) -> Any:
    from peft import get_peft_model

    config.base_model_name_or_path = None
    config.task_type = None  # its wrapper would be called in place of the model, as none is here
    with warnings.catch_warnings():  # there is nothing to be done about them
        for message in ("fan_in_fan_out", "is_gradient_checkpointing", "tie_word_embeddings"):
            warnings.filterwarnings("ignore", message=f".*{message}.*")
        return get_peft_model(model, config, low_cpu_mem_usage=is_outline)


_Scale = Annotated[float, Within(-MAX_ALPHA, MAX_ALPHA)]
_TYPES: dict[str, Any] = {
    "r": Annotated[int, Within(0, MAX_RANK)],  # of OFT 0 has a meaning
    "rank_pattern": dict[str, Annotated[int, Within(1, MAX_RANK)]],
    "alpha_pattern": dict[str, _Scale],
    "lora_alpha": _Scale,
    "alpha": _Scale,
}
_PLAIN: dict[Any, Any] = {int: int, float: _Scale, bool: bool}


def _check_saved_settings(path: Path, model: nn.Module) -> None:
    """Refuse settings of a wrong type, too large, or with a pattern that takes too long."""
    from peft.mapping import PEFT_TYPE_TO_CONFIG_MAPPING

    settings = read_settings(path)
    config_class: Any = PEFT_TYPE_TO_CONFIG_MAPPING.get(settings["peft_type"])
    if config_class is None:
        raise PretrainedError(
            f"{path}: `peft_type` is {settings['peft_type']!r}; Probelight can use the kinds "
            f"{', '.join(_KINDS)}"
        )
    hints = {}
    for name, hint in get_type_hints(config_class).items():
        is_text = {str, list[str]} & {*get_args(hint)}
        hint = _TYPES.get(name) or _PLAIN.get(hint) or (hint if is_text else None)
        if name in settings and hint is not None:
            hints[name] = hint
    options = {"__pydantic_config__": STRICT}
    checked_class = make_dataclass(config_class.__name__, hints.items(), namespace=options)
    typed(checked_class, {name: settings[name] for name in hints}, str(path), PretrainedError)
    module_names = [name for name, _ in model.named_modules()]
    for name, setting in settings.items():
        if not name.endswith(("_modules", "_pattern")) and name != "modules_to_save":
            continue
        are_names = isinstance(setting, list) and name.endswith("_modules")
        texts = [setting] if isinstance(setting, str) else [] if are_names else setting or ()
        for pattern in (text for text in texts if not re.fullmatch(r"[\w.-]+", text)):
            # As peft uses them: whole names, ends of names, what is before a layer's number.
            forms = [pattern, rf"(.*\.)?({pattern})($|\..*)", rf"(^|.*?\.){pattern}\.\d+\..*"]
            try:
                _matches(patterns=forms, texts=module_names)
            except BoundedError as error:
                raise PretrainedError(f"{path}: `{name}` {pattern[:80]!r}: {error}") from None


def _check_shapes(model: Any, config: Any, tensors: Mapping[str, Tensor]) -> None:
    """Raise ValueError where the settings need other sizes than the weights have.

    No memory is taken for what they need.
    """
    from peft import get_peft_model_state_dict

    config = copy.deepcopy(config)
    if hasattr(config, "init_lora_weights"):
        config.init_lora_weights = True  # others compute with the model's weights
    wrapper = _wrapped(model, config, is_outline=True)
    expected = get_peft_model_state_dict(wrapper, save_embedding_layers=False)
    wrapper.unload()
    num_needed, num_saved = (sum(t.numel() for t in ts.values()) for ts in (expected, tensors))
    for name, weight in expected.items():
        if name in tensors and tensors[name].shape != weight.shape:
            shape, needed = (" x ".join(map(str, t.shape)) for t in (tensors[name], weight))
            raise ValueError(
                f"the weight {name} in {ADAPTER_WEIGHTS} is {shape}, but with the settings in "
                f"{ADAPTER} (its rank, its layers) the model needs {needed}"
            )
    if num_needed > 2 * num_saved:
        raise ValueError(
            f"with the settings in {ADAPTER} (its rank, its layers) the model needs "
            f"{num_needed:,} weights, but {ADAPTER_WEIGHTS} has {num_saved:,}"
        )


def _text_of(base: CheckpointRef) -> str:
    """Return what an adapter's folder says of its model: where it is a folder, its whole path."""
    name = str(replace(base, revision=None))
    path = Path(name).expanduser()
    return str(path.absolute()) if name not in BUNDLED_MODELS and path.is_dir() else name


def _changed_below(config: Any, source: str) -> PretrainedError:
    start = getattr(config, "init_lora_weights", type(config).__name__)
    return PretrainedError(
        f"{source}: init_lora_weights {start} changes the weights of the model below the adapter, "
        "which are not saved with it; give true, gaussian or orthogonal, or convert a trained one "
        "to plain LoRA (peft: save_pretrained(..., path_initial_model_for_weight_conversion=...))"
    )


def _sample_answers(model: Any) -> dict[str, Any]:
    """Return what a model without its adapter answers to a short text, and in which precision."""
    import torch

    from probelight.models.networks import run_encoder

    rows = model.get_input_embeddings().weight
    ids = torch.linspace(0, len(rows) - 1, 8).long()[None]
    ids = ids if rows.is_meta else ids.to(rows.device)  # weights on a disk are read when needed
    batch = dict.fromkeys(("input_ids", "decoder_input_ids"), ids)
    with torch.no_grad():
        last = run_encoder(model.base_model, batch)[0][0, -1].float()
    hidden = last[:: max(1, len(last) // 64)]
    return {"dtype": str(rows.dtype).removeprefix("torch."), "hidden": hidden.tolist()}


def _check_base(
    folder: Path, own_base: str, base: CheckpointRef, answers: Mapping[str, Any]
) -> None:
    """Refuse an adapter whose model has changed; warn if another model was given for it."""
    import torch

    name, folders = _text_of(base), (CheckpointRef.parse(own_base).folder, base.folder)
    has_both = all(map(Path.is_dir, folders))
    is_same = own_base == name or (has_both and folders[0].samefile(folders[1]))
    differs = has_both and not is_same
    if (folder / TRAINED_ON).is_file():
        trained_answers = read_settings(folder / TRAINED_ON)
        hidden, trained_hidden = (torch.tensor(a["hidden"]) for a in (answers, trained_answers))
        # Of rounding bfloat16 leaves 0.03, the products of graphics cards 0.003.
        tolerance = 0.1 if "bfloat16" in (trained_answers["dtype"], answers["dtype"]) else 0.01
        differs = bool((hidden - trained_hidden).norm() > tolerance * trained_hidden.norm())
    if differs and is_same:
        raise PretrainedError(
            f"{folder}: the model {name} is no longer the one that the adapter was trained on; "
            f"give that one, or remove {TRAINED_ON} to use them together, as a different model"
        )
    if differs:
        warnings.warn(
            f"{folder}: the adapter was trained with {own_base}, but is now used with {name}; "
            "together they are a different model",
            RuntimeWarning,
            stacklevel=3,
        )


def _renamed_weights(tensors: Mapping[str, Tensor], model: Any) -> dict[str, Tensor]:
    """Return an adapter's weights by their names in a model with or without a head."""
    inner = f"{_PREFIX}{model.base_model_prefix}."
    has_inner = model.base_model is not model
    if has_inner and not any(name.startswith(inner) for name in tensors):
        if any(hasattr(model, name.removeprefix(_PREFIX).split(".")[0]) for name in tensors):
            return dict(tensors)
        return {name.replace(_PREFIX, inner, 1): value for name, value in tensors.items()}
    if not has_inner:
        return {name.replace(inner, _PREFIX, 1): value for name, value in tensors.items()}
    return dict(tensors)


def _layer_names(model: nn.Module) -> str:
    """Return the last part of the names of the layers that have adapters."""
    from torch import nn
    from transformers.pytorch_utils import Conv1D

    layers = [
        name for name, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)
    ]
    return ", ".join(dict.fromkeys(name.rsplit(".", 1)[-1] for name in layers))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300].rstrip(".")
