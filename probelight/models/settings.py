"""Which model is probed, and how its inputs are written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Annotated, Any, Literal

from probelight.encoding.vector_source import vectors_label
from probelight.io import ranges
from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.io.package import BUNDLED_MODEL
from probelight.io.settings import Settings
from probelight.metrics.scoring_rules import LETTER
from probelight.models.checkpoint_files import CheckpointRef, base_of, scoring_of
from probelight.models.registry import AUTO, MODEL_TYPES, TRANSFORMER, ModelType
from probelight.probes.record import Record, Setup

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
        if title := MODEL_TYPES[self.kind].title:
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


def model_type_of(model: ModelSettings) -> ModelType:
    """Return the type of a model."""
    return MODEL_TYPES[model.kind]


@cache
def weights_bytes(model: ModelSettings) -> int:
    """Return the bytes of a local model's weights as they are trained; 0 where it is not known."""
    if (num_weights := model_type_of(model).num_weights) is not None:
        return 4 * num_weights
    base, adapters = base_of(model.checkpoint)
    num_weights = 0
    for path in [p for f in (base.folder, *adapters) for p in f.glob("*.safetensors")]:
        with path.open("rb") as file:  # its 8 first bytes say how long the header is
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        shapes = (entry["shape"] for entry in header.values() if "shape" in entry)
        num_weights += sum(math.prod(shape) for shape in shapes)
    return (2 if model.dtype in ("bfloat16", "float16") else 4) * num_weights
