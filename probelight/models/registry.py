"""The registry of model types: what each can be asked for, how it is loaded, what is of which type.

A model type is one module in `probelight.models` and its entry in `MODEL_TYPES`, which names the
module and its classes, so that nothing heavy is imported here. `detected_type` says of which type a
folder, a Hub name or a model in memory is, by its config and class, never by its name.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from probelight.encoding.word_vectors import vectors_label
from probelight.io import ranges
from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.io.package import BUNDLED_MODEL
from probelight.io.process import without_collector
from probelight.io.settings import Settings
from probelight.metrics.scoring_rules import LETTER
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import (
    CONFIG,
    HEAD_SETTINGS,
    WORD_SETTINGS,
    CheckpointRef,
    base_of,
    check_config,
    head_settings,
    is_word_folder,
    names_word_head,
    resolve,
    scoring_of,
    word_settings,
)
from probelight.probes.record import Record, Setup


@dataclass(frozen=True)
class Trained:
    """How a model type is trained for a setup."""

    made_by: str  # its class, as "module:Class" below lightning_modules
    reads: tuple[str, ...]  # the model settings that its constructor takes
    modes: tuple[str, ...] = ()  # heads that a curve traces; none: the whole network is trained
    setup: Setup | None = None  # given to a constructor that takes it
    halves_rate: bool = False  # when `monitor` stops rising; others have a schedule


@dataclass(frozen=True)
class ModelType:
    """What a model type can be asked for, and how it is trained.

    Attributes:
        scorer: The module that loads what answers without training; None where the model begins
            with random weights.
        trained: How it is trained, for each setup that it can be trained for.
        heads: Heads on its scorer's frozen features that a curve traces for MC-MLM probes, with
            or without its whole network.
        title: What tables call a baseline, before the name of its vectors; None calls it by the
            last part of `name_or_path`.
        has_checkpoint: Whether `name_or_path` is a model's folder or Hub name, with a tokenizer and
            a control of random weights.
        fit: Field of `CurveSettings` that says how the whole of it is trained.
        num_weights: For planning memory, with vectors of 50 numbers, which are not counted; None
            where the checkpoint's files tell.
    """

    scorer: str | None = None
    trained: Mapping[Setup, Trained] = field(default_factory=dict)
    heads: tuple[str, ...] = ()
    title: str | None = None
    has_checkpoint: bool = False
    fit: str = "full"
    num_weights: int | None = None

    @property
    def is_pretrained(self) -> bool:
        """Whether it knows something before it is trained."""
        return self.scorer is not None

    @property
    def is_baseline(self) -> bool:
        """Whether it is a baseline over word vectors, which models must be better than."""
        return self.title is not None

    def modes(self, setup: Setup) -> tuple[str, ...] | None:
        """Return the heads that a curve traces; () where the whole is trained; None: no curve."""
        if self.heads and setup == "mc_mlm":
            return (*self.heads, FULL)
        return self.trained[setup].modes if setup in self.trained else None


def _partial_input(name: str, title: str, num_weights: int) -> ModelType:
    """Return a baseline that sees a part of the input and is trained like ESIM."""
    made_by = f"baselines.partial_input:{name}"
    trained = Trained(made_by, ("vectors", "max_length"), halves_rate=True)
    return ModelType(title=title, fit="esim", num_weights=num_weights, trained={"mc_qa": trained})


TRANSFORMER = "transformer"
AUTO: Final = "auto"  # no type: a setting that `with_model_type` resolves
FULL: Final = "full"  # the mode of a curve in which the whole network is fine-tuned
_CHECKPOINT = ("name_or_path", "revision", "random_weights", "max_length", "dtype")


def _continuations(scorer: str) -> ModelType:
    """Return a type of language models that choose among continuations, trained as they score."""
    made_by = "causal_choice:CausalChoice"
    reads = (*_CHECKPOINT, "answer_prefix", "scoring", "head")
    setups: tuple[Setup, ...] = ("mc_qa", "mc_mlm")
    trained = {setup: Trained(made_by, reads, setup=setup) for setup in setups}
    return ModelType(scorer=scorer, trained=trained, heads=("mlp", "linear"), has_checkpoint=True)


MODEL_TYPES: dict[str, ModelType] = {
    TRANSFORMER: ModelType(
        scorer="probelight.models.masked",
        has_checkpoint=True,
        trained={
            "mc_mlm": Trained(
                "masked_choice:MaskedChoice",
                (*_CHECKPOINT, "answer_prefix", "multi_token"),
                modes=("mlp", "linear"),
            ),
            "mc_qa": Trained(
                "sentence_choice:SentenceChoice",
                (*_CHECKPOINT, "head"),
            ),
        },
    ),
    "causal": _continuations("probelight.models.causal"),
    "mlm_baseline": ModelType(
        title="MLM-baseline",
        fit="mlm_baseline",
        trained={
            "mc_mlm": Trained(
                "baselines.mlm_baseline:MLMBaseline",
                ("vectors",),
                modes=("mlp",),
                halves_rate=True,
            )
        },
    ),
    "esim": ModelType(
        title="ESIM",
        fit="esim",
        num_weights=3_730_501,
        trained={
            "mc_qa": Trained(
                "baselines.esim:ESIM",
                ("vectors", "max_length"),
                halves_rate=True,
            )
        },
    ),
    "seq2seq": _continuations("probelight.models.seq2seq"),
    "choice_only": _partial_input("ChoiceOnly", "Choice-only", 184_576),
    "choice_to_choice": _partial_input("ChoiceToChoice", "Choice-to-choice", 185_344),
    "question_to_choice": _partial_input("QuestionToChoice", "Question-to-choice", 185_344),
    "vec_similarity": ModelType(title="VecSimilarity", scorer="probelight.models.vec_similarity"),
}


def module_of(model_type: ModelType) -> Any:
    """Import the `ModelTypeModule` that loads and checks what answers without training.

    It is not named as a type here: what reads a command's options imports what a module of settings
    imports, for type checking alone too, and that one imports torch.
    """
    assert model_type.scorer is not None
    with without_collector():  # what torch and transformers make while they are imported stays
        return import_module(model_type.scorer)


_PLACES = re.compile(r"auto|balanced|balanced_low_0|sequential|cpu|mps|cuda(:\d+)?")


@dataclass(frozen=True)
class ModelSettings(Settings):
    """Which model to probe and how to write its inputs.

    Args:
        name_or_path: "bookshelf-lm" or another bundled model, a local folder, or a Hugging Face
            Hub id.
        revision: Branch, tag or commit on the Hub.
        answer_prefix: Text to put before a candidate in MC-MLM, "" or " ". "auto" finds out from
            the tokenizer whether words have a leading space.
        multi_token: What to do with a candidate of several tokens: stop with an "error", "skip" the
            item and count it, or score it by "pseudo_log_likelihood".
        pll: Pseudo-log-likelihood of a masked language model: "original" (Salazar et al. 2020)
            masks one token at a time; "within_word_l2r" (Kauf and Ivanova 2023) also masks the
            later tokens of its word.
        head: Head for MC-QA: "mlp" (Talmor 2020), "linear" (Richardson 2020) or "pooler". Kinds
            causal and seq2seq have one only with `scoring` "last_token".
        max_length: Longest input in tokens.
        random_weights: Use the same architecture with fresh weights (the architecture control).
        kind: "transformer" (a masked language model), "causal" (a left-to-right language model) or
            "seq2seq" (an encoder-decoder language model). Or a baseline over word vectors:
            "mlm_baseline" for probes with a mask; "esim", "choice_only", "choice_to_choice",
            "question_to_choice" or "vec_similarity" (not trained) for questions with answers.
            "auto" finds out from the model's config.
        scoring: How kinds causal and seq2seq score a choice: by its log-likelihood ("sum"), also
            divided by the number of its tokens ("mean_token") or characters ("mean_char"); by the
            log-likelihood of its letter after a list of the choices ("letter"); or by a head on the
            last token ("last_token"), which must be trained. "auto" is the scoring that the model
            was trained with, or else "sum" for sentences and "mean_token" for questions.
        dtype: Precision of the weights. "auto" is the checkpoint's own for scoring on a GPU, and
            float32 on a CPU and for training all weights.
        device_map: Where to put the parts of a model that is not trained: "auto", "balanced",
            "balanced_low_0" or "sequential" spread it over all devices (needs the package
            accelerate); or one device, such as "cpu". By default it is on the device that computes.
        vectors: Word vectors of a baseline: "embedded", or a file in GloVe's text format, plain,
            .gz or .zip (`file.zip:member.txt` if there are several files in it). For questions with
            answers also `encoder:NAME`, the last hidden states of a frozen encoder ("bookshelf-lm",
            a folder, or a Hub name), or `elmo:OPTIONS.json,WEIGHTS.hdf5`, a learned mixture of the
            layers of a frozen ELMo.
        name: Name in tables and figures; by default the last part of `name_or_path`.
        adapter: Folder of an adapter saved by peft, to put into the model. By default the model is
            used as it is, with the adapter that its folder may have.
    """

    name_or_path: ranges.PathText = BUNDLED_MODEL
    revision: str | None = None
    answer_prefix: str = "auto"
    multi_token: Literal["error", "skip", "pseudo_log_likelihood"] = "error"
    pll: Literal["original", "within_word_l2r"] = "original"
    head: Literal["mlp", "linear", "pooler"] = "mlp"
    max_length: ranges.MaxLength = 256
    random_weights: bool = False
    kind: Annotated[str, ranges.OneOf(MODEL_TYPES, AUTO)] = AUTO
    dtype: ranges.WeightsDtype = "auto"
    device_map: str | None = None
    vectors: str = "embedded"
    name: str | None = None
    scoring: ranges.Scoring = AUTO
    adapter: ranges.PathText | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # Somebody who means the model to load would get the bundled one, called like theirs.
        is_whole = self.name_or_path == BUNDLED_MODEL and not self.adapter
        if self.name and "/" in self.name and is_whole:
            raise UsageError(
                f"model.name {self.name} is only the name in tables; give the folder or Hub name "
                "to load as model.name_or_path"
            )
        if self.revision and self.name_or_path.lower().endswith(".gguf"):
            raise UsageError(
                f"model.revision {self.revision}: of a GGUF file only the newest is read; download "
                "the one that you mean, and give its path"
            )
        model_type = MODEL_TYPES.get(self.kind)
        if self.pll != "original" and self.kind not in (TRANSFORMER, AUTO):
            raise UsageError(
                f"model.pll {self.pll} is a way of masking, but kind {self.kind} masks nothing; "
                "leave it out"
            )
        if self.device_map is not None and not _PLACES.fullmatch(self.device_map):
            raise UsageError(
                f"model.device_map {self.device_map}: give auto, balanced, balanced_low_0, "
                "sequential, or a device, such as cpu or cuda:0"
            )
        if self.device_map is not None and self.random_weights:
            raise UsageError(
                f"model.device_map {self.device_map} is for weights from a file, but random "
                "weights are drawn; leave it out"
            )
        if self.adapter and self.random_weights:
            raise UsageError(
                f"model.adapter {self.adapter} needs trained weights, but random_weights draws "
                "fresh ones; leave one of the two out"
            )
        for name in ("dtype", "device_map", "adapter"):
            value = getattr(self, name)
            if model_type and not model_type.has_checkpoint and value not in (AUTO, None):
                raise UsageError(
                    f"model.{name} {value} is only for models with a checkpoint, and kind "
                    f"{self.kind} has none; leave it out"
                )

    @property
    def type(self) -> ModelType:
        """What it can be asked for, and how it is trained."""
        return MODEL_TYPES[self.kind]

    @property
    def checkpoint(self) -> CheckpointRef:
        """Which weights; an adapter may also be behind `name_or_path`, as `MODEL+ADAPTER`."""
        weights: dict[str, Any] = {"revision": self.revision, "random_weights": self.random_weights}
        if self.adapter:
            return CheckpointRef(self.name_or_path, adapter=self.adapter, **weights)
        return CheckpointRef.parse(self.name_or_path, **weights)

    def gold_labels(self, setup: Setup, records: Sequence[Record]) -> list[tuple[int]]:
        """Return (N, 1) the label of each gold choice, if the model is asked for labels alone."""
        is_scored = self.kind in ("causal", "seq2seq")
        by_letter = is_scored and scoring_of(self.checkpoint, self.scoring, setup) == LETTER
        return [(record.answer,) for record in records] if by_letter else []

    @property
    def label(self) -> str:
        """The model's name in tables; a baseline's names its vectors."""
        given_name = visible(self.name.strip()) if self.name else ""
        if title := self.type.title:
            return given_name or f"{title} ({vectors_label(self.vectors)})"
        paths = [path for path in (self.name_or_path, self.adapter) if path]
        ends = "+".join(path.rstrip("/").rsplit("/", 1)[-1] for path in paths)
        name = given_name or visible(ends)
        return f"{name} (random weights)" if self.random_weights else name

    def config(self) -> dict[str, Any]:
        """Return all settings as plain values, for the config of a run."""
        assert self.kind != AUTO, "`with_model_type` comes first: one model, one key"
        return asdict(self)


# Shared defaults: settings are never changed in place.
DEFAULT_MODEL = ModelSettings()


@cache
def weights_bytes(model: ModelSettings) -> int:
    """Return the bytes of a local model's weights as they are trained; 0 where it is not known."""
    if (num_weights := model.type.num_weights) is not None:
        return 4 * num_weights
    base, adapters = base_of(model.checkpoint)
    num_bytes, size = 0, 2 if model.dtype in ("bfloat16", "float16") else 4
    for path in [p for f in (base.folder, *adapters) for p in f.glob("*.safetensors")]:
        with path.open("rb") as file:  # its 8 first bytes say how long the header is
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        for tensor in (entry for entry in header.values() if "shape" in entry):
            weight_size = 1 if tensor["dtype"].startswith("F8") else size
            num_bytes += weight_size * math.prod(tensor["shape"])
    return num_bytes


