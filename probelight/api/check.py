"""`probelight.check`: what a fine-tuning broke, from Python and in a test."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probelight.api.call import ModelLike, called, probe_names, trainer_of
from probelight.io.errors import ProbelightError, UsageError
from probelight.probes.importers.items import ProbeLike
from probelight.reports.notebook import Results

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from probelight.io.wandb import WandbSettings
    from probelight.runs.estimates import Plan
    from probelight.runs.settings import TrainerSettings


class ForgottenError(ProbelightError, AssertionError):
    """A check found that a probe was forgotten; the message has the line of each."""


class Checked(Results):
    """The results of a check; as text they are one line per probe."""

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """A row per probe: its `verdict`, the `reason`, and the numbers that they rest on."""
        from probelight.reports.forgetting import changed
        from probelight.results.load import load_results

        rows = changed(load_results(self.folder))
        return rows[[name for name in rows.columns if not name.startswith("_")]]

    @property
    def lines(self) -> list[str]:
        """A line per probe, as the command prints them."""
        from probelight.reports.verdicts import lines

        return lines(self.verdicts)

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def raise_if_forgotten(self) -> None:
        """Raise ForgottenError if a probe was forgotten; nothing happens if it cannot be told."""
        words = self.verdicts.verdict
        broken = [
            line
            for line, word in zip(self.lines, words, strict=False)  # the last one is of all
            if word == "forgot"
        ]
        if broken:
            raise ForgottenError("\n".join(["the fine-tuning made the model forget:", *broken]))


def check(
    before: ModelLike | Results,
    after: ModelLike | Results | None = None,
    probes: ProbeLike | Sequence[ProbeLike] = (),
    *,
    panel: str = "shipped",
    split: str = "test",
    limit: int | None = None,
    margin: float = 5.0,
    base_results: str | Path | None = None,
    device: str | None = None,
    batch_tokens: int | None = None,
    dry_run: bool = False,
    output_dir: str | Path | None = None,
    mirror: str | None = None,
    trainer: TrainerSettings | Mapping[str, Any] | None = None,
    wandb: WandbSettings | Mapping[str, Any] | None = None,
) -> Checked | Plan:
    """Say what a fine-tuning broke: one verdict per probe on a model before it and after it.

    Args:
        before: The model before: a name, a folder, or a transformers model and its tokenizer as a
            pair. Or an adapter's folder alone, whose base is then before. Or results that have its
            answers; then `after` is results too.
        after: The model after.
        probes: As in `zero_shot`; by default those of the panel.
        panel: "shipped", ten small probes; "knowledge", standard sets of the Hub; "language",
            agreement and BLiMP; or "all" of them.
        split: Split of the probes, unless `name:split` names one.
        limit: As in `zero_shot`.
        margin: The loss of accuracy that does not matter, in percentage points.
        base_results: Folder of an earlier check or zero-shot, whose answers are taken over.
        device: As in `zero_shot`.
        batch_tokens: As in `zero_shot`.
        dry_run: Ask nothing, and return how many runs it would take, and how much time, as a
            `Plan`.
        output_dir: As in `zero_shot`.
        mirror: As in `zero_shot`.
        trainer: As in `zero_shot`.
        wandb: As in `curve`.

    Raises:
        ProbelightError: With the command's message; its subclasses are kinds of mistakes.
    """
    from probelight.commands.check import check as command

    measured = [model for model in (before, after) if isinstance(model, Results)]
    if len(measured) == 1:
        raise UsageError("check: give two models, or two results")
    with called(command, output_dir, trainer_of(trainer, device, batch_tokens)) as call:
        call.take(panel=panel, split=split, limit=limit, margin=margin, dry_run=dry_run)
        call.take(mirror=mirror, wandb=wandb)
        call.take(base_results=None if base_results is None else Path(base_results))
        call.take(probes=probe_names(probes, call.folder))
        models = [m for m in (before, after) if m is not None and not isinstance(m, Results)]
        call.take(models=[*(str(r.folder) for r in measured), *map(call.model_name, models)])
        if dry_run:
            plan: Plan = call.run()
            return plan
        call.run()
        return call.removed_with(Checked(call.folder, "forgetting"))
