"""What an audit is asked to do: all of it decides numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from probelight.io.errors import UsageError
from probelight.io.ranges import NotEmpty, Seed, Settings, Share
from probelight.protocols.curve.settings import ESIM_FIT
from probelight.protocols.engine.kinds import KINDS
from probelight.protocols.engine.settings import FitSettings

PROTOCOL = "audit"
TRANSFORMER_FIT = FitSettings(learning_rate=2e-5, epochs=3)


@dataclass(frozen=True)
class AuditSettings(Settings):
    """How baselines are trained on a probe.

    Args:
        seeds: Each baseline is trained once with each.
        train_share: Of a probe that has one file, the share that is trained on, whole groups.
        split_seed: Seeds that division, and which train items stop a training.
        fit: How baselines over vectors are trained; `held_out` of the train items stop it.
        transformer: How a whole transformer is, which sees the choices alone. Without patience its
            last epoch is measured (Richardson 2020 trains for three).
    """

    seeds: Annotated[list[Seed], NotEmpty()] = field(default_factory=lambda: [0])
    train_share: Share = 0.7
    split_seed: Seed = 0
    fit: FitSettings = field(default_factory=lambda: replace(ESIM_FIT, patience=5))
    transformer: FitSettings = field(default_factory=lambda: TRANSFORMER_FIT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.transformer.patience is not None and self.fit.patience is None:
            raise UsageError(
                "training.transformer.patience needs training.fit.patience, by which train items "
                "are held out"
            )

    def config(self) -> dict[str, Any]:
        """As plain values, without `transformer` in its default: runs keep their keys."""
        said = asdict(self)
        if self.transformer == TRANSFORMER_FIT:
            del said["transformer"]
        return said

    def fit_of(self, kind: str) -> FitSettings:
        """How a model of this kind is trained."""
        return self.transformer if KINDS[kind].has_checkpoint else self.fit


DEFAULT_AUDIT = AuditSettings()
