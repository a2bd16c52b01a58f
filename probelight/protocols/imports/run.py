"""Makes the run of what another program's file says of a set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from probelight.probes.splits import groups_of
from probelight.protocols.engine.predictions import (
    Predictions,
    classes_are_positions,
    near_tie_notices,
    score_notices,
)
from probelight.protocols.imports.fit import fitted
from probelight.protocols.imports.kept_scores import Kept, kept
from probelight.protocols.zero_shot.data import LoadedSet, checksums
from probelight.protocols.zero_shot.jobs import PROTOCOL
from probelight.protocols.zero_shot.pairs import pair_notices, pair_rows
from probelight.protocols.zero_shot.rows import zero_shot_rows
from probelight.results.importers.answers import Gold, Imported
from probelight.results.provenance import FromFiles, data_files
from probelight.results.record import ModelSource, RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder

BY_CHANCE = 1e-3  # how likely an order must be by chance not to tell of ranks
IMPORTED = "imported"  # how choices got their scores, and the kind of the model


@dataclass(frozen=True)
class Asked:
    """A run to make.

    Attributes:
        config: What names the run.
        one: The set.
        said: What was said of its items, in their order.
        files: The files that the numbers come from.
        origin: Where they come from, readable.
        notices: What else is to be said of the files.
        ranked: Whether each item's choices stand in the order of these scores.
    """

    config: Mapping[str, Any]
    one: LoadedSet
    said: Predictions
    files: tuple[FromFiles, ...]
    origin: str
    notices: tuple[str, ...]
    ranked: bool

    @property
    def of(self) -> tuple[str, str]:
        """Model and probe."""
        return self.config["model"], self.config["probe"]

    @property
    def mode(self) -> str:
        """How the choices got their scores."""
        return "_".join(filter(None, (IMPORTED, self.config.get("scores"))))

    @property
    def name(self) -> str:
        """Readable beginning of the run's key."""
        model, probe = self.of
        return f"import-{probe}-{model}"


def asked_of(
    form: str,
    found: Imported,
    model: str,
    one: LoadedSet,
    gold: Gold | None,
    scores: Kept,
    *,
    given: bool,
) -> Asked:
    """The run that a file makes; everything is checked before the first one is made.

    Args:
        form: The format.
        found: What the file says.
        model: What tables call the model.
        one: The set.
        gold: A second file of right choices, which the answers have by now.
        scores: What is kept of its scores.
        given: Whether the set is a probe, and not the items of a file of scores.

    Raises:
        RecordError: If what the file says does not fit the items one to one.
    """
    # The harness has the choices in the order of its documents.
    ranked = _are_ranked(fitted(found, one.data).scores, free=not given and form != "lm_eval")
    fit = fitted(replace(found, answers=kept(found.answers, scores)), one.data)
    records = one.data.records
    config = {
        "protocol": PROTOCOL,
        "model": model,
        "probe": one.name,
        "split": one.split,
        "data": checksums(one.data),
        IMPORTED: {"format": form, "sha256": found.file.sha256},
        **({"gold": gold.file.sha256} if gold else {}),
        **({"scores": scores} if scores != "as_given" else {}),
    }
    origin = (
        f"{model} on {one.name}: imported from {Path(found.file.path).name} ({form}), measured by "
        f"another program; {len(records)} item{'s' * (len(records) > 1)} "
        + (f"fitted by their {fit.by}" if one.data.files != found.files else "as the file has them")
        + ("" if scores == "as_given" else f", scores: {scores.replace('_', ' ')}")
    )
    files: tuple[FromFiles, ...] = (one.data, found, *([gold] if gold else []))
    said = Predictions(one.name, records, fit.scores)
    notices = (*one.data.notices, *found.notices)
    return Asked(config, one, said, files, origin, notices, ranked)


def _are_ranked(scores: Sequence[Sequence[float]], *, free: bool) -> bool:
    """Whether each item's choices stand in the order of their scores, and hardly by chance.

    Args:
        scores: Of each item, in the order of its choices.
        free: Whether that order is the file's own. In a given order a model may answer the first
            choice always, so that only how the others stand tells of ranks.
    """
    falls = all(row == sorted(row, reverse=True) for row in map(list, scores))
    rises = all(row == sorted(row) for row in map(list, scores))
    # Of n different scores, n! orders are as likely; of more than ten, ten are enough to tell.
    orders = (math.factorial(min(10, len(set(row)) - (not free))) for row in scores)
    return (falls or rises) and math.prod(1 / number for number in orders) < BY_CHANCE


def make_run(run: RunFolder, asked: Asked) -> None:
    """Write the run: rows as those of a zero-shot run, and every item's scores."""
    said, data = asked.said, asked.one.data
    model, probe = asked.of
    row = Row(
        protocol=PROTOCOL,
        model=model,
        probe=data.config.name,
        control="standard",
        mode=asked.mode,
        num_train=0,
        split=asked.one.split,
        role="model",
        kind=IMPORTED,
    )
    notices = [*score_notices(said), *near_tie_notices(said), *pair_notices(said.records)]
    if data.config.setup == "minimal_pair":
        rows = pair_rows(said, data, row)
    else:
        rows = zero_shot_rows(said, data, row, ranked=asked.ranked)
        if asked.ranked and classes_are_positions(data.config, said.records):
            notices.append(
                f"the choices of each item of {probe} stand in the order of a model's scores: "
                "their positions are ranks, so that there is no majority, macro accuracy or share "
                "by position"
            )
    run.write_metrics(rows)
    run.write_lines("predictions.jsonl", said.rows(groups_of(said.records, data.config.group_by)))
    imported = asked.config[IMPORTED]
    run.finish(
        RunRecord(
            protocol=PROTOCOL,
            model=model,
            probe=probe,
            rows=tuple(rows),
            counts={"items": len(said.records), "scored": len(said.records)},
            notices=(asked.origin, *asked.notices, *notices),
            data=data_files(asked.files),
            source=ModelSource(loaded_from=f"{imported['format']} import"),
            facts={IMPORTED: imported},
            versions={},
        )
    )
