"""The registry of model types, and the typed settings that the protocols and their configs share.

A model type is one module in `probelight.models` and its entry in `MODEL_TYPES`, which names the
module and its classes, so that nothing heavy is imported here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from probelight.encoding.vector_source import vectors_label
from probelight.io import ranges
from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.io.package import BUNDLED_MODEL
from probelight.metrics.scoring_rules import LETTER
from probelight.models.checkpoint_files import (
    CONFIG,
    HEAD_SETTINGS,
    WORD_SETTINGS,
    PretrainedError,
    base_of,
    check_config,
    head_settings,
    is_word_folder,
    model_folder,
    scoring_of,
    type_of_class,
    word_settings,
)
from probelight.models.tuning import FULL_TUNING, Tuning
from probelight.probes.record import GoldForm, Record, Setup
from probelight.results.row import Role, Row


@dataclass(frozen=True)
class Trained:
    """How a model type is trained for a setup."""

    made_by: str  # the module's class, as "module:Class"
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
    """Return a baseline that sees a part of the input, trained as ESIM is."""
    made_by = f"probelight.lightning_modules.baselines.partial_input:{name}"
    trained = Trained(made_by, ("vectors", "max_length"), halves_rate=True)
    return ModelType(title=title, fit="esim", num_weights=num_weights, trained={"mc_qa": trained})


TRANSFORMER = "transformer"
AUTO: Final = "auto"  # no type: a setting that `with_model_type` resolves
FULL: Final = "full"  # the mode of a curve in which the whole network is fine-tuned
_CHECKPOINT = ("name_or_path", "revision", "random_weights", "max_length", "dtype")
_PLACES = re.compile(r"auto|balanced|balanced_low_0|sequential|cpu|mps|cuda(:\d+)?")


def _continuations(scorer: str) -> ModelType:
    """Return a type of language models that choose among continuations, trained as they score."""
    made_by = "probelight.lightning_modules.causal_choice:CausalChoice"
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
                "probelight.lightning_modules.masked_choice:MaskedChoice",
                (*_CHECKPOINT, "answer_prefix", "multi_token"),
                modes=("mlp", "linear"),
            ),
            "mc_qa": Trained(
                "probelight.lightning_modules.sentence_choice:SentenceChoice",
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
                "probelight.lightning_modules.baselines.mlm_baseline:MLMBaseline",
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
                "probelight.lightning_modules.baselines.esim:ESIM",
                ("vectors", "max_length"),
                halves_rate=True,
            )
        },
    ),
    "seq2seq": _continuations("probelight.models.seq2seq"),
    "choice_only": _partial_input("ChoiceOnly", "Choice-only", 184_576),
    "choice_to_choice": _partial_input("ChoiceToChoice", "Choice-to-choice", 185_344),
    "question_to_choice": _partial_input("QuestionToChoice", "Question-to-choice", 185_344),
    "vec_similarity": ModelType(
        title="VecSimilarity", scorer="probelight.lightning_modules.baselines.vec_similarity"
    ),
}


def saved_model_type(folder: str | Path) -> str:
    """Return the type of the model in a folder: a baseline's is written in it, others are plain."""
    if is_word_folder(folder):
        kind, path = word_settings(folder).get("kind"), model_folder(folder) / WORD_SETTINGS
    elif (saved := head_settings(str(folder))) is not None:
        kind, path = saved.get("kind", TRANSFORMER), model_folder(folder) / HEAD_SETTINGS
    elif (path := model_folder(base_of(str(folder))[0]) / CONFIG).is_file():
        # A language model needs no head to choose among continuations.
        classes = check_config(path.parent).get("architectures") or [""]
        if (kind := type_of_class(str(classes[0]))) in (None, "seq2seq"):
            kind = _type_of_config(str(folder))  # seconds, as transformers must know
    else:
        return TRANSFORMER
    if not (isinstance(kind, str) and kind in MODEL_TYPES):
        raise PretrainedError(f"{path}: there is no model kind {kind!r}")
    return kind


def _type_of_config(folder: str) -> str:
    """Return the type of a checkpoint that its config admits, a masked language model's if any."""
    from probelight.models.loading import CAUSAL_LM, SEQ2SEQ_LM, read_config

    config = read_config(folder)
    forms = {"causal": CAUSAL_LM, "seq2seq": SEQ2SEQ_LM}
    return next((kind for kind, form in forms.items() if form.admits(config)), TRANSFORMER)


