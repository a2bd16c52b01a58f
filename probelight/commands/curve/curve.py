"""One curve: a model on a probe, with the rows that all models of its command have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from probelight.commands.curve.data import CurveData, load_curve_data, rows_for_model
from probelight.commands.curve.settings import CurveSettings, Mode, ProbeOptions
from probelight.io.errors import UsageError
from probelight.io.settings import Settings
from probelight.models.registry import FULL, ModelSettings, lacks_word_head
from probelight.probes.catalog import ProbeConfig
from probelight.probes.controls import (
    CONTROLS,
    NONSENSE_WORDS,
    STANDARD,
    NonsenseError,
    choose_nonsense,
    control_named,
)
from probelight.probes.record import Setup, group_of
from probelight.probes.source import ProbeData, load_file, load_probe
from probelight.runs.context import RunContext, cached
from probelight.training.modules import refuse_placed, trained_for
from probelight.training.settings import FitSettings

PRECISIONS = ("32-true", "16-mixed", "bf16-mixed")  # those of models.answering, which imports torch


@dataclass(frozen=True)
class FirstStage:
    """The facts that a model learns before a curve (Talmor 2020, section 4.5)."""

    facts: ProbeData  # the questions, all of which are trained on
    settings: FitSettings
    seed: int  # of head, order and dropout; one model is shared by all points

    def control_of(self, control: str) -> str:
        """Return the control that the facts are put under: standard where they declare none."""
        if control == STANDARD or not control_named(control).fits(self.facts.config):
            return STANDARD
        return control


@dataclass(frozen=True)
class CurveSpec(Settings):
    """One model on one probe, as a command traces it."""

    probe: str  # its name, or the path of a config
    model: ModelSettings
    models: tuple[ModelSettings, ...]  # all of the command: they share words and rows
    settings: CurveSettings
    options: ProbeOptions


@dataclass(frozen=True)
class Curve:
    """A curve with its rows, read as the context says."""

    spec: CurveSpec
    context: RunContext

    @property
    def model(self) -> ModelSettings:
        """The model of the curve."""
        return self.spec.model

    @property
    def settings(self) -> CurveSettings:
        """The points of the curve."""
        return self.spec.settings

    @property
    def fit(self) -> FitSettings:
        """How the whole network, or a baseline, is trained."""
        return self.settings.fit_of(self.model.kind)

    @cached_property
    def modes(self) -> list[Mode]:
        """How the model is trained on the probe; empty where it cannot answer it."""
        return traced_modes(self.model, self.data.setup, self.settings)

    @cached_property
    def data(self) -> CurveData:
        """The probe's rows, the same for all models; see `shared_rows`."""
        spec = self.spec
        return shared_rows(self.context, spec.probe, spec.models, spec.settings, spec.options)

    @cached_property
    def rows(self) -> CurveData:
        """The probe's rows with this model's points and held-out rows."""
        setup = self.data.setup
        answering = [model for model in self.spec.models if model.type.modes(setup) is not None]
        return rows_for_model(self.data, self.settings, [self.model, *answering])

    @property
    def first_stage(self) -> FirstStage | None:
        """What the model is trained on before; None without, and for probes without questions."""
        name = self.spec.options.first_stage
        if name is None or self.data.setup != "mc_qa":
            return None
        # Without patience: no row of the facts is held out.
        fit = replace(self.fit, patience=None)
        return FirstStage(first_stage_facts(self.context, name), fit, self.settings.seeds[0])


def traced_modes(model: ModelSettings, setup: Setup, settings: CurveSettings) -> list[Mode]:
    """Return how a model is trained on probes of a setup; empty where it cannot answer them."""
    heads = model.type.modes(setup)
    if heads is None:
        return []
    if not heads:
        return [FULL]
    return [mode for mode in settings.modes if mode in heads]


@cached(most=None)
def shared_rows(
    context: RunContext,
    probe: str,
    models: Sequence[ModelSettings],
    settings: CurveSettings,
    options: ProbeOptions,
) -> CurveData:
    """Return the rows of a probe that every model can pose, with words for every control."""
    data = load_curve_data(context, probe, settings, options)
    controls = settings.controls
    replaced = {CONTROLS[name].replaces for name in controls if name != STANDARD}
    if "the candidates" in replaced:
        data = replace(data, nonsense=nonsense_for(data.config, models))
    for control in controls:
        data.under(control)
    data = only_posed(data, models, controls)
    if options.first_stage is None or data.setup != "mc_qa":
        return data
    facts = first_stage_facts(context, options.first_stage).records
    first_stage_stems = {group_of(record, "stem") for record in facts}
    shared = sum(group_of(record, "stem") in first_stage_stems for record in data.evaluation)
    if not shared:
        return data
    num_rows = len(data.evaluation)
    notice = f"{shared} of {num_rows} measured questions are also in the first stage"
    return replace(data, notices=(*data.notices, notice))


@cached(most=1)
def first_stage_facts(context: RunContext, name: str) -> ProbeData:
    """Load the questions of a first stage: a file, or a probe's split as `name:split`."""
    if Path(name).is_file() and Path(name).suffix not in {".yaml", ".yml"}:
        return load_file(name, "mc_qa")
    probe, _, split = name.partition(":")
    facts = load_probe(probe, split or "train", mirror=context.mirror)
    if facts.config.setup != "mc_qa":
        raise UsageError(f"--first_stage {name}: it must be questions with answers (mc_qa)")
    return facts


