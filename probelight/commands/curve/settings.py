"""Settings of learning curves: points, controls and training (Talmor 2020, sections 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal

from probelight.io import ranges
from probelight.io.errors import ConfigError, UsageError
from probelight.io.settings import Settings
from probelight.models.registry import FULL, MODEL_TYPES
from probelight.probes.controls import STANDARD, control_named
from probelight.probes.user_files import UserFiles, measured_split
from probelight.training.settings import ESIM_FIT, MLM_FIT, Fit, FitSettings

_NO_CONTROL = (
    "language controls need `arguments`, which only a probe's config can declare: docs/own_probe.md"
)
PROTOCOL = "curve"
FIRST_STAGE = "curve_first_stage"
Mode = ranges.HeadMode | Literal["full"]
UNTRAINED: Final = "zero_shot"  # the mode of a job that scores without training


@dataclass(frozen=True)
class CurveSettings(Settings):
    """The points of a learning curve and how each is trained.

    Args:
        sizes: N, numbers of training examples; those above the number of train rows are left out.
        seeds: Seeds; one training per point and seed.
        modes: For MC-MLM probes: "mlp" trains the head's transform and decoder, "linear" only the
            decoder. In causal and encoder-decoder models the transform is fresh, and "full"
            fine-tunes the whole model. MC-QA probes always fine-tune the whole model.
        controls: Versions of the probe to train and measure: "standard", "no_language",
            "perturbed_language", "shuffled_words", "choice_only", "other_question".
        learning_rate: One peak rate per mode, the same for all models and probes.
        epochs: Passes over the sample of a head; the last epoch is reported.
        batch_size: Examples per step of a head.
        train_split: Split that samples are drawn from.
        split: Split to measure.
        train_from: Split to divide into rows to train on and rows to measure: one for all probes,
            or {probe: split} for those that have no train file.
        train_share: Share of that split to train on, in whole groups; the rest is measured.
        train_probe: Train on the `train_split` of another probe instead: one for all probes, or
            {probe: other probe}.
        split_seed: Seed of the division of `train_from` and of the rows held out for early
            stopping.
        mlm_baseline: How the head of the MLM-baseline is trained.
        full: How a whole transformer is fine-tuned.
        esim: How ESIM and the partial-input baselines are trained.
    """

    sizes: Annotated[list[ranges.NumItems], ranges.Distinct(1)] = field(
        default_factory=lambda: [62, 125, 250, 500, 1000, 2000, 4000]
    )
    seeds: Annotated[list[ranges.Seed], ranges.Distinct(1)] = field(
        default_factory=lambda: [1, 2, 3, 4, 5, 6]
    )
    modes: Annotated[list[Mode], ranges.Distinct(1)] = field(
        default_factory=lambda: ["mlp", "linear"]
    )
    controls: Annotated[list[str], ranges.Distinct(1)] = field(
        default_factory=lambda: [STANDARD, "no_language", "perturbed_language"]
    )
    learning_rate: dict[str, ranges.LearningRate] = field(
        default_factory=lambda: {"mlp": 1e-3, "linear": 1e-3}
    )
    epochs: ranges.NumEpochs = 4
    batch_size: ranges.BatchSize = 16
    train_split: str = "train"
    split: str = "dev"
    train_from: str | dict[str, str] | None = None
    train_share: ranges.Share = 0.6
    train_probe: str | dict[str, str] | None = None
    split_seed: ranges.Seed = 0
    mlm_baseline: FitSettings = field(default_factory=lambda: MLM_FIT)
    full: FitSettings = field(default_factory=FitSettings)
    esim: FitSettings = field(default_factory=lambda: ESIM_FIT)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.controls:
            try:
                if name != STANDARD:
                    control_named(name)
            except ConfigError as error:
                raise UsageError(f"grid.controls: {error}") from None

    def of_probe(self, name: Literal["train_from", "train_probe"], probe: str) -> str | None:
        """Return `train_from` or `train_probe` of one probe; None where it is not set."""
        value: str | dict[str, str] | None = getattr(self, name)
        return value.get(probe) if isinstance(value, Mapping) else value

    def head_fit(self, mode: ranges.HeadMode, kind: str) -> Fit:
        """Return how a head is trained, on a frozen model or of a baseline, by its type."""
        if not MODEL_TYPES[kind].is_pretrained:
            return self.fit_of(kind)
        rate = self.learning_rate[mode]
        return Fit(learning_rate=rate, epochs=self.epochs, batch_size=self.batch_size)

    def fit_of(self, kind: str) -> FitSettings:
        """Return how a baseline of this type, or a whole transformer, is trained."""
        fit: FitSettings = getattr(self, MODEL_TYPES[kind].fit)
        return fit


@dataclass(frozen=True)
class ProbeOptions(Settings):
    """How all probes of a command are posed (Talmor 2020)."""

    setup: Literal["mc_qa"] | None = None  # also MC-MLM probes as questions (figure 2D)
    variant: str | None = None  # that the probes' configs declare, such as "but_not"
    first_stage: str | None = None  # `name:split` of a probe, or a file, to train on first


def check_grid(settings: CurveSettings, probes: list[str]) -> None:
    """Refuse modes without a rate, and settings of probes that the command does not have."""
    if missing := set(settings.modes) - {FULL} - set(settings.learning_rate):
        raise UsageError(
            f"grid.learning_rate has no rate for mode {min(missing)}: give one, or leave "
            f"{min(missing)} out of grid.modes"
        )
    for key in ("train_from", "train_probe"):
        named = getattr(settings, key)
        unknown = set(named) - set(probes) if isinstance(named, Mapping) else set()
        if unknown:
            raise UsageError(
                f"grid.{key} names {min(unknown)!r}, which is not one of the probes "
                f"{', '.join(probes)}"
            )


def fitting_grid(
    grid: CurveSettings, user_files: UserFiles, random_weights: bool = False
) -> CurveSettings:
    """Return the settings for files without a config: with the controls and splits they have."""
    files, config = user_files.data_by_split, user_files.config
    if grid.controls == CurveSettings().controls:
        grid = replace(grid, controls=[STANDARD])
        consequence = (
            "random weights will be the only control"
            if random_weights
            else "No control will be run, so the verdict will be “cannot tell” or “not shown”; to "
            "add one: --random_weights true, or --grid.controls standard,choice_only"
        )
        print(f"{config.name}: {consequence} ({_NO_CONTROL})")
    for name in grid.controls:
        if name != STANDARD and control_named(name).needs_arguments:
            raise UsageError(f"--grid.controls {name} with --data.*: {_NO_CONTROL}")
    if divided_split := grid.of_probe("train_from", config.name):
        measured_split(files, divided_split)
        return grid
    if not grid.of_probe("train_probe", config.name) and grid.train_split not in files:
        raise UsageError(
            f"nothing to train on: give --data.train FILE, or divide the {next(iter(files))} file "
            f"(--grid.train_from {next(iter(files))})"
        )
    if files.keys() == {grid.train_split}:
        [path] = [file.path for file in files[grid.train_split].files]
        raise UsageError(
            "nothing to measure on: give --data.dev FILE or --data.test FILE, or divide the one "
            f"file (--data.dev {path} --grid.train_from dev, without --data.{grid.train_split})"
        )
    return replace(grid, split=measured_split(files, grid.split))