@cache
def lacks_word_head(model: ModelSettings) -> bool:
    """Return whether a model of type transformer is an encoder without a head over words."""
    if model.kind != TRANSFORMER or model.checkpoint.in_memory:
        return False
    ref = replace(model.checkpoint, random_weights=False)
    description, _ = _fitting_types(ref, *_FILL_MASKS)
    if names_word_head(description.family, description.architectures):
        return False  # without importing transformers
    from probelight.models import loading

    return loading.lacks_word_head(ref)


# Ends of the names of transformers' classes with a head that Probelight can use, by model type.
CLASSES = {
    TRANSFORMER: ("ForMaskedLM", "ForPreTraining", "WithLMHeadModel", "ForMultipleChoice"),
    "causal": ("ForCausalLM", "LMHeadModel"),
    "seq2seq": ("ForConditionalGeneration",),
}
_FILL_MASKS = ("ForMaskedLM", "ForPreTraining")  # as most of a folder that is given as such
# A class that ends so was trained for something else than to say which words come.
_OTHER_HEAD = re.compile(
    r"For(?!CausalLM|ConditionalGeneration|MaskedLM|PreTraining|MultipleChoice)\w+$"
)
_CALLED = {"causal": "causal language model", "seq2seq": "encoder-decoder language model"}