def check_rows(
    probes: Sequence[str],
    models: Sequence[ModelSettings],
    settings: CurveSettings,
    options: ProbeOptions,
    context: RunContext,
) -> None:
    """Check models, sizes and splits against the probes' rows, before heavy imports."""
    num_curves, setups = 0, set()
    for name in probes:
        data = load_curve_data(context, name, settings, options)
        setups.add(data.setup)
        answering = [model for model in models if traced_modes(model, data.setup, settings)]
        for model in answering:
            refuse_placed(model)
            if FULL in traced_modes(model, data.setup, settings):
                trained_for(model, data.setup)
            rows_for_model(data, settings, [model, *answering])
            precision = context.trainer.precision
            if traced_modes(model, data.setup, settings) != [FULL] and precision not in PRECISIONS:
                precisions = ", ".join(PRECISIONS)
                raise UsageError(
                    f"--trainer.precision {precision}: for frozen encoders choose from {precisions}"
                )
        num_curves += len(answering)
    if options.first_stage and probes:
        if "mc_qa" not in setups:
            raise UsageError("--first_stage: none of the probes is asked as questions; see --setup")
        first_stage_facts(context, options.first_stage)
    if probes and not num_curves:
        model, setup = models[0], min(setups)
        poses = setup == "mc_mlm" and "mc_qa" in model.type.trained
        hint = " (--setup mc_qa turns them into questions)" if poses else ""
        trained_for(model, setup, f"the probes are {setup}{hint}")
        modes, allowed_heads = settings.modes, model.type.modes(setup) or ()
        raise UsageError(
            f"--grid.modes [{','.join(modes)}]: {model.label} has none of these heads; give "
            f"--grid.modes [{','.join(allowed_heads)}]"
        )


def nonsense_for(config: ProbeConfig, models: Sequence[ModelSettings]) -> dict[str, str]:
    """Return one meaningless word per candidate, one piece in every model compared.

    Baselines over word vectors take any word. A NonsenseError names the models that split words.
    """
    if not config.candidates:
        return {}
    # Only now: tokenizers import transformers, which takes seconds.
    from probelight.encoding.candidates import INSIDE, CandidateTable
    from probelight.models.loading import load_tokenizer

    words = list(dict.fromkeys([*config.nonsense.values(), *NONSENSE_WORDS]))
    split_by: dict[str, list[str]] = {word: [] for word in words}
    for model in _distinct_tokenizers(m for m in models if m.type.has_checkpoint):
        tokenizer = load_tokenizer(model.checkpoint)
        table = CandidateTable.of_words(tokenizer, model.answer_prefix, words)
        for word in words:
            if table.problem(INSIDE, word):
                split_by[word].append(model.label)
    try:
        return choose_nonsense(config, lambda word: not split_by[word])
    except NonsenseError as error:
        split = "; ".join(f"{w!r} in {', '.join(who)}" for w, who in split_by.items() if who)
        raise NonsenseError(
            f"{error}. Words that are not one token: {split}. Compare fewer models at once, or "
            "leave no_language out of grid.controls"
        ) from None


def only_posed(
    data: CurveData, models: Sequence[ModelSettings], controls: Sequence[str]
) -> CurveData:
    """Return the rows that every model with `multi_token: skip` can pose.

    A curve compares the same rows under all controls and in all models, so a row that one of them
    has to leave out is left out of all.
    """
    # To a model with heads of its own rows a candidate may be of several pieces.
    piece_models = [
        m for m in models if m.type.has_checkpoint and not (m.type.heads or lacks_word_head(m))
    ]
    skipping = [model for model in piece_models if model.multi_token == "skip"]
    if data.setup != "mc_mlm" or not skipping:
        return data
    from probelight.encoding.masked import MaskedChoiceEncoder
    from probelight.models.loading import load_tokenizer

    skipped_by_split: tuple[set[int], set[int]] = (set(), set())
    for model in _distinct_tokenizers(skipping):
        encoder = MaskedChoiceEncoder(
            load_tokenizer(model.checkpoint), model.answer_prefix, "skip", model.max_length
        )
        for control in controls:
            for skipped_rows, records in zip(skipped_by_split, data.under(control), strict=True):
                skipped_rows |= {skipped.position for skipped in encoder.encode(records).skipped}
    notices, posed_rows = list(data.notices), []
    for name, rows, skipped_rows in zip(
        ("train", "measured"), (data.train, data.evaluation), skipped_by_split, strict=True
    ):
        posed_rows.append(tuple(row for index, row in enumerate(rows) if index not in skipped_rows))
        if skipped_rows:
            notices.append(
                f"{len(skipped_rows)} of {len(rows)} {name} rows left out, because a candidate is "
                "not one token in every model"
            )
    train, evaluation = posed_rows
    if not train or not evaluation:
        raise UsageError(f"{data.config.name}: in no row is each candidate one token in all models")
    return replace(data, train=train, evaluation=evaluation, notices=tuple(notices))


def _distinct_tokenizers(models: Iterable[ModelSettings]) -> Iterator[ModelSettings]:
    """Yield the first model of each tokenizer and answer prefix."""
    seen_keys = set()
    for model in models:
        key = (replace(model.checkpoint, random_weights=False), model.answer_prefix)
        if key not in seen_keys:
            seen_keys.add(key)
            yield model
