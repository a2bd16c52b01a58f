"""Loading of checkpoints: whole or refused, quiet, and with one clear error when they are not.

A checkpoint is loaded in a `Form`: a class of transformers and the families that it is known for.
Errors are found without reading weights where that is possible (`describe`, `check_pretrained`).
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_MULTIPLE_CHOICE_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from probelight.io.errors import UsageError
from probelight.io.ranges import WeightsDtype
from probelight.models.adapters import attach_fresh, attach_saved, merge
from probelight.models.checkpoint_errors import (
    PretrainedError,
    check_size,
    one_error,
    quiet_transformers,
)
from probelight.models.checkpoint_files import (
    CONFIG,
    CheckpointRef,
    base_of,
    check_config,
    check_hub,
    check_tokenizer_files,
    check_weights,
    hub_options,
    is_sentence_choice_folder,
    names_word_head,
    resolve,
    tokenizer_files,
    trained_dtype,
    without_adapter,
)
from probelight.models.networks import (
    DTYPES,
    FLOAT32,
    READ_AGAIN,
    check_numbers,
    is_spread,
    own_dtype,
    own_random_state,
)
from probelight.models.tuning import FULL, Tuning


@dataclass(frozen=True)
class Form:
    """One form in which checkpoints are loaded."""

    auto_class: Any  # with `from_pretrained` and `from_config`
    admits: Callable[[PreTrainedConfig], bool]  # whether a config is of a family that has it
    needs: tuple[str, ...] = ("pad_token",)  # of a tokenizer, as transformers calls them


def _encoder_in(*mappings: Any) -> Callable[[PreTrainedConfig], bool]:
    """Return a test whether a config is in a mapping and reads in both directions."""

    def admits(config: PreTrainedConfig) -> bool:
        one_way = any(getattr(config, n, False) for n in ("is_encoder_decoder", "is_decoder"))
        return not one_way and any(type(config) in mapping for mapping in mappings)

    return admits


def _sees_ahead(config: PreTrainedConfig) -> bool:
    """Return whether a config makes an encoder of a decoder, as Gemma's can."""
    sees: Any = getattr(config.get_text_config(), "use_bidirectional_attention", None)
    return sees in (True, "all")


def _is_causal(config: PreTrainedConfig) -> bool:
    """Return whether a model with this config reads from left to right only."""
    # `in` goes by names: to list a mapping would import every family that there is.
    one_way = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING
    if getattr(config, "is_encoder_decoder", False) or not one_way:
        return False
    if config.model_type == "xlnet":
        return False  # without permutations, which nobody makes here, a token sees itself
    if _sees_ahead(config):
        return False
    both_ways = type(config) in MODEL_FOR_MASKED_LM_MAPPING
    return not both_ways or bool(getattr(config, "is_decoder", False))


# Families of encoder-decoder models that were taught to fill blanks: with what is between two
# sentinels; with the whole sentence. Others (Pegasus, Marian, ...) write something else. Switch
# drops what is too much for its experts, so that its numbers would depend on the batch.
FILLED_BLANK = ("t5", "mt5", "umt5", "longt5")
FILLED_SENTENCE = ("bart", "mbart", "plbart", "led")


_is_encoder = _encoder_in(MODEL_FOR_MASKED_LM_MAPPING, MODEL_FOR_MULTIPLE_CHOICE_MAPPING)

# With its masked-token head; without heads; with the head that gives choices their logits.
MASKED_LM = Form(
    AutoModelForMaskedLM, _encoder_in(MODEL_FOR_MASKED_LM_MAPPING), ("pad_token", "mask_token")
)
ENCODER = Form(AutoModel, _is_encoder)
MULTIPLE_CHOICE = Form(AutoModelForMultipleChoice, _is_encoder)
# With the head over the decoder's next token.
SEQ2SEQ_LM = Form(
    AutoModelForSeq2SeqLM,
    lambda config: (
        config.model_type in (*FILLED_BLANK, *FILLED_SENTENCE) and bool(config.is_encoder_decoder)
    ),
)
# With the head over the next token. Few have a padding token: nothing ever reads one.
CAUSAL_LM = Form(AutoModelForCausalLM, _is_causal, needs=())