@dataclass(frozen=True)
class _Description:
    """What the config and the class of a model say about its type."""

    source: str  # as the user gave it
    family: str  # its `model_type`
    architectures: tuple[str, ...]  # its class, or those that it was saved from; some name none
    is_one_way: bool  # whether a family that could read both ways is set to read one way

    @classmethod
    def of(cls, source: str, config: Mapping[str, Any]) -> _Description:
        """Read the keys of a config.json, or of transformers' settings as a mapping."""
        classes = config.get("architectures")
        names = tuple(map(str, classes)) if isinstance(classes, list | tuple) else ()
        # The last one is XLM's word for it.
        one_way = any(config.get(key) for key in ("is_encoder_decoder", "is_decoder", "causal"))
        return cls(source, str(config.get("model_type")), names, one_way)

    @property
    def class_names(self) -> str:
        """The architectures, or else the family, as messages name them."""
        names = ", ".join(self.architectures)
        return visible(f"architectures {names}" if names else f"model_type {self.family}")

    @property
    def subject(self) -> str:
        """The model, its family and its classes, as messages begin."""
        return f"{self.source}: {self.family} ({self.class_names})"

    def ends_in(self, *endings: str) -> bool:
        """Return whether a class that it was saved from has a name with one of these ends."""
        return any(name.endswith(endings) for name in self.architectures)

    def line(self, kind: str) -> str:
        """Return the line that says of which type it is."""
        fills_masks = self.ends_in(*_FILL_MASKS, "LMHeadModel")
        title = _CALLED.get(kind) or ("masked language model" if fills_masks else "encoder")
        return f"{self.source}: {title} ({self.class_names})"

    def doubt(self, kind: str) -> str:
        """Return why it was made for something else than its type; "" if it was not."""
        # XLMWithLMHeadModel and the like fill masks, or read one way: their config says it.
        one_way = self.ends_in("ForCausalLM", "LMHeadModel") and not self.ends_in("WithLMHeadModel")
        if kind == "causal" and self.ends_in("ForMaskedLM"):
            return "fills masks, but its config makes it a causal model"
        if kind == TRANSFORMER and (one_way or self.is_one_way):
            return "claims both to be a causal model and to fill masks"
        if kind != TRANSFORMER and any(map(_OTHER_HEAD.search, self.architectures)):
            return "was trained for a task other than predicting words"
        return ""