@dataclass(frozen=True)
class ModelSettings(ranges.Settings):
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
    kind: Annotated[str, ranges.OneOf(MODEL_TYPES, AUTO)] = TRANSFORMER
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
        known = MODEL_TYPES.get(self.kind)
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
            if known and not known.has_checkpoint and value not in (AUTO, None):
                raise UsageError(
                    f"model.{name} {value} is only for models with a checkpoint, and kind "
                    f"{self.kind} has none; leave it out"
                )

    @property
    def checkpoint(self) -> str:
        """What loads the model: `name_or_path`, with the adapter behind it if there is one."""
        return f"{self.name_or_path}+{self.adapter}" if self.adapter else self.name_or_path

    def gold_labels(self, setup: Setup, records: Sequence[Record]) -> list[tuple[int]]:
        """Return (N, 1) the label of each gold choice, if the model is asked for labels alone."""
        is_scored = self.kind in ("causal", "seq2seq")
        by_letter = is_scored and scoring_of(self.checkpoint, self.scoring, setup) == LETTER
        return [(record.answer,) for record in records] if by_letter else []

    @property
    def label(self) -> str:
        """The model's name in tables; a baseline's names its vectors."""
        chosen = visible(self.name.strip()) if self.name else ""
        if title := MODEL_TYPES[self.kind].title:
            return chosen or f"{title} ({vectors_label(self.vectors)})"
        paths = [path for path in (self.name_or_path, self.adapter) if path]
        ends = "+".join(path.rstrip("/").rsplit("/", 1)[-1] for path in paths)
        name = chosen or visible(ends)
        return f"{name} (random weights)" if self.random_weights else name

    @property
    def role(self) -> Role:
        """Its role in tables: with random weights it is a control."""
        if MODEL_TYPES[self.kind].is_baseline:
            return "baseline"
        return "control" if self.random_weights else "model"

    @property
    def row(self) -> Row:
        """The columns of results.csv that say which model was measured."""
        return Row(model=self.label, role=self.role, kind=self.kind)

    def config(self) -> dict[str, Any]:
        """Return all settings as plain values, for the config of a run."""
        assert self.kind != AUTO, "`with_model_type` comes first: one model, one key"
        return asdict(self)


@dataclass(frozen=True)
class FileSettings(ranges.Settings):
    """A user's probe in a file, without a config.

    Args:
        path: A .jsonl, .jsonl.gz, .csv or .tsv file with the columns sentence, gold and choices, or
            in AI2's format. For minimal pairs, a file with BLiMP's fields, or a table
            with the right sentence in its first column.
        setup: "mc_mlm" (one [MASK] in each stem), "mc_qa" (questions with answers) or
            "minimal_pair" (whole sentences); by default that of the items.
        choices: Choices of every item, by commas, for a table without a column choices.
        gold: How golds name their choice: by its "text", a "letter", or its number from 0 ("index")
            or 1 ("index1"). By default in the one way that fits all golds of the file.
        name: Name of the probe in tables; by default the name of the file.
    """

    path: str | None = None
    setup: Setup | None = None
    choices: ranges.Names = ()
    gold: GoldForm | None = None
    name: str | None = None


@dataclass(frozen=True)
class SplitFiles(ranges.Settings):
    """A user's probe in several files, without a config, where something is trained.

    Args:
        train: File to train on: .jsonl, .jsonl.gz, .csv or .tsv, with the columns sentence,
            gold and choices, or in AI2's format.
        dev: File to measure on.
        test: Another file to measure on.
        setup: "mc_mlm" (one [MASK] in each stem) or "mc_qa" (questions with answers); by default
            that of the items.
        choices: Choices of every item, by commas, for tables without a column choices.
        gold: How golds name their choice: by its "text", a "letter", or its number from 0 ("index")
            or 1 ("index1"). By default in the one way that fits all golds of a file.
        name: Name of the probe in tables; by default what the file names have in common, or the
            name of their folder.
    """

    train: str | None = None
    dev: str | None = None
    test: str | None = None
    setup: Literal["mc_mlm", "mc_qa"] | None = None
    choices: ranges.Names = ()
    gold: GoldForm | None = None
    name: str | None = None

    @property
    def paths(self) -> dict[str, str]:
        """Split to file, of those that are given."""
        given = {"train": self.train, "dev": self.dev, "test": self.test}
        return {split: path for split, path in given.items() if path}


@dataclass(frozen=True, kw_only=True)
class Fit(ranges.Settings):
    """The settings of every training.

    Args:
        learning_rate: Peak learning rate.
        epochs: Number of passes over the training examples.
        batch_size: Examples per optimiser step, over all processes.
        tuning: Which weights to train.
    """

    learning_rate: ranges.LearningRate = 1e-5
    epochs: ranges.NumEpochs = 3
    batch_size: ranges.BatchSize = 16
    tuning: Tuning = FULL_TUNING

    def num_steps(self, num_items: int) -> int:
        """Return the optimiser steps of a training on so many examples."""
        return self.epochs * math.ceil(num_items / self.batch_size)


@dataclass(frozen=True, kw_only=True)
class FitSettings(Fit):
    """How a whole network is fine-tuned on a probe. The defaults are the authors' (Talmor 2020).

    Args:
        epochs: Number of passes over the sample; with `patience` the maximum.
        weight_decay: Weight decay of all weights except biases and norms.
        max_grad_norm: Clip gradients to this norm. By default they are not clipped.
        patience: Stop after this many epochs without better accuracy on the held-out rows, and
            report the best epoch. By default train all epochs and report the last.
        held_out: Share of the train rows to hold out for early stopping, in whole groups. Used only
            with `patience`.
    """

    epochs: ranges.NumEpochs = 4
    weight_decay: ranges.WeightDecay = 0.1
    max_grad_norm: ranges.GradNorm | None = None
    patience: ranges.NumEpochs | None = None
    held_out: ranges.Share = 0.1


# Shared defaults: settings are never changed in place.
DEFAULT_MODEL = ModelSettings()
DEFAULT_FILE = FileSettings()
DEFAULT_FILES = SplitFiles()


def several_choices(choices: Sequence[str]) -> list[str]:
    """Return the choices of `--data.choices`; raise UsageError for one alone."""
    if len(choices) == 1:
        raise UsageError(f"--data.choices {choices[0]}: give two or more, separated by commas")
    return list(choices)