@quiet_transformers()
def load_pretrained(
    form: Form,
    ref: CheckpointRef,
    *,
    pooler: bool = False,
    dtype: WeightsDtype = FLOAT32,
    device: torch.device | None = None,
    device_map: str | None = None,
    is_scored: bool = False,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model in eval mode, and its tokenizer.

    An adapter, named or in the model's folder, is put into the model; ones below are merged.

    Args:
        form: Such as `MASKED_LM`.
        ref: Which weights.
        pooler: Require and keep an encoder's pooler; otherwise it is dropped, as nothing trains it.
        dtype: Precision of the weights; "auto" is the checkpoint's own.
        device: A GPU on which the weights are put while they are read.
        device_map: Where transformers puts parts of the model, such as "auto", in place of it.
        is_scored: Whether weights that `dtype` rounded may be read again, as `networks.upcast`
            does.

    Raises:
        PretrainedError: If there is no such checkpoint, it cannot be read, its type is not
            supported, it lacks weights, or the tokenizer does not fit the model.
    """
    if ref.in_memory:
        checkpoint = check_pretrained(form, ref)
        return ref.in_memory[0], checkpoint.tokenizer
    checkpoint = describe(form, ref, dtype)
    tokenizer = checkpoint.tokenizer
    model: Any  # its class says nothing of a pooler
    if _OUTLINES.get():
        model = checkpoint.outline()
    elif ref.random_weights:
        with one_error(checkpoint.source, "configuration"), own_random_state(ref.seed):
            model = form.auto_class.from_config(checkpoint.config, dtype=torch.float32)
    else:
        if placement := _placement(checkpoint.source, device, device_map):
            checkpoint.options["device_map"] = placement
        model = _trained_model(checkpoint, pooler)
        if form not in (CAUSAL_LM, SEQ2SEQ_LM) and is_spread(model):
            raise PretrainedError(
                f"{checkpoint.source}: device_map {device_map} puts it on several devices, but "
                "only causal and encoder-decoder models can be; leave it out"
            )
    for weight in model.parameters():  # random ones are the same in any precision, up to rounding
        if _OUTLINES.get() or ref.random_weights:
            weight.data = weight.data.to(checkpoint.dtype)
    if form is ENCODER and pooler and getattr(model, "pooler", None) is None:
        raise PretrainedError(
            f"{checkpoint.source}: {type(model).__name__} has no pooler; choose head 'mlp' or "
            "'linear'"
        )
    if is_scored and checkpoint.dtype != torch.float32 and checkpoint.dtype != checkpoint.own_dtype:
        setattr(model, READ_AGAIN, partial(load_pretrained, form, ref, pooler=pooler))
    if form.auto_class is AutoModel and not pooler and hasattr(model, "pooler"):
        model.pooler = None
    if not ref.random_weights:
        put_adapters(model, ref, tokenizer)
    refuse_foreign_tokenizer(form, checkpoint.source, model, tokenizer)
    tokenizer.model_max_length = min(tokenizer.model_max_length, num_positions(model))
    model.train(False)
    return model, tokenizer


def put_adapters(model: nn.Module, ref: CheckpointRef, tokenizer: PreTrainedTokenizerBase) -> None:
    """Merge the adapters of a model but the last into it, and put that one in."""
    base, folder = without_adapter(ref)
    if folder is None:
        return
    if without_adapter(base)[1] is not None:
        put_adapters(model, base, load_tokenizer(base))
    put_adapter(model, ref, tokenizer)


def put_adapter(model: nn.Module, ref: CheckpointRef, tokenizer: PreTrainedTokenizerBase) -> None:
    """Put the last adapter of a checkpoint into its model, once the one below is merged.

    A tokenizer in its folder may have more tokens than the model, which then gets rows for them.
    """
    base, folder = without_adapter(ref)
    assert folder is not None
    merge(model)
    num_tokens = len(tokenizer) if tokenizer_files(folder) else 0
    attach_saved(model, folder, base, num_tokens)


def trained_reader(tuning: Tuning | None, dtype: WeightsDtype) -> Callable[..., Any]:
    """Return what loads a model, as `load_pretrained` does, whose weights are trained.

    Args:
        tuning: None leaves an adapter that there is in the model as it is. Otherwise it is merged,
            and a new one put in if the tuning is one of adapters.
        dtype: "auto" is float32, whatever the checkpoint has.
    """
    dtype = trained_dtype(dtype)

    def load(
        form: Form, ref: CheckpointRef, **options: Any
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        if ref.random_weights and tuning is not None and tuning.method != FULL:
            raise UsageError(
                f"tuning.method {tuning.method} needs a model that can be loaded again, but random "
                "weights are not in a file; leave one of the two out"
            )
        model, tokenizer = load_pretrained(form, ref, dtype=dtype, **options)
        if any(weight.dtype.itemsize == 1 for weight in model.parameters()):
            raise UsageError(
                f"{ref}: its weights have eight bits each, which can be scored and not trained; "
                "give the model that was not quantised"
            )
        if tuning is not None:
            merge(model)
            if tuning.method != FULL:
                attach_fresh(model, tuning, ref)
        return model.train(False), tokenizer

    return load


_OUTLINES: ContextVar[bool] = ContextVar("outlines", default=False)


@contextmanager
def outlines() -> Iterator[None]:
    """Make `load_pretrained` return models of the right shapes without numbers, in the block."""
    token = _OUTLINES.set(True)
    try:
        yield
    finally:
        _OUTLINES.reset(token)


def _placement(
    source: str, device: torch.device | None, device_map: str | None
) -> str | dict[str, torch.device] | None:
    """Return the `device_map` of transformers; None reads the weights into main memory."""
    has_accelerate = find_spec("accelerate") is not None
    if device_map is not None:
        if not has_accelerate:
            raise PretrainedError(
                f"{source}: device_map {device_map} needs the package accelerate; install it "
                "(pip install accelerate), or leave device_map out"
            )
        return device_map
    is_gpu = device is not None and device.type == "cuda"
    return {"": device} if device is not None and is_gpu and has_accelerate else None


def _trained_model(checkpoint: Checkpoint, pooler: bool) -> PreTrainedModel:
    form, source = checkpoint.form, checkpoint.source
    options = {**checkpoint.options, "dtype": checkpoint.dtype}
    if any(Path(source).glob("*.safetensors")):
        options["use_safetensors"] = True  # never fall back on a pickle in the same folder
    model, missing = _load_with_missing(form, source, options)
    if missing and getattr(model.config, "legacy", False):
        # Published DeBERTa-v3 checkpoints hold the new head, but their config does not say so.
        legacy_model, still_missing = _load_with_missing(form, source, {**options, "legacy": False})
        if not still_missing:
            model, missing = legacy_model, []
    if not pooler:
        missing = [name for name in missing if not name.startswith("pooler.")]
    if missing:
        names = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        advice = ""
        if all(name.startswith("pooler.") for name in missing):
            advice = "; head 'mlp' is a pooler with fresh weights"
        elif form is MASKED_LM and has_choice_head(checkpoint.base):
            advice = "; it was fine-tuned to answer questions, so give it probes of setup mc_qa"
        raise PretrainedError(
            f"{source}: {len(missing)} weights of {type(model).__name__} are missing ({names}) "
            f"and would be random{advice}"
        )
    check_numbers(source, (w for w in model.named_parameters() if w[1].is_floating_point()))
    return model


def _load_with_missing(
    form: Form, source: str, options: dict[str, Any]
) -> tuple[PreTrainedModel, list[str]]:
    # What is not in the checkpoint, such as a pooler that is then dropped, is drawn at random.
    with one_error(source, "weights"), own_random_state(0):
        model, loading_info = form.auto_class.from_pretrained(
            source,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused below, with their names
            **options,
        )
    if loading_info["mismatched_keys"]:
        name, shape, expected_shape = min(loading_info["mismatched_keys"])
        raise PretrainedError(
            f"{source}: the weight {name} has shape {tuple(shape)}, but the config needs "
            f"{tuple(expected_shape)}"
        )
    return model, sorted(loading_info["missing_keys"])


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose weights were not read."""

    form: Form
    base: CheckpointRef  # below all adapters
    source: str  # its folder, or its name on the Hub
    options: dict[str, Any]  # of `from_pretrained`
    config: PreTrainedConfig
    tokenizer: PreTrainedTokenizerBase
    dtype: torch.dtype  # in which its weights are wanted
    own_dtype: torch.dtype  # that they have, or are drawn in

    def outline(self) -> PreTrainedModel:
        """Return a model of the right shapes without numbers, which takes no memory."""
        with one_error(self.source, "configuration"), torch.device("meta"), own_random_state(0):
            model: PreTrainedModel = self.form.auto_class.from_config(
                copy.deepcopy(self.config), dtype=torch.float32
            )
        return model


@quiet_transformers()
def describe(form: Form, ref: CheckpointRef, dtype: WeightsDtype = FLOAT32) -> Checkpoint:
    """Read a checkpoint's settings and tokenizer; refuse one too large for its files or memory."""
    base, adapters = base_of(ref)
    source, config = resolve(base.name), read_config(base)
    refuse_other_families(form, config, source)
    is_folder = Path(source).is_dir()  # the Hub's files are not here yet
    if form is MASKED_LM and is_folder and not ref.random_weights and lacks_word_head(base):
        advice = "give the model that it was made from, or train heads on its output with `curve`"
        if is_sentence_choice_folder(ref) or has_choice_head(base):
            advice = "it was fine-tuned to answer questions, so give it probes of setup mc_qa"
        raise PretrainedError(
            f"{source}: it has only the encoder ({', '.join(config.architectures or ())}), not the "
            f"head that predicts words; {advice}"
        )
    tokenizer = load_tokenizer(ref)
    text_config: Any = config.get_text_config()
    if adapters and len(tokenizer) > text_config.vocab_size:
        text_config.vocab_size = len(tokenizer)  # as `attach_saved` adds rows
    saved_dtype = own_dtype(source, config)
    loaded_dtype = saved_dtype if dtype == "auto" else DTYPES[dtype]
    saved_dtype = torch.float32 if ref.random_weights else saved_dtype
    options = hub_options(base.revision)
    checkpoint = Checkpoint(
        form, base, source, options, config, tokenizer, loaded_dtype, saved_dtype
    )
    if is_folder:
        outline = checkpoint.outline()
        prefix, weight_names = f"{outline.base_model_prefix}.", set[str]()
        num_weight_bytes = loaded_dtype.itemsize
        if getattr(config, "quantization_config", None) is None:
            base_names = {name.removeprefix(prefix) for name, _ in outline.named_parameters()}
            weight_names = base_names | {prefix + name for name in base_names}
        elif torch.cuda.is_available():
            num_weight_bytes = 1  # a GPU computes with them; for a CPU they are dequantised
        num_bytes = None if ref.random_weights else check_weights(Path(source), weight_names)
        num_weights = sum(p.numel() for p in outline.parameters())
        check_size(source, num_weights, num_bytes, num_weight_bytes)
    return checkpoint


@quiet_transformers()
def check_pretrained(form: Form, ref: CheckpointRef, dtype: WeightsDtype = FLOAT32) -> Checkpoint:
    """Check all of a checkpoint that can be checked without reading its weights.

    Raises:
        PretrainedError: As `load_pretrained`, but for weights that are missing or damaged.
    """
    if ref.in_memory:
        model, tokenizer = ref.in_memory
        checkpoint = Checkpoint(
            form, ref, name_of(model), {}, model.config, tokenizer, model.dtype, model.dtype
        )
    else:
        checkpoint = describe(form, ref, dtype)
        model = checkpoint.outline()
    refuse_foreign_tokenizer(form, checkpoint.source, model, checkpoint.tokenizer)
    return checkpoint


def lacks_word_head(ref: CheckpointRef) -> bool:
    """Return whether a checkpoint of a masked family is an encoder without a head over words.

    The classes that it was saved from say so, or else the names of its weights.
    """
    base, _ = base_of(ref)
    source, config = resolve(base.name), read_config(base)
    classes = config.architectures or ()
    if names_word_head(config.model_type, classes) or not MASKED_LM.admits(config):
        return False
    paths = sorted(Path(source).glob("*.safetensors"))
    if not paths:
        return bool(classes) and all(name.endswith("Model") for name in classes)
    with one_error(source, "configuration"), torch.device("meta"), own_random_state(0):
        outline = MASKED_LM.auto_class.from_config(copy.deepcopy(config))
    names = [name for name, _ in outline.named_parameters()]
    body = f"{outline.base_model_prefix}."
    head_parts = {name.split(".")[0] for name in names if not name.startswith(body)}
    head_parts.add("lm_predictions")  # of DeBERTa's new head, which its config may hide
    for path in paths:
        with one_error(source, "weights"), safe_open(path, framework="np") as tensors:
            if head_parts & {name.split(".")[0] for name in tensors.keys()}:  # noqa: SIM118
                return False
    return True


def has_choice_head(ref: CheckpointRef) -> bool:
    """Return whether a checkpoint was saved as one of transformers' models for multiple choice."""
    if ref.in_memory:
        return type(ref.in_memory[0]).__name__.endswith("ForMultipleChoice")
    base, _ = base_of(ref)
    source = resolve(base.name)
    if Path(source).is_dir() and not (Path(source) / CONFIG).is_file():
        return False
    config = read_config(base)
    refuse_other_families(ENCODER, config, source)
    with one_error(source, "configuration"):
        return any(name.endswith("ForMultipleChoice") for name in config.architectures or ())


def name_of(network: Any) -> str:
    """Return what tables call a model: the last part of what it was loaded from, or its class."""
    source = str(getattr(network.config, "name_or_path", "") or "").rstrip("/")
    return source.rpartition("/")[2] or type(network).__name__


@quiet_transformers()
def load_tokenizer(ref: CheckpointRef) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a checkpoint; raise PretrainedError if it cannot be read.

    That of a model with an adapter is the adapter's, if it was saved with one.
    """
    base, adapter = without_adapter(ref)
    if adapter is not None and not tokenizer_files(adapter):
        return load_tokenizer(base)
    source = resolve(ref.name) if adapter is None else str(adapter)
    revision = ref.revision if adapter is None else None
    with one_error(source, "tokenizer"):
        if Path(source).is_dir():
            check_tokenizer_files(Path(source))
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source, **hub_options(revision)
        )
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):
        raise PretrainedError(f"{source}: the tokenizer's vocabulary is empty")
    return tokenizer


@quiet_transformers()
def read_config(ref: CheckpointRef) -> PreTrainedConfig:
    """Read a checkpoint's settings, whatever its type; an adapter has those of its model."""
    base, _ = base_of(ref)
    source, revision = resolve(base.name), base.revision
    is_folder = Path(source).is_dir()
    if is_folder and revision:
        raise PretrainedError(
            f"folder {source}: it is not on the Hub, so it has no revision {revision!r}; leave out "
            "the revision"
        )
    if not is_folder:
        check_hub(base)
    # The config is read first of all, so it is here that a revision turns out to be missing.
    with one_error(f"{source}@{revision}" if revision else source, "configuration"):
        if is_folder:
            check_config(Path(source))
        config: PreTrainedConfig = AutoConfig.from_pretrained(source, **hub_options(revision))
    return config


def refuse_other_families(form: Form, config: Any, source: str) -> None:
    """Raise PretrainedError, which names its type, for a model that has no such form."""
    if form.admits(config):
        return
    name = f"{source}: {config.model_type} ({type(config).__name__}) is"
    actual = "not a model of the type that is needed"
    if getattr(config, "is_encoder_decoder", False):
        actual = "an encoder-decoder model"
        if not SEQ2SEQ_LM.admits(config):
            raise PretrainedError(
                f"{name} {actual} of an unsupported family; T5, BART and relatives, which were "
                "trained to fill blanks, are supported"
            )
    elif CAUSAL_LM.admits(config):
        actual = "a causal language model"
    elif MASKED_LM.admits(config):
        actual = "a masked language model"
    elif _sees_ahead(config):
        actual = "an encoder (use_bidirectional_attention)"
    raise PretrainedError(
        f"{name} {actual}, but another kind is expected; where a command has it, --model.kind auto "
        "finds the right kind"
    )


def refuse_foreign_tokenizer(
    form: Form, source: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Raise PretrainedError for a tokenizer of another vocabulary, or without a token needed."""
    with one_error(source, "tokenizer"):
        num_rows = len(model.get_input_embeddings().weight)  # type: ignore[arg-type]
        entries = tokenizer.get_vocab()
        # Words of every kind: one without a piece for the unknown fails here, not in the data.
        tokenizer(["a word", "zyx \u2603 1", ""])
    if (most := max(len(entries), 1 + max(entries.values(), default=0))) > num_rows:
        raise PretrainedError(
            f"{source}: the tokenizer has {most} entries, but the model only {num_rows}, so they "
            "do not belong together"
        )
    # Rows are often padded to a round number, and some published models have a third to spare.
    if 4 * len(entries) < num_rows:
        raise PretrainedError(
            f"{source}: the tokenizer has {len(entries)} entries, but the model {num_rows}, so "
            "they do not belong together"
        )
    for name in form.needs:
        if getattr(tokenizer, f"{name}_id") is None:
            spoken = "padding token" if name == "pad_token" else name.replace("_", " ")
            raise PretrainedError(f"{source}: the tokenizer has no {spoken}")
    if "mask_token" in form.needs:
        refuse_ambiguous_mask(source, tokenizer)


def refuse_ambiguous_mask(source: str, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise PretrainedError for a mask token that is a word, or another special token as well."""
    mask = str(tokenizer.mask_token)
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "bos_token", "eos_token")
    twins = [name for name in names if getattr(tokenizer, f"{name}_id") == tokenizer.mask_token_id]
    if twins or mask.strip("\u2581\u0120 ").isalnum():  # as SentencePiece and BPE write a space
        problem = (
            f"is its {twins[0]} too" if twins else "is a word, which texts may hold themselves"
        )
        raise PretrainedError(
            f"{source}: the tokenizer's mask token {mask!r} {problem}; give it the mask token that "
            "the model was trained with (mask_token in tokenizer_config.json)"
        )


def num_positions(model: PreTrainedModel) -> int:
    """Return the longest input in tokens that a model has places for; few tokenizers know it.

    RoBERTa and relatives count from behind the padding's place: they have fewer places than rows.
    """
    rows: Any = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    if not isinstance(rows, nn.Embedding):
        return sys.maxsize  # positions are relative, or rotations
    first = 0 if rows.padding_idx is None else rows.padding_idx + 1
    return rows.num_embeddings - first


def longest_text(config: Any) -> int:
    """Return the longest text in tokens that a model was made for, by its settings.

    Unlike `num_positions` it also bounds rotated positions; T5's, which are relative, have none.
    """
    kinds = ("", "encoder_", "decoder_")
    lengths = [getattr(config, f"max_{kind}position_embeddings", None) for kind in kinds]
    return min((n for n in lengths if isinstance(n, int) and n > 0), default=sys.maxsize)