def detected_type(model: CheckpointRef | Any) -> tuple[str, str]:
    """Return the type of a checkpoint, or of a transformers model in memory, and a line about it.

    Raises:
        UsageError: If it is of no type, or of several, or was made for something else.
        PretrainedError: If there is no such checkpoint.
    """
    hint = ""
    if isinstance(model, CheckpointRef) and model.in_memory:
        model, _ = model.in_memory
    if isinstance(model, CheckpointRef):
        if is_word_folder(model.folder):
            kind = saved_model_type(model)
            raise UsageError(
                f"{visible(str(model))} has a trained baseline (kind {kind}), which works only as "
                f"--original.checkpoint; --models {kind} trains a new one"
            )
        description, fitting = _fitting_types(model, "ForMaskedLM", "BertForPreTraining")
        hint = (
            "; to use it anyway, give --model.kind {kind} with --model.name_or_path, or `kind` in "
            "a model's config"
        )
    else:
        name = type(model).__name__
        named_types = [kind for kind, endings in CLASSES.items() if name.endswith(endings)]
        if not named_types:
            raise UsageError(
                f"a {name} has no language-model or multiple-choice head; give a class whose name "
                f"ends in one of {', '.join(end for ends in CLASSES.values() for end in ends)}"
            )
        description = _Description.of(
            f"a {name}", {**model.config.to_dict(), "architectures": [name]}
        )
        # Of a class of the user's own its name decides.
        is_own = not type(model.config).__module__.startswith("transformers.")
        fitting = named_types[:1] if is_own else _types_admitting(model.config)
    if not fitting:
        end = "; an encoder alone predicts no words" if description.ends_in("EncoderModel") else ""
        raise UsageError(
            f"{description.subject} is not a kind of language model that Probelight can load{end}"
        )
    if len(fitting) > 1:
        either = " or ".join(f"--model.kind {kind}" for kind in fitting)
        raise UsageError(
            f"{description.subject} can be loaded as more than one kind; give {either}"
        )
    [kind] = fitting
    if why := description.doubt(kind):
        raise UsageError(
            f"{description.source} ({description.class_names}) {why}{hint.format(kind=kind)}"
        )
    return kind, description.line(kind)


def refuse_other_type(kind: str, ref: CheckpointRef) -> None:
    """Refuse a folder whose config.json says that it is of another type than `kind`.

    Models of the Hub may not be here yet; they are refused when they are first read.
    """
    if ref.in_memory or not MODEL_TYPES[kind].has_checkpoint:
        return
    base, _ = base_of(ref)
    if not Path(resolve(base.name)).is_dir() or is_word_folder(base.folder):
        return
    description, fitting = _fitting_types(base, *_FILL_MASKS)
    if kind in fitting:
        return
    from probelight.models.loading import read_config

    config = read_config(base)
    subject = f"{description.source}: {config.model_type} ({type(config).__name__}) is"
    if not fitting:
        raise PretrainedError(f"{subject} not a kind of language model that Probelight can load")
    title = _CALLED.get(fitting[0], "masked language model")
    article = "an" if title.startswith("e") else "a"
    raise PretrainedError(
        f"{subject} {article} {title}, but another kind is expected (model.kind {kind}); give "
        f"model.kind {fitting[0]}"
    )


def saved_model_type(ref: CheckpointRef) -> str:
    """Return the type of the model in a folder: a baseline's is written in it, others are plain."""
    if is_word_folder(ref.folder):
        kind, path = word_settings(ref.folder).get("kind"), ref.folder / WORD_SETTINGS
    elif (saved := head_settings(ref)) is not None:
        kind, path = saved.get("kind", TRANSFORMER), ref.folder / HEAD_SETTINGS
    elif (base_of(ref)[0].folder / CONFIG).is_file():
        # A language model needs no head to choose among continuations.
        return next(iter(_fitting_types(ref, *_FILL_MASKS)[1]), TRANSFORMER)
    else:
        return TRANSFORMER
    if not (isinstance(kind, str) and kind in MODEL_TYPES):
        raise PretrainedError(f"{path}: there is no model kind {kind!r}")
    return kind


def _fitting_types(ref: CheckpointRef, *masked: str) -> tuple[_Description, list[str]]:
    """Return what a checkpoint's config says, and the types that it admits.

    Classes with these ends are taken for masked models, so that nothing heavy is imported for most.
    """
    base, _ = base_of(ref)
    folder, source = Path(resolve(base.name)), visible(str(ref))
    if folder.is_dir():
        description = _Description.of(source, check_config(folder))
        if description.ends_in(*masked) and not description.is_one_way:
            return description, [TRANSFORMER]
    from probelight.models.loading import read_config

    config = read_config(base)
    return _Description.of(source, config.to_dict()), _types_admitting(config)


def _types_admitting(config: Any) -> list[str]:
    """Return the types that load a model with transformers' config in a form which admits it."""
    return [
        name
        for name, model_type in MODEL_TYPES.items()
        if model_type.has_checkpoint
        and any(form.admits(config) for form in module_of(model_type).FORMS.values())
    ]
